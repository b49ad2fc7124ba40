"""Originals: a document's bytes as they were uploaded, and its pages as images with a passage highlighted.

They belong to the published version, like search results; if there is none, to the latest content.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from holdfast.core.errors import BadRequestError, ConflictError, NotFoundError, WorkError
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse import wire
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.pool import Parsers
from holdfast.documents.parse.records import IMAGES, PAGED, Format, RecognisedPage, UnitRange
from holdfast.kinds import recognition
from holdfast.store.base.database import Database
from holdfast.store.library import document_passwords, documents, page_readings, page_texts, thumbnails
from holdfast.store.library.documents import Document
from holdfast.store.views import chunk_lists, reads
from holdfast.store.views.chunk_lists import ListedChunk

SECONDS = 20.0
MEDIA_TYPES = {
    Format.PDF: "application/pdf",
    Format.DOCX: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    Format.PPTX: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    Format.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    Format.XLS: "application/vnd.ms-excel",
    Format.ODS: "application/vnd.oasis.opendocument.spreadsheet",
    Format.ODT: "application/vnd.oasis.opendocument.text",
    Format.ODP: "application/vnd.oasis.opendocument.presentation",
    Format.EPUB: "application/epub+zip",
    Format.RTF: "application/rtf",
    Format.EML: "message/rfc822",
    Format.MSG: "application/vnd.ms-outlook",
    Format.JSON: "application/json",
    Format.JSONL: "application/x-ndjson",
    Format.XML: "application/xml",
    Format.NOTEBOOK: "application/x-ipynb+json",
    Format.CODE: "text/plain",
    Format.YAML: "application/yaml",
    Format.CSV: "text/csv",
    Format.TSV: "text/tab-separated-values",
    Format.HTML: "text/html",
    Format.MARKDOWN: "text/markdown",
    Format.TEXT: "text/plain",
    **{each: f"image/{each.value}" for each in IMAGES},
}
UNKNOWN = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Original:
    """The bytes of a document: their digest, their size, how they are called and what they are."""

    digest: str
    size: int
    name: str
    media_type: str


def has_pages(document: Document) -> bool:
    """True for a document whose pages can be shown as pictures."""
    return document.visible and document.has_content and document.format in PAGED


class Originals:
    """Gives the originals of an installation's documents."""

    def __init__(self, db: Database, shelf: Blobs, parsers: Parsers, seconds: float = SECONDS) -> None:
        self._db = db
        self._shelf = shelf
        self._parsers = parsers
        self._seconds = seconds

    def of(self, document: Document) -> Original:
        """The original of a document; ConflictError `no_content` for an imported one without its bytes."""
        digest = self._digest(document)
        form = Format(document.format) if document.visible and document.format in set(Format) else None
        media_type = UNKNOWN if form is None else MEDIA_TYPES.get(form, UNKNOWN)
        return Original(digest, self._shelf.path(digest).stat().st_size, _name(document, form), media_type)

    def open(self, original: Original) -> BinaryIO:
        """Its bytes."""
        return self._shelf.open(original.digest)

    def outline(self, document: Document) -> list[tuple[int, str, int]]:
        """The table of contents of the published version: level, title and page of each entry."""
        return documents.outline(self._db, document.tenant, document.id) if document.visible else []

    def pages(
        self, document: Document, *, after: tuple[int, int] = (-1, 0), limit: int
    ) -> page_readings.ReadPages:
        """How the pages of the published version were read; `after` is the slice and number of a page."""
        return page_readings.pages(self._db, document.tenant, document.id, after=after, limit=limit)

    def page(
        self, document: Document, number: int, width: int, *, chunk: tuple[int, int] | None = None
    ) -> bytes:
        """A page of the published version as a PNG; `chunk`, by slice and position, is marked on it.

        NotFoundError `no_page` for a page that is not there, or a document that has none.
        """
        if not has_pages(document):
            message = "pages are shown of published PDFs and images; read the text of this document instead"
            raise NotFoundError(message, code="no_page")
        digest = self._digest(document)
        path, form = self._shelf.path(digest), Format(document.format or "")
        password = document_passwords.of_content(self._db, document.tenant, digest)
        passage = self._chunk(document, chunk).original if chunk is not None else ""
        until = time.monotonic() + self._seconds
        with self._parsers.lent(document.tenant, until) as parser:
            try:
                recognised = self._recognised(document, parser, path, number, password) if passage else None
                return parser.page(
                    path,
                    form,
                    number,
                    width,
                    passage=passage,
                    recognised=recognised,
                    seconds=self._seconds,
                    password=password,
                )
            except WorkError as error:
                if error.code == "no_page":
                    raise NotFoundError(error.message, code="no_page") from error
                raise BadRequestError(error.message, code=error.code) from error

    def _chunk(self, document: Document, position: tuple[int, int]) -> ListedChunk:
        after = (position[0], position[1] - 1)
        seen = chunk_lists.listed(self._db, document, after=after, limit=1)
        for each in seen.chunks if seen is not None else ():
            if (each.slice, each.position) == position:
                return each
        raise NotFoundError("the published version has no such chunk", code="no_chunk")

    def _recognised(
        self, document: Document, parser: Parser, path: Path, number: int, password: str | None
    ) -> RecognisedPage | None:
        """What OCR read on a page, with the boxes of its words; None for a page with a text layer."""
        form, units = Format(document.format or ""), UnitRange(number, number)
        page = parser.read(path, form, units, password=password)
        picture = page[0].picture if page else None
        run = next(
            (
                each
                for each in reads.runs_of(self._db, document.head_id or 0)
                if each.run.generation == document.published_generation
            ),
            None,
        )
        if picture is None or run is None:
            return None
        key = recognition.key(picture, str(run.options.get("ocr_languages", "eng")))
        text = page_texts.of_pictures(self._db, document.tenant, [key]).get(key)
        return None if text is None else wire.recognised_from(text)

    def _digest(self, document: Document) -> str:
        if not document.has_content:
            message = "the document was imported without its content; upload it first"
            raise ConflictError(message, code="no_content")
        digest = thumbnails.published_content(self._db, document) if document.visible else document.digest
        if digest is None or not self._shelf.exists(digest):
            raise NotFoundError("the bytes of the document are missing", code="blob_missing")
        return digest


def _name(document: Document, form: Format | None) -> str:
    """The file's name, or the title with an ending."""
    name = document.name.replace("\\", "/").rpartition("/")[2]
    if name:
        return name
    endings = {Format.MARKDOWN: "md", Format.TEXT: "txt", Format.JPEG: "jpg", None: "bin"}
    return f"{document.title[:100]}.{endings.get(form) or str(form)}"
