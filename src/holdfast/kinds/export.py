"""The kind `export`: what is published in a collection at one moment, as one file.

All rows are read in one snapshot, so the file shows the collection as it was then, whatever is published or
deleted meanwhile. The bytes of documents are added after the snapshot: they never change, and outlive their
document by a day. A crash leaves nothing but the wish, and the work begins again.

The file is on the shelf like any other bytes. No row names it, so the sweep throws it away after a day.
"""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

import holdfast
from holdfast.core.errors import BadRequestError, WorkError
from holdfast.documents import bundles
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse import records
from holdfast.engine.job_specs import JobSpec
from holdfast.engine.kinds import Finish, Kind
from holdfast.engine.work import Work
from holdfast.kinds import bundle_edits, corpus
from holdfast.kinds.edited_chunks import FLOW
from holdfast.kinds.flows import index_steps
from holdfast.kinds.flows.library import FlowLibrary
from holdfast.kinds.flows.steps import Flow
from holdfast.kinds.log_phrases import many
from holdfast.ledger.pay import Call
from holdfast.store.base.database import Database, Tx
from holdfast.store.library import collections, exports
from holdfast.store.library.collections import Collection
from holdfast.store.library.exports import Links

NAME = "export"
VERSION = 1
# A part is closed when it has so many: what an import does in one task.
DOCUMENTS_PER_PART = 50
CHUNKS_PER_PART = 5000


@dataclass(slots=True)
class BundlePartDraft:
    """A part that is being gathered."""

    pieces: tuple[BinaryIO, BinaryIO, BinaryIO, BinaryIO] = field(
        default_factory=lambda: (bundles.scratch(), bundles.scratch(), bundles.scratch(), bundles.scratch())
    )
    documents: int = 0
    chunks: int = 0

    @property
    def is_full(self) -> bool:
        """True when it is large enough to be a task."""
        return self.documents >= DOCUMENTS_PER_PART or self.chunks >= CHUNKS_PER_PART

    def close(self) -> None:
        """Nothing of it is open."""
        for piece in self.pieces:
            piece.close()


@dataclass(slots=True)
class BundleContents:
    """What is in the bundle so far; `contents` has what is to be added to each part: content, thumbnail."""

    documents: int = 0
    chunks: int = 0
    vectors: int = 0
    models: set[tuple[str, str]] = field(default_factory=set)
    contents: list[list[tuple[str, str | None]]] = field(default_factory=list)


