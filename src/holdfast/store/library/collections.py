"""Collections: what is searched together, and how its documents are indexed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, bindparam, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.errors import NotFoundError
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import collections, documents
from holdfast.store.library import bulk_updates
from holdfast.store.library.bulk_updates import BulkUpdate

# How many existing collections an error message lists.
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Collection:
    """What is searched together. `options` are those that differ from the defaults."""

    tenant: str
    id: str
    title: str
    options: Mapping[str, Any]
    publish_seq: int
    created_at: float
    search: Mapping[str, Any] = field(default_factory=dict)


def no_collection(collection: str, others: Sequence[str] = ()) -> NotFoundError:
    """The error for a missing collection; `others` are some that exist."""
    shown = others[:MOST_NAMED]
    more = ", …" if len(others) > MOST_NAMED else ""
    known = f"; there are: {', '.join(shown)}{more}" if shown else ""
    return NotFoundError(f"there is no collection {collection!r}{known}", code="unknown_collection")


_COLLECTION = [collections.c[name] for name in Collection.__dataclass_fields__]
COLLECTION = select(*_COLLECTION).where(
    collections.c.tenant == bindparam("tenant"), collections.c.id == bindparam("id"), ~collections.c.deleted
)
# Blocks a deletion, which locks the row for update, but not a publication, which does not change its key.
COLLECTION_KEPT = COLLECTION.with_for_update(read=True, key_share=True)
COLLECTION_FOR_CHANGE = (
    select(collections.c.deleted)
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
# A publication may have created the row before the collection was named; a deleted one comes back empty.
NEW_COLLECTION = _new_collection.on_conflict_do_update(
    index_elements=[collections.c.tenant, collections.c.id],
    set_={
        "title": _new_collection.excluded.title,
        "options": _new_collection.excluded.options,
        "search": None,
        "created_at": _new_collection.excluded.created_at,
        "deleted": False,
    },
    where=collections.c.deleted | (collections.c.created_at == 0.0),
)
SOME_IDS = (
    select(collections.c.id)
    .where(collections.c.tenant == bindparam("tenant"), ~collections.c.deleted)
    .order_by(collections.c.id)
    .limit(MOST_NAMED + 1)
)
SET_COLLECTION = (
    update(collections)
    .where(collections.c.tenant == bindparam("b_tenant"), collections.c.id == bindparam("b_id"))
    .values(title=bindparam("b_title"), options=bindparam("b_options"))
)
SET_SEARCH = (
    update(collections)
    .where(
        collections.c.tenant == bindparam("b_tenant"),
        collections.c.id == bindparam("b_id"),
        ~collections.c.deleted,
    )
    .values(search=bindparam("b_search"))
)
GONE_COLLECTION = (
    update(collections)
    .where(collections.c.tenant == bindparam("b_tenant"), collections.c.id == bindparam("b_id"))
    .values(deleted=True)
)


def _collection(row: Row[Any]) -> Collection:
    return Collection(**row._asdict() | {"options": row.options or {}, "search": row.search or {}})


def set_search(db: Database, tenant: str, collection_id: str, rules: Mapping[str, Any]) -> None:
    """The collection is searched by these rules from now on; nothing is indexed again."""
    values = {"b_tenant": tenant, "b_id": collection_id, "b_search": dict(rules) or None}
    db.write("set_search", lambda tx: tx.execute(SET_SEARCH, values))


def collection(db: Database, tenant: str, collection_id: str) -> Collection | None:
    """The collection, or None if it does not exist."""
    row = db.first(COLLECTION, {"tenant": tenant, "id": collection_id})
    return None if row is None else _collection(row)


def existing(db: Database, tenant: str, collection_id: str) -> Collection:
    """The collection; NotFoundError, which names some others, when there is none."""
    record = collection(db, tenant, collection_id)
    if record is None:
        raise no_collection(collection_id, some_ids(db, tenant))
    return record


def seen(tx: Tx, tenant: str, collection_id: str) -> Collection | None:
    """Like `collection`, in the caller's snapshot."""
    row = tx.one(COLLECTION, {"tenant": tenant, "id": collection_id})
    return None if row is None else _collection(row)


def some_ids(db: Database, tenant: str) -> list[str]:
    """The ids of some collections, one more than an error message lists."""
    return [str(row.id) for row in db.look(SOME_IDS, {"tenant": tenant})]


def all_collections(db: Database, tenant: str) -> list[Collection]:
    """The collections of a tenant, by id."""
    return [_collection(row) for row in db.look(COLLECTIONS, {"tenant": tenant})]


# The rows first, all in one statement; what depends on them is deleted one by one.
DOCUMENTS_GONE = (
    update(documents)
    .where(
        documents.c.tenant == bindparam("b_tenant"),
        documents.c.collection == bindparam("b_id"),
        ~documents.c.deleted,
    )
    .values(deleted=True, updated_at=now())
)


