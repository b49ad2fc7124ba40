"""The knowledge graph of a collection as readers see it: entities, relations and reports of one generation.

What a generation holds is listed once (`listed`) and may be kept; whether somebody may see it is looked up
for every answer (`sources_seen`, `nodes_of`), in the same snapshot. A relation is shown if it and both of its
entities are.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Integer, Select, and_, bindparam, func, literal, select, union_all

from holdfast.core import subjects
from holdfast.core.filters import Filter
from holdfast.store.base import filter_conditions
from holdfast.store.base.database import Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.schema import (
    chunks,
    derived_edges,
    derived_nodes,
    derived_sources,
    documents,
    heads,
)
from holdfast.store.derived.trees import TreeHead, TreeReader

KIND = "graph"
ENTITY, RELATION, REPORT = "entity", "relation", "report"
MOST_LISTED = 100_000
MOST_EDGES = 20_000

nodes, edges, sources = derived_nodes, derived_edges, derived_sources


class ListedNode(NamedTuple):
    """What is listed of an entity or a report."""

    key: str
    type: str
    level: int
    parent: str | None
    title: str
    data: Mapping[str, Any]


class SourceVersion(NamedTuple):
    """A document that a generation was derived from, and the version of it."""

    document: str
    version: int


@dataclass(frozen=True, slots=True)
class GraphRows:
    """The entities and reports of a generation, how many nodes of each type it has, and its documents."""

    nodes: tuple[ListedNode, ...]
    counts: Mapping[str, int]
    documents: tuple[SourceVersion, ...]


_of_generation = (nodes.c.head_id == bindparam("head_id"), nodes.c.generation == bindparam("generation"))
LISTED = (
    select(nodes.c.key, nodes.c.type, nodes.c.level, nodes.c.parent, nodes.c.title, nodes.c.data)
    .where(*_of_generation, nodes.c.type.in_((ENTITY, REPORT)))
    .order_by(nodes.c.slice, nodes.c.epoch, nodes.c.position)
    .limit(bindparam("limit"))
)
COUNTS = select(nodes.c.type, func.count().label("number")).where(*_of_generation).group_by(nodes.c.type)
# A relation whose entity was deleted with a document has no edge any more, and is none.
RELATIONS = (
    select(func.count())
    .select_from(edges)
    .where(
        edges.c.head_id == bindparam("head_id"),
        edges.c.generation == bindparam("generation"),
        edges.c.type == RELATION,
    )
)
DOCUMENTS = (
    select(sources.c.document, sources.c.version)
    .where(sources.c.head_id == bindparam("head_id"), sources.c.generation == bindparam("generation"))
    .distinct()
    .order_by(sources.c.document, sources.c.version)
)


def reader(tenant: str, collection: str, only: Filter | None) -> TreeReader:
    """Reads nodes of the graph by their keys, as somebody with this filter sees them."""
    return TreeReader(tenant, collection, KIND, only)


def listed(tx: Tx, head: TreeHead) -> GraphRows:
    """Everything that can be listed of a generation."""
    values = {"head_id": head.head_id, "generation": head.generation}
    rows = tx.all(LISTED, values | {"limit": MOST_LISTED})
    listed = tuple(
        ListedNode(row.key, row.type, row.level, row.parent, row.title, row.data or {}) for row in rows
    )
    counts = dict(Counter(each.type for each in listed))
    if len(listed) == MOST_LISTED:
        counts = {row.type: row.number for row in tx.all(COUNTS, values)}
    return GraphRows(
        listed,
        counts | {RELATION: int(tx.execute(RELATIONS, values).scalar_one())},
        tuple(SourceVersion(row.document, row.version) for row in tx.all(DOCUMENTS, values)),
    )


_index = heads.alias("index_heads")


@functools.lru_cache(64)
def _seen(shape: filter_conditions.Shape) -> Select[Any]:
    passes = [] if shape == filter_conditions.EVERYTHING else [filter_conditions.condition(shape)]
    return (
        select(documents.c.id, _index.c.published_generation)
        .select_from(
            documents.outerjoin(
                _index,
                and_(
                    _index.c.tenant == documents.c.tenant,
                    _index.c.kind == subjects.INDEX,
                    _index.c.subject == literal(subjects.DOCUMENT) + documents.c.id,
                ),
            )
        )
        .where(
            documents.c.tenant == bindparam("tenant"),
            key_in(documents.c.id, bindparam("ids", type_=KeyList())),
            documents.c.collection == bindparam("collection"),
            ~documents.c.deleted,
            *passes,
        )
    )


def sources_seen(tx: Tx, reader: TreeReader, ids: Sequence[str]) -> dict[str, int | None]:
    """Those of the documents that the reader may see, each with its published generation."""
    if not ids:
        return {}
    shape, bound = filter_conditions.prepared(reader.only)
    about = {"tenant": reader.tenant, "collection": reader.collection, "ids": list(ids)}
    return {row.id: row.published_generation for row in tx.all(_seen(shape), bound | about)}


NODES_OF = (
    select(sources.c.document, sources.c.node)
    .where(
        sources.c.tenant == bindparam("tenant"),
        key_in(sources.c.document, bindparam("ids", type_=KeyList())),
        sources.c.head_id == bindparam("head_id"),
        sources.c.generation == bindparam("generation"),
    )
    .distinct()
)


def nodes_of(tx: Tx, tenant: str, head: TreeHead, ids: Iterable[str]) -> list[tuple[str, str]]:
    """Every (document, node) of a generation where the node has something of one of these documents."""
    values = {"tenant": tenant, "head_id": head.head_id, "generation": head.generation}
    return [(row.document, row.node) for row in tx.all(NODES_OF, values | {"ids": list(ids)})]


class GraphEdge(NamedTuple):
    """A relation between two entities: its own node, its ends, its weight and its short label."""

    node: str
    source: str
    target: str
    weight: float
    label: str

    def other(self, end: str) -> str:
        """The end that is not this one."""
        return self.target if self.source == end else self.source


_shown = (edges.c.source, edges.c.target, edges.c.text, edges.c.data)
_edges = select(*_shown).where(
    edges.c.head_id == bindparam("head_id"),
    edges.c.generation == bindparam("generation"),
    edges.c.type == RELATION,
)
_ends = bindparam("keys", type_=KeyList())
EDGES_OF = union_all(
    _edges.where(key_in(edges.c.source, _ends)), _edges.where(key_in(edges.c.target, _ends))
).limit(bindparam("limit"))
EDGES_AMONG = _edges.where(key_in(edges.c.source, _ends), key_in(edges.c.target, _ends)).limit(
    bindparam("limit")
)


def edges_of(tx: Tx, head: TreeHead, keys: Sequence[str], *, among: bool = False) -> list[GraphEdge]:
    """The relations of these entities, or only those among them; the heaviest first."""
    if not keys:
        return []
    values = {"head_id": head.head_id, "generation": head.generation, "keys": list(keys)}
    rows = tx.all(EDGES_AMONG if among else EDGES_OF, values | {"limit": MOST_EDGES})
    by_node = {edge.node: edge for edge in map(_edge, rows) if edge.node}
    return sorted(by_node.values(), key=lambda edge: (-edge.weight, edge.node))


def _edge(row: Any) -> GraphEdge:
    data = row.data or {}
    return GraphEdge(
        str(data.get("node") or ""), row.source, row.target, float(data.get("weight") or 0), row.text
    )


INDEXED = select(heads.c.id, heads.c.subject, heads.c.published_generation).where(
    heads.c.tenant == bindparam("tenant"),
    heads.c.kind == subjects.INDEX,
    key_in(heads.c.subject, bindparam("subjects", type_=KeyList())),
    heads.c.visible,
)
_numbered = (
    select(
        chunks.c.id,
        chunks.c.page,
        chunks.c.text,
        chunks.c.slice,
        chunks.c.position,
        (func.row_number().over(order_by=(chunks.c.slice, chunks.c.position)) - 1).label("number"),
    )
    .where(chunks.c.head_id == bindparam("head_id"), chunks.c.generation == bindparam("generation"))
    .subquery()
)
PASSAGES = (
    select(_numbered)
    .where(
        _numbered.c.number >= bindparam("first", type_=Integer()),
        _numbered.c.number <= bindparam("last", type_=Integer()),
    )
    .order_by(_numbered.c.number)
)


class SourceRange(NamedTuple):
    """The chunks `first` to `last`, by number, of a version of a document."""

    document: str
    version: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """A chunk that something was derived from."""

    document: str
    chunk_id: int
    number: int
    page: int | None
    text: str
    slice: int
    position: int


def passages(tx: Tx, tenant: str, ranges: Iterable[SourceRange]) -> dict[tuple[str, int], SourcePassage]:
    """The chunks of these ranges by document and number; a version that was replaced has none any more."""
    by_document: dict[SourceVersion, list[SourceRange]] = {}
    for each in ranges:
        by_document.setdefault(SourceVersion(each.document, each.version), []).append(each)
    names = sorted({subjects.of_document(each.document) for each in by_document})
    rows = tx.all(INDEXED, {"tenant": tenant, "subjects": names}) if names else []
    current = {row.subject: row for row in rows}
    result: dict[tuple[str, int], SourcePassage] = {}
    for version, some in by_document.items():
        row = current.get(subjects.of_document(version.document))
        if row is None or row.published_generation != version.version:
            continue
        reach = {"first": min(each.first for each in some), "last": max(each.last for each in some)}
        about = {"head_id": row.id, "generation": version.version}
        for chunk in tx.all(PASSAGES, about | reach):
            if any(each.first <= chunk.number <= each.last for each in some):
                result[version.document, chunk.number] = SourcePassage(
                    version.document,
                    chunk.id,
                    chunk.number,
                    chunk.page,
                    chunk.text,
                    chunk.slice,
                    chunk.position,
                )
    return result


RANGES = (
    select(sources.c.node, sources.c.document, sources.c.version, sources.c.first, sources.c.last)
    .where(
        sources.c.head_id == bindparam("head_id"),
        sources.c.generation == bindparam("generation"),
        key_in(sources.c.node, bindparam("keys", type_=KeyList())),
    )
    .order_by(sources.c.node, sources.c.document, sources.c.first)
    .limit(bindparam("limit"))
)


def ranges_of(tx: Tx, head: TreeHead, keys: Sequence[str], limit: int) -> dict[str, list[SourceRange]]:
    """What these nodes were derived from, by node; at most `limit` ranges in all."""
    values = {"head_id": head.head_id, "generation": head.generation, "keys": list(keys), "limit": limit}
    ranges: dict[str, list[SourceRange]] = {key: [] for key in keys}
    for row in tx.all(RANGES, values) if keys else ():
        ranges[row.node].append(SourceRange(row.document, row.version, row.first, row.last))
    return ranges
