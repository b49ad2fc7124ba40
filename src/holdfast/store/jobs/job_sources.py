"""What a job reads: the published generations of documents, and their chunks by number.

The chunks of a generation are numbered from 0 in document order. A generation that was replaced or deleted is
not read any more: some of its chunks may be gone.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Integer, Select, and_, bindparam, func, literal, select, text

from holdfast.core import subjects
from holdfast.core.filters import Filter
from holdfast.core.states import LIVE
from holdfast.store.base import filter_conditions
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.filter_conditions import condition
from holdfast.store.base.schema import chunks, documents, heads, one_of, runs


@dataclass(frozen=True, slots=True)
class JobSource:
    """A ready document: its published generation, and its number of chunks."""

    document: str
    head_id: int
    generation: int
    chunks: int


@dataclass(frozen=True, slots=True)
class NumberedChunk:
    """A chunk by its number in the document."""

    number: int
    page: int | None
    text: str
    slice: int = 0
    position: int = 0


_ready = (
    select(
        documents.c.id.label("document"),
        heads.c.id.label("head_id"),
        heads.c.published_generation.label("generation"),
        func.coalesce(documents.c.chunks, 0).label("chunks"),
    )
    .select_from(
        documents.join(
            heads,
            and_(
                heads.c.tenant == documents.c.tenant,
                heads.c.kind == subjects.INDEX,
                heads.c.subject == literal(subjects.DOCUMENT) + documents.c.id,
            ),
        )
    )
    .where(
        documents.c.tenant == bindparam("tenant"),
        documents.c.collection == bindparam("collection"),
        ~documents.c.deleted,
        heads.c.visible,
        documents.c.chunks > 0,
    )
    .order_by(documents.c.id)
)


@functools.lru_cache(64)
def _ready_that_pass(shape: filter_conditions.Shape, *, chosen: bool) -> Select[Any]:
    query = _ready if shape == filter_conditions.EVERYTHING else _ready.where(condition(shape))
    if chosen:
        return query.where(key_in(documents.c.id, bindparam("ids", type_=KeyList())))
    return query.limit(bindparam("limit"))


KNOWN = select(documents.c.id).where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    key_in(documents.c.id, bindparam("ids", type_=KeyList())),
    ~documents.c.deleted,
)


def ready(
    db: Database, tenant: str, collection: str, *, limit: int, only: Filter | None = None
) -> list[JobSource]:
    """The ready documents of a collection that pass the filter, ordered by id, at most `limit`."""
    shape, values = filter_conditions.prepared(only)
    values |= {"tenant": tenant, "collection": collection, "limit": limit}
    statement = _ready_that_pass(shape, chosen=False)
    return [JobSource(**row._asdict()) for row in db.read(lambda tx: tx.all(statement, values))]


def chosen(
    db: Database, tenant: str, collection: str, ids: Sequence[str], *, only: Filter | None = None
) -> list[JobSource]:
    """The named documents that are ready, in the collection and pass the filter, ordered by id."""
    shape, values = filter_conditions.prepared(only)
    values |= {"tenant": tenant, "collection": collection, "ids": list(ids)}
    statement = _ready_that_pass(shape, chosen=True)
    return [JobSource(**row._asdict()) for row in db.read(lambda tx: tx.all(statement, values))]


def unknown(db: Database, tenant: str, collection: str, ids: Sequence[str]) -> list[str]:
    """The ids that are no document of the collection, in the given order."""
    values = {"tenant": tenant, "collection": collection, "ids": list(ids)}
    known = {row.id for row in db.read(lambda tx: tx.all(KNOWN, values))}
    return [each for each in ids if each not in known]


# Starting from live runs: they are few compared with the documents of a collection.
_coming = (
    select(heads.c.subject)
    .select_from(runs.join(heads, heads.c.id == runs.c.head_id))
    .where(
        text(f"holdfast_runs.{one_of('status', LIVE)}"),
        heads.c.tenant == bindparam("tenant"),
        heads.c.collection == bindparam("collection"),
        heads.c.kind == subjects.INDEX,
        ~heads.c.visible,
    )
)
COMING = _coming.limit(1)
COMING_CHOSEN = _coming.where(key_in(heads.c.subject, bindparam("subjects", type_=KeyList()))).limit(1)


def coming(db: Database, tenant: str, collection: str, ids: Sequence[str] | None) -> bool:
    """True while a document of the collection, or one of these, is being indexed and not ready yet."""
    values = {"tenant": tenant, "collection": collection}
    if ids is None:
        return db.first(COMING, values) is not None
    return (
        db.first(COMING_CHOSEN, values | {"subjects": [subjects.of_document(each) for each in ids]})
        is not None
    )


CURRENT = select(heads.c.id).where(
    heads.c.id == bindparam("head_id"),
    heads.c.visible,
    heads.c.published_generation == bindparam("generation"),
)
_numbered = (
    select(
        chunks.c.page,
        chunks.c.text,
        chunks.c.slice,
        chunks.c.position,
        (func.row_number().over(order_by=(chunks.c.slice, chunks.c.position)) - 1).label("number"),
    )
    .where(chunks.c.head_id == bindparam("head_id"), chunks.c.generation == bindparam("generation"))
    .subquery()
)
PIECES = (
    select(_numbered)
    .where(
        _numbered.c.number >= bindparam("first", type_=Integer()),
        _numbered.c.number <= bindparam("last", type_=Integer()),
    )
    .order_by(_numbered.c.number)
)


def pieces(
    db: Database, head_id: int, generation: int, numbers: Sequence[int] | None = None
) -> list[NumberedChunk] | None:
    """The chunks with these numbers, or all; None if the generation is no longer the published one."""
    version = {"head_id": head_id, "generation": generation}
    reach = (
        {"first": min(numbers, default=0), "last": max(numbers, default=-1)} if numbers is not None else {}
    )
    selected = None if numbers is None else frozenset(numbers)

    def body(tx: Tx) -> list[NumberedChunk] | None:
        if tx.one(CURRENT, version) is None:
            return None
        rows = tx.all(PIECES, version | {"first": 0, "last": 2**31 - 1} | reach)
        return [
            NumberedChunk(row.number, row.page, row.text, row.slice, row.position)
            for row in rows
            if selected is None or row.number in selected
        ]

    return db.read(body)
