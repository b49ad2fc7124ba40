"""The published content of a collection, read to the end in the caller's snapshot."""

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, Select, and_, bindparam, literal, or_, select

from holdfast.core import subjects
from holdfast.core.filters import Filter
from holdfast.core.states import CallState
from holdfast.store.base import filter_conditions
from holdfast.store.base.database import Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.schema import calls, chunks, document_members, documents, heads, runs

DOCUMENTS_AT_ONCE = 100
CHUNKS_AT_ONCE = 500

# Content and options are those of the run that made the visible version: the row may have others by now.
DOCUMENTS = (
    select(
        documents.c.id,
        documents.c.title,
        documents.c.name,
        documents.c.external_id,
        documents.c.source,
        documents.c.url,
        documents.c.etag,
        documents.c.last_modified,
        documents.c.options,
        documents.c.metadata,
        documents.c.labels,
        documents.c.format,
        documents.c.pages,
        documents.c.thumbnail,
        documents.c.gaps,
        documents.c.properties,
        documents.c.outline,
        documents.c.title_given,
        documents.c.language,
        heads.c.id.label("head_id"),
        heads.c.published_generation.label("generation"),
        runs.c.content,
        runs.c.options.label("chosen"),
    )
    .select_from(
        documents.join(
            heads,
            and_(
                heads.c.tenant == documents.c.tenant,
                heads.c.kind == subjects.INDEX,
                heads.c.subject == literal(subjects.DOCUMENT) + documents.c.id,
                heads.c.visible,
                ~heads.c.imported,
            ),
        ).join(runs, and_(runs.c.head_id == heads.c.id, runs.c.generation == heads.c.published_generation))
    )
    .where(
        documents.c.tenant == bindparam("tenant"),
        documents.c.collection == bindparam("collection"),
        documents.c.id > bindparam("after"),
        ~documents.c.deleted,
    )
    .order_by(documents.c.id)
    .limit(DOCUMENTS_AT_ONCE)
)


@functools.lru_cache(64)
def _documents(shape: filter_conditions.Shape) -> Select[Any]:
    is_limited = shape != filter_conditions.EVERYTHING
    return DOCUMENTS.where(filter_conditions.condition(shape)) if is_limited else DOCUMENTS


CHUNKS = (
    select(
        chunks.c.slice,
        chunks.c.position,
        chunks.c.page,
        chunks.c.text,
        chunks.c.data,
        chunks.c.call_key,
        calls.c.result,
    )
    .select_from(
        chunks.outerjoin(
            calls,
            and_(
                calls.c.tenant == bindparam("tenant"),
                calls.c.key == chunks.c.call_key,
                calls.c.state == CallState.SETTLED.value,
            ),
        )
    )
    .where(
        chunks.c.head_id == bindparam("head_id"),
        chunks.c.generation == bindparam("generation"),
        or_(
            chunks.c.slice > bindparam("slice"),
            and_(chunks.c.slice == bindparam("slice"), chunks.c.position > bindparam("position")),
        ),
    )
    .order_by(chunks.c.slice, chunks.c.position)
    .limit(CHUNKS_AT_ONCE)
)


_parents, _children = documents.alias("parents"), documents.alias("children")
LINKS = (
    select(
        document_members.c.parent,
        document_members.c.child,
        _parents.c.digest.label("outer"),
        _children.c.digest.label("inner"),
    )
    .select_from(
        document_members.join(
            _parents,
            and_(_parents.c.tenant == document_members.c.tenant, _parents.c.id == document_members.c.parent),
        ).join(
            _children,
            and_(_children.c.tenant == document_members.c.tenant, _children.c.id == document_members.c.child),
        )
    )
    .where(document_members.c.tenant == bindparam("tenant"), ~_parents.c.deleted, ~_children.c.deleted)
)
HELD = LINKS.where(key_in(document_members.c.parent, bindparam("ids", type_=KeyList())))
HOLDING = LINKS.where(key_in(document_members.c.child, bindparam("ids", type_=KeyList())))


@dataclass(slots=True)
class Links:
    """The digests of the documents inside a document, and of those that contain it."""

    members: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)


def _links(tx: Tx, tenant: str, ids: Sequence[str]) -> dict[str, Links]:
    links: dict[str, Links] = defaultdict(Links)
    values = {"tenant": tenant, "ids": list(ids)}
    for row in tx.all(HELD, values):
        links[row.parent].members.append(row.inner)
    for row in tx.all(HOLDING, values):
        links[row.child].inside.append(row.outer)
    return links


def published(
    tx: Tx, tenant: str, collection: str, *, only: Filter | None = None
) -> Iterator[tuple[Row[Any], Links]]:
    """The published documents of the collection that pass the filter, by id, each with its links."""
    after = ""
    shape, values = filter_conditions.prepared(only)
    values |= {"tenant": tenant, "collection": collection}
    while page := tx.all(_documents(shape), values | {"after": after}):
        links = _links(tx, tenant, [row.id for row in page])
        yield from ((row, links.get(row.id) or Links()) for row in page)
        after = page[-1].id


def chunks_of(tx: Tx, tenant: str, head_id: int, generation: int) -> Iterator[Row[Any]]:
    """The chunks of a generation in order, each with its vector if it has one."""
    position = {"slice": -1, "position": -1}
    where = {"tenant": tenant, "head_id": head_id, "generation": generation}
    while page := tx.in_binary(CHUNKS, where | position):
        yield from page
        position = {"slice": page[-1].slice, "position": page[-1].position}
