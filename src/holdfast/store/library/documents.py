"""Documents as uploaded. The state of their processing is on the heads.

A document's row says which content is wanted; the request that follows creates the generation. Two uploads of
the same bytes into one collection race for one row of a unique index, and the loser gets the winner's
document.

A request locks the head first and then reads the document's row; deleting ends the head's work before it
removes the row, and again after that. So a request for a document that is being deleted either sees no row,
or is ended by the second pass. The row is written while the head is locked, in the same order as in a
publication: in the other order the two would deadlock.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Container
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, bindparam, exc, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import subjects
from holdfast.core.errors import NotFoundError, StoreUnavailableError
from holdfast.core.records import RequestResult
from holdfast.core.states import Disposition, Status
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import documents, heads
from holdfast.store.library import quotas
from holdfast.store.library.collections import COLLECTION_KEPT, no_collection
from holdfast.store.library.quotas import UNLIMITED, Quota
from holdfast.store.protocol import publish_seq

# How often a transaction that lost a race against a deletion or an equal upload is retried.
TRIES = 5


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """Where a document's content comes from, and its digest."""

    digest: str
    size: int
    source: str
    name: str = ""
    url: str | None = None
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A document and the state of its indexing. The facts are those of the published generation."""

    tenant: str
    id: str
    collection: str
    title: str
    name: str
    source: str
    url: str | None
    etag: str | None
    last_modified: str | None
    digest: str
    size: int
    options: Mapping[str, Any]
    format: str | None
    pages: int | None
    chunks: int | None
    thumbnail: str | None
    created_at: float
    updated_at: float
    head_id: int | None
    status: Status
    generation: int
    published_generation: int
    visible: bool
    run_id: str | None
    fingerprint: str

    @property
    def has_content(self) -> bool:
        """False for an imported document without content; no other is without."""
        return self.size > 0


def source_of(document: Document) -> DocumentSource:
    """Where the document's content comes from, and its digest."""
    return DocumentSource(**{name: getattr(document, name) for name in DocumentSource.__dataclass_fields__})


_ROW = [documents.c[name] for name in Document.__dataclass_fields__ if name in documents.c]
_HEAD = [
    heads.c.id.label("head_id"),
    heads.c.status,
    heads.c.generation,
    heads.c.published_generation,
    heads.c.visible,
    heads.c.run_id,
    heads.c.fingerprint,
]
_of_document = and_(
    heads.c.tenant == documents.c.tenant,
    heads.c.kind == subjects.INDEX,
    heads.c.subject == literal(subjects.DOCUMENT) + documents.c.id,
)
WITH_HEADS = documents.outerjoin(heads, _of_document)
_FOUND = select(*_ROW, *_HEAD).select_from(WITH_HEADS)
_live = ~documents.c.deleted
DOCUMENT = _FOUND.where(documents.c.tenant == bindparam("tenant"), documents.c.id == bindparam("id"), _live)
BY_DIGEST = _FOUND.where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    documents.c.digest == bindparam("digest"),
    _live,
)
PAGE = (
    _FOUND.where(
        documents.c.tenant == bindparam("tenant"),
        documents.c.collection == bindparam("collection"),
        documents.c.id > bindparam("after"),
        _live,
    )
    .order_by(documents.c.id)
    .limit(bindparam("limit"))
)
BY_NAMES = _FOUND.where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    key_in(documents.c.name, bindparam("names", type_=KeyList())),
    _live,
)
BY_DIGESTS = _FOUND.where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    key_in(documents.c.digest, bindparam("digests", type_=KeyList())),
    _live,
)


def selecting(*more: ColumnElement[Any]) -> Select[Any]:
    """The query for live documents; `of_row` takes its columns, except those in `more`."""
    return select(*_ROW, *_HEAD, *more).select_from(WITH_HEADS).where(_live)


