"""Reads for people and programs. Nothing here writes, locks or increments anything.

Each function is one read transaction, so its result is consistent: the generation and the rows that it
returns belong together (G3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Row, bindparam, func, literal_column, select, tuple_

from holdfast.core import gaps, progress, subjects
from holdfast.core.gaps import Gap
from holdfast.core.records import Chunk, Head, RunRecord, Spent, Task
from holdfast.core.states import LIVE, TaskState
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import chunks, heads, lines, runs, tasks
from holdfast.store.money import payments

LINES_SHOWN = 200
RUNS_SHOWN = 100
CHUNKS_SHOWN = 1000

HEAD = select(*rows.HEAD_COLUMNS).where(
    heads.c.tenant == bindparam("tenant"),
    heads.c.kind == bindparam("kind"),
    heads.c.subject == bindparam("subject"),
)
HEAD_BY_ID = select(*rows.HEAD_COLUMNS).where(heads.c.id == bindparam("head_id"))


def head(db: Database, tenant: str, kind: str, subject: str) -> Head | None:
    """The head of a (kind, subject), or None if it was never requested."""
    row = db.first(HEAD, {"tenant": tenant, "kind": kind, "subject": subject})
    return rows.head(row) if row is not None else None


MOMENT = select(now().label("now"))


def moment(db: Database) -> float:
    """The time by the database clock."""
    return float(db.look(MOMENT)[0].now)


@dataclass(frozen=True, slots=True)
class RunDetail:
    """A run with its request and its result."""

    run: RunRecord
    reason: str
    actor: str
    content: str
    options: Mapping[str, Any]
    result: Mapping[str, Any] | None

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The pages that an index run could not read."""
        stored = (self.result or {}).get("gaps") if self.run.kind == subjects.INDEX else None
        return gaps.from_json(stored)


_RUN_DETAIL = [
    *rows.RUN_COLUMNS,
    *(runs.c[name] for name in ("reason", "actor", "content", "options", "result")),
]
RUN = select(*_RUN_DETAIL).where(runs.c.id == bindparam("run_id"))
RUNS_OF = (
    select(*_RUN_DETAIL)
    .where(runs.c.head_id == bindparam("head_id"))
    .order_by(runs.c.generation.desc())
    .limit(bindparam("limit"))
)


def run(db: Database, run_id: str) -> RunDetail | None:
    """The run with this id, or None if there is none or its history was pruned."""
    row = db.first(RUN, {"run_id": run_id})
    return _run_detail(row) if row is not None else None


def runs_of(db: Database, head_id: int, limit: int = RUNS_SHOWN) -> tuple[RunDetail, ...]:
    """The runs of a head, newest generation first."""
    values = {"head_id": head_id, "limit": limit}
    return tuple(_run_detail(row) for row in db.look(RUNS_OF, values))


def _run_detail(row: Row[Any]) -> RunDetail:
    return RunDetail(rows.run(row), row.reason, row.actor, row.content, row.options, row.result)


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """A task with what it has done and cost so far."""

    task: Task
    lane: str
    weight: int
    done: int
    total: int
    unit: str
    stages: Mapping[str, Sequence[int]]
    claimed_at: float
    last_seen_at: float
    spent: Spent
    chunks: int
    result: Mapping[str, Any] | None


_SPENT = tuple(Spent.__dataclass_fields__)
_TASK_DETAIL = [
    *rows.TASK_COLUMNS,
    *(
        tasks.c[name]
        for name in ("lane", "weight", "done", "total", "unit", "stages", "claimed_at", "signed_at", *_SPENT)
    ),
    tasks.c.chunks,
    tasks.c.result,
]
TASKS_OF = select(*_TASK_DETAIL).where(tasks.c.run_id == bindparam("run_id")).order_by(tasks.c.ordinal)


def tasks_of(db: Database, run_id: str) -> tuple[TaskDetail, ...]:
    """The tasks of a run in the order of their slices."""
    return db.read(lambda tx: _tasks(tx, run_id))


def _tasks(tx: Tx, run_id: str) -> tuple[TaskDetail, ...]:
    return tuple(
        TaskDetail(
            rows.task(row),
            row.lane,
            row.weight,
            row.done,
            row.total,
            row.unit,
            row.stages or {},
            row.claimed_at,
            row.signed_at,
            Spent(*(getattr(row, name) for name in _SPENT)),
            row.chunks,
            row.result,
        )
        for row in tx.all(TASKS_OF, {"run_id": run_id})
    )


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a run's log."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress and cost of a run, derived from its tasks in one snapshot."""

    run: RunRecord
    rolled: progress.Rolled
    unit: str
    stages: Mapping[str, tuple[int, int]]
    spent: Spent
    chunks: int
    lines: tuple[LogLine, ...]


