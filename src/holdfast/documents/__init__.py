"""Documents: their bytes, their text, and the chunks that are embedded and searched.

Read `parse/records` (the result of parsing), `parse/parser` (how, and within which limits), `chunk` (where
text is cut, and why an edit moves few of the cuts), then `blobs` and `fetch`.
"""
