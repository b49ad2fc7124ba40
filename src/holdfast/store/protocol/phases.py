"""The phases of a run: the planning task of the next one, and what the earlier ones have left.

The tasks of a run are numbered through all its phases, so that what they stage never collides. The first task
of a phase plans it. `runs.slices` is the number of the last planned task: a task beyond it is the one that
plans, and (run, ordinal) is unique, so a phase has one such task, by whichever worker.

Nobody else may see what a run has staged before it is published. Its own later phases may: `earlier` reads it
in one snapshot with the claim, so for a run that has ended meanwhile, and may be pruned, it returns nothing
instead of a part.
"""

from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import bindparam, func, insert, select, tuple_, update

from holdfast.core.records import Chunk, Claim, EarlierSlice, RunRecord
from holdfast.core.states import TaskState
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import chunks, runs, tasks

PAGE = 500

GO_ON = (
    update(runs)
    .where(runs.c.id == bindparam("b_run"))
    .values(phase=bindparam("b_phase"), slices=bindparam("b_slices"))
)
INSERT_PLANNING = insert(tasks).values(
    run_id=bindparam("b_run"),
    head_id=bindparam("b_head"),
    tenant=bindparam("b_tenant"),
    lane=bindparam("b_lane"),
    priority=bindparam("b_priority"),
    age=bindparam("b_age"),
    due_at=now(),
    pipeline=bindparam("b_pipeline"),
    generation=bindparam("b_generation"),
    ordinal=bindparam("b_ordinal"),
    phase=bindparam("b_phase"),
    payload={},
    state=literal(TaskState.QUEUED),
)


def next_values(of: Claim | RunRecord, slices: int, age: float) -> dict[str, Any]:
    """The values of `GO_ON` and `INSERT_PLANNING`: the phase after that of `of`, which ends with `slices`.

    The planning task takes the run's position in the queue, as its slices do.
    """
    return {
        "b_tenant": of.tenant,
        "b_lane": of.lane,
        "b_priority": of.priority,
        "b_age": age,
        "b_pipeline": of.pipeline,
        "b_head": of.head_id,
        "b_generation": of.generation,
        "b_slices": slices,
        "b_ordinal": slices + 1,
        "b_phase": of.phase + 1,
    }


# The position of a run in the queue, and its last task.
PROGRESS = select(func.min(tasks.c.age).label("age"), func.max(tasks.c.ordinal).label("last")).where(
    tasks.c.run_id == bindparam("run_id")
)
# An empty plan is no phase: the run ends in the one before it, with the result of that.
_before = tasks.alias("before")
END_BEFORE = (
    update(runs)
    .where(runs.c.id == bindparam("b_run"))
    .values(
        phase=bindparam("b_phase"),
        result=select(_before.c.result)
        .where(_before.c.run_id == bindparam("b_run"), _before.c.ordinal == bindparam("b_ordinal"))
        .scalar_subquery(),
    )
)


def end_before(tx: Tx, claim: Claim) -> None:
    """The run whose planning task, held by this claim, planned nothing has ended in the phase before it."""
    tx.execute(
        END_BEFORE, {"b_run": claim.run_id, "b_phase": claim.phase - 1, "b_ordinal": claim.ordinal - 1}
    )


MINE = select(tasks.c.id).where(
    tasks.c.id == bindparam("task_id"),
    tasks.c.token == bindparam("token"),
    tasks.c.epoch == bindparam("epoch"),
    tasks.c.state == literal(TaskState.RUNNING),
)
EARLIER = (
    select(tasks.c.phase, tasks.c.ordinal, tasks.c.payload, tasks.c.result, tasks.c.chunks)
    .where(
        tasks.c.run_id == bindparam("run_id"),
        tasks.c.phase < bindparam("phase"),
        tasks.c.state == literal(TaskState.DONE),
    )
    .order_by(tasks.c.ordinal)
)
EARLIER_CHUNKS = (
    select(chunks.c.slice, *(chunks.c[name] for name in Chunk.__dataclass_fields__))
    .where(
        chunks.c.head_id == bindparam("head_id"),
        chunks.c.generation == bindparam("generation"),
        tuple_(chunks.c.slice, chunks.c.position) > tuple_(bindparam("slice"), bindparam("position")),
        chunks.c.slice <= bindparam("last"),
    )
    .order_by(chunks.c.slice, chunks.c.position)
    .limit(PAGE)
)


def earlier(db: Database, claim: Claim) -> list[EarlierSlice] | None:
    """The finished slices of the phases before that of `claim`, in order; None if it is not held.

    A task that planned several others is not included.
    """

    def body(tx: Tx) -> list[EarlierSlice] | None:
        if not _is_held(tx, claim):
            return None
        done = tx.all(EARLIER, {"run_id": claim.run_id, "phase": claim.phase})
        phases = [list(group) for _, group in groupby(done, key=attrgetter("phase"))]
        return [
            EarlierSlice(row.phase, row.ordinal, row.payload, row.result or {}, row.chunks)
            for phase in phases
            for row in phase[1:] or phase
        ]

    return db.read(body)


def earlier_chunks(
    db: Database, claim: Claim, last: int, after: tuple[int, int]
) -> list[tuple[int, Chunk]] | None:
    """A page of chunks staged by the slices up to `last`, each with its slice; None if not held.

    `after` is the (slice, position) of the last chunk of the previous page.
    """
    staged_by = {"head_id": claim.head_id, "generation": claim.generation, "last": last}
    where = staged_by | {"slice": after[0], "position": after[1]}

    def body(tx: Tx) -> list[tuple[int, Chunk]] | None:
        if not _is_held(tx, claim):
            return None
        return [
            (row.slice, Chunk(row.position, row.text, row.page, row.call_key, row.data or {}, row.words))
            for row in tx.all(EARLIER_CHUNKS, where)
        ]

    return db.read(body)


def _is_held(tx: Tx, claim: Claim) -> bool:
    values = {"task_id": claim.task_id, "token": claim.token, "epoch": claim.epoch}
    return tx.one(MINE, values) is not None
