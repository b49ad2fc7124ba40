"""Derived nodes as readers see them: those of the published generation, and only with all of their documents.

A node is *withheld*, whole, if any document that it has something from is deleted, has left the collection,
or does not pass the filter of the reader. It is *stale* if one of them has another version by now. Both
are looked up with the node, in one statement: what is true at the commit of a deletion is true for the next
reader.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, bindparam, exists, func, literal, select, tuple_

from holdfast.core import subjects
from holdfast.core.filters import Filter
from holdfast.store.base import filter_conditions
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.schema import (
    calls,
    derived_edges,
    derived_nodes,
    derived_sources,
    documents,
    heads,
)

nodes, sources = derived_nodes, derived_sources


@dataclass(frozen=True, slots=True)
class TreeHead:
    """Whose nodes are read, and in which generation."""

    head_id: int
    subject: str
    generation: int


@dataclass(frozen=True, slots=True)
class DerivedNode:
    """A node. (`slice`, `position`) orders the nodes of a level as their documents have them."""

    slice: int
    position: int
    key: str
    type: str
    level: int
    document: str | None
    parent: str | None
    title: str
    text: str
    data: Mapping[str, Any]
    stale: bool
    withheld: bool
    children: int


@dataclass(frozen=True, slots=True)
class NodeSource:
    """The chunks `first` to `last`, by number, that a node was derived from; `stale` as of the node."""

    document: str
    title: str
    version: int
    first: int
    last: int
    stale: bool


_of_node = (
    sources.c.head_id == nodes.c.head_id,
    sources.c.generation == nodes.c.generation,
    sources.c.node == nodes.c.key,
)
_index = heads.alias("index_heads")
_indexed = (
    _index.c.tenant == sources.c.tenant,
    _index.c.kind == subjects.INDEX,
    _index.c.subject == literal(subjects.DOCUMENT) + sources.c.document,
)
_is_current = exists().where(*_indexed, _index.c.published_generation == sources.c.version)
_stale = exists().where(*_of_node, ~_is_current)
_child = nodes.alias("child")
_children = (
    select(func.count())
    .select_from(_child)
    .where(
        _child.c.head_id == nodes.c.head_id,
        _child.c.generation == nodes.c.generation,
        _child.c.parent == nodes.c.key,
    )
    .correlate(nodes)
    .scalar_subquery()
)


def _withheld(shape: filter_conditions.Shape) -> ColumnElement[bool]:
    passes = [] if shape == filter_conditions.EVERYTHING else [filter_conditions.condition(shape)]
    readable = exists().where(
        documents.c.tenant == sources.c.tenant,
        documents.c.id == sources.c.document,
        documents.c.collection == bindparam("collection"),
        ~documents.c.deleted,
        *passes,
    )
    return exists().where(*_of_node, ~readable)


_SHOWN = tuple(
    nodes.c[name]
    for name in ("slice", "position", "key", "type", "level", "document", "parent", "title", "text", "data")
)
_of_generation = (nodes.c.head_id == bindparam("head_id"), nodes.c.generation == bindparam("generation"))
_after = tuple_(nodes.c.slice, nodes.c.position) > tuple_(bindparam("slice"), bindparam("position"))
_ORDER = (nodes.c.slice, nodes.c.position)

# Whole maps, which are small: what is across documents, that of one document, those of all documents.
_MAPS: Mapping[str, ColumnElement[bool]] = {
    "across": nodes.c.document.is_(None),
    "of_document": nodes.c.document == bindparam("document"),
    "of_documents": nodes.c.document.is_not(None),
}


@functools.lru_cache(64)
def _query(shape: filter_conditions.Shape, which: str) -> Select[Any]:
    shown = select(
        *_SHOWN, _stale.label("stale"), _withheld(shape).label("withheld"), _children.label("children")
    ).where(*_of_generation)
    if which == "keys":
        return shown.where(key_in(nodes.c.key, bindparam("keys", type_=KeyList())))
    if which in _MAPS:
        order = (nodes.c.document, nodes.c.slice, nodes.c.position)
        return shown.where(_MAPS[which]).order_by(*order).limit(bindparam("limit"))
    below = nodes.c.parent.is_(None) if which == "roots" else nodes.c.parent == bindparam("parent")
    if which == "document":
        below = and_(nodes.c.document == bindparam("document"), nodes.c.level == bindparam("level"))
    return shown.where(below, _after).order_by(*_ORDER).limit(bindparam("limit"))


VISIBLE = select(heads.c.id, heads.c.subject, heads.c.published_generation).where(
    heads.c.tenant == bindparam("tenant"),
    heads.c.kind == bindparam("kind"),
    heads.c.subject == bindparam("subject"),
    heads.c.collection == bindparam("collection"),
    heads.c.visible,
)


@dataclass(frozen=True, slots=True)
class TreeReader:
    """Reads the nodes of a kind in one collection, as somebody with this filter sees them."""

    tenant: str
    collection: str
    kind: str
    only: Filter | None = None

    def head(self, tx: Tx, subject: str) -> TreeHead | None:
        """The published generation of a subject of the collection; None if there is none."""
        about = {"tenant": self.tenant, "collection": self.collection, "kind": self.kind}
        row = tx.one(VISIBLE, about | {"subject": subject})
        return None if row is None else TreeHead(row.id, row.subject, row.published_generation)

    def children(
        self,
        tx: Tx,
        head: TreeHead,
        parent: str | None,
        *,
        after: tuple[int, int] = (-1, -1),
        limit: int = 100,
    ) -> list[DerivedNode]:
        """The nodes below `parent`, or the topmost, in order; withheld ones are marked, for the caller."""
        which = "roots" if parent is None else "children"
        own = {} if parent is None else {"parent": parent}
        return self._nodes(tx, head, which, own | _page(after, limit))

    def level_of(
        self,
        tx: Tx,
        head: TreeHead,
        document: str,
        level: int,
        *,
        after: tuple[int, int] = (-1, -1),
        limit: int = 100,
    ) -> list[DerivedNode]:
        """The nodes of one level that are of this document alone."""
        own = {"document": document, "level": level}
        return self._nodes(tx, head, "document", own | _page(after, limit))

    def across(self, tx: Tx, head: TreeHead, limit: int) -> list[DerivedNode]:
        """The nodes that are of no single document, at most `limit`, in order."""
        return self._nodes(tx, head, "across", {"limit": limit})

    def of_documents(
        self, tx: Tx, head: TreeHead, limit: int, document: str | None = None
    ) -> list[DerivedNode]:
        """The nodes that are of one document, or of any one, at most `limit`, by document and in order."""
        own = {} if document is None else {"document": document}
        which = "of_documents" if document is None else "of_document"
        return self._nodes(tx, head, which, own | {"limit": limit})

    def named(self, tx: Tx, head: TreeHead, keys: Sequence[str]) -> dict[str, DerivedNode]:
        """The nodes with these keys that are not withheld."""
        named = self._nodes(tx, head, "keys", {"keys": list(keys)})
        return {node.key: node for node in named if not node.withheld}

    def _nodes(self, tx: Tx, head: TreeHead, which: str, values: dict[str, Any]) -> list[DerivedNode]:
        shape, bound = filter_conditions.prepared(self.only)
        about = {"head_id": head.head_id, "generation": head.generation, "collection": self.collection}
        if shape != filter_conditions.EVERYTHING:
            about["tenant"] = self.tenant
        return [_node(row) for row in tx.all(_query(shape, which), bound | about | values)]


def _page(after: tuple[int, int], limit: int) -> dict[str, Any]:
    return {"slice": after[0], "position": after[1], "limit": limit}


def _node(row: Row[Any]) -> DerivedNode:
    values = row._asdict()
    data = {"data": row.data or {}, "stale": bool(row.stale), "withheld": bool(row.withheld)}
    return DerivedNode(**values | data)


LEVELS = select(func.max(nodes.c.level)).where(*_of_generation, nodes.c.document == bindparam("document"))


def top_level(tx: Tx, head: TreeHead, document: str) -> int:
    """The level of the document's own root; 0 if the document has no nodes."""
    values = {"head_id": head.head_id, "generation": head.generation, "document": document}
    return int(tx.execute(LEVELS, values).scalar() or 0)


