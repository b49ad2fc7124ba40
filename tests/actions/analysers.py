"""Analysers as a user would write them."""


def lengths(text, chunks):
    """How long the text is, and how many chunks and pages it has."""
    return {"characters": len(text), "chunks": len(chunks), "pages": sorted({each.page for each in chunks})}


def bad(text, chunks):
    """No mapping."""
    return [text, chunks]
