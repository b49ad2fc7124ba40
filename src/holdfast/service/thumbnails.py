"""Thumbnails of first pages. Those of PDFs are made while indexing, all others when they are first requested.

Rendering a page takes longer than indexing a small text, and most pages are never looked at, so indexing
does not wait for it. A thumbnail is stored once rendered; if rendering fails, a placeholder is stored.
"""

import logging
import time

from holdfast.core.errors import WorkError
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse.pool import Parsers
from holdfast.documents.parse.records import Format
from holdfast.store.base.database import Database
from holdfast.store.library import thumbnails
from holdfast.store.library.documents import Document

log = logging.getLogger(__name__)

SECONDS = 10.0
# Nothing is wrong with the document: the next one who looks tries again.
_PASSING = frozenset({"parser_unfit", "blob_missing", "estimate_busy"})


class Thumbnails:
    """The pictures of an installation's documents."""

    def __init__(self, db: Database, shelf: Blobs, parsers: Parsers, seconds: float = SECONDS) -> None:
        self._db = db
        self._shelf = shelf
        self._parsers = parsers
        self._seconds = seconds

    def of(self, document: Document) -> bytes | None:
        """The picture of what is published, drawn now if nobody looked before; None without a picture."""
        if document.thumbnail is not None:
            with self._shelf.open(document.thumbnail) as file:
                return file.read()
        if not document.visible or not document.has_content or document.format not in set(Format):
            return None
        content = thumbnails.published_content(self._db, document)
        if content is None or not self._shelf.exists(content):
            return None
        picture = self._drawn(document, content, Format(document.format))
        thumbnails.keep(self._db, document, self._shelf.put(picture).digest)
        return picture

    def _drawn(self, document: Document, content: str, form: Format) -> bytes:
        path, until = self._shelf.path(content), time.monotonic() + self._seconds
        with self._parsers.lent(document.tenant, until) as parser:
            try:
                return parser.thumbnail(path, form, seconds=self._seconds)
            except WorkError as error:
                if error.code in _PASSING:
                    raise
                log.info("document %s gets a plain thumbnail: %s", document.id, error.message)
                return parser.placeholder(form)