def make_collection(
    db: Database, tenant: str, collection_id: str, *, title: str, options: Mapping[str, Any]
) -> bool:
    """The collection exists; False, without a change, while a deleted one is not completely gone.

    A deleted collection accepts no documents, so anything in it was there before.
    """
    values = {"b_tenant": tenant, "b_id": collection_id}

    def body(tx: Tx) -> bool:
        row = tx.one(COLLECTION_FOR_CHANGE, values)
        if row is not None and row.deleted:
            if bulk_updates.remaining(tx, tenant, collection_id):
                return False
            bulk_updates.forget(tx, tenant, collection_id, bulk_updates.DELETE)
        tx.execute(NEW_COLLECTION, values | {"b_title": title, "b_options": dict(options) or None})
        return True

    return db.write("make_collection", body)


OwnOptions = Iterable[tuple[str, Mapping[str, Any]]]
"""Ids of documents with their own options."""

OWN_OPTIONS = (
    select(documents.c.id, documents.c.options)
    .where(
        documents.c.tenant == bindparam("b_tenant"),
        documents.c.collection == bindparam("b_id"),
        # As in the partial index over just those.
        literal_column("options IS NOT NULL AND NOT deleted"),
    )
    .order_by(documents.c.id)
)


def set_collection(
    db: Database,
    tenant: str,
    collection_id: str,
    *,
    title: str,
    options: Mapping[str, Any],
    actor: str = "",
    ask_again: bool = False,
    max_cost: int | None = None,
    check: Callable[[OwnOptions], None] = lambda _own: None,
) -> BulkUpdate | None:
    """The collection has this title and these options from now on; with `ask_again` a bulk update begins.

    `check` is called with the documents that have their own options before anything is written, and may
    raise. NotFoundError if the collection is deleted.
    """
    values = {"b_tenant": tenant, "b_id": collection_id, "b_title": title, "b_options": dict(options) or None}
    token = db.token()

    def body(tx: Tx) -> BulkUpdate | None:
        row = tx.one(COLLECTION_FOR_CHANGE, {"b_tenant": tenant, "b_id": collection_id})
        if row is None or row.deleted:
            raise no_collection(collection_id)
        if ask_again:
            check(
                (row.id, row.options)
                for row in tx.all(OWN_OPTIONS, {"b_tenant": tenant, "b_id": collection_id})
            )
        tx.execute(SET_COLLECTION, values)
        if not ask_again:
            return None
        return bulk_updates.begin(
            tx, tenant, collection_id, bulk_updates.OPTIONS, actor=actor, token=token, max_cost=max_cost
        )

    return db.write("set_collection", body)


def remove_collection(
    db: Database, tenant: str, collection_id: str, *, actor: str = ""
) -> tuple[int, BulkUpdate]:
    """The collection and its documents are gone for every reader, and it accepts no documents.

    Returns the number of documents, and the bulk update that ends their work and hides their content. Until
    that has finished the collection cannot be created again, so the update never touches anything newer.
    """
    values = {"b_tenant": tenant, "b_id": collection_id}
    token, gone = db.token(), 0

    def body(tx: Tx) -> tuple[int, BulkUpdate]:
        nonlocal gone
        row = tx.one(COLLECTION_FOR_CHANGE, values)
        if row is None or (row.deleted and not tx.again):
            raise no_collection(collection_id)
        tx.execute(GONE_COLLECTION, values)
        # After a lost response there are none left to count; the first try has counted them.
        gone = max(gone, tx.execute(DOCUMENTS_GONE, values).rowcount)
        bulk_updates.forget(tx, tenant, collection_id, bulk_updates.OPTIONS)
        return gone, bulk_updates.begin(
            tx, tenant, collection_id, bulk_updates.DELETE, actor=actor, token=token
        )

    return db.write("remove_collection", body)


NO_DOCUMENT = select(documents.c.id).where(
    documents.c.tenant == bindparam("b_tenant"),
    documents.c.collection == bindparam("b_id"),
    ~documents.c.deleted,
)


def remove_if_empty(db: Database, tenant: str, collection_id: str) -> bool:
    """The collection is deleted if it is empty; the run that requested this stays visible."""
    values = {"b_tenant": tenant, "b_id": collection_id}

    def body(tx: Tx) -> bool:
        row = tx.one(COLLECTION_FOR_CHANGE, values)
        if row is None or row.deleted or tx.one(NO_DOCUMENT, values) is not None:
            return row is not None and row.deleted and tx.again
        tx.execute(GONE_COLLECTION, values)
        return True

    return db.write("remove_collection", body)
