"""The heads of a subject, and the runs that are queued or running, over all tenants."""

from dataclasses import dataclass

from sqlalchemy import func, select

from holdfast.core.records import Head
from holdfast.core.states import LIVE
from holdfast.store.base import rows
from holdfast.store.base.database import Database
from holdfast.store.base.dialect import now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import documents, heads, runs, tasks

MOST_ROWS = 200


def heads_of(db: Database, tenant: str, subject: str, kind: str | None) -> tuple[Head, ...]:
    """The heads of a subject, one per kind, sorted by kind."""
    query = select(*rows.HEAD_COLUMNS).where(heads.c.tenant == tenant, heads.c.subject == subject)
    if kind is not None:
        query = query.where(heads.c.kind == kind)
    return tuple(rows.head(row) for row in db.read(lambda tx: tx.all(query.order_by(heads.c.kind))))


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run that is queued or running; `age` is seconds since it was requested.

    `done` of `slices` are those of its phase, without the task that plans it; None until it is planned.
    """

    run_id: str
    tenant: str
    kind: str
    subject: str
    generation: int
    status: str
    lane: str
    age: float
    slices: int | None
    done: int
    phase: int
    title: str | None = None


def live_runs(db: Database, limit: int = MOST_ROWS) -> tuple[LiveRun, ...]:
    """The live runs, the oldest first."""
    of_phase = select(func.min(tasks.c.ordinal)).where(
        tasks.c.run_id == runs.c.id, tasks.c.phase == runs.c.phase
    )
    plan = of_phase.correlate(runs).scalar_subquery()
    done = (
        select(func.count())
        .where(
            tasks.c.run_id == runs.c.id,
            tasks.c.phase == runs.c.phase,
            tasks.c.state == literal("done"),
            tasks.c.ordinal > plan,
        )
        .correlate(runs)
        .scalar_subquery()
    )
    title = (
        select(documents.c.title)
        .where(
            documents.c.tenant == runs.c.tenant,
            documents.c.id == func.substr(runs.c.subject, len("document:") + 1),
            runs.c.subject.like("document:%"),
        )
        .correlate(runs)
        .scalar_subquery()
    )
    query = (
        select(
            runs.c.id.label("run_id"),
            runs.c.tenant,
            runs.c.kind,
            runs.c.subject,
            runs.c.generation,
            runs.c.status,
            runs.c.lane,
            (now() - runs.c.queued_at).label("age"),
            # While a phase is planned, the last planned task is that of the phase before.
            func.nullif(runs.c.slices - func.coalesce(plan, 0), -1).label("slices"),
            done.label("done"),
            runs.c.phase,
            title.label("title"),
        )
        .where(runs.c.status.in_([literal(status) for status in sorted(LIVE)]))
        .order_by(runs.c.queued_at)
        .limit(limit)
    )
    return tuple(LiveRun(**row._asdict()) for row in db.read(lambda tx: tx.all(query)))
