"""Reads that only the command line needs so far: live runs, the bill of all, heads of a subject.

Nothing here writes or locks. Amounts are nano-dollars.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, case, func, not_, select

from holdfast.core.records import Head
from holdfast.core.states import LIVE, Disposition, Verb
from holdfast.store import rows
from holdfast.store.database import Database, Tx
from holdfast.store.dialect import now
from holdfast.store.rows import literal
from holdfast.store.schema import charges, heads, journal, runs, tasks

MOST_ROWS = 200


def heads_of(db: Database, tenant: str, subject: str, kind: str | None) -> tuple[Head, ...]:
    """The heads of a subject, one per kind, sorted by kind."""
    query = select(*rows.HEAD_COLUMNS).where(heads.c.tenant == tenant, heads.c.subject == subject)
    if kind is not None:
        query = query.where(heads.c.kind == kind)
    return tuple(rows.head(row) for row in db.read(lambda tx: tx.all(query.order_by(heads.c.kind))))


@dataclass(frozen=True, slots=True)
class Live:
    """A run that is queued or running; `age` is seconds since it was asked for."""

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


def live_runs(db: Database, limit: int = MOST_ROWS) -> tuple[Live, ...]:
    """The live runs, the oldest first."""
    done = (
        select(func.count())
        .where(tasks.c.run_id == runs.c.id, tasks.c.state == literal("done"), tasks.c.ordinal > 0)
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
            runs.c.slices,
            done.label("done"),
        )
        .where(runs.c.status.in_([literal(status) for status in sorted(LIVE)]))
        .order_by(runs.c.queued_at)
        .limit(limit)
    )
    return tuple(Live(**row._asdict()) for row in db.read(lambda tx: tx.all(query)))


@dataclass(frozen=True, slots=True)
class Spending:
    """What one model cost one tenant: paid, charged a second time, and in doubt (not cleared)."""

    tenant: str
    model: str
    orders: int
    tokens: int
    paid: int
    second: int
    in_doubt: int


@dataclass(frozen=True, slots=True)
class Bill:
    """What was charged, and what was not charged because it was known or refused.

    `total` counts every charge and every doubt as money: a bill never promises less than was spent.
    """

    rows: tuple[Spending, ...]
    total: int
    in_doubt: int
    second: int
    reused_calls: int
    saved: int
    refused_duplicates: int


def bill(db: Database, tenant: str | None = None) -> Bill:
    """The bill of a tenant, or of all."""

    def body(tx: Tx) -> Bill:
        spent = tuple(_spent(row) for row in tx.all(_spending(tenant)))
        reused = select(
            func.coalesce(func.sum(tasks.c.reused_calls), 0).label("calls"),
            func.coalesce(func.sum(tasks.c.saved), 0).label("saved"),
        )
        duplicates = select(func.count()).where(
            journal.c.verb == Verb.REQUEST.value, journal.c.reason.startswith(f"{Disposition.DUPLICATE}:")
        )
        if tenant is not None:
            reused = reused.where(tasks.c.tenant == tenant)
            duplicates = duplicates.where(journal.c.tenant == tenant)
        known = tx.execute(reused).one()
        return Bill(
            spent,
            sum(row.paid + row.second + row.in_doubt for row in spent),
            sum(row.in_doubt for row in spent),
            sum(row.second for row in spent),
            int(known.calls),
            int(known.saved),
            tx.execute(duplicates).scalar_one(),
        )

    return db.read(body)


def _spent(row: Row[Any]) -> Spending:
    # PostgreSQL adds 64-bit numbers up to a numeric.
    numbers = ("orders", "tokens", "paid", "second", "in_doubt")
    return Spending(row.tenant, row.model, *(int(getattr(row, name)) for name in numbers))


def _spending(tenant: str | None) -> Any:
    def amount(sort: str) -> Any:
        return func.sum(case((charges.c.sort == sort, charges.c.amount), else_=0)).label(sort)

    query = (
        select(
            charges.c.tenant,
            charges.c.model,
            func.count(func.distinct(charges.c.order_id)).label("orders"),
            func.sum(charges.c.tokens).label("tokens"),
            amount("paid"),
            amount("second"),
            amount("in_doubt"),
        )
        .where(not_(charges.c.cleared))
        .group_by(charges.c.tenant, charges.c.model)
        .order_by(charges.c.tenant, charges.c.model)
    )
    return query if tenant is None else query.where(charges.c.tenant == tenant)
