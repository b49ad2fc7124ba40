"""One way into all formats: outline, read, thumbnail. It lives in the child.

A `Reader` remembers the document it opened last, because a plan is followed by the reading of what was
planned: documents of one slice are parsed once for both, and sheets are read forward from where the last
slice ended.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from holdfast.core.errors import WorkError
from holdfast.documents.parse import archive, sniff
from holdfast.documents.parse.records import (
    ARCHIVES,
    SHEETS,
    Format,
    Limits,
    Outline,
    Page,
    Slice,
    Unit,
    has_text,
)


class Opened(Protocol):
    """A document that can be asked for its outline and its slices."""

    def outline(self) -> Outline:
        """The document at a glance."""

    def ahead(self, wanted: Slice) -> bool:
        """True while the slice can still be read from here; otherwise open the document again."""

    def read(self, wanted: Slice) -> list[Page]:
        """The pages of the slice."""


class Whole:
    """A document that is one slice, parsed in full."""

    def __init__(self, document_format: Format, title: str | None, pages: Sequence[Page]) -> None:
        """Keep the pages; `no_text` when there is nothing on them."""
        if not has_text(pages):
            raise WorkError("there is no text in the document", code="no_text")
        self._format = document_format
        self._title = title
        self._pages = pages

    def outline(self) -> Outline:
        """The slides of a deck, the parts of all else."""
        unit = Unit.SLIDE if self._format is Format.PPTX else Unit.PART
        return Outline(self._format, unit, self._pages[-1].number, self._title)

    def ahead(self, wanted: Slice) -> bool:  # noqa: ARG002 (all of it is here)
        """Any slice can be read at any time."""
        return True

    def read(self, wanted: Slice) -> list[Page]:
        """The pages of the slice."""
        return [page for page in self._pages if wanted.first <= page.number <= wanted.last]


class Reader:
    """Reads documents within limits of size. Limits of time and memory are those of the process around it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._key: tuple[object, ...] = ()
        self._document: Opened | None = None

    def outline(self, path: Path, name: str) -> Outline:
        """The outline of a file, its format told by its content."""
        return self._opened(path, sniff.sniff(path, name)).outline()

    def read(self, path: Path, document_format: Format, wanted: Slice) -> list[Page]:
        """The pages of a slice."""
        document = self._opened(path, document_format)
        if not document.ahead(wanted):
            self._key = ()
            document = self._opened(path, document_format)
        return document.read(wanted)

    def thumbnail(self, path: Path, document_format: Format, width: int) -> bytes:
        """A PNG of the first page of a PDF, of a plain sheet for all else."""
        if document_format is Format.PDF:
            from holdfast.documents.parse import pdf  # noqa: PLC0415 (loads PDFium)

            return pdf.thumbnail(path, width)
        from holdfast.documents.parse import thumbnails  # noqa: PLC0415 (loads Pillow)

        return thumbnails.placeholder(document_format, width)

    def _opened(self, path: Path, document_format: Format) -> Opened:
        """The document, opened now or still open from the last request."""
        about = path.stat()
        key = (str(path), document_format, about.st_ino, about.st_size, about.st_mtime_ns)
        if self._document is None or self._key != key:
            self._document = None  # freed before the next one is loaded
            self._document = _open(path, document_format, self._limits)
            self._key = key
        return self._document


def _open(path: Path, document_format: Format, limits: Limits) -> Opened:
    if document_format in ARCHIVES:
        archive.check(path, limits)
    if document_format is Format.PDF:
        from holdfast.documents.parse import pdf  # noqa: PLC0415 (loads PDFium)

        return pdf.Pdf(path, limits)
    if document_format in SHEETS:
        from holdfast.documents.parse import sheets  # noqa: PLC0415 (loads calamine)

        return sheets.Rows(path, document_format, limits)
    if document_format is Format.HTML:
        from holdfast.documents.parse import html  # noqa: PLC0415 (loads lexbor)

        return Whole(document_format, *html.read(path, limits.bytes))
    if document_format is Format.DOCX:
        from holdfast.documents.parse import office  # noqa: PLC0415 (kept with its kind)

        return Whole(document_format, *office.read_docx(path))
    if document_format is Format.PPTX:
        from holdfast.documents.parse import office  # noqa: PLC0415 (as above)

        return Whole(document_format, *office.read_pptx(path))
    raise WorkError(f"{document_format.value} is not read in the child", code="unknown_format")
