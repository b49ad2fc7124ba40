"""The items of sources, each with the document that was made of it.

An item's row is written in the transaction that requests its document, under the fence of the look: nothing
is taken in and forgotten, and an item that two looks see is indexed once. Several items with the same bytes
share one document. A look changes or deletes a document only if it came from a source and no other item
shares it: what a person uploaded is theirs. That is decided while the document's head is locked, by both the
look that changes it and one that is about to share it.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from collections.abc import Collection as Container
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import Row, bindparam, delete, exc, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.errors import WorkError
from holdfast.core.records import Claim, Fenced, Landed, Outcome, RequestResult
from holdfast.core.states import Disposition
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import documents as documents_table
from holdfast.store.base.schema import source_items as table
from holdfast.store.library import (
    document_members,
    document_requests,
    documents,
    quotas,
    sources,
)
from holdfast.store.library.collections import COLLECTION_KEPT, no_collection
from holdfast.store.library.document_requests import CLASH, SET_SOURCE, IndexRequest
from holdfast.store.library.documents import Document, DocumentDraft
from holdfast.store.library.quotas import Quota
from holdfast.store.protocol import tasks

# The source of a document that exists only because a source of the collection holds it.
SOURCE = "source"
TRIES = 5
T = TypeVar("T")


class ItemState(StrEnum):
    """What is known about an item: as at the source, not fetched or refused, no longer at the source."""

    CURRENT = "current"
    FAILED = "failed"
    GONE = "gone"


class ItemChange(StrEnum):
    """What a look found out about an item."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """An item of a source as it was seen last, and its document."""

    source: str
    external_id: str
    document: str | None
    version: str
    name: str
    url: str | None
    state: ItemState
    error_code: str | None
    error_message: str | None
    look: int
    change: str
    changed_at: float


@dataclass(frozen=True, slots=True)
class ItemDraft:
    """What a look has fetched: the item as it will be known, and the document that its bytes make."""

    external_id: str
    version: str
    name: str
    url: str | None
    document: DocumentDraft


@dataclass(frozen=True, slots=True)
class TakenItem:
    """What became of an item: its document, and what the index was asked to do, if anything.

    `removed` are the documents that are gone because the item has another one now.
    """

    change: ItemChange
    document_id: str
    answer: RequestResult | None = None
    removed: Sequence[str] = ()


_COLUMNS = [table.c[name] for name in ItemRecord.__dataclass_fields__]
_of_source = table.c.tenant == bindparam("tenant"), table.c.source == bindparam("source")
_here = select(*_COLUMNS).where(*_of_source)
ONE = _here.where(table.c.external_id == bindparam("external_id"))
ONE_LOCKED = ONE.with_for_update()
BY_IDS = _here.where(key_in(table.c.external_id, bindparam("ids", type_=KeyList())))
_next = table.c.external_id > bindparam("after")
PAGE = _here.where(_next).order_by(table.c.external_id).limit(bindparam("limit"))
PAGE_IN_STATE = PAGE.where(table.c.state == bindparam("state"))
SHARED = (
    select(table.c.source)
    .where(
        table.c.tenant == bindparam("tenant"),
        table.c.document == bindparam("document"),
        ~((table.c.source == bindparam("source")) & (table.c.external_id == bindparam("external_id"))),
    )
    .limit(1)
)
_b_item = (
    table.c.tenant == bindparam("b_tenant"),
    table.c.source == bindparam("b_source"),
)
_new = upsert(table).values(changed_at=now())
_replaced = (
    "document",
    "version",
    "name",
    "url",
    "state",
    "error_code",
    "error_message",
    "look",
    "change",
    "changed_at",
)
PUT = _new.on_conflict_do_update(
    index_elements=[table.c.tenant, table.c.source, table.c.external_id],
    set_={name: _new.excluded[name] for name in _replaced},
)
# The document and its version stay: what is published is still what the item was.
PUT_FAILED = _new.on_conflict_do_update(
    index_elements=[table.c.tenant, table.c.source, table.c.external_id],
    set_={
        name: _new.excluded[name]
        for name in ("name", "url", "state", "error_code", "error_message", "look", "change", "changed_at")
    },
)
SET_STATE = (
    update(table)
    .where(*_b_item, key_in(table.c.external_id, bindparam("b_ids", type_=KeyList())))
    .values(
        state=bindparam("b_state"),
        error_code=None,
        error_message=None,
        look=bindparam("b_look"),
        change="",
        changed_at=now(),
    )
)
FORGET = delete(table).where(*_b_item, table.c.external_id == bindparam("b_external_id"))
FORGET_ALL = delete(table).where(*_b_item, key_in(table.c.external_id, bindparam("b_ids", type_=KeyList())))


# A document that a source holds does not go with the archive that it was found in.
FROM_MEMBER = (
    update(documents_table)
    .where(
        documents_table.c.tenant == bindparam("b_tenant"),
        documents_table.c.id == bindparam("b_id"),
        documents_table.c.source == document_members.SOURCE,
    )
    .values(source=SOURCE)
)


class _MovedError(Exception):
    """The document was deleted or changed at the same moment; the transaction was rolled back."""


class RefusedItemError(WorkError):
    """The document of an item was refused; nothing changed."""

    code = "item_refused"


class _RemovedDocuments:
    """The documents that the tries of a transaction have removed; one try may have been rolled back."""

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant
        self._ids: dict[str, None] = {}

    def add(self, ids: Sequence[str]) -> None:
        self._ids |= dict.fromkeys(ids)

    def gone(self, tx: Tx) -> list[str]:
        """Those that are gone once this try is committed, or since one whose answer was lost."""
        names = ({"tenant": self._tenant, "id": each} for each in self._ids)
        return [name["id"] for name in names if tx.one(documents.DOCUMENT, name) is None]


def actor_of(source: str) -> str:
    """The name under which a source removes documents."""
    return f"source:{source}"


def record_of(row: Row[Any]) -> ItemRecord:
    """The item of a row."""
    return ItemRecord(**row._asdict() | {"state": ItemState(row.state)})


def by_ids(db: Database, tenant: str, source: str, external_ids: Container[str]) -> dict[str, ItemRecord]:
    """The known items of a source with these external ids."""
    values = {"tenant": tenant, "source": source, "ids": list(external_ids)}
    return {row.external_id: record_of(row) for row in db.look(BY_IDS, values)}


def page(
    db: Database, tenant: str, source: str, *, state: str | None = None, after: str = "", limit: int = 100
) -> list[ItemRecord]:
    """The items of a source after the external id `after`, all or those in one state."""
    values: dict[str, Any] = {"tenant": tenant, "source": source, "after": after, "limit": limit}
    if state is None:
        return [record_of(row) for row in db.look(PAGE, values)]
    return [record_of(row) for row in db.look(PAGE_IN_STATE, values | {"state": state})]


def take(
    db: Database, claim: Claim, draft: ItemDraft, request: IndexRequest, quota: Quota
) -> TakenItem | Fenced:
    """The item has its document, which is requested if its bytes are new; both in one transaction.

    RefusedItemError, QuotaExceededError and the like leave everything as it was. Call
    `document_members.end_removal` afterwards for the documents that are gone.
    """
    source = sources.id_of(claim.subject)
    removed = _RemovedDocuments(claim.tenant)

    def body(tx: Tx) -> TakenItem | Fenced:
        held = tasks.hold(tx, claim, change=False)
        if isinstance(held, Fenced | Landed):
            return held if isinstance(held, Fenced) else Fenced("finished")
        check_there(tx, claim, source)
        taken = put(tx, (claim.tenant, source), claim, draft, request, quota)
        removed.add(taken.removed)
        return dataclasses.replace(taken, removed=removed.gone(tx))

    return tried(db, "take_item", body)


def check_there(tx: Tx, claim: Claim, source: str) -> None:
    """Return if the collection and the source exist; they stay until the transaction ends."""
    if tx.one(COLLECTION_KEPT, {"tenant": claim.tenant, "id": claim.collection}) is None:
        raise no_collection(claim.collection or "")
    if tx.one(sources.STAYS, {"tenant": claim.tenant, "id": source}) is None:
        raise sources.no_source(source)


def tried(db: Database, name: str, body: Callable[[Tx], T]) -> T:
    """The result of the transaction, again from the start if a document was changed at the same moment."""
    for _ in range(TRIES):
        with contextlib.suppress(_MovedError, exc.IntegrityError):
            return db.write(name, body, relaxed=True)
    raise document_requests.busy()


def put(
    tx: Tx, name: tuple[str, str], claim: Claim, draft: ItemDraft, request: IndexRequest, quota: Quota
) -> TakenItem:
    """The item of the source has its document; inside a transaction that may write for the source."""
    tenant, source = name
    collection = claim.collection or ""
    row = tx.one(ONE, {"tenant": tenant, "source": source, "external_id": draft.external_id})
    before = None if row is None else record_of(row)
    document = None if before is None else own_document(tx, tenant, collection, before)
    if document is not None and document.digest == draft.document.source.digest:
        taken = TakenItem(_counted(before, claim), document.id)
    elif document is not None:
        taken = _changed(tx, document, draft, request, quota, actor_of(source))
    else:
        taken = _added(tx, tenant, collection, draft, request, quota)
        change = ItemChange.NEW
        if before is not None and before.document is not None:
            change = _counted(before, claim) if taken.document_id == before.document else ItemChange.CHANGED
        taken = dataclasses.replace(taken, change=change)
    tx.execute(PUT, _row(name, draft, taken, claim.generation))
    return taken


def _counted(before: ItemRecord | None, claim: Claim) -> ItemChange:
    """What to count for an item whose bytes are known: what this look has found out before, if it did."""
    if before is not None and before.look == claim.generation and before.change:
        return ItemChange(before.change)
    return ItemChange.UNCHANGED


def _row(name: tuple[str, str], draft: ItemDraft, taken: TakenItem, look: int) -> dict[str, Any]:
    return {
        "tenant": name[0],
        "source": name[1],
        "external_id": draft.external_id,
        "document": taken.document_id,
        "version": draft.version,
        "name": draft.name,
        "url": draft.url,
        "state": ItemState.CURRENT.value,
        "error_code": None,
        "error_message": None,
        "look": look,
        "change": taken.change.value,
    }


def own_document(tx: Tx, tenant: str, collection: str, item: ItemRecord) -> Document | None:
    """The live document of the item if the source may change it, with its head locked; None otherwise."""
    if item.document is None:
        return None
    document = _locked(tx, tenant, item.document)
    if document is None or document.collection != collection or document.source != SOURCE:
        return None
    values = {"tenant": tenant, "document": document.id}
    values |= {"source": item.source, "external_id": item.external_id}
    return document if tx.one(SHARED, values) is None else None


def _locked(tx: Tx, tenant: str, document_id: str) -> Document | None:
    """The live document as it is while its head is locked."""
    name = {"tenant": tenant, "id": document_id}
    row = tx.one(documents.DOCUMENT, name)
    if row is None:
        return None
    if row.head_id is not None:
        tx.one(rows.HEAD_FOR_CHANGE, {"head_id": row.head_id})
        row = tx.one(documents.DOCUMENT, name)
    return None if row is None else documents.of_row(row._asdict())


def _changed(
    tx: Tx, document: Document, draft: ItemDraft, request: IndexRequest, quota: Quota, actor: str
) -> TakenItem:
    """The item's own document has the new bytes; or the item shares the document that has them already."""
    source = draft.document.source
    where = {"tenant": document.tenant, "collection": document.collection, "id": document.id}
    if tx.one(CLASH, where | {"digest": source.digest}) is not None:
        taken = _added(tx, document.tenant, document.collection, draft, request, quota)
        removed = document_members.remove_in(tx, document.tenant, document.id, actor)
        return dataclasses.replace(taken, change=ItemChange.CHANGED, removed=removed)
    new = dataclasses.asdict(source)
    answer = document_requests.requested(tx, dataclasses.replace(document, **new), request)
    _check(answer)
    before = tx.one(documents.DOCUMENT_LOCKED, {"tenant": document.tenant, "id": document.id})
    if before is None:
        raise _MovedError
    values = {f"b_{name}": value for name, value in new.items()}
    tx.execute(SET_SOURCE, values | {"b_tenant": document.tenant, "b_id": document.id})
    if source.size > document.size:
        quotas.check(tx, document.tenant, quota)
    return TakenItem(ItemChange.CHANGED, document.id, answer)


