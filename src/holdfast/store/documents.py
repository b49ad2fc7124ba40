"""Collections and documents: what people gave us. What became of it is on the heads.

A document's row says which content is wanted; the request that follows makes the generation. Two uploads of
the same bytes into one collection race for one row of a unique index, and the loser is given the winner's
document.

A request locks the head first and looks at the document's row after it; deleting ends the head's work before
it takes the row away, and once more after that. So whoever asks for a document that is being deleted either
finds its row gone, or is ended by the second look. The row is written while the head is held, as a
publication does: in the other order the two would wait for each other.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Container
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, and_, bindparam, exc, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.errors import NotFoundError, StoreUnavailableError
from holdfast.core.records import Answer
from holdfast.core.states import Status
from holdfast.store.database import Database, Tx
from holdfast.store.dialect import Keys, key_in, now
from holdfast.store.schema import collections, documents, heads

KIND = "index"
# How often a transaction that lost a race against a deletion or an equal upload is begun anew.
TRIES = 5


def subject(document_id: str) -> str:
    """The subject of a document's work."""
    return f"document:{document_id}"


@dataclass(frozen=True, slots=True)
class Collection:
    """What is searched together. `options` are those that differ from the defaults."""

    tenant: str
    id: str
    title: str
    options: Mapping[str, Any]
    publish_seq: int
    created_at: float


@dataclass(frozen=True, slots=True)
class Source:
    """Where a document's content comes from, and which it is."""

    digest: str
    size: int
    source: str
    name: str = ""
    url: str | None = None
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A document and how its indexing stands. The facts are those of the published generation."""

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
    heads.c.kind == KIND,
    heads.c.subject == literal("document:") + documents.c.id,
)
_FOUND = select(*_ROW, *_HEAD).select_from(documents.outerjoin(heads, _of_document))
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
    key_in(documents.c.name, bindparam("names", type_=Keys())),
    _live,
)
BY_DIGESTS = _FOUND.where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    key_in(documents.c.digest, bindparam("digests", type_=Keys())),
    _live,
)


def _document(row: Row[Any]) -> Document:
    values = row._asdict()
    values["options"] = row.options or {}
    values["status"] = Status(row.status) if row.status else Status.IDLE
    for name in ("generation", "published_generation"):
        values[name] = values[name] or 0
    values["visible"] = bool(row.visible)
    values["fingerprint"] = row.fingerprint or ""
    return Document(**values)


def document(db: Database, tenant: str, document_id: str) -> Document | None:
    """The document, or None when there is none (any more)."""
    row = db.read(lambda tx: tx.one(DOCUMENT, {"tenant": tenant, "id": document_id}))
    return None if row is None else _document(row)


def page(db: Database, tenant: str, collection: str, *, after: str = "", limit: int = 100) -> list[Document]:
    """The documents of a collection after the id `after`, in the order of their ids."""
    values = {"tenant": tenant, "collection": collection, "after": after, "limit": limit}
    return [_document(row) for row in db.read(lambda tx: tx.all(PAGE, values))]


def by_names(db: Database, tenant: str, collection: str, names: Container[str]) -> dict[str, list[Document]]:
    """The documents of a collection that were given under these names; under one name, the latest last."""
    values = {"tenant": tenant, "collection": collection, "names": list(names)}
    found: dict[str, list[Document]] = {}
    for row in db.read(lambda tx: tx.all(BY_NAMES, values)):
        found.setdefault(row.name, []).append(_document(row))
    return {name: sorted(each, key=lambda one: one.updated_at) for name, each in found.items()}


def by_digests(db: Database, tenant: str, collection: str, digests: Container[str]) -> dict[str, Document]:
    """The documents of a collection that have one of these contents."""
    values = {"tenant": tenant, "collection": collection, "digests": list(digests)}
    return {row.digest: _document(row) for row in db.read(lambda tx: tx.all(BY_DIGESTS, values))}


NEW = (
    upsert(documents)
    .values(created_at=now(), updated_at=now())
    .on_conflict_do_nothing()
    .returning(documents.c.id)
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A document about to be added."""

    id: str
    title: str
    source: Source
    options: Mapping[str, Any] | None = None


