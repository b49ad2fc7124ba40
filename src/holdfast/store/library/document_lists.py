"""Documents as a list: filtered, sorted and paged, and how many there are of each status.

A page continues after the position of the last row seen: its sort value and its id. A row whose value changes
meanwhile may appear twice or not at all, as in any list that changes; no other row does.
"""

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, and_, bindparam, case, cast, func, or_, select

from holdfast.core.filters import Filter
from holdfast.core.states import Status
from holdfast.store.base import filter_conditions
from holdfast.store.base.database import Database
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.schema import charges, documents, heads
from holdfast.store.library import documents as stored
from holdfast.store.library.documents import Document

# Documents that need a person come first, idle ones last.
RANKS = {
    Status.FAILED: 0,
    Status.RUNNING: 1,
    Status.QUEUED: 2,
    Status.IDLE: 3,
    Status.SUCCESS: 4,
}


class SortKey(StrEnum):
    """What a list is sorted by."""

    ID = "id"
    TITLE = "title"
    STATUS = "status"
    UPDATED = "updated"
    PAGES = "pages"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class PagePosition:
    """Where a page of a sorted list ended."""

    value: str | float
    id: str


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """Which documents of a collection, in which order, after which position. `q` is searched in titles."""

    tenant: str
    collection: str
    sort: SortKey = SortKey.ID
    down: bool = False
    status: Status | None = None
    q: str = ""
    after: PagePosition | None = None
    limit: int = 100
    imported: bool | None = None  # only those without content here, or only the others
    filter: Filter | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A document, and its position in the list."""

    document: Document
    position: PagePosition


_status = func.coalesce(heads.c.status, Status.IDLE.value)
# Imported and given no content here: nothing else is empty and rests.
RESTING = (Status.IDLE, Status.SUCCESS)
_imported = and_(documents.c.size == 0, or_(*(_status == status.value for status in RESTING)))
_cost = (
    select(func.coalesce(func.sum(charges.c.amount), 0))
    .where(charges.c.run_id == heads.c.run_id, charges.c.sort != "in_doubt")
    .scalar_subquery()
)
VALUES: dict[SortKey, ColumnElement[Any]] = {
    SortKey.ID: documents.c.id,
    SortKey.TITLE: func.lower(documents.c.title),
    SortKey.STATUS: case(*((_status == status.value, rank) for status, rank in RANKS.items()), else_=9),
    SortKey.UPDATED: documents.c.updated_at,
    SortKey.PAGES: func.coalesce(documents.c.pages, -1),
    SortKey.COST: cast(_cost, BigInteger),
}


@functools.lru_cache(64)
def _page(
    key: SortKey,
    *,
    down: bool,
    by_status: bool,
    imported: bool | None,
    by_title: bool,
    by_external_id: bool,
    follows: bool,
    passing: filter_conditions.Shape,
) -> Select[Any]:
    """The statement for lists of this order, built once so that `store.base.statements` can cache it."""
    value = VALUES[key]
    query = _query(key).where(
        documents.c.tenant == bindparam("tenant"), documents.c.collection == bindparam("collection")
    )
    if by_status:
        query = query.where(_status == bindparam("status"))
    if imported is not None:
        query = query.where(_imported if imported else ~_imported)
    if by_external_id:
        same = documents.c.external_id == bindparam("external_id")
        query = query.where(documents.c.external_id.is_not(None), same)
    if by_title:
        query = query.where(func.lower(documents.c.title).like(bindparam("q"), escape="/"))
    if passing != filter_conditions.EVERYTHING:
        query = query.where(filter_conditions.condition(passing))
    if follows:
        beyond = value < bindparam("value") if down else value > bindparam("value")
        same = and_(value == bindparam("value"), documents.c.id > bindparam("after"))
        # Ids are unique, and without the second half their index leads straight to the position.
        query = query.where(beyond if key is SortKey.ID else or_(beyond, same))
    return query.order_by(value.desc() if down else value, documents.c.id).limit(bindparam("limit"))


def page(db: Database, query: DocumentQuery) -> list[Listed]:
    """The documents that match the query, in its order."""
    values: dict[str, Any] = {
        "tenant": query.tenant,
        "collection": query.collection,
        "limit": query.limit,
    }
    if query.status is not None:
        values["status"] = query.status.value
    if query.q:
        plain = query.q.lower().replace("/", "//").replace("%", "/%").replace("_", "/_")
        values["q"] = f"%{plain}%"
    if query.external_id is not None:
        values["external_id"] = query.external_id
    if (after := query.after) is not None:
        values["value"] = after.value
        values |= {} if query.sort is SortKey.ID else {"after": after.id}
    passing = filter_conditions.prepared(query.filter)
    statement = _page(
        query.sort,
        down=query.down,
        by_status=query.status is not None,
        imported=query.imported,
        by_title=bool(query.q),
        by_external_id=query.external_id is not None,
        follows=after is not None,
        passing=passing.shape,
    )
    return [_listed(row) for row in db.look(statement, values | passing.values)]


def some(db: Database, tenant: str, collection: str, ids: Collection[str]) -> list[Document]:
    """The documents among these that are in the collection."""
    values = {"tenant": tenant, "collection": collection, "ids": list(ids)}
    return [_listed(row).document for row in db.look(SOME, values)]


def _query(key: SortKey) -> Select[Any]:
    return stored.selecting(VALUES[key].label("place"))


def _listed(row: Any) -> Listed:
    values = row._asdict()
    position = values.pop("place")
    # PostgreSQL sums 64-bit numbers to a numeric.
    value = position if isinstance(position, str | int | float) else int(position)
    return Listed(stored.of_row(values), PagePosition(value, row.id))


SOME = _query(SortKey.ID).where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    key_in(documents.c.id, bindparam("ids", type_=KeyList())),
)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many documents a collection has of each status, and their total number of chunks."""

    by_status: dict[Status, int]
    chunks: int = 0
    # Of each status, those that were imported and have no content here.
    imported: dict[Status, int] = field(default_factory=dict)

    @property
    def documents(self) -> int:
        """The number of documents."""
        return sum(self.by_status.values())

    def of(self, status: Status) -> int:
        """How many have this status."""
        return self.by_status.get(status, 0)


COUNTS = (
    select(
        documents.c.collection,
        _status.label("status"),
        func.count().label("number"),
        func.coalesce(func.sum(documents.c.chunks), 0).label("chunks"),
        func.sum(case((_imported, 1), else_=0)).label("imported"),
    )
    .select_from(stored.WITH_HEADS)
    .where(documents.c.tenant == bindparam("tenant"), ~documents.c.deleted)
    .group_by(documents.c.collection, _status)
)
COUNTS_OF_ONE = COUNTS.where(documents.c.collection == bindparam("collection"))


def counts(db: Database, tenant: str, collection: str | None = None) -> dict[str, Counts]:
    """How many documents of each status, by collection; of all collections with documents, or of one."""
    values = {"tenant": tenant} | ({} if collection is None else {"collection": collection})
    rows: Sequence[Any] = db.look(COUNTS if collection is None else COUNTS_OF_ONE, values)
    by_collection: dict[str, dict[Status, int]] = {}
    chunks: dict[str, int] = {}
    imported: dict[str, dict[Status, int]] = {}
    for row in rows:
        imported.setdefault(row.collection, {})[Status(row.status)] = int(row.imported)
        by_collection.setdefault(row.collection, {})[Status(row.status)] = row.number
        chunks[row.collection] = chunks.get(row.collection, 0) + int(row.chunks)
    return {name: Counts(each, chunks[name], imported[name]) for name, each in by_collection.items()}
