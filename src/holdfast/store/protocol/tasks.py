"""The fence, and the writes behind it: stage, advance, plan, finish and publish, fail.

Why nothing stale is ever written (G2): each function here first calls `hold`, which locks the head row, then
the task row, and tests the *locked* rows: run live, generation current, epoch and token mine, task running.
Making one of these false needs one of these locks, so the result holds until commit. A sub-select next to the
write would not do: under READ COMMITTED it reads a snapshot from before the lock.

Why a reader sees one whole generation (G3): chunks are staged under (generation, slice, epoch) and read only
by `published_generation`. The last finisher flips it, counting open slices while it holds the head's lock:
otherwise two last finishers would each see the other's slice open, and neither would publish.

Run status changes only under the head's exclusive lock, so it is read, not locked, after the head.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    BigInteger,
    Integer,
    bindparam,
    delete,
    exists,
    insert,
    null,
    select,
    update,
)

from holdfast.core import decide, progress
from holdfast.core.records import Chunk, Claim, Copy, Fenced, Head, Landed, Outcome, Slice, Spent, Task
from holdfast.core.states import OPEN, Status, TaskState, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import Together, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import chunks, heads, runs, tasks
from holdfast.store.protocol import phases, publish_seq, requests, run_logs, staging

_open_states = [literal(state) for state in sorted(OPEN)]

TASK_FOR_CHANGE = (
    select(
        *rows.TASK_COLUMNS,
        tasks.c.done,
        tasks.c.total,
        tasks.c.age,
        runs.c.status.label("run_status"),
        runs.c.slices.label("run_slices"),
        runs.c.phase.label("run_phase"),
        runs.c.callback.is_not(null()).label("calls_back"),
    )
    .select_from(tasks.join(runs, runs.c.id == tasks.c.run_id))
    .where(tasks.c.id == bindparam("task_id"))
    .with_for_update(key_share=True, of=tasks)
)


@dataclass(frozen=True, slots=True)
class LockedTask:
    """Locked rows that passed the fence."""

    head: Head
    task: Task
    slices: int | None
    done: int
    total: int
    age: float
    calls_back: bool


def hold(tx: Tx, claim: Claim, *, change: bool) -> LockedTask | Fenced | Landed:
    """The locked head and task if `claim` may write; otherwise why not.

    `change` locks the head for change (finish, fail); other fenced writes share it and never upgrade. Landed
    means that this claim already finished and its response was lost.
    """
    lock = rows.HEAD_FOR_CHANGE if change else rows.HEAD_FOR_SHARE
    head_row = tx.one(lock, {"head_id": claim.head_id})
    row = tx.one(TASK_FOR_CHANGE, {"task_id": claim.task_id})
    if head_row is None or row is None:
        return Fenced("gone")
    head, task = rows.head(head_row), rows.task(row)
    run_status = Status(row.run_status)
    if tx.again and task.state in {TaskState.DONE, TaskState.FAILED} and task.token == claim.token:
        return Landed(published=run_status is Status.SUCCESS, goes_on=row.run_phase > task.phase)
    verdict = decide.fence(claim, head, run_status, task)
    if isinstance(verdict, Fenced):
        return verdict
    return LockedTask(head, task, row.run_slices, row.done, row.total, row.age, bool(row.calls_back))


def _fenced(tx: Tx, verb: Verb, claim: Claim, verdict: Fenced) -> Fenced:
    """Record the refused write in the journal: it is the proof that the fence was needed."""
    journal.once(tx, journal.of_claim(verb, f"fenced_out:{verdict.reason}", claim))
    return verdict


DELETE_LEFTOVERS = delete(chunks).where(
    chunks.c.head_id == bindparam("b_head"),
    chunks.c.generation == bindparam("b_generation"),
    chunks.c.slice == bindparam("b_slice"),
    chunks.c.epoch < bindparam("b_epoch"),
)
SIGN = update(tasks).where(tasks.c.id == bindparam("b_task")).values(signed_at=now())


def _location(claim: Claim) -> dict[str, Any]:
    return {
        "b_head": claim.head_id,
        "b_generation": claim.generation,
        "b_slice": claim.ordinal,
        "b_epoch": claim.epoch,
    }


def stage(db: Database, claim: Claim, batch: Sequence[Chunk]) -> Outcome:
    """The chunks are stored under this generation, slice and epoch, invisible until published.

    Keep batches short (about 250 ms): on SQLite a long write starves the renewals of every lease.
    """
    prepared = staging.prepared(claim, batch)

    def body(tx: Tx) -> Outcome:
        held = hold(tx, claim, change=False)
        if isinstance(held, Fenced):
            return _fenced(tx, Verb.STAGE, claim, held)
        if isinstance(held, Landed):
            return held
        if claim.epoch > 1:
            tx.execute(DELETE_LEFTOVERS, _location(claim))
        staging.put(tx, prepared, again=tx.again)
        tx.execute(SIGN, {"b_task": claim.task_id})
        return Landed()

    return db.write("stage", body, relaxed=True) if prepared else Landed()


_copied = ("position", "page", "text", "call_key", "data", "words")
COPY = (
    insert(chunks)
    .from_select(
        ["head_id", "generation", "slice", "epoch", *_copied],
        select(
            chunks.c.head_id,
            bindparam("b_generation", type_=BigInteger()),
            bindparam("b_slice", type_=Integer()),
            bindparam("b_epoch", type_=BigInteger()),
            *(chunks.c[name] for name in _copied),
        ).where(
            chunks.c.head_id == bindparam("b_head"),
            chunks.c.generation == bindparam("b_old_generation"),
            chunks.c.slice == bindparam("b_old_slice"),
        ),
    )
    .execution_options(preserve_rowcount=True)
)  # not reported by default for INSERT ... SELECT


class CopyGoneError(Exception):
    """The slice to be reused is no longer complete; the transaction was rolled back."""


ADVANCE = (
    update(tasks)
    .where(tasks.c.id == bindparam("b_task"))
    .values(
        done=bindparam("b_done"),
        total=bindparam("b_total"),
        unit=bindparam("b_unit"),
        stages=bindparam("b_stages"),
        advanced=tasks.c.advanced | bindparam("b_advanced"),
        signed_at=now(),
    )
)
_reused: dict[str, Any] = {"reused_calls": bindparam("b_reused_calls"), "saved": bindparam("b_saved")}
ADVANCE_HAVING_REUSED = ADVANCE.values(**_reused)


@dataclass(frozen=True, slots=True)
class Report:
    """True counts of what a task has done so far, and lines for its log."""

    done: int
    total: int
    unit: str = ""
    stages: Mapping[str, Sequence[int]] | None = None
    lines: Sequence[run_logs.Line] = ()
    spent: Spent = field(default_factory=Spent)


def advance(db: Database, claim: Claim, report: Report) -> Outcome:
    """The task's progress is at least what `report` says; it never moves back."""

    def body(tx: Tx) -> Outcome:
        held = hold(tx, claim, change=False)
        if isinstance(held, Fenced):
            return _fenced(tx, Verb.ADVANCE, claim, held)
        if isinstance(held, Landed):
            return held
        done, total = progress.forward((held.done, held.total), (report.done, report.total))
        values = {
            "b_task": claim.task_id,
            "b_done": done,
            "b_total": total,
            "b_unit": report.unit,
            "b_stages": {name: list(counts) for name, counts in (report.stages or {}).items()} or None,
            "b_advanced": done > held.done,
            # Payments are in the bill; reuse is recorded only here, also for a run that fails.
            "b_reused_calls": report.spent.reused_calls,
            "b_saved": report.spent.saved,
        }
        tx.execute(ADVANCE_HAVING_REUSED, values)
        run_logs.say(tx, claim.run_id, report.lines)
        return Landed()

    return db.write("advance", body, relaxed=True)