def _added(
    tx: Tx, tenant: str, collection: str, draft: ItemDraft, request: IndexRequest, quota: Quota
) -> TakenItem:
    """A new document, or the one of the collection that has these bytes, which is left as it is."""
    document = document_requests.insert_or_get(tx, tenant, collection, draft.document)
    if document is None:
        raise _MovedError
    if document.id != draft.document.id:
        current = _locked(tx, tenant, document.id)
        if current is None or current.digest != draft.document.source.digest:
            raise _MovedError
        tx.execute(FROM_MEMBER, {"b_tenant": tenant, "b_id": document.id})
        return TakenItem(ItemChange.UNCHANGED, document.id)
    answer = document_requests.requested(tx, document, request)
    _check(answer)
    quotas.check(tx, tenant, quota)
    return TakenItem(ItemChange.NEW, document.id, answer)


def _check(answer: RequestResult) -> None:
    if answer.disposition is Disposition.REFUSED:
        code, _, scope = answer.reason.partition(":")
        message = f"the document was refused: {answer.reason}"
        if code == "over_budget":
            message = (
                f"the budget of the {scope or 'tenant'} is used up; raise it, or wait for its next period"
            )
        raise RefusedItemError(message, code=code)


def fail(db: Database, claim: Claim, item: ItemRecord) -> Outcome:
    """The item is known as failed; its document, if it has one, stays as it is."""
    values = dataclasses.asdict(item) | {"tenant": claim.tenant, "state": item.state.value}
    del values["changed_at"]

    def body(tx: Tx) -> Outcome:
        held = tasks.hold(tx, claim, change=False)
        if isinstance(held, Fenced | Landed):
            return held
        tx.execute(PUT_FAILED, values)
        return Landed()

    return db.write("fail_item", body, relaxed=True)


