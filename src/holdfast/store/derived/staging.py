"""Nodes, edges, sources and state are written in the transaction that finishes their slice.

That is their fence: a slice leaves all of its rows or none, a worker that lost its claim writes nothing, and
there are no leftovers of an earlier epoch to delete.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Table, bindparam, delete, exists, insert, select, update

from holdfast.core.records import Claim
from holdfast.store.base.database import Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.schema import (
    derived_edges,
    derived_nodes,
    derived_sources,
    derived_state,
    documents,
)


@dataclass(frozen=True, slots=True)
class NodeSourceDraft:
    """The chunks `first` to `last`, by number, of a version (a generation) of a document."""

    document: str
    version: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """A node about to be stored, with what it was derived from. `children` are keys of nodes below it."""

    key: str
    type: str
    level: int
    title: str
    text: str
    sources: Sequence[NodeSourceDraft]
    document: str | None = None
    call_key: str | None = None
    words: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    children: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class EdgeDraft:
    """What connects two nodes, by their keys."""

    type: str
    source: str
    target: str
    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StateDraft:
    """Something that the next generation begins with."""

    name: str
    level: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)
    vector: bytes | None = None


PUT_NODES = insert(derived_nodes)
PUT_EDGES = insert(derived_edges)
PUT_SOURCES = insert(derived_sources)
PUT_STATE = insert(derived_state)
SET_PARENT = (
    update(derived_nodes)
    .where(
        derived_nodes.c.head_id == bindparam("b_head"),
        derived_nodes.c.generation == bindparam("b_generation"),
        key_in(derived_nodes.c.key, bindparam("b_keys", type_=KeyList())),
    )
    .values(parent=bindparam("b_parent"))
)


def put(
    tx: Tx,
    claim: Claim,
    nodes: Sequence[NodeDraft] = (),
    edges: Sequence[EdgeDraft] = (),
    state: Sequence[StateDraft] = (),
) -> None:
    """The rows are staged under the slice of the claim. For the transaction that finishes it."""
    own = ("key", "type", "level", "document", "title", "text", "call_key", "words")
    _insert(
        tx, claim, PUT_NODES, [{name: getattr(node, name) for name in own} | _data(node) for node in nodes]
    )
    sources = [
        {"node": node.key, "tenant": claim.tenant, "document": each.document, "version": each.version}
        | {"first": each.first, "last": each.last}
        for node in nodes
        for each in node.sources
    ]
    _insert(tx, claim, PUT_SOURCES, sources)
    ends = ("type", "source", "target", "text")
    _insert(
        tx, claim, PUT_EDGES, [{name: getattr(edge, name) for name in ends} | _data(edge) for edge in edges]
    )
    states = [{"name": each.name, "level": each.level, "vector": each.vector} | _data(each) for each in state]
    _insert(tx, claim, PUT_STATE, states)
    for node in nodes:
        if node.children:
            values = {"b_head": claim.head_id, "b_generation": claim.generation}
            tx.execute(SET_PARENT, values | {"b_parent": node.key, "b_keys": list(node.children)})


def _data(draft: NodeDraft | EdgeDraft | StateDraft) -> dict[str, Any]:
    return {"data": dict(draft.data) or None}


def _insert(tx: Tx, claim: Claim, statement: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        location = {"head_id": claim.head_id, "generation": claim.generation}
        location |= {"slice": claim.ordinal, "epoch": claim.epoch}
        tx.execute(statement, [location | {"position": n} | dict(row) for n, row in enumerate(rows)])


DROP_STATE = delete(derived_state).where(
    derived_state.c.head_id == bindparam("b_head"),
    derived_state.c.generation == bindparam("b_generation"),
    derived_state.c.level >= bindparam("b_level"),
)


def drop_state(tx: Tx, claim: Claim, level: int) -> None:
    """State of this level and above is deleted: what phases left for each other, and none after them needs.

    For the transaction that publishes.
    """
    values = {"b_head": claim.head_id, "b_generation": claim.generation, "b_level": level}
    tx.execute(DROP_STATE, values)


_live_document = exists().where(
    documents.c.tenant == derived_sources.c.tenant,
    documents.c.id == derived_sources.c.document,
    ~documents.c.deleted,
)
GONE = (
    select(derived_sources.c.node)
    .where(
        derived_sources.c.head_id == bindparam("head_id"),
        derived_sources.c.generation == bindparam("generation"),
        ~_live_document,
    )
    .distinct()
)


HAS_NODES = select(
    exists().where(
        derived_nodes.c.head_id == bindparam("head_id"),
        derived_nodes.c.generation == bindparam("generation"),
    )
)


def has_nodes(tx: Tx, claim: Claim) -> bool:
    """True if the generation of the claim has any node."""
    values = {"head_id": claim.head_id, "generation": claim.generation}
    return bool(tx.execute(HAS_NODES, values).scalar())


def drop_gone(tx: Tx, claim: Claim) -> int:
    """Nodes of this generation with a deleted source are deleted. For the transaction that publishes it.

    Readers would withhold them; their text must not stay either. Returns how many there were.
    """
    where = {"head_id": claim.head_id, "generation": claim.generation}
    keys = [row.node for row in tx.all(GONE, where)]
    _drop(tx, claim.head_id, claim.generation, keys)
    return len(keys)


def _of_keys(table: Table, *names: str) -> Iterable[Any]:
    here = (table.c.head_id == bindparam("b_head"), table.c.generation == bindparam("b_generation"))
    return [
        delete(table).where(*here, key_in(table.c[name], bindparam("b_keys", type_=KeyList())))
        for name in names
    ]


# What is below a deleted node stays, and is on top from now on.
NO_PARENT = (
    update(derived_nodes)
    .where(
        derived_nodes.c.head_id == bindparam("b_head"),
        derived_nodes.c.generation == bindparam("b_generation"),
        key_in(derived_nodes.c.parent, bindparam("b_keys", type_=KeyList())),
    )
    .values(parent=None)
)
DROP = (
    *_of_keys(derived_nodes, "key"),
    *_of_keys(derived_sources, "node"),
    *_of_keys(derived_edges, "source", "target"),
)


# An edge may have a node of its own, named in its `data`: that has the ends of the edge in its own.
_here = (
    derived_edges.c.head_id == bindparam("b_head"),
    derived_edges.c.generation == bindparam("b_generation"),
)
DATA_OF = select(derived_nodes.c.data).where(
    derived_nodes.c.head_id == bindparam("b_head"),
    derived_nodes.c.generation == bindparam("b_generation"),
    key_in(derived_nodes.c.key, bindparam("b_keys", type_=KeyList())),
)
EDGES_FROM = select(derived_edges).where(
    *_here, key_in(derived_edges.c.source, bindparam("b_keys", type_=KeyList()))
)
DROP_EDGE = delete(derived_edges).where(
    *_here,
    derived_edges.c.slice == bindparam("b_slice"),
    derived_edges.c.epoch == bindparam("b_epoch"),
    derived_edges.c.position == bindparam("b_position"),
)


def _drop(tx: Tx, head_id: int, generation: int, keys: Sequence[str]) -> None:
    if not keys:
        return
    where = {"b_head": head_id, "b_generation": generation}
    data = [row.data or {} for row in tx.all(DATA_OF, where | {"b_keys": list(keys)})]
    beginnings = sorted({str(each["source"]) for each in data if "source" in each and "target" in each})
    dropped = frozenset(keys)
    for edge in tx.all(EDGES_FROM, where | {"b_keys": beginnings}) if beginnings else ():
        if (edge.data or {}).get("node") in dropped:
            at = {"b_slice": edge.slice, "b_epoch": edge.epoch, "b_position": edge.position}
            tx.execute(DROP_EDGE, where | at)
    for statement in (NO_PARENT, *DROP):
        tx.execute(statement, where | {"b_keys": list(keys)})


OF_DOCUMENT = (
    select(derived_sources.c.head_id, derived_sources.c.generation, derived_sources.c.node)
    .where(
        derived_sources.c.tenant == bindparam("tenant"),
        derived_sources.c.document == bindparam("document"),
        ~_live_document,
    )
    .order_by(derived_sources.c.head_id, derived_sources.c.generation)
    .limit(bindparam("limit"))
)
AT_ONCE = 2000


def drop_document(tx: Tx, tenant: str, document: str) -> None:
    """Every node that has anything from the deleted document is deleted, in every generation."""
    values = {"tenant": tenant, "document": document, "limit": AT_ONCE}
    while nodes := tx.all(OF_DOCUMENT, values):
        for head_id, generation in sorted({(row.head_id, row.generation) for row in nodes}):
            keys = {row.node for row in nodes if (row.head_id, row.generation) == (head_id, generation)}
            _drop(tx, head_id, generation, sorted(keys))
