"""Recognised pages: the pages of a slice that have no text layer, read by OCR, each picture once.

Recognising a page takes seconds, so the result is stored as soon as it is there, by a key of its picture: a
slice that is done again after a crash, an edit of the document and a new version find it.
"""

import importlib.metadata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from holdfast import extras
from holdfast.core import keys
from holdfast.core.errors import WorkError
from holdfast.documents.parse import ocr_languages, wire
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import DPI, Format, GapReason, Page, PageReading, RecognisedPage
from holdfast.engine.work import Work
from holdfast.store.base.database import Database
from holdfast.store.library import page_texts

# Incremented whenever the same picture would give another text.
VERSION = "2"
EXTRA = "ocr"
MODES = ("auto", "on", "off")
# A page below this confidence is left out: it would fill the index with rubbish.
LEAST_CONFIDENCE = 50
NOT_INSTALLED = 'OCR is not installed: pip install "holdfast[ocr]"'
# One page too large or too hard does not fail its document.
_OF_ONE_PAGE = frozenset({"parse_timeout", "parse_memory", "broken_file", "too_large"})


def unavailable(mode: str, languages: str) -> str | None:
    """Why pages are not recognised here, in words; None if they are."""
    if mode == "off":
        return "OCR is off; set HOLDFAST_OCR=auto (or the option ocr of the collection)"
    if not extras.is_installed(EXTRA):
        return NOT_INSTALLED
    lacking = ocr_languages.missing_languages(languages)
    return ocr_languages.MISSING.format(languages=", ".join(lacking)) if lacking else None


def check(mode: str, languages: str) -> None:
    """Raise WorkError `ocr_missing` if OCR is required and cannot run."""
    reason = unavailable(mode, languages)
    if mode == "on" and reason is not None:
        raise WorkError(f"HOLDFAST_OCR is on, but {reason}", code="ocr_missing")


def key(picture: str, languages: str) -> str:
    """The key of a page's text: its picture, and everything that decides how it is read."""
    return keys.digest("ocr", VERSION, _engine(), languages, str(DPI), picture)


@cache
def _engine() -> str:
    try:
        return f"tesserocr-{importlib.metadata.version('tesserocr')}"
    except importlib.metadata.PackageNotFoundError:
        return "none"


class Recognition:
    """Recognises the pages of slices."""

    def __init__(self, db: Database, parser: Parser) -> None:
        self._db = db
        self._parser = parser

    def pages(
        self,
        work: Work,
        path: Path,
        form: Format,
        readings: Sequence[PageReading],
        languages: str,
        *,
        password: str | None = None,
    ) -> list[Page]:
        """What OCR says of the pages that could not be read; each has blocks, or the reason for its gap."""
        pictures = {each.page: key(each.picture, languages) for each in readings if each.picture}
        known = page_texts.known(self._db, work.claim, sorted(set(pictures.values())))
        pages, fresh = [], 0
        for number, name in pictures.items():
            text = known.get(name)
            if text is None:
                work.check()
                try:
                    page = self._parser.recognise(path, form, number, languages, password=password)
                except WorkError as error:
                    if error.code not in _OF_ONE_PAGE:
                        raise
                    work.note(f"page {number} could not be recognised: {error.message}")
                    pages.append(Page(number, (), gap=GapReason.OCR_FAILED))
                    continue
                text = known[name] = wire.recognised_to(page)
                page_texts.keep(self._db, work.claim, name, text)
                fresh += 1
            pages.append(recognised_page(number, text))
        work.note(
            f"recognised {fresh} of {len(pictures)} pages without text, {len(pictures) - fresh} known before"
        )
        return pages


def recognised_page(number: int, text: Mapping[str, Any]) -> Page:
    """What stored text means as a page; one that is left out has the reason."""
    page: RecognisedPage = wire.recognised_from(text)
    if page.blank:
        return Page(number, ())
    if not page.blocks:
        return Page(number, (), gap=GapReason.NOTHING_RECOGNISED)
    if page.confidence < LEAST_CONFIDENCE:
        return Page(number, (), confidence=page.confidence, gap=GapReason.LOW_CONFIDENCE)
    return Page(number, page.blocks, confidence=page.confidence)