def set_state(db: Database, claim: Claim, external_ids: Sequence[str], state: ItemState) -> Outcome:
    """The items are known to be in this state; their documents stay as they are."""
    where = {"b_tenant": claim.tenant, "b_source": sources.id_of(claim.subject)}
    values = where | {"b_ids": list(external_ids), "b_state": state.value, "b_look": claim.generation}

    def body(tx: Tx) -> Outcome:
        held = tasks.hold(tx, claim, change=False)
        if isinstance(held, Fenced | Landed):
            return held
        tx.execute(SET_STATE, values)
        return Landed()

    return db.write("set_items", body, relaxed=True) if external_ids else Landed()


def remove(db: Database, claim: Claim, item: ItemRecord, *, delete_document: bool) -> Sequence[str] | Fenced:
    """The item is gone, and with `delete_document` its document if the source may delete it.

    The ids of the documents that are gone: that one, and those that only it contained. Call
    `document_members.end_removal` afterwards for them.
    """
    tenant, collection = claim.tenant, claim.collection or ""
    removed = _RemovedDocuments(tenant)

    def body(tx: Tx) -> Sequence[str] | Fenced:
        held = tasks.hold(tx, claim, change=False)
        if isinstance(held, Fenced | Landed):
            return held if isinstance(held, Fenced) else removed.gone(tx)
        if delete_document and (document := own_document(tx, tenant, collection, item)) is not None:
            removed.add(document_members.remove_in(tx, tenant, document.id, actor_of(item.source)))
        where = {"b_tenant": tenant, "b_source": item.source, "b_external_id": item.external_id}
        tx.execute(FORGET, where)
        return removed.gone(tx)

    return db.write("remove_item", body, relaxed=True)


def forget(db: Database, claim: Claim, external_ids: Sequence[str]) -> Outcome:
    """The items are gone; their documents stay."""
    where = {"b_tenant": claim.tenant, "b_source": sources.id_of(claim.subject)}

    def body(tx: Tx) -> Outcome:
        held = tasks.hold(tx, claim, change=False)
        if isinstance(held, Fenced | Landed):
            return held
        tx.execute(FORGET_ALL, where | {"b_ids": list(external_ids)})
        return Landed()

    return db.write("forget_items", body, relaxed=True)
