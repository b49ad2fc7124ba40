"""The kind `import`: a bundle becomes documents that are ready, and nothing that it brings along is paid for.

The plan reads the bundle from end to end before anything is written, so that a damaged one leaves nothing
behind. Then each part is a task: its vectors go to the ledger first, its documents after that, one by one,
each whole or not at all. Taken up again after a crash, a part finds what is there and leaves it.

Vectors of the model that the collection uses here answer queries. Those of any other are kept in the ledger
and answer none: such documents are found by their words, until somebody asks for them to be indexed anew.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import BinaryIO, cast

from holdfast.core import languages, subjects
from holdfast.core.errors import BadRequestError, FencedOutError, WorkError
from holdfast.core.records import Ask, Chunk, Claim, Fenced, Landed, Slice, Spent
from holdfast.documents import bundles
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse import properties
from holdfast.engine.job_specs import JobSpec
from holdfast.engine.kinds import Finish, Kind
from holdfast.engine.work import Work
from holdfast.kinds import bundle_edits, bundle_validation, edited_chunks, index
from holdfast.kinds.bundle_edits import BundleEdit, ImportedPlaces
from holdfast.kinds.bundle_validation import BundleChunk, BundleReader, Record
from holdfast.kinds.log_phrases import many
from holdfast.ledger.pay import Call
from holdfast.search import term_counts, tokenizer
from holdfast.store.base.database import Database, Tx
from holdfast.store.library import bundle_imports, collections, document_members, documents
from holdfast.store.library.bundle_imports import Arrival, ImportedCall
from holdfast.store.library.collections import Collection
from holdfast.store.library.documents import DocumentDraft, Facts
from holdfast.store.library.quotas import UNLIMITED, Quota
from holdfast.store.protocol import tasks
from holdfast.store.search import search_reads

NAME = "import"
VERSION = 1
BATCH = 200
# Chunks whose terms are counted together.
COUNTED = 2000
# How long a document is the import's alone. Nobody renews it: what is not published by then is indexed anew.
LEASE = 120.0


@dataclass(slots=True)
class Brought:
    """What a part came to."""

    documents: int = 0
    unchanged: int = 0
    chunks: int = 0
    vectors: int = 0
    words_only: int = 0
    without_bytes: int = 0

    @property
    def seen(self) -> int:
        """How many documents were dealt with."""
        return self.documents + self.unchanged + self.without_bytes


@dataclass(frozen=True, slots=True)
class ImportLimits:
    """How many bytes a document may have, and a bundle when it is unpacked."""

    document: int = 256 * 1024 * 1024
    expanded: int = 64 * 1024**3


@dataclass(slots=True)
class Staged:
    """The chunks of a document that were staged so far, and their terms, counted."""

    language: int
    chunks: int = 0
    counted: list[tuple[int, int, bytes]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, batch: list[Chunk], *, last: bool = False) -> None:
        """The batch is counted."""
        self.chunks += len(batch)
        self.texts += [each.words or "" for each in batch]
        if self.texts and (last or len(self.texts) >= COUNTED):
            self.counted.append(term_counts.encode(self.texts, self.language))
            self.texts = []


class Import:
    """The work of importing, in one process."""

    def __init__(
        self,
        db: Database,
        shelf: Blobs,
        defaults: index.Choices,
        limits: ImportLimits,
        quota: Quota = UNLIMITED,
    ) -> None:
        self._db = db
        self._quota = quota
        self._shelf = shelf
        self._defaults = defaults
        self._limits = limits

    def kind(self) -> Kind:
        """The kind to register."""
        spec = JobSpec(title="Import", parameters=None, stages=("documents",))
        return Kind(NAME, self.run, plan=self.plan, version=VERSION, job=spec)

    def plan(self, work: Work) -> list[Slice]:
        """A slice for each part, once the bundle was read to its end; a damaged one leaves nothing behind."""
        try:
            with bundles.opened(self._shelf.path(work.content), self._limits.expanded) as bundle:
                sizes = bundle_validation.verify(bundle, self._limits.document, work.check)
        except BadRequestError as error:
            if work.options.get("made"):
                collections.remove_if_empty(self._db, work.claim.tenant, work.claim.collection or "")
            raise WorkError(error.message, code=error.code) from error
        work.note(f"verified {many(sum(sizes), 'document')} in {many(len(sizes), 'part')}")
        parts = [
            Slice({"part": number, "documents": size}, weight=max(1, size))
            for number, size in enumerate(sizes, start=1)
        ]
        return parts or [Slice({"part": 0, "documents": 0})]

    def run(self, work: Work) -> Finish:
        """One part: its vectors are in the ledger, its documents are ready."""
        number, brought = int(work.payload["part"]), Brought()
        collection = collections.collection(self._db, work.claim.tenant, work.claim.collection or "")
        if collection is None:
            raise WorkError("the collection was deleted in the meantime", code="unknown_collection")
        if number:
            with bundles.opened(self._shelf.path(work.content), self._limits.expanded) as bundle:
                if not self._is_here(work, BundleReader(bundle.part(number)), brought):
                    self._keep_vectors(work, BundleReader(bundle.part(number)), brought)
                    self._bring_all(work, collection, BundleReader(bundle.part(number)), brought)
        work.note(f"imported {many(brought.documents, 'document')}, {brought.unchanged} already existed")
        return Finish({name: getattr(brought, name) for name in Brought.__dataclass_fields__})

    def _is_here(self, work: Work, reader: BundleReader, brought: Brought) -> bool:
        """True, and counted, when every document of the part answers queries in the collection already."""
        names = [(each.source.digest, each.external_id) for each in reader.documents()]
        reader.close()
        where = self._db, work.claim.tenant, work.claim.collection or ""
        by_digest = documents.by_digests(*where, {digest for digest, named in names if named is None})
        by_id = documents.by_external_ids(*where, {named for _, named in names if named is not None})
        known = [by_digest.get(digest) if named is None else by_id.get(named) for digest, named in names]
        if not all(each is not None and each.visible for each in known):
            return False
        brought.unchanged = len(names)
        return True

    def _keep_vectors(self, work: Work, reader: BundleReader, brought: Brought) -> None:
        for each in reader.documents():
            for batch in _batches(reader.pieces(each)):
                work.check()
                known = [
                    ImportedCall(_call(each, piece).key(work.claim.tenant), *each.model, piece.vector)
                    for piece in batch
                    if piece.vector
                ]
                _land(bundle_imports.keep_calls(self._db, work.claim, known))
                brought.vectors += len(known)
        reader.close()

    def _bring_all(self, work: Work, collection: Collection, reader: BundleReader, brought: Brought) -> None:
        total = int(work.payload["documents"])
        for each in reader.documents():
            work.check()
            self._bring(work, collection, reader, each, brought)
            stages = {"documents": (brought.seen, total)}
            work.progress(brought.seen, total, unit="documents", stages=stages)
        reader.close()

    def _bring(
        self, work: Work, collection: Collection, reader: BundleReader, record: Record, brought: Brought
    ) -> None:
        """The document is ready, or was here already, or cannot come; its share of the part was read."""
        arrived = self._content(reader, record)
        pieces = reader.pieces(record)
        edits = reader.edits(record)
        if arrived is None:
            brought.without_bytes += 1
        elif (claim := self._open(work, arrived, edits)) is None:
            brought.unchanged += 1
        else:
            here = index.choices(self._defaults, collection.options, record.options, stored=True)
            is_ours = record.model == (here.provider, here.model)
            places = ImportedPlaces(edits)
            staged = self._stage(work, claim, record, pieces, places, is_ours=is_ours)
            if staged is not None and self._publish(claim, arrived, staged, places):
                brought.documents += 1
                brought.chunks += staged.chunks
                brought.words_only += 0 if is_ours else staged.chunks
            else:
                brought.unchanged += 1  # somebody else has taken it on
        for _ in pieces:
            pass

    def _content(self, reader: BundleReader, record: Record) -> "Arrived | None":
        """The document with its bytes on the shelf; None when the bundle has none of them."""
        content = reader.content()
        stored = None
        if content is not None:
            stored = self._shelf.put(cast("BinaryIO", content), self._limits.document)
        picture = reader.content()
        thumbnail = self._shelf.put(cast("BinaryIO", picture)).digest if picture is not None else None
        if stored is None:
            return None
        if stored.digest != record.source.digest:
            raise WorkError("the bytes of a document do not match its digest", code="bad_bundle")
        return Arrived(record, stored.size, thumbnail)

    def _open(self, work: Work, arrived: "Arrived", edits: Sequence[BundleEdit]) -> Claim | None:
        """The right to bring the document; None when its content is in the collection already."""
        record, claim = arrived.record, work.claim
        ask = Ask(
            kind=index.NAME,
            subject=subjects.of_document("0"),
            content=record.source.digest,
            options=record.chosen,
            tenant=claim.tenant,
            collection=claim.collection,
            lane=claim.lane,
            priority=claim.priority,
            pipeline=f"{index.NAME}@{index.VERSION}",
            actor=f"import:{claim.run_id}",
        ).checked()
        ask = edited_chunks.with_edits(ask, bundle_edits.fingerprint(record.chosen, edits))
        source = replace(record.source, size=arrived.size)
        draft = DocumentDraft(
            secrets.token_hex(8),
            record.title,
            source,
            record.options,
            record.metadata,
            record.labels,
            title_given=record.title_given,
            edits=[each.edit for each in edits],
            external_id=record.external_id,
        )
        arrival = Arrival(draft, ask, self._db.token(), self._db.token())
        opened = bundle_imports.open_document(
            self._db, claim, arrival, owner=claim.owner, ttl=LEASE, quota=self._quota
        )
        if isinstance(opened, Fenced):
            _land(opened)
        return opened if isinstance(opened, Claim) else None

    def _stage(
        self,
        work: Work,
        claim: Claim,
        record: Record,
        pieces: Iterator[BundleChunk],
        places: ImportedPlaces,
        *,
        is_ours: bool,
    ) -> Staged | None:
        """The document's chunks are kept; None when it was taken out of our hands."""
        staged = Staged(languages.rules(record.language))
        for batch in _batches(pieces):
            work.check()
            chunks = [
                Chunk(
                    position=position,
                    text=piece.text,
                    page=piece.page,
                    call_key=_call(record, piece).key(claim.tenant) if is_ours and piece.vector else None,
                    data=data,
                    words=tokenizer.terms_of(piece.search, staged.language).words,
                )
                for piece in batch
                for position, data in [places.next(piece.data)]
            ]
            if isinstance(tasks.stage(self._db, claim, chunks), Fenced):
                return None
            staged.add(chunks)
        staged.add([], last=True)
        return staged

    def _publish(self, claim: Claim, arrived: "Arrived", staged: Staged, places: ImportedPlaces) -> bool:
        record = arrived.record

        def also(tx: Tx) -> None:
            for number, counted in enumerate(staged.counted):
                search_reads.put_counts(tx, replace(claim, ordinal=number), counted)

        def publish(_tx: Tx) -> Callable[[Tx], None]:
            return writes

        def writes(tx: Tx) -> None:
            facts = Facts(
                form=record.format,
                pages=record.pages,
                chunks=staged.chunks,
                thumbnail=arrived.thumbnail,
                unread=record.gaps,
                properties=record.properties,
                outline=record.outline,
                title=properties.title_of(record.properties),
                language=record.language,
            )
            name = subjects.document_id(claim.subject)
            documents.put_facts(tx, claim.tenant, name, facts, is_first=claim.generation == 1)
            where = claim.tenant, claim.collection or "", name
            document_members.link_by_content(tx, where, members=record.members, inside=record.inside)

        result = {"format": record.format, "pages": record.pages, "imported": True, **places.facts}
        unread = [gap.as_json() for gap in record.gaps]
        outcome = tasks.finish(
            self._db,
            claim,
            spent=Spent(),
            staged=staged.chunks,
            result=result | ({"gaps": unread} if unread else {}),
            publish=publish,
            also=also,
        )
        return isinstance(outcome, Landed)


@dataclass(frozen=True, slots=True)
class Arrived:
    """A document whose bytes are on the shelf."""

    record: Record
    size: int
    thumbnail: str | None


def _call(record: Record, piece: BundleChunk) -> Call:
    """The paid input that the vector of a chunk is the answer to."""
    provider, model = record.model
    return Call(provider, "embeddings", model, piece.embed)


def _batches(pieces: Iterator[BundleChunk]) -> Iterator[list[BundleChunk]]:
    while batch := list(islice(pieces, BATCH)):
        yield batch


def _land(outcome: Fenced | Landed) -> None:
    if isinstance(outcome, Fenced):
        raise FencedOutError(f"the write was refused: {outcome.reason}")