def say(db: Database, claim: Claim, said: Sequence[run_logs.Line]) -> Outcome:
    """The lines are in the run's log."""

    def body(tx: Tx) -> Outcome:
        held = hold(tx, claim, change=False)
        if isinstance(held, LockedTask):
            run_logs.say(tx, claim.run_id, said)
            return Landed()
        return held

    return db.write("say", body, relaxed=True) if said else Landed()


INSERT_TASKS = insert(tasks)
DONE = (
    update(tasks)
    .where(tasks.c.id == bindparam("b_task"))
    .values(
        state=literal(TaskState.DONE),
        lease_until=0.0,
        signed_at=now(),
        paid_calls=bindparam("b_paid_calls"),
        unpriced_calls=bindparam("b_unpriced_calls"),
        reused_calls=bindparam("b_reused_calls"),
        tokens=bindparam("b_tokens"),
        paid=bindparam("b_paid"),
        saved=bindparam("b_saved"),
        chunks=bindparam("b_chunks"),
        result=bindparam("b_result"),
    )
)
PLANNED = Together(
    DONE,
    update(runs).where(runs.c.id == bindparam("b_run")).values(slices=bindparam("b_slices")),
    journal.WRITE,
)


def plan(
    db: Database,
    claim: Claim,
    slices: Sequence[Slice],
    spent: Spent,
    said: Sequence[run_logs.Line] = (),
) -> Outcome:
    """The plan task is done and every slice is queued, in one transaction: no half-planned run exists."""

    def body(tx: Tx) -> Outcome:
        held = hold(tx, claim, change=True)
        if isinstance(held, Fenced):
            return _fenced(tx, Verb.PLAN, claim, held)
        if isinstance(held, Landed):
            return held
        if claim.epoch > 1:
            # An import may have staged under this task before it died; the slices start from scratch.
            tx.execute(DELETE_LEFTOVERS, _location(claim))
        born = requests.BORN | {"lane": claim.lane, "priority": claim.priority, "pipeline": claim.pipeline}
        ids = {"run_id": claim.run_id, "head_id": claim.head_id, "tenant": claim.tenant}
        queue = {"generation": claim.generation, "phase": claim.phase, "age": held.age, "due_at": held.age}
        tx.execute(
            INSERT_TASKS,
            [
                {**born, **ids, **queue, "ordinal": n, "payload": dict(piece.payload), "weight": piece.weight}
                for n, piece in enumerate(slices, start=claim.ordinal + 1)
            ],
        )
        run_logs.say(tx, claim.run_id, said)
        last = {"b_run": claim.run_id, "b_slices": claim.ordinal + len(slices)}
        noted = {"slices": len(slices)} | ({"phase": claim.phase} if claim.phase else {})
        values = _done_values(claim, spent, 0, None) | last
        tx.together(PLANNED, values | journal.of_claim(Verb.PLAN, "planned", claim, noted))
        return Landed()

    return db.write("plan", body, relaxed=True)