def of_row(row: Mapping[str, Any]) -> Document:
    """The document of a row of `selecting`."""
    values = dict(row)
    values["options"] = row["options"] or {}
    values["status"] = Status(row["status"]) if row["status"] else Status.IDLE
    for name in ("generation", "published_generation"):
        values[name] = values[name] or 0
    values["visible"] = bool(row["visible"])
    values["fingerprint"] = row["fingerprint"] or ""
    return Document(**values)


def _document(row: Row[Any]) -> Document:
    return of_row(row._asdict())


def document(db: Database, tenant: str, document_id: str) -> Document | None:
    """The document, or None if it does not exist (any more)."""
    row = db.first(DOCUMENT, {"tenant": tenant, "id": document_id})
    return None if row is None else _document(row)


def page(db: Database, tenant: str, collection: str, *, after: str = "", limit: int = 100) -> list[Document]:
    """The documents of a collection after the id `after`, ordered by id."""
    values = {"tenant": tenant, "collection": collection, "after": after, "limit": limit}
    return [_document(row) for row in db.look(PAGE, values)]


def by_names(db: Database, tenant: str, collection: str, names: Container[str]) -> dict[str, list[Document]]:
    """The documents of a collection with these file names; for the same name, the latest last."""
    values = {"tenant": tenant, "collection": collection, "names": list(names)}
    by_name: dict[str, list[Document]] = {}
    for row in db.look(BY_NAMES, values):
        by_name.setdefault(row.name, []).append(_document(row))
    return {name: sorted(each, key=lambda one: one.updated_at) for name, each in by_name.items()}


def by_digests(db: Database, tenant: str, collection: str, digests: Container[str]) -> dict[str, Document]:
    """The documents of a collection with one of these contents."""
    values = {"tenant": tenant, "collection": collection, "digests": list(digests)}
    return {row.digest: _document(row) for row in db.look(BY_DIGESTS, values)}


NEW = upsert(documents).values(created_at=now(), updated_at=now()).on_conflict_do_nothing().returning(*_ROW)


@dataclass(frozen=True, slots=True)
class DocumentDraft:
    """A document about to be added."""

    id: str
    title: str
    source: DocumentSource
    options: Mapping[str, Any] | None = None


Request = Callable[[Tx, Document], RequestResult]
"""Requests that a document is indexed, inside the transaction that adds it."""


@dataclass(frozen=True, slots=True)
class AddedDocument:
    """The result of a draft: the document with its content, and the result of the request for it."""

    document: Document
    answer: RequestResult
    is_new: bool


def add(
    db: Database,
    tenant: str,
    collection: str,
    drafts: Sequence[DocumentDraft],
    request: Request,
    quota: Quota = UNLIMITED,
) -> dict[str, AddedDocument]:
    """By the draft's id, a new document or the existing one with that content; each is requested.

    One transaction for all: no document exists without a request. NotFoundError if the collection is deleted
    meanwhile; QuotaExceededError if they exceed the tenant's quota, which is this one unless it has its own.
    """

    def body(tx: Tx) -> dict[str, AddedDocument]:
        if tx.one(COLLECTION_KEPT, {"tenant": tenant, "id": collection}) is None:
            raise no_collection(collection)
        added: dict[str, AddedDocument] = {}
        for draft in sorted(drafts, key=lambda one: one.source.digest):
            document = _insert_or_get(tx, tenant, collection, draft)
            answer = request(tx, document)
            is_new = document.id == draft.id
            added[draft.id] = AddedDocument(asked_for(document, answer), answer, is_new=is_new)
            if not is_new:
                _check_live(tx, document)
        if any(each.is_new for each in added.values()):
            quotas.check(tx, tenant, quota)
        return added

    for _ in range(TRIES):
        with contextlib.suppress(_GoneError):
            return db.write("add_documents", body)
    raise StoreUnavailableError("documents with this content are being added and deleted; try again later")


_NO_HEAD = dict.fromkeys(column.key for column in _HEAD)


