"""Documents: their bytes, their text, and the chunks that are paid for and searched.

Read `parse/records` (what a document becomes), `parse/parser` (how, and within which limits), `chunk` (where
the cuts are, and why an edit moves few of them), then `blobs` and `fetch`.
"""
