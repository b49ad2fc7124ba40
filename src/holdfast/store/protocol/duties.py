"""What the sweep does: recover work that was left behind, in bounded batches.

Each function is a transition of its own: it locks, tests the locked rows, writes and journals in one
transaction. `duty_schedule` decides which sweeper runs a duty.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, exists, func, not_, or_, select, update

from holdfast.core import decide
from holdfast.core.states import LIVE, OPEN, CallState, Loss, Status, TaskState, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import Together, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import orders, runs, tasks
from holdfast.store.protocol import losses, phases, requests
from holdfast.store.protocol import tasks as fenced

BATCH = 200
# Pages of expired leases that one sweep reads.
MOST_PAGES = 25
_open_states = [literal(state) for state in sorted(OPEN)]


EXPIRED = (
    select(*losses.LOST_COLUMNS)
    .where(
        rows.may(tasks.c.state, "task", Verb.EXPIRE),
        tasks.c.lease_until < now(),
        tasks.c.lease_until >= bindparam("since"),
        or_(tasks.c.lease_until > bindparam("since"), tasks.c.id > bindparam("after")),
    )
    .order_by(tasks.c.lease_until, tasks.c.id)
    .limit(bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True, of=tasks)
)

Alive = Callable[[list[tuple[int, str]]], set[int]]
"""Given (task id, token) pairs whose database lease has expired: which are alive in another lease backend."""


@dataclass(slots=True)
class ExpiryCursor:
    """The last task whose expired lease was checked; (0, 0) before the first."""

    lease_until: float = 0.0
    task_id: int = 0


def expire(
    db: Database, *, cap: int, alive: Alive | None = None, cursor: ExpiryCursor | None = None
) -> dict[str, int]:
    """Tasks whose lease expired are due again, per lane; those above the cap of losses fail their run.

    At most `MOST_PAGES` pages are read. The next call with the same `cursor` continues after them, so that
    tasks that are alive in another lease backend, however many, cannot hide a dead one behind them.
    """
    position = cursor or ExpiryCursor()
    woken: dict[int, str] = {}
    for _ in range(MOST_PAGES):
        if not _expire_page(db, position, woken, cap=cap, alive=alive):
            position.lease_until, position.task_id = 0.0, 0
            break
    return Counter(woken.values())


def _expire_page(
    db: Database, position: ExpiryCursor, woken: dict[int, str], *, cap: int, alive: Alive | None
) -> bool:
    """One page after `position`, which is moved past it, is handled; False if it was the last one.

    `woken` is filled over all tries: a spare wake-up is harmless, a lost one costs a sweep.
    """
    caps = decide.Caps(losses=cap)
    values = {"since": position.lease_until, "after": position.task_id, "limit": BATCH}

    def body(tx: Tx) -> tuple[Sequence[Row[Any]], list[Row[Any]]]:
        page = tx.all(EXPIRED, values)
        spared = alive([(row.id, row.token) for row in page]) if alive is not None and page else set()
        abandoned = []
        for row in page:
            if row.id in spared:
                continue
            expiry = losses.take_back(tx, row, Loss.LEASE_EXPIRED, caps)
            if expiry.abandoned:
                abandoned.append(row)
            elif not expiry.delay:
                woken[row.id] = row.lane
        return page, abandoned

    page, abandoned = db.write("expire", body)
    for row in abandoned:
        losses.abandon(db, row, Loss.LEASE_EXPIRED, caps)
    if page:
        position.lease_until, position.task_id = page[-1].lease_until, page[-1].id
    return len(page) == BATCH


FALLEN_DUE = (
    select(tasks.c.id, tasks.c.lane)
    .where(rows.may(tasks.c.state, "task", Verb.FALL_DUE), tasks.c.due_at <= now())
    .order_by(tasks.c.due_at)
    .limit(BATCH)
    .with_for_update(key_share=True, skip_locked=True)
)
QUEUE = (
    update(tasks)
    .where(tasks.c.id == bindparam("b_task"))
    .values(state=literal(TaskState.QUEUED), waiting_for=None)
)


def fall_due(db: Database) -> dict[str, int]:
    """Tasks whose wait is over are queued. Returns how many per lane."""
    woken: dict[int, str] = {}  # as in `expire`

    def body(tx: Tx) -> None:
        for row in tx.all(FALLEN_DUE):
            tx.execute(QUEUE, {"b_task": row.id})
            woken[row.id] = row.lane

    db.write("fall_due", body)
    return Counter(woken.values())


_some = (
    select(tasks.c.lane, tasks.c.due_at)
    .where(tasks.c.state == literal(TaskState.QUEUED), tasks.c.lane == bindparam("lane"))
    .limit(bindparam("most"))
    .subquery()
)
FORGOTTEN = select(func.count()).select_from(_some)


def forgotten(db: Database, lanes: Collection[str], most: int) -> dict[str, int]:
    """How many tasks are due in each lane, up to `most`: as many wake-ups replace those that were lost."""

    def body(tx: Tx) -> dict[str, int]:
        counts = {lane: tx.execute(FORGOTTEN, {"lane": lane, "most": most}).scalar_one() for lane in lanes}
        return {lane: count for lane, count in counts.items() if count}

    return db.read(body)


_running = tasks.c.state == literal(TaskState.RUNNING)
# The condition under which each duty has work, tested before anything is locked (`duty_schedule.pulse`).
HAS_EXPIRED = exists().where(_running, tasks.c.lease_until < now())
HAS_FALLEN_DUE = exists().where(tasks.c.state == literal(TaskState.WAITING), tasks.c.due_at <= now())
HAS_FORGOTTEN_ORDERS = exists().where(
    orders.c.state.in_([literal(CallState.INTENT), literal(CallState.SENT)]),
    orders.c.deadline_at < now() - decide.RivalWaits().settle,
)
HAS_RUNNING = exists().where(_running)
HAS_QUEUED = exists().where(tasks.c.state == literal(TaskState.QUEUED))
HAS_TO_LOOK_AGAIN = exists().where(_running, tasks.c.look_again_at > 0.0, tasks.c.look_again_at <= now())


LOOKED_AGAIN = (
    select(tasks.c.id, tasks.c.lane)
    .where(
        tasks.c.state == literal(TaskState.RUNNING),
        tasks.c.look_again_at > 0.0,
        tasks.c.look_again_at <= now(),
    )
    .limit(BATCH)
    .with_for_update(key_share=True, skip_locked=True)
)
LOOKED = update(tasks).where(tasks.c.id == bindparam("b_task")).values(look_again_at=0.0)


def look_again(db: Database) -> dict[int, str]:
    """The held tasks whose named delivery is to be retried now, with their lanes."""
    due: dict[int, str] = {}  # as in `expire`

    def body(tx: Tx) -> None:
        for row in tx.all(LOOKED_AGAIN):
            tx.execute(LOOKED, {"b_task": row.id})
            due[row.id] = row.lane

    db.write("look_again", body)
    return due


_open_task = exists().where(tasks.c.run_id == runs.c.id, tasks.c.state.in_(_open_states))
STRANDED = (
    select(runs.c.id, runs.c.head_id)
    .where(runs.c.status == literal(Status.RUNNING), not_(_open_task))
    .limit(BATCH)
)
FAILED_TASKS = select(func.count()).where(
    tasks.c.run_id == bindparam("run_id"), tasks.c.state != literal(TaskState.DONE)
)
OPEN_TASKS = select(func.count()).where(
    tasks.c.run_id == bindparam("run_id"), tasks.c.state.in_(_open_states)
)


NEXT_PHASE = Together(phases.GO_ON, phases.INSERT_PLANNING, journal.WRITE)


def mend_stranded(db: Database, goes_on: Callable[[str], bool]) -> int:
    """No live run is without an open task. One whose slices are not all done has failed.

    Any other is published, or its next phase is planned if `goes_on` says so for its kind: by a task, which a
    process that knows the kind claims, and which publishes with what the kind writes if there is no phase.
    """
    stranded = db.read(lambda tx: tx.all(STRANDED))
    return sum(_mend(db, row.head_id, row.id, goes_on) for row in stranded)


def _mend(db: Database, head_id: int, run_id: str, goes_on: Callable[[str], bool]) -> bool:
    def body(tx: Tx) -> bool:
        head_row = tx.one(rows.HEAD_FOR_CHANGE, {"head_id": head_id})
        row = tx.one(rows.RUN_BY_ID, {"run_id": run_id})
        if head_row is None or row is None:
            return False
        head, run = rows.head(head_row), rows.run(row)
        about: dict[str, Any] = {"tenant": run.tenant, "head_id": head_id, "run_id": run_id}
        published = journal.entry(Verb.PUBLISH, "mended", generation=run.generation, **about)
        failed = journal.entry(Verb.FAIL, "stranded", generation=run.generation, **about)
        planning = journal.entry(Verb.FINISH, "mended", generation=run.generation, **about)
        if run.status not in LIVE:
            return tx.again and (journal.has(tx, published) or journal.has(tx, failed))
        if tx.execute(OPEN_TASKS, {"run_id": run_id}).scalar_one():
            return tx.again and journal.has(tx, planning)
        whole = run.slices is not None and not tx.execute(FAILED_TASKS, {"run_id": run_id}).scalar_one()
        if whole and head.generation == run.generation and run.status is Status.RUNNING:
            if goes_on(run.kind):
                reached = tx.execute(phases.PROGRESS, {"run_id": run_id}).one()
                values = phases.next_values(run, reached.last, reached.age)
                tx.together(NEXT_PHASE, values | {"b_run": run_id} | planning)
                return True
            values = {
                "b_run": run_id,
                "b_head": head_id,
                "b_generation": run.generation,
                "b_slices": run.slices,
                "b_result": None,
            }
            tx.together(fenced.PUBLISHED, values | published)
            fenced.after_publish(tx, head, run.generation, run_id)
            requests.after_end(tx, run_id, Status.SUCCESS)
            return True
        message = "the run had no work left but was not complete; request it again"
        requests.end_failed(tx, head, run_id, code="stranded", message=message)
        journal.write(tx, failed)
        return True

    return db.write("mend", body)


SOON = select(func.min(tasks.c.due_at) - now()).where(tasks.c.state == literal(TaskState.WAITING))
LEASED = select(func.min(tasks.c.lease_until) - now()).where(tasks.c.state == literal(TaskState.RUNNING))


def next_change(db: Database) -> float | None:
    """Seconds until a wait ends or a lease expires; None if nothing waits or runs."""

    def body(tx: Tx) -> float | None:
        times = [tx.execute(query).scalar() for query in (SOON, LEASED)]
        return min((time for time in times if time is not None), default=None)

    return db.read(body)