SOURCES = (
    select(
        sources.c.document,
        documents.c.title,
        sources.c.version,
        sources.c.first,
        sources.c.last,
        (~_is_current).label("stale"),
    )
    .join_from(
        sources,
        documents,
        and_(documents.c.tenant == sources.c.tenant, documents.c.id == sources.c.document),
    )
    .where(
        sources.c.head_id == bindparam("head_id"),
        sources.c.generation == bindparam("generation"),
        sources.c.node == bindparam("node"),
        ~documents.c.deleted,
    )
    .order_by(sources.c.document, sources.c.first)
    .limit(bindparam("limit"))
)


def sources_of(tx: Tx, head: TreeHead, node: str, limit: int) -> list[NodeSource]:
    """What the node was derived from, at most `limit` of it, by document and chunk."""
    values = {"head_id": head.head_id, "generation": head.generation, "node": node, "limit": limit}
    return [NodeSource(**row._asdict() | {"stale": bool(row.stale)}) for row in tx.all(SOURCES, values)]


_ranked = (
    select(
        sources.c.node,
        sources.c.document,
        documents.c.title,
        sources.c.version,
        sources.c.first,
        sources.c.last,
        (~_is_current).label("stale"),
        func.row_number()
        .over(partition_by=sources.c.node, order_by=(sources.c.document, sources.c.first))
        .label("rank"),
        func.count().over(partition_by=sources.c.node).label("number"),
    )
    .join_from(
        sources,
        documents,
        and_(documents.c.tenant == sources.c.tenant, documents.c.id == sources.c.document),
    )
    .where(
        sources.c.head_id == bindparam("head_id"),
        sources.c.generation == bindparam("generation"),
        key_in(sources.c.node, bindparam("keys", type_=KeyList())),
        ~documents.c.deleted,
    )
    .subquery()
)
FIRST_SOURCES = (
    select(_ranked).where(_ranked.c.rank <= bindparam("most")).order_by(_ranked.c.node, _ranked.c.rank)
)


