"""The titles of a collection's documents, and where a document begins."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Integer, bindparam, select, type_coerce

from holdfast.core import subjects
from holdfast.store.base.database import Tx
from holdfast.store.base.dialect import KeyList, Numbers, key_in
from holdfast.store.base.schema import chunks, documents, heads

# A title's timestamp is that of the statement that writes it, but it becomes visible at the commit, at most
# this much later. A reader may have missed timestamps up to this much before its snapshot.
SLACK = 10.0


# Many of the rows are discarded at once, so values are used as the driver returns them.
TITLES = select(
    documents.c.id,
    documents.c.title,
    documents.c.name,
    documents.c.updated_at,
    type_coerce(documents.c.deleted, Integer).label("deleted"),
    documents.c.language,
).where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    documents.c.updated_at >= bindparam("since"),
)


def titles(tx: Tx, tenant: str, collection: str, since: float) -> Sequence[Any]:
    """The titles that a reader of that moment may be missing, including deleted ones; since 0, all.

    Some it has already: those of the moments just before.
    """
    values = {"tenant": tenant, "collection": collection, "since": since - SLACK}
    return tx.all(TITLES, values)


class Beginning(NamedTuple):
    """The first chunk of a published document."""

    head_id: int
    chunk_id: int


_first = (
    select(chunks.c.id)
    .where(chunks.c.head_id == heads.c.id, chunks.c.generation == heads.c.published_generation)
    .order_by(chunks.c.slice, chunks.c.epoch, chunks.c.position)
    .limit(1)
    .correlate(heads)
    .scalar_subquery()
)
BEGINNINGS = select(heads.c.id, heads.c.subject, _first.label("chunk_id")).where(
    heads.c.tenant == bindparam("tenant"),
    heads.c.kind == subjects.INDEX,
    key_in(heads.c.subject, bindparam("subjects", type_=KeyList())),
    heads.c.collection == bindparam("collection"),
    heads.c.visible,
)


def beginnings(tx: Tx, tenant: str, collection: str, ids: Sequence[str]) -> dict[str, Beginning]:
    """The beginnings of the visible documents among these."""
    named = [subjects.of_document(each) for each in ids]
    values = {"tenant": tenant, "collection": collection, "subjects": named}
    return {
        subjects.document_id(row.subject): Beginning(row.id, row.chunk_id)
        for row in tx.all(BEGINNINGS, values)
        if row.chunk_id is not None
    }


HEADS_OF_CHUNKS = select(chunks.c.id, chunks.c.head_id).where(
    key_in(chunks.c.id, bindparam("ids", type_=Numbers()))
)


def heads_of_chunks(tx: Tx, ids: Sequence[int]) -> dict[int, int]:
    """The head of each of these chunks."""
    return {row.id: row.head_id for row in tx.all(HEADS_OF_CHUNKS, {"ids": list(ids)})}
