"""What a document's gaps mean, in sentences: the same for the command line, the API and the web UI."""

from collections.abc import Iterable

from holdfast.core.gaps import Gap

_SENTENCES = {
    "no_text_layer": "{pages} {have} no text; install OCR to read {them}",
    "low_confidence": "{pages} {were} left out because OCR could not read {them} with confidence",
    "nothing_recognised": "{pages} {show} nothing that OCR recognised as text",
    "ocr_failed": "{pages} could not be read by OCR",
    "damaged": "{pages} {are} damaged and could not be read",
}
_TODO = {
    "no_text_layer": 'Install OCR with pip install "holdfast[ocr]" (or set HOLDFAST_OCR if it is off), then'
    " index the document again.",
    "low_confidence": "Scan the pages again with a higher resolution, or set HOLDFAST_OCR_LANGUAGES to their"
    " language and index the document again.",
    "ocr_failed": "See the log of the run.",
    "damaged": "Upload the document again.",
}
_ONE = {"have": "has", "were": "was", "show": "shows", "are": "is", "them": "it"}
_MANY = {word: word for word in _ONE}


def sentence(gap: Gap) -> str:
    """One gap in plain words."""
    text = _SENTENCES.get(gap.reason, "{pages} could not be read")
    words = _ONE if gap.count == 1 else _MANY
    name = "Page" if gap.count == 1 else "Pages"
    return text.format(pages=f"{name} {gap.pages.replace('-', chr(0x2013))}", **words) + "."


def sentences(gaps: Iterable[Gap]) -> str:
    """All gaps in plain words; "" for none."""
    return " ".join(map(sentence, gaps))


def advice(gaps: Iterable[Gap]) -> str:
    """What can be done about them."""
    return " ".join(_TODO[gap.reason] for gap in gaps if gap.reason in _TODO) or "Nothing to do."


def summary(gaps: Iterable[Gap]) -> str:
    """How many pages are missing, for a column of a list; "" for none."""
    count = sum(gap.count for gap in gaps)
    return f"{count} {'page' if count == 1 else 'pages'} unread" if count else ""