def _insert_or_get(tx: Tx, tenant: str, collection: str, draft: DocumentDraft) -> Document:
    """The new document of the draft, or the live one of the collection that has its content."""
    row = tx.one(NEW, row_of(tenant, collection, draft))
    if row is not None:
        return of_row(row._asdict() | _NO_HEAD)
    row = tx.one(BY_DIGEST, {"tenant": tenant, "collection": collection, "digest": draft.source.digest})
    if row is None:
        raise _GoneError
    return _document(row)


def row_of(tenant: str, collection: str, draft: DocumentDraft) -> dict[str, Any]:
    """The values of a new document's row."""
    return {
        "tenant": tenant,
        "id": draft.id,
        "collection": collection,
        "title": draft.title,
        "options": dict(draft.options) if draft.options else None,
        **{name: getattr(draft.source, name) for name in DocumentSource.__dataclass_fields__},
    }


def asked_for(document: Document, answer: RequestResult) -> Document:
    """The document as it is after the request, without reading it again."""
    if answer.disposition is Disposition.DUPLICATE:
        return dataclasses.replace(
            document,
            head_id=answer.head_id,
            status=answer.status or document.status,
            generation=answer.generation,
            run_id=answer.run_id,
        )
    if not answer.created:
        return document
    return dataclasses.replace(
        document,
        head_id=answer.head_id,
        status=Status.QUEUED,
        generation=answer.generation,
        run_id=answer.run_id,
    )


class _GoneError(Exception):
    """The document was deleted at the same moment; the transaction was rolled back."""


LIVE = select(documents.c.id).where(
    documents.c.tenant == bindparam("tenant"), documents.c.id == bindparam("id"), _live
)


def _check_live(tx: Tx, document: Document) -> None:
    """Return if the document was not deleted before its head was locked."""
    if tx.one(LIVE, {"tenant": document.tenant, "id": document.id}) is None:
        raise _GoneError


def no_document(document_id: str) -> NotFoundError:
    """The error for a missing document."""
    return NotFoundError(f"there is no document {document_id!r}", code="unknown_document")


def ask(db: Database, document: Document, request: Request) -> RequestResult:
    """The result of requesting a document; NotFoundError, without a request, if it is deleted."""

    def body(tx: Tx) -> RequestResult:
        answer = request(tx, document)
        _check_live(tx, document)
        return answer

    try:
        return db.write("ask_document", body)
    except _GoneError:
        raise no_document(document.id) from None


SET_SOURCE = (
    update(documents)
    .where(documents.c.tenant == bindparam("b_tenant"), documents.c.id == bindparam("b_id"), _live)
    .values(
        digest=bindparam("b_digest"),
        size=bindparam("b_size"),
        source=bindparam("b_source"),
        name=bindparam("b_name"),
        url=bindparam("b_url"),
        etag=bindparam("b_etag"),
        last_modified=bindparam("b_last_modified"),
        updated_at=now(),
    )
)
SIZE = (
    select(documents.c.size)
    .where(documents.c.tenant == bindparam("tenant"), documents.c.id == bindparam("id"), _live)
    .with_for_update()
)
CLASH = select(documents.c.id).where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    documents.c.digest == bindparam("digest"),
    documents.c.id != bindparam("id"),
    _live,
)


@dataclass(frozen=True, slots=True)
class Taken:
    """Another document of the collection has this content."""

    document_id: str


def set_source(
    db: Database, document: Document, source: DocumentSource, request: Request, quota: Quota = UNLIMITED
) -> RequestResult | Taken:
    """The document has this content from now on and is requested, in one transaction.

    If the request is refused nothing changes. NotFoundError if the document is deleted meanwhile;
    QuotaExceededError if its growth exceeds the tenant's quota.
    """
    name = {"tenant": document.tenant, "id": document.id}
    where = name | {"collection": document.collection, "digest": source.digest}
    values = {f"b_{name}": value for name, value in dataclasses.asdict(source).items()}

    def body(tx: Tx) -> RequestResult | Taken:
        if (other := tx.one(CLASH, where)) is not None:
            return Taken(str(other.id))
        answer = request(tx, dataclasses.replace(document, **dataclasses.asdict(source)))
        if answer.disposition is Disposition.REFUSED:
            return answer
        before = tx.one(SIZE, {"tenant": document.tenant, "id": document.id})
        if before is None:
            raise no_document(document.id)
        tx.execute(SET_SOURCE, values | {"b_tenant": document.tenant, "b_id": document.id})
        if source.size > before.size:
            quotas.check(tx, document.tenant, quota)
        return answer

    for _ in range(TRIES):
        # Another document got this content at the same time: the next try shows which.
        with contextlib.suppress(exc.IntegrityError):
            return db.write("set_source", body)
    return db.write("set_source", body)


