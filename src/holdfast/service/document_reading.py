"""The chunks of a document as indexing would cut them, without indexing it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.documents.blobs import Blobs
from holdfast.documents.chunk import ChunkText
from holdfast.documents.parse import records
from holdfast.documents.parse.paid import PaidCallNeededError
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.pool import Parsers
from holdfast.engine.ready_documents import Passage
from holdfast.kinds import index
from holdfast.kinds.flows import index_steps
from holdfast.kinds.flows.steps import Flow
from holdfast.service import chunk_pages
from holdfast.service.estimate_clock import EstimateClock
from holdfast.store.base.database import Database
from holdfast.store.library.documents import Document
from holdfast.store.views import reads

ADVICE = "try a shorter document, or use the command: holdfast flow dry-run"


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """The chunks of a document, all of them if `is_whole`, and the fields that steps read of it."""

    pieces: Sequence[ChunkText]
    fields: Mapping[str, Any]
    is_whole: bool


def passages(db: Database, document: Document) -> list[Passage]:
    """The texts of the published version."""
    texts: list[Passage] = []
    after = (-1, -1)
    while document.head_id is not None and document.visible:
        page = reads.visible_chunks(db, document.head_id, after=after)
        if page is None or not page.chunks:
            break
        texts += [Passage(each.chunk.text, each.chunk.page) for each in page.chunks]
        after = (page.chunks[-1].slice, page.chunks[-1].chunk.position)
    return texts


class DocumentReading:
    """Reads stored documents in child processes, each within so many seconds."""

    def __init__(self, db: Database, shelf: Blobs, parsers: Parsers, seconds: float | None) -> None:
        self._db = db
        self._shelf = shelf
        self._parsers = parsers
        self._seconds = seconds

    def by_flow(self, tenant: str, document: Document, flow: Flow, chosen: index.Choices) -> ReadDocument:
        """The document as the flow cuts it; its first slice alone if no step needs the whole text.

        From its file; if that cannot be read here, from the published version. WorkError if there is neither.
        """
        clock = EstimateClock(self._seconds)
        with self._parsers.lent(tenant, clock.until) as parser:
            try:
                return self._from_file(parser, document, flow, chosen, clock)
            except (PaidCallNeededError, WorkError) as error:
                if isinstance(error, WorkError) and error.code == "parse_timeout":
                    raise clock.error(ADVICE) from error
                published = passages(self._db, document)
                if not published:
                    message = "the document cannot be read here, and no version of it is published yet"
                    raise WorkError(message, code="no_text") from error
            fields = index_steps.stored_fields(document)
            options = replace(chosen, **index_steps.split_options(flow, fields)).cutting()
            cut = parser.cut_pages(chunk_pages.joined(published), options, clock.left)
            return ReadDocument(cut.pieces or (), fields, is_whole=True)

    def _from_file(
        self, parser: Parser, document: Document, flow: Flow, chosen: index.Choices, clock: EstimateClock
    ) -> ReadDocument:
        path, name, parsers = self._shelf.path(document.digest), document.name, chosen.parsers
        outline = parser.outline(path, name, clock.left, parsers=parsers)
        fields = index_steps.document_fields(document, outline.format, index_steps.pages_of(outline))
        options = replace(chosen, **index_steps.split_options(flow, fields))
        slices = records.slices(outline, pages=options.slice_pages, rows=options.slice_rows)
        units = outline.whole if flow.reads_whole_document else slices[0]
        request = path, outline.format, units, options.cutting(), None, clock.left
        cut = parser.cut(*request, name=name, parsers=parsers)
        if not cut.pieces:
            raise WorkError("its first pages have no text that can be read without OCR", code="no_text")
        is_whole = flow.reads_whole_document or len(slices) == 1
        return ReadDocument(cut.pieces, {**fields, "language": cut.language}, is_whole)