class Export:
    """The work of exporting, in one process."""

    def __init__(self, db: Database, shelf: Blobs) -> None:
        self._db = db
        self._shelf = shelf
        self._flows = FlowLibrary(db)

    def kind(self) -> Kind:
        """The kind to register."""
        return Kind(
            NAME,
            self.run,
            version=VERSION,
            soft_limit=6 * 3600.0,
            hard_limit=6 * 3600.0 + 300.0,
            job=JobSpec(title="Export", parameters=None, stages=("documents",)),
        )

    def run(self, work: Work) -> Finish:
        """The whole collection in one task: parts of one moment cannot be read at several."""
        name = work.subject.removeprefix("collection:")
        with tempfile.TemporaryFile() as file:
            collection, bill, writer = self._db.read(lambda tx: self._rows(tx, work, name, file))
            with closing(writer):
                missing = self._contents(work, bill, writer)
                writer.end(_manifest(collection, bill, writer.parts))
            file.seek(0)
            stored = self._shelf.put(file)
        totals = {"documents": bill.documents, "chunks": bill.chunks, "vectors": bill.vectors}
        return Finish({"file": stored.digest, "bytes": stored.size, **totals, "without_bytes": missing})

    def _rows(
        self, tx: Tx, work: Work, name: str, file: IO[bytes]
    ) -> tuple[Collection, BundleContents, bundles.Writer]:
        """Everything but the bytes of documents, all of one snapshot. It may be begun anew."""
        collection = collections.seen(tx, work.claim.tenant, name)
        if collection is None:
            raise WorkError("the collection was deleted in the meantime", code="unknown_collection")
        file.seek(0)
        file.truncate()
        bill = BundleContents()
        with ExitStack() as undo:
            writer = bundles.Writer(file)
            undo.callback(writer.close)
            part = undo.enter_context(closing(BundlePartDraft()))
            only = corpus.filter_of(work.options)
            for row, links in exports.published(tx, work.claim.tenant, name, only=only):
                work.check()
                if part.is_full:
                    writer.part(*part.pieces)
                    part.close()
                    part = undo.enter_context(closing(BundlePartDraft()))
                if not part.documents:
                    bill.contents.append([])
                self._document(tx, work, row, links, part, bill)
                bill.contents[-1].append((row.content, row.thumbnail))
            if part.documents:
                writer.part(*part.pieces)
            part.close()
            undo.pop_all()
        return collection, bill, writer

    def _document(
        self, tx: Tx, work: Work, row: Any, links: Links, part: BundlePartDraft, bill: BundleContents
    ) -> None:
        lines, chunks, vectors, edit_lines = part.pieces
        model = str(row.chosen.get("provider", "")), str(row.chosen.get("model", ""))
        flow = self._flow(work.claim.tenant, row.chosen)
        document = _flow_fields(row)
        number = 0
        positions: list[tuple[int, int]] = []
        for each in exports.chunks_of(tx, work.claim.tenant, row.head_id, row.generation):
            line: dict[str, Any] = {"page": each.page, "text": each.text, "data": each.data}
            if flow is not None:
                output = index_steps.stored_output(
                    flow, document, each.text, each.page, each.position, each.data
                )
                texts = {"embed": output.embed, "search": output.search}
                line |= {name: text for name, text in texts.items() if text != each.text}
            call = Call(model[0], "embeddings", model[1], str(line.get("embed", each.text)))
            known = each.result is not None and each.call_key == call.key(work.claim.tenant)
            vector = bytes(each.result) if known else b""
            chunks.write(bundles.line(line | {"vector": len(vector)}))
            vectors.write(vector)
            number += 1
            positions.append((each.slice, each.position))
            bill.vectors += known
            if known:
                bill.models.add(model)
            if number % exports.CHUNKS_AT_ONCE == 0:
                work.check()
        fields = (
            "title",
            "name",
            "source",
            "url",
            "etag",
            "last_modified",
            "options",
            "format",
            "pages",
            "gaps",
            "properties",
            "outline",
            "title_given",
            "language",
            "external_id",
        )
        about = {each: getattr(row, each) for each in fields}
        about |= {"metadata": row.metadata or {}, "labels": row.labels or []}
        edits = bundle_edits.written(tx, work.claim.tenant, row.id, row.head_id, positions)
        for edit in edits:
            edit_lines.write(bundles.line(edit))
        about |= {"edits": len(edits)} if edits else {}
        about |= {"members": links.members, "inside": links.inside}
        lines.write(bundles.line({**about, "digest": row.content, "chunks": number, "index": row.chosen}))
        part.documents += 1
        part.chunks += number
        bill.documents += 1
        bill.chunks += number

    def _flow(self, tenant: str, chosen: Mapping[str, Any]) -> Flow | None:
        """The flow that a document was indexed by; None if there is none, or it cannot be read any more."""
        try:
            return self._flows.find(tenant, str(chosen[FLOW])) if chosen.get(FLOW) else None
        except BadRequestError:
            return None

    def _contents(self, work: Work, bill: BundleContents, writer: bundles.Writer) -> int:
        """The bytes of every document are in the bundle; answers for how many there are none any more."""
        done = missing = 0
        for part, contents in enumerate(bill.contents[: writer.parts], start=1):
            with writer.content(part) as target:
                for content, thumbnail in contents:
                    work.check()
                    missing += not target.put(self._path(content))
                    target.put(self._path(thumbnail) if thumbnail else None)
                    done += 1
            work.note(f"wrote {done} of {many(bill.documents, 'document')}")
            stages = {"documents": (done, bill.documents)}
            work.progress(done, bill.documents, unit="documents", stages=stages)
        return missing

    def _path(self, digest: str) -> Path | None:
        try:
            return self._shelf.path(digest)
        except WorkError:
            return None


def _flow_fields(row: Any) -> dict[str, Any]:
    """The fields of an exported document that steps read."""
    is_paged = row.format in {each.value for each in records.PAGED}
    return {
        "format": row.format,
        "pages": row.pages if is_paged else 1,
        "language": row.language,
        "title": row.title,
        "name": row.name,
        "metadata": row.metadata or {},
    }


def _manifest(collection: Collection, bill: BundleContents, parts: int) -> bundles.Manifest:
    return bundles.Manifest(
        holdfast.__version__,
        collection.id,
        collection.title,
        collection.options,
        parts,
        bill.documents,
        bill.chunks,
        bill.vectors,
        tuple(sorted(bill.models)),
    )