Request = Callable[[Tx, Document], Answer]
"""Asks for a document to be indexed, inside the transaction that adds it."""


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a draft: the document that has its content, and what became of the request for it."""

    document: Document
    answer: Answer
    is_new: bool


def add(
    db: Database, tenant: str, collection: str, drafts: Sequence[Draft], request: Request
) -> dict[str, Added]:
    """By the draft's id, a new document or the one that already has that content; each is asked for.

    One transaction for all: a document that nobody asked for does not exist. NotFoundError when the
    collection is deleted meanwhile.
    """

    def body(tx: Tx) -> dict[str, Added]:
        if tx.one(COLLECTION_KEPT, {"tenant": tenant, "id": collection}) is None:
            raise _no_collection(collection)
        made: dict[str, Added] = {}
        for draft in sorted(drafts, key=lambda one: one.source.digest):
            values = {
                "tenant": tenant,
                "id": draft.id,
                "collection": collection,
                "title": draft.title,
                "options": dict(draft.options) if draft.options else None,
                **dataclasses.asdict(draft.source),
            }
            tx.execute(NEW, values)
            row = tx.one(
                BY_DIGEST, {"tenant": tenant, "collection": collection, "digest": draft.source.digest}
            )
            if row is None:
                raise _GoneError
            found = _document(row)
            answer = request(tx, found)
            made[draft.id] = Added(_asked_for(found, answer), answer, is_new=found.id == draft.id)
            if found.id != draft.id:
                _check_live(tx, found)
        return made

    for _ in range(TRIES):
        with contextlib.suppress(_GoneError):
            return db.write("add_documents", body)
    raise StoreUnavailableError("documents with this content come and go too quickly; ask again later")


def _asked_for(found: Document, answer: Answer) -> Document:
    """The document as it stands after the request, without reading it again."""
    if not answer.created:
        return found
    return dataclasses.replace(
        found,
        head_id=answer.head_id,
        status=Status.QUEUED,
        generation=answer.generation,
        run_id=answer.run_id,
    )


class _GoneError(Exception):
    """The document was deleted at this very moment; the transaction has left no trace."""


LIVE = select(documents.c.id).where(
    documents.c.tenant == bindparam("tenant"), documents.c.id == bindparam("id"), _live
)


def _check_live(tx: Tx, found: Document) -> None:
    """Return if the document was not deleted before its head was locked."""
    if tx.one(LIVE, {"tenant": found.tenant, "id": found.id}) is None:
        raise _GoneError


def _no_document(document_id: str) -> NotFoundError:
    return NotFoundError(f"there is no document {document_id!r}", code="unknown_document")


def _no_collection(collection: str) -> NotFoundError:
    return NotFoundError(f"there is no collection {collection!r}", code="unknown_collection")


def ask(db: Database, found: Document, request: Request) -> Answer:
    """What became of the request for a document; NotFoundError, and nothing asked, when it is deleted."""

    def body(tx: Tx) -> Answer:
        answer = request(tx, found)
        _check_live(tx, found)
        return answer

    try:
        return db.write("ask_document", body)
    except _GoneError:
        raise _no_document(found.id) from None


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


def set_source(db: Database, found: Document, source: Source, request: Request) -> Answer | Taken:
    """The document wants this content from now on, and is asked for, in one transaction.

    NotFoundError when it is deleted meanwhile.
    """
    where = {"tenant": found.tenant, "collection": found.collection, "digest": source.digest, "id": found.id}
    values = {f"b_{name}": value for name, value in dataclasses.asdict(source).items()}

    def body(tx: Tx) -> Answer | Taken:
        if (other := tx.one(CLASH, where)) is not None:
            return Taken(str(other.id))
        answer = request(tx, dataclasses.replace(found, **dataclasses.asdict(source)))
        if not tx.execute(SET_SOURCE, values | {"b_tenant": found.tenant, "b_id": found.id}).rowcount:
            raise _no_document(found.id)
        return answer

    for _ in range(TRIES):
        # Somebody gave another document this content at the same time: the next look finds which.
        with contextlib.suppress(exc.IntegrityError):
            return db.write("set_source", body)
    return db.write("set_source", body)


GONE = (
    update(documents)
    .where(documents.c.tenant == bindparam("b_tenant"), documents.c.id == bindparam("b_id"), _live)
    .values(deleted=True, updated_at=now())
)


def remove(db: Database, tenant: str, document_id: str) -> bool:
    """The document is no longer there for anybody; False when it was not."""
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
    """What the published generation of a document is made of; part of the transaction that publishes it."""
    values = {"b_tenant": tenant, "b_id": document_id, "b_format": form, "b_pages": pages}
    tx.execute(FACTS, values | {"b_chunks": chunks, "b_thumbnail": thumbnail})


_COLLECTION = [collections.c[name] for name in Collection.__dataclass_fields__]
COLLECTION = select(*_COLLECTION).where(
    collections.c.tenant == bindparam("tenant"), collections.c.id == bindparam("id"), ~collections.c.deleted
)
# Holds off a deletion, which takes the row for update, and no publication, which does not change its key.
COLLECTION_KEPT = COLLECTION.with_for_update(read=True, key_share=True)
COLLECTION_FOR_DELETE = (
    select(collections.c.id)
    .where(collections.c.tenant == bindparam("b_tenant"), collections.c.id == bindparam("b_id"))
    .with_for_update()
)
COLLECTIONS = (
    select(*_COLLECTION)
    .where(collections.c.tenant == bindparam("tenant"), ~collections.c.deleted)
    .order_by(collections.c.id)
)
_new_collection = upsert(collections).values(
    tenant=bindparam("b_tenant"),
    id=bindparam("b_id"),
    title=bindparam("b_title"),
    options=bindparam("b_options"),
    created_at=now(),
)
# A publication may have made the row before anybody named the collection; a deleted one comes back empty.
NEW_COLLECTION = _new_collection.on_conflict_do_update(
    index_elements=[collections.c.tenant, collections.c.id],
    set_={
        "title": _new_collection.excluded.title,
        "options": _new_collection.excluded.options,
        "created_at": _new_collection.excluded.created_at,
        "deleted": False,
    },
    where=collections.c.deleted | (collections.c.created_at == 0.0),
).execution_options(preserve_rowcount=True)  # else PostgreSQL's number of rows is forgotten
SET_COLLECTION = (
    update(collections)
    .where(collections.c.tenant == bindparam("b_tenant"), collections.c.id == bindparam("b_id"))
    .values(title=bindparam("b_title"), options=bindparam("b_options"))
)
GONE_COLLECTION = (
    update(collections)
    .where(collections.c.tenant == bindparam("b_tenant"), collections.c.id == bindparam("b_id"))
    .values(deleted=True)
)


def _collection(row: Row[Any]) -> Collection:
    return Collection(**row._asdict() | {"options": row.options or {}})


def collection(db: Database, tenant: str, collection_id: str) -> Collection | None:
    """The collection, or None when nobody made it."""
    row = db.read(lambda tx: tx.one(COLLECTION, {"tenant": tenant, "id": collection_id}))
    return None if row is None else _collection(row)


def all_collections(db: Database, tenant: str) -> list[Collection]:
    """The collections of a tenant, by id."""
    return [_collection(row) for row in db.read(lambda tx: tx.all(COLLECTIONS, {"tenant": tenant}))]


def make_collection(
    db: Database, tenant: str, collection_id: str, *, title: str, options: Mapping[str, Any]
) -> bool:
    """The collection is there; True when it was not before."""
    values = {"b_tenant": tenant, "b_id": collection_id, "b_title": title, "b_options": dict(options) or None}
    return db.write("make_collection", lambda tx: tx.execute(NEW_COLLECTION, values).rowcount == 1)


def set_collection(
    db: Database, tenant: str, collection_id: str, *, title: str, options: Mapping[str, Any]
) -> None:
    """The collection has this title and these options from now on."""
    values = {"b_tenant": tenant, "b_id": collection_id, "b_title": title, "b_options": dict(options) or None}
    db.write("set_collection", lambda tx: tx.execute(SET_COLLECTION, values))


def remove_collection(db: Database, tenant: str, collection_id: str) -> None:
    """The collection is no longer there for anybody and takes no document any more.

    Its documents are removed one by one, by the caller.
    """
    values = {"b_tenant": tenant, "b_id": collection_id}

    def body(tx: Tx) -> None:
        tx.one(COLLECTION_FOR_DELETE, values)
        tx.execute(GONE_COLLECTION, values)

    db.write("remove_collection", body)