def first_sources(
    tx: Tx, head: TreeHead, keys: Sequence[str], most: int
) -> dict[str, tuple[int, list[NodeSource]]]:
    """For each node how many sources it has, and the first `most` of them, by document and chunk."""
    values = {"head_id": head.head_id, "generation": head.generation, "keys": list(keys), "most": most}
    listed: dict[str, tuple[int, list[NodeSource]]] = {}
    for row in tx.all(FIRST_SOURCES, values) if keys else ():
        source = NodeSource(row.document, row.title, row.version, row.first, row.last, bool(row.stale))
        listed.setdefault(row.node, (row.number, []))[1].append(source)
    return listed


COVERED = (
    select(sources.c.document)
    .where(
        sources.c.head_id == bindparam("head_id"),
        sources.c.generation == bindparam("generation"),
        sources.c.node == bindparam("node"),
    )
    .distinct()
    .order_by(sources.c.document)
    .limit(bindparam("limit"))
)


def covered(tx: Tx, head: TreeHead, node: str, limit: int) -> list[str]:
    """The documents that the node has something from, at most `limit`."""
    values = {"head_id": head.head_id, "generation": head.generation, "node": node, "limit": limit}
    return [row.document for row in tx.all(COVERED, values)]


TREES = (
    select(heads.c.id, heads.c.subject, heads.c.published_generation)
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.collection == bindparam("collection"),
        heads.c.kind != subjects.INDEX,
        heads.c.kind == bindparam("kind"),
        heads.c.visible,
    )
    .order_by(heads.c.id)
    .limit(bindparam("limit"))
)
EMBEDDED = (
    select(nodes.c.key, nodes.c.words, calls.c.provider, calls.c.model, calls.c.result)
    .select_from(
        nodes.outerjoin(calls, and_(calls.c.tenant == bindparam("tenant"), calls.c.key == nodes.c.call_key))
    )
    .where(*_of_generation, nodes.c.type == bindparam("type"))
    .order_by(nodes.c.slice, nodes.c.epoch, nodes.c.position)
    .limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True)