def _done_values(claim: Claim, spent: Spent, staged: int, result: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "b_task": claim.task_id,
        "b_paid_calls": spent.paid_calls,
        "b_unpriced_calls": spent.unpriced_calls,
        "b_reused_calls": spent.reused_calls,
        "b_tokens": spent.tokens,
        "b_paid": spent.paid,
        "b_saved": spent.saved,
        "b_chunks": staged,
        "b_result": dict(result) if result is not None else None,
    }


OTHERS_OPEN = select(
    exists().where(
        tasks.c.run_id == bindparam("b_run"),
        tasks.c.state.in_(_open_states),
        tasks.c.id != bindparam("b_task"),
    )
)
FINISHED = Together(DONE, journal.WRITE)
FINISHED_PHASE = Together(DONE, phases.GO_ON, phases.INSERT_PLANNING, journal.WRITE)
_publish_run = (
    update(runs)
    .where(runs.c.id == bindparam("b_run"))
    .values(
        status=literal(Status.SUCCESS),
        finished_at=now(),
        slices=bindparam("b_slices"),
        result=bindparam("b_result"),
    )
)
_publish_head = (
    update(heads)
    .where(heads.c.id == bindparam("b_head"), heads.c.published_generation < bindparam("b_generation"))
    .values(
        status=literal(Status.SUCCESS),
        published_generation=bindparam("b_generation"),
        visible=True,
        imported=False,
        updated_at=now(),
    )
)
FINISHED_AND_PUBLISHED = Together(DONE, _publish_run, _publish_head, journal.WRITE)
PUBLISHED = Together(_publish_run, _publish_head, journal.WRITE)

Writes = Callable[[Tx], None]
Publish = Callable[[Tx], Writes | None]


def finish(db: Database, claim: Claim, *, batch: Sequence[Chunk] = (), **parts: Any) -> Outcome:
    """The slice is done, as `finish_in` says, in a transaction of its own; `batch` is staged in it."""
    prepared = staging.prepared(claim, batch)
    return db.write("finish", lambda tx: finish_in(tx, claim, prepared=prepared, **parts), relaxed=True)