NO_SHARES: Mapping[str, float] = {}
LINES = (
    select(lines.c.at, lines.c.text)
    .where(lines.c.run_id == bindparam("run_id"))
    .order_by(lines.c.at.desc(), lines.c.id.desc())
    .limit(bindparam("limit"))
)


def progress_of(
    db: Database, run_id: str, limit: int = LINES_SHOWN, phase_shares: Mapping[str, float] = NO_SHARES
) -> RunProgress | None:
    """The run's progress with its latest `limit` log lines, oldest first; None for an unknown run.

    `phase_shares` is that of `events.standings`.
    """

    def body(tx: Tx) -> RunProgress | None:
        row = tx.one(rows.RUN_BY_ID, {"run_id": run_id})
        if row is None:
            return None
        said = tx.all(LINES, {"run_id": run_id, "limit": limit})
        log = tuple(LogLine(*line) for line in reversed(said))
        rolled = _rolled(rows.run(row), _tasks(tx, run_id), log, phase_shares)
        return replace(rolled, spent=_spent(rolled.spent, payments.by_run(tx, [run_id]).get(run_id)))

    return db.read(body)


def _spent(by_tasks: Spent, by_bill: Spent | None) -> Spent:
    """What a run has reused by its tasks, and what it has paid by the bill."""
    known = by_bill or Spent()
    return replace(known, reused_calls=by_tasks.reused_calls, saved=by_tasks.saved)


def _rolled(
    run: RunRecord,
    details: Sequence[TaskDetail],
    said: tuple[LogLine, ...],
    phase_shares: Mapping[str, float],
) -> RunProgress:
    counted = [one for one in details if one.task.phase == run.phase]
    # Planning is no progress of a sliced document: its slices are. Alone, the plan task does the work.
    counted = counted[1:] or counted
    steps = [progress.TaskProgress(one.task.state, one.done, one.total, one.weight) for one in counted]
    return RunProgress(
        run,
        progress.of_run(steps, run, phase_shares),
        next((one.unit for one in counted if one.unit), ""),
        _stages(counted),
        sum((one.spent for one in details), Spent()),
        sum(one.chunks for one in details),
        said,
    )


def _stages(details: Sequence[TaskDetail]) -> dict[str, tuple[int, int]]:
    """The sum of (done, total) over the slices, by stage."""
    summed: dict[str, tuple[int, int]] = {}
    for one in details:
        for name, (done, total) in one.stages.items():
            before = summed.get(name, (0, 0))
            summed[name] = (before[0] + done, before[1] + total)
    return summed


@dataclass(frozen=True, slots=True)
class PublishedChunk:
    """One chunk of the visible generation. (`slice`, chunk position) orders a document."""

    slice: int
    chunk: Chunk

    @property
    def headings(self) -> list[str]:
        """The headings above it, outermost first."""
        headings = self.chunk.data.get("headings")
        return [str(each) for each in headings] if isinstance(headings, list) else []


@dataclass(frozen=True, slots=True)
class Published:
    """A page of the visible generation of a head."""

    generation: int
    chunks: tuple[PublishedChunk, ...]


VISIBLE = select(heads.c.published_generation).where(heads.c.id == bindparam("head_id"), heads.c.visible)
VISIBLE_CHUNKS = (
    select(chunks.c.slice, chunks.c.position, chunks.c.text, chunks.c.page, chunks.c.call_key, chunks.c.data)
    .where(
        chunks.c.head_id == bindparam("head_id"),
        chunks.c.generation == bindparam("generation"),
        tuple_(chunks.c.slice, chunks.c.position) > tuple_(bindparam("slice"), bindparam("position")),
    )
    .order_by(chunks.c.slice, chunks.c.position)
    .limit(bindparam("limit"))
)


def visible_chunks(
    db: Database, head_id: int, *, after: tuple[int, int] = (-1, -1), limit: int = CHUNKS_SHOWN
) -> Published | None:
    """The visible chunks after (slice, position) `after`; None if nothing is published.

    Each page is of one generation: if `generation` differs from that of the previous page, start again.
    """

    def body(tx: Tx) -> Published | None:
        row = tx.one(VISIBLE, {"head_id": head_id})
        if row is None:
            return None
        generation = row.published_generation
        position = {"head_id": head_id, "generation": generation, "slice": after[0], "position": after[1]}
        chunk_rows = tx.all(VISIBLE_CHUNKS, {**position, "limit": limit})
        return Published(generation, tuple(_published(row) for row in chunk_rows))

    return db.read(body)