class EmbeddedNode:
    """What search needs of a node: its terms, and its vector with who made it."""

    key: str
    words: str | None
    provider: str | None
    model: str | None
    vector: bytes | None


def are_there(db: Database, tenant: str, collection: str, kind: str) -> bool:
    """True if something of this kind is published in the collection."""
    values = {"tenant": tenant, "collection": collection, "kind": kind, "limit": 1}
    return bool(db.look(TREES, values))


def of_collection(tx: Tx, tenant: str, collection: str, kind: str, limit: int) -> list[TreeHead]:
    """The published generations of this kind in the collection, at most `limit`."""
    values = {"tenant": tenant, "collection": collection, "kind": kind, "limit": limit}
    return [TreeHead(row.id, row.subject, row.published_generation) for row in tx.all(TREES, values)]


def embedded(tx: Tx, tenant: str, head: TreeHead, node_type: str, limit: int) -> list[EmbeddedNode]:
    """The nodes of one type of a generation, with their terms and vectors, at most `limit`."""
    values = {
        "tenant": tenant,
        "type": node_type,
        "head_id": head.head_id,
        "generation": head.generation,
        "limit": limit,
    }
    return [EmbeddedNode(*tuple(row)) for row in tx.in_binary(EMBEDDED, values)]


# An edge whose end is missing would point at nothing. For the integrity check.
_end = nodes.alias("end")


def _missing(column: ColumnElement[str]) -> ColumnElement[bool]:
    return ~exists().where(
        _end.c.head_id == derived_edges.c.head_id,
        _end.c.generation == derived_edges.c.generation,
        _end.c.key == column,
    )


DANGLING_EDGES = (
    select(func.count())
    .select_from(derived_edges)
    .where(
        derived_edges.c.head_id == bindparam("head_id"),
        derived_edges.c.generation == bindparam("generation"),
        _missing(derived_edges.c.source) | _missing(derived_edges.c.target),
    )
)
UNSOURCED = select(func.count()).select_from(nodes).where(*_of_generation, ~exists().where(*_of_node))
_above = nodes.alias("above")
ORPHANS = (
    select(func.count())
    .select_from(nodes)
    .where(
        *_of_generation,
        nodes.c.parent.is_not(None),
        ~exists().where(
            _above.c.head_id == nodes.c.head_id,
            _above.c.generation == nodes.c.generation,
            _above.c.key == nodes.c.parent,
        ),
    )
)


@dataclass(frozen=True, slots=True)
class TreeFaults:
    """What is wrong with a published generation of nodes; all zero if nothing is."""

    dangling_edges: int
    nodes_without_sources: int
    nodes_without_parent: int


def faults(db: Database, head: TreeHead) -> TreeFaults:
    """Count what should not be: edges to nothing, nodes from nothing, nodes under nothing."""
    values = {"head_id": head.head_id, "generation": head.generation}

    def body(tx: Tx) -> TreeFaults:
        counts = (tx.execute(each, values).scalar_one() for each in (DANGLING_EDGES, UNSOURCED, ORPHANS))
        return TreeFaults(*map(int, counts))

    return db.read(body)