CHANGE = (
    update(documents)
    .where(documents.c.tenant == bindparam("b_tenant"), documents.c.id == bindparam("b_id"), _live)
    .values(title=bindparam("b_title"), options=bindparam("b_options"), updated_at=now())
)


def change(
    db: Database,
    document: Document,
    *,
    title: str | None,
    options: Mapping[str, Any] | None,
    request: Request,
) -> RequestResult:
    """The document has this title, and these options merged into its own; an option of None is removed.

    New options are requested in the same transaction; if that is refused nothing changes, not even the title.
    NotFoundError if the document is deleted meanwhile.
    """
    name = {"tenant": document.tenant, "id": document.id}

    def body(tx: Tx) -> RequestResult:
        before = _there(tx, name)
        chosen = {**before.options, **(options or {})}
        chosen = {key: value for key, value in chosen.items() if value is not None}
        answer = RequestResult(
            Disposition.UNCHANGED, "title", before.head_id, before.run_id, before.generation, before.status
        )
        if options is not None:
            answer = request(tx, dataclasses.replace(before, options=chosen))
            if answer.disposition is Disposition.REFUSED:
                return answer
            if _there(tx, name).options != before.options:
                raise _GoneError  # changed by someone else before we locked the head
        new_title = before.title if title is None else title
        if new_title != before.title:
            # Before the row, in the same order as a publication. Readers cache titles by `publish_seq`.
            publish_seq.bump(tx, document.tenant, before.collection)
        values = {"b_title": new_title, "b_options": chosen or None}
        tx.execute(CHANGE, values | {"b_tenant": document.tenant, "b_id": document.id})
        return answer

    for _ in range(TRIES):
        with contextlib.suppress(_GoneError):
            return db.write("change_document", body)
    raise StoreUnavailableError("the document's options are being changed by others; try again later")


def _there(tx: Tx, name: Mapping[str, str]) -> Document:
    row = tx.one(DOCUMENT, name)
    if row is None:
        raise no_document(name["id"])
    return _document(row)


GONE = (
    update(documents)
    .where(documents.c.tenant == bindparam("b_tenant"), documents.c.id == bindparam("b_id"), _live)
    .values(deleted=True, updated_at=now())
)


def remove(db: Database, tenant: str, document_id: str) -> bool:
    """The document is gone for every reader; False if it did not exist."""
    values = {"b_tenant": tenant, "b_id": document_id}
    return db.write("remove_document", lambda tx: tx.execute(GONE, values).rowcount == 1 or tx.again)


FACTS = (
    update(documents)
    .where(documents.c.tenant == bindparam("b_tenant"), documents.c.id == bindparam("b_id"))
    .values(
        format=bindparam("b_format"),
        pages=bindparam("b_pages"),
        chunks=bindparam("b_chunks"),
        thumbnail=bindparam("b_thumbnail"),
    )
)


def put_facts(
    tx: Tx, tenant: str, document_id: str, *, form: str | None, pages: int, chunks: int, thumbnail: str | None
) -> None:
    """The facts of a document's published generation; part of the transaction that publishes it."""
    values = {"b_tenant": tenant, "b_id": document_id, "b_format": form, "b_pages": pages}
    tx.execute(FACTS, values | {"b_chunks": chunks, "b_thumbnail": thumbnail})
