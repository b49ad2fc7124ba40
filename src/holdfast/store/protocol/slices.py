"""Slices of the published generation that a new one may take over instead of repeating the work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Integer, bindparam, insert, select

from holdfast.core.records import Claim, Copy
from holdfast.core.states import TaskState
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import heads, runs, tasks, word_counts
from holdfast.store.protocol.tasks import ADVANCE, CopyGoneError

PUBLISHED = (
    select(tasks.c.ordinal, tasks.c.generation, tasks.c.chunks, tasks.c.result)
    .select_from(
        heads.join(
            runs, (runs.c.head_id == heads.c.id) & (runs.c.generation == heads.c.published_generation)
        ).join(tasks, tasks.c.run_id == runs.c.id)
    )
    .where(heads.c.id == bindparam("head_id"), heads.c.visible, tasks.c.state == literal(TaskState.DONE))
)
DONE = (
    select(tasks.c.ordinal, tasks.c.generation, tasks.c.chunks, tasks.c.result)
    .where(tasks.c.run_id == bindparam("run_id"), tasks.c.state == literal(TaskState.DONE))
    .order_by(tasks.c.ordinal)
)


@dataclass(frozen=True, slots=True)
class DoneSlice:
    """A finished slice: where its chunks are, how many there are, and its result."""

    copy: Copy
    result: Mapping[str, Any]


def published(db: Database, head_id: int) -> dict[str, DoneSlice]:
    """The slices of the published generation by the digest in their results; any one of equal slices."""
    slices = db.read(lambda tx: tx.all(PUBLISHED, {"head_id": head_id}))
    return {
        row.result["digest"]: DoneSlice(Copy(row.generation, row.ordinal, row.chunks), row.result)
        for row in slices
        if row.result and "digest" in row.result
    }


def done(tx: Tx, run_id: str) -> list[DoneSlice]:
    """The finished slices of a run in order, as this transaction sees them."""
    return [
        DoneSlice(Copy(row.generation, row.ordinal, row.chunks), row.result or {})
        for row in tx.all(DONE, {"run_id": run_id})
    ]


_counted = ("chunks", "length", "terms")
_copy_counts = insert(word_counts).from_select(
    ["head_id", "generation", "slice", *_counted],
    select(
        word_counts.c.head_id,
        bindparam("b_generation", type_=BigInteger()),
        bindparam("b_slice", type_=Integer()),
        *(word_counts.c[name] for name in _counted),
    ).where(
        word_counts.c.head_id == bindparam("b_head"),
        word_counts.c.generation == bindparam("b_old_generation"),
        word_counts.c.slice == bindparam("b_old_slice"),
    ),
)
# Without this option the driver does not report the row count of an INSERT on PostgreSQL.
COPY_COUNTS = _copy_counts.execution_options(preserve_rowcount=True)


def copy_counts(tx: Tx, claim: Claim, copy: Copy) -> None:
    """The term counts of the reused slice are copied to this one; CopyGoneError if there are none."""
    values = {
        "b_head": claim.head_id,
        "b_generation": claim.generation,
        "b_slice": claim.ordinal,
        "b_old_generation": copy.generation,
        "b_old_slice": copy.slice,
    }
    if tx.execute(COPY_COUNTS, values).rowcount != 1:
        raise CopyGoneError


def put_progress(
    tx: Tx, claim: Claim, done: int, stages: Mapping[str, Sequence[int]], unit: str = "chunks"
) -> None:
    """The final counts of a finished slice: its total is what it did."""
    values = {
        "b_task": claim.task_id,
        "b_done": done,
        "b_total": done,
        "b_unit": unit,
        "b_stages": {name: list(counts) for name, counts in stages.items()},
        "b_advanced": done > 0,
    }
    tx.execute(ADVANCE, values)
