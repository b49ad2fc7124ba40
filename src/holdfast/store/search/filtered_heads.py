"""Which documents a filter leaves to be searched, read in the snapshot of the search."""

import functools
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, bindparam, func, literal, select

from holdfast.core import subjects
from holdfast.core.filters import Filter
from holdfast.store.base import filter_conditions
from holdfast.store.base.database import Tx
from holdfast.store.base.schema import documents, heads

_LISTED: dict[bool, Any] = {True: func.array_agg, False: func.json_group_array}


@functools.lru_cache(64)
def _passing(shape: filter_conditions.Shape, *, postgresql: bool) -> Select[Any]:
    # One list in one row: thousands of rows, each made into an object, take several times as long.
    return (
        select(_LISTED[postgresql](heads.c.id).label("ids"))
        .join_from(
            documents,
            heads,
            (heads.c.tenant == documents.c.tenant)
            & (heads.c.kind == subjects.INDEX)
            & (heads.c.subject == literal(subjects.DOCUMENT) + documents.c.id),
        )
        .where(
            documents.c.tenant == bindparam("tenant"),
            documents.c.collection == bindparam("collection"),
            ~documents.c.deleted,
            heads.c.visible,
            heads.c.collection == bindparam("collection"),
            filter_conditions.condition(shape),
        )
    )


def passing(tx: Tx, tenant: str, collection: str, condition: Filter) -> Sequence[int]:
    """The heads of the visible documents of the collection that pass the filter.

    Call it before `search_reads.stamp`, which sets up the transaction for other statements.
    """
    shape, values = filter_conditions.prepared(condition)
    statement = _passing(shape, postgresql=tx.db.postgresql)
    row = tx.one(statement, values | {"tenant": tenant, "collection": collection})
    ids = row.ids if row is not None else None
    return json.loads(ids) if isinstance(ids, str) else list(ids or ())