def finish_in(
    tx: Tx,
    claim: Claim,
    *,
    spent: Spent,
    staged: int = 0,
    result: Mapping[str, Any] | None = None,
    publish: Publish | None = None,
    prepared: staging.Staging = (),
    copy: Copy | None = None,
    also: Writes | None = None,
    said: Sequence[run_logs.Line] = (),
    goes_on: bool = False,
) -> Outcome:
    """The slice is done; if it was the last one, its generation is published in the same transaction.

    With `goes_on` its kind may have a further phase: then the task that plans it is queued instead.

    `prepared` is staged in it, or the chunks of `copy` are reused: CopyGoneError if they are not complete.
    `also` writes more about the slice.

    `publish` runs in that transaction when this finish publishes: whatever it writes through the given
    transaction takes effect with the publication or not at all. It may run more than once, so it must have no
    effect outside the transaction. It may lock other heads. What it returns runs after the counter of the
    collection was raised, which every publication waits for while it holds its head: no head is locked there.
    """
    held = hold(tx, claim, change=True)
    if isinstance(held, Fenced):
        return _fenced(tx, Verb.FINISH, claim, held)
    if isinstance(held, Landed):
        return _landed_before(tx, claim, Status.SUCCESS) if held.published else held
    if claim.epoch > 1:
        tx.execute(DELETE_LEFTOVERS, _location(claim))
    _leave_behind(tx, claim, prepared, copy, also)
    run_logs.say(tx, claim.run_id, said)
    values = _done_values(claim, spent, staged, result)
    match decide.after_task(others_open=_others_open(tx, claim, held), goes_on=goes_on):
        case decide.Continuation.WAIT:
            tx.together(FINISHED, values | journal.of_claim(Verb.FINISH, "slice_done", claim))
            return Landed()
        case decide.Continuation.NEXT_PHASE:
            values |= phases.next_values(claim, _last(claim, held), held.age) | {"b_run": claim.run_id}
            tx.name = "next_phase"
            tx.together(FINISHED_PHASE, values | journal.of_claim(Verb.FINISH, "phase_done", claim))
            return Landed(goes_on=True)
    values |= _location(claim) | {"b_run": claim.run_id, "b_slices": _last(claim, held)}
    tx.together(FINISHED_AND_PUBLISHED, values | journal.of_claim(Verb.PUBLISH, "all_slices_done", claim))
    if claim.phase and claim.plans:
        phases.end_before(tx, claim)
    follow_ups = before_bump(tx, held.head, claim.generation, claim.run_id)
    writes = publish(tx) if publish is not None else None
    _bump(tx, held.head)
    if writes is not None:
        writes(tx)
    if held.calls_back:
        follow_ups += requests.after_end(tx, claim.run_id, Status.SUCCESS)
    return Landed(published=True, follow_ups=follow_ups)


def _others_open(tx: Tx, claim: Claim, held: LockedTask) -> bool:
    """True if another task of the run is open; while a phase is being planned none is."""
    if held.slices is None or claim.ordinal > held.slices:
        return False
    return bool(tx.execute(OTHERS_OPEN, {"b_run": claim.run_id, "b_task": claim.task_id}).scalar())


def _last(claim: Claim, held: LockedTask) -> int:
    """The ordinal of the last task of the phase: a plan task that did the work itself has no others."""
    return max(held.slices or 0, claim.ordinal)


def _landed_before(tx: Tx, claim: Claim, status: Status) -> Landed:
    """The result of the earlier try, whose response was lost."""
    due = requests.made_due(tx, claim.head_id, claim.generation, status)
    return Landed(published=status is Status.SUCCESS, follow_ups=due)


def _leave_behind(
    tx: Tx, claim: Claim, prepared: staging.Staging, copy: Copy | None, also: Writes | None
) -> None:
    staging.put(tx, prepared)
    if copy is not None:
        old = {"b_old_generation": copy.generation, "b_old_slice": copy.slice}
        if tx.execute(COPY, _location(claim) | old).rowcount != copy.chunks:
            raise CopyGoneError
    if also is not None:
        also(tx)


def after_publish(tx: Tx, head: Head, generation: int, run_id: str) -> int:
    """Every feature has handled the publication, readers notice it. Returns how many follow-ups are due."""
    due = before_bump(tx, head, generation, run_id)
    _bump(tx, head)
    return due


def before_bump(tx: Tx, head: Head, generation: int, run_id: str) -> int:
    """Every feature has handled the publication. Returns how many follow-ups are due."""
    return sum(hook.after_publish(tx, head, generation, run_id) for hook in tx.db.hooks)


def _bump(tx: Tx, head: Head) -> None:
    if head.collection is not None:
        publish_seq.bump(tx, head.tenant, head.collection)


FAILED = (
    update(tasks)
    .where(tasks.c.id == bindparam("b_task"))
    .values(state=literal(TaskState.FAILED), lease_until=0.0)
)
FAILED_HAVING_REUSED = FAILED.values(**_reused)


def fail(
    db: Database,
    claim: Claim,
    *,
    code: str,
    message: str,
    spent: Spent | None = None,
    said: Sequence[run_logs.Line] = (),
) -> Outcome:
    """The run has failed with `code`; what was published before stays visible."""
    spent = spent or Spent()

    def body(tx: Tx) -> Outcome:
        held = hold(tx, claim, change=True)
        if isinstance(held, Fenced):
            return _fenced(tx, Verb.FAIL, claim, held)
        if isinstance(held, Landed):
            return _landed_before(tx, claim, Status.FAILED)
        values = {"b_reused_calls": spent.reused_calls, "b_saved": spent.saved}
        tx.execute(FAILED_HAVING_REUSED, {"b_task": claim.task_id, **values})
        run_logs.say(tx, claim.run_id, said)
        follow_ups = requests.end_failed(tx, held.head, claim.run_id, code=code, message=message)
        journal.write(tx, journal.of_claim(Verb.FAIL, code, claim, {"message": message[:500]}))
        return Landed(follow_ups=follow_ups)

    return db.write("fail", body)
