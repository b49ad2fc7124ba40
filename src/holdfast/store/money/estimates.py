"""What an estimate needs to know about existing documents. Read-only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, func, select

from holdfast.core import subjects
from holdfast.store.base.database import Database
from holdfast.store.base.schema import documents, heads, runs


@dataclass(frozen=True, slots=True)
class Size:
    """How many documents a collection has, and how many published chunks."""

    documents: int
    chunks: int


SIZE = select(
    func.count().label("documents"), func.coalesce(func.sum(documents.c.chunks), 0).label("chunks")
).where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    ~documents.c.deleted,
)
OPTIONS = (
    select(runs.c.options)
    .join(heads, (heads.c.id == runs.c.head_id) & (heads.c.published_generation == runs.c.generation))
    .where(heads.c.id == bindparam("head_id"))
)


READY = select(func.count()).where(
    heads.c.tenant == bindparam("tenant"),
    heads.c.collection == bindparam("collection"),
    heads.c.kind == subjects.INDEX,
    heads.c.visible,
    ~heads.c.imported,
)


def ready(db: Database, tenant: str, collection: str) -> int:
    """How many documents of the collection are ready: a new action would run on each."""
    return int(db.look(READY, {"tenant": tenant, "collection": collection})[0][0])


def size_of(db: Database, tenant: str, collection: str) -> Size:
    """The size of the collection."""
    row = db.read(lambda tx: tx.execute(SIZE, {"tenant": tenant, "collection": collection}).one())
    return Size(int(row.documents), int(row.chunks))


def published_options(db: Database, head_id: int) -> Mapping[str, Any]:
    """The options of the published generation; empty if its history was pruned."""
    row = db.read(lambda tx: tx.one(OPTIONS, {"head_id": head_id}))
    return {} if row is None else row.options