def _published(row: Row[Any]) -> PublishedChunk:
    return PublishedChunk(row.slice, Chunk(row.position, row.text, row.page, row.call_key, row.data or {}))


@dataclass(frozen=True, slots=True)
class Noted:
    """One journal row."""

    id: int
    at: float
    tenant: str
    verb: str
    reason: str
    head_id: int | None
    run_id: str | None
    task_id: int | None
    generation: int | None
    epoch: int | None
    actor: str | None
    data: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Story:
    """All that is known about a head: decisions oldest first, runs newest first with their tasks and cost."""

    head: Head
    journal: tuple[Noted, ...]
    runs: tuple[RunDetail, ...]
    tasks: Mapping[str, tuple[TaskDetail, ...]]
    spent: Mapping[str, Spent] = field(default_factory=dict)
    # Those that the latest run has ordered from, while it is live.
    providers: tuple[str, ...] = ()


def story(db: Database, head_id: int, *, limit: int = RUNS_SHOWN) -> Story | None:
    """Why the head is in its state: its decisions, its latest `limit` runs and tasks. None if unknown."""

    def body(tx: Tx) -> Story | None:
        row = tx.one(HEAD_BY_ID, {"head_id": head_id})
        if row is None:
            return None
        noted = tuple(Noted(**entry) for entry in journal.of_head(tx, head_id))
        details = tuple(_run_detail(run) for run in tx.all(RUNS_OF, {"head_id": head_id, "limit": limit}))
        by_run = {one.run.id: _tasks(tx, one.run.id) for one in details}
        bill = payments.by_run(tx, by_run)
        spent = {
            run_id: _spent(sum((one.spent for one in some), Spent()), bill.get(run_id))
            for run_id, some in by_run.items()
        }
        latest = details[0].run if details else None
        live = latest is not None and latest.status in LIVE
        providers = payments.providers_of(tx, latest.id) if live and latest is not None else ()
        return Story(rows.head(row), noted, details, by_run, spent, providers)

    return db.read(body)


@dataclass(frozen=True, slots=True)
class LaneCount:
    """The open work of one lane; `oldest`: seconds that its oldest queued task has waited."""

    lane: str
    queued: int = 0
    waiting: int = 0
    running: int = 0
    oldest: float = 0.0


def _count(state: TaskState) -> Any:
    # One statement per state: only then each uses the partial index of its state.
    oldest = now() - func.min(tasks.c.age) if state is TaskState.QUEUED else literal_column("0.0")
    return (
        select(tasks.c.lane, func.count().label("number"), oldest.label("oldest"))
        .where(tasks.c.state == literal(state))
        .group_by(tasks.c.lane)
    )


COUNTS = {state: _count(state) for state in (TaskState.QUEUED, TaskState.WAITING, TaskState.RUNNING)}


def lanes(db: Database) -> dict[str, LaneCount]:
    """The open work of every lane that has some."""

    def body(tx: Tx) -> dict[str, LaneCount]:
        by_lane: dict[str, dict[str, Any]] = {}
        for state, query in COUNTS.items():
            for row in tx.all(query):
                counts = by_lane.setdefault(row.lane, {})
                counts[state.value] = row.number
                if state is TaskState.QUEUED:
                    counts["oldest"] = max(0.0, float(row.oldest))
        return {lane: LaneCount(lane, **counts) for lane, counts in by_lane.items()}

    return db.read(body)


@dataclass(frozen=True, slots=True)
class Lease:
    """A held task; `left`: seconds until its lease expires, below 0 if it has."""

    task_id: int
    run_id: str
    tenant: str
    subject: str
    lane: str
    owner: str | None
    epoch: int
    attempts: int
    left: float


LEASES = (
    select(
        tasks.c.id.label("task_id"),
        tasks.c.run_id,
        runs.c.tenant,
        runs.c.subject,
        tasks.c.lane,
        tasks.c.owner,
        tasks.c.epoch,
        tasks.c.attempts,
        (tasks.c.lease_until - now()).label("left"),
    )
    .select_from(tasks.join(runs, runs.c.id == tasks.c.run_id))
    .where(tasks.c.state == literal(TaskState.RUNNING))
    .order_by(tasks.c.lease_until)
    .limit(1000)
)


def leases(db: Database) -> tuple[Lease, ...]:
    """The held tasks, the lease that expires next first. A thousand at most."""
    return tuple(Lease(**row._asdict()) for row in db.look(LEASES))
