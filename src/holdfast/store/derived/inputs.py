"""What kinds derive nodes from: chunks with their vectors, and nodes staged by earlier phases of the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, func, select

from holdfast.core.records import Claim
from holdfast.core.states import CallState
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.schema import (
    calls,
    chunks,
    derived_nodes,
    derived_sources,
    derived_state,
    heads,
)
from holdfast.store.derived.staging import NodeSourceDraft


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """A text and its vector, with who made it; of a chunk its number, of a node its key."""

    text: str
    vector: bytes | None
    provider: str | None
    model: str | None
    number: int = 0
    page: int | None = None
    key: str = ""


CURRENT = select(heads.c.id).where(
    heads.c.id == bindparam("head_id"),
    heads.c.visible,
    heads.c.published_generation == bindparam("generation"),
)
_numbered = (
    select(
        chunks.c.text,
        chunks.c.page,
        chunks.c.call_key,
        (func.row_number().over(order_by=(chunks.c.slice, chunks.c.position)) - 1).label("number"),
    )
    .where(chunks.c.head_id == bindparam("head_id"), chunks.c.generation == bindparam("generation"))
    .subquery()
)
CHUNKS = (
    select(
        _numbered.c.text,
        calls.c.result,
        calls.c.provider,
        calls.c.model,
        _numbered.c.number,
        _numbered.c.page,
    )
    .select_from(
        _numbered.outerjoin(
            calls, and_(calls.c.tenant == bindparam("tenant"), calls.c.key == _numbered.c.call_key)
        )
    )
    .order_by(_numbered.c.number)
)


def chunks_of(db: Database, tenant: str, head_id: int, generation: int) -> list[EmbeddedText] | None:
    """The chunks of a document with their vectors; None if the generation is no longer the published one."""
    version = {"head_id": head_id, "generation": generation}

    def body(tx: Tx) -> list[EmbeddedText] | None:
        if tx.one(CURRENT, version) is None:
            return None
        return [EmbeddedText(*tuple(row)) for row in tx.in_binary(CHUNKS, version | {"tenant": tenant})]

    return db.read(body)


_nodes = derived_nodes.outerjoin(
    calls, and_(calls.c.tenant == bindparam("tenant"), calls.c.key == derived_nodes.c.call_key)
)
_staged = (
    select(
        derived_nodes.c.text,
        calls.c.result,
        calls.c.provider,
        calls.c.model,
        derived_nodes.c.position,
        derived_nodes.c.level,
        derived_nodes.c.key,
        derived_nodes.c.document,
        derived_nodes.c.title,
    )
    .select_from(_nodes)
    .where(
        derived_nodes.c.head_id == bindparam("head_id"),
        derived_nodes.c.generation == bindparam("generation"),
    )
    .order_by(derived_nodes.c.slice, derived_nodes.c.epoch, derived_nodes.c.position)
)
OF_DOCUMENT = _staged.where(
    derived_nodes.c.document == bindparam("document"), derived_nodes.c.level == bindparam("level")
)
OF_KEYS = _staged.where(key_in(derived_nodes.c.key, bindparam("keys", type_=KeyList())))
ROOTS = _staged.where(derived_nodes.c.parent.is_(None))


@dataclass(frozen=True, slots=True)
class StagedNode:
    """A node of the run itself."""

    key: str
    text: str
    level: int
    document: str | None
    vector: bytes | None
    provider: str | None
    model: str | None
    title: str = ""


def of_document(db: Database, claim: Claim, document: str, level: int) -> list[StagedNode]:
    """The nodes of a level that earlier phases of this run have made of a document, in order."""
    return _read(db, claim, OF_DOCUMENT, {"document": document, "level": level})


def of_keys(db: Database, claim: Claim, keys: Sequence[str]) -> list[StagedNode]:
    """The nodes of this run with these keys."""
    return _read(db, claim, OF_KEYS, {"keys": list(keys)})


def roots(db: Database, claim: Claim) -> list[StagedNode]:
    """The nodes of this run that have no parent yet."""
    return _read(db, claim, ROOTS, {})


def _read(db: Database, claim: Claim, statement: Any, values: Mapping[str, Any]) -> list[StagedNode]:
    about = {"head_id": claim.head_id, "generation": claim.generation, "tenant": claim.tenant}
    rows = db.read(lambda tx: tx.in_binary(statement, {**about, **values}))
    return [
        StagedNode(row.key, row.text, row.level, row.document, row.result, row.provider, row.model, row.title)
        for row in rows
    ]


_covered = (
    select(
        derived_sources.c.node,
        derived_sources.c.document,
        derived_sources.c.version,
        func.min(derived_sources.c.first).label("first"),
        func.max(derived_sources.c.last).label("last"),
    )
    .where(
        derived_sources.c.head_id == bindparam("head_id"),
        derived_sources.c.generation == bindparam("generation"),
        key_in(derived_sources.c.node, bindparam("keys", type_=KeyList())),
    )
    .group_by(derived_sources.c.node, derived_sources.c.document, derived_sources.c.version)
    .order_by(derived_sources.c.node, derived_sources.c.document)
)


def sources_of(db: Database, claim: Claim, keys: Sequence[str]) -> dict[str, list[NodeSourceDraft]]:
    """What these nodes of this run were derived from, one range of chunks for each document."""
    values = {"head_id": claim.head_id, "generation": claim.generation, "keys": list(keys)}
    sources: dict[str, list[NodeSourceDraft]] = {key: [] for key in keys}
    for row in db.read(lambda tx: tx.all(_covered, values)):
        sources[row.node].append(NodeSourceDraft(row.document, row.version, row.first, row.last))
    return sources


ANSWERS = select(calls.c.key, calls.c.result).where(
    calls.c.tenant == bindparam("tenant"),
    key_in(calls.c.key, bindparam("keys", type_=KeyList())),
    calls.c.state == CallState.SETTLED.value,
)


def answers(db: Database, tenant: str, keys: Sequence[str]) -> dict[str, bytes]:
    """What the ledger has of these calls, by key: for an estimate, which pays for nothing."""
    if not keys:
        return {}
    rows = db.read(lambda tx: tx.in_binary(ANSWERS, {"tenant": tenant, "keys": list(keys)}))
    return {row.key: row.result for row in rows if row.result is not None}


@dataclass(frozen=True, slots=True)
class StoredState:
    """Something that a generation left for the next one."""

    name: str
    data: Mapping[str, Any]
    vector: bytes | None


_state = (
    select(derived_state.c.name, derived_state.c.data, derived_state.c.vector)
    .where(
        derived_state.c.head_id == bindparam("head_id"),
        derived_state.c.generation == bindparam("generation"),
        derived_state.c.level == bindparam("level"),
    )
    .order_by(derived_state.c.name)
)
PUBLISHED = select(heads.c.published_generation).where(heads.c.id == bindparam("head_id"), heads.c.visible)


def published_state(db: Database, claim: Claim, level: int) -> list[StoredState]:
    """What the published generation of this head left for the next one."""

    def body(tx: Tx) -> list[StoredState]:
        row = tx.one(PUBLISHED, {"head_id": claim.head_id})
        return [] if row is None else _states(tx, claim.head_id, row.published_generation, level)

    return db.read(body)


OF_SUBJECT = select(heads.c.id, heads.c.published_generation).where(
    heads.c.tenant == bindparam("tenant"),
    heads.c.kind == bindparam("kind"),
    heads.c.subject == bindparam("subject"),
    heads.c.visible,
)
EVERY_LEVEL = (
    select(derived_state.c.level, derived_state.c.name, derived_state.c.data, derived_state.c.vector)
    .where(
        derived_state.c.head_id == bindparam("head_id"),
        derived_state.c.generation == bindparam("generation"),
    )
    .order_by(derived_state.c.level, derived_state.c.name)
)


def states_of(db: Database, tenant: str, kind: str, subject: str) -> dict[int, list[StoredState]]:
    """What the published generation of a subject left for the next one, by level."""

    def body(tx: Tx) -> dict[int, list[StoredState]]:
        head = tx.one(OF_SUBJECT, {"tenant": tenant, "kind": kind, "subject": subject})
        levels: dict[int, list[StoredState]] = {}
        if head is not None:
            values = {"head_id": head.id, "generation": head.published_generation}
            for row in tx.in_binary(EVERY_LEVEL, values):
                levels.setdefault(row.level, []).append(StoredState(row.name, row.data or {}, row.vector))
        return levels

    return db.read(body)


def staged_state(db: Database, claim: Claim, level: int) -> list[StoredState]:
    """What earlier phases of this run leave for the next generation."""
    return db.read(lambda tx: _states(tx, claim.head_id, claim.generation, level))


def _states(tx: Tx, head_id: int, generation: int, level: int) -> list[StoredState]:
    values = {"head_id": head_id, "generation": generation, "level": level}
    return [StoredState(row.name, row.data or {}, row.vector) for row in tx.in_binary(_state, values)]
