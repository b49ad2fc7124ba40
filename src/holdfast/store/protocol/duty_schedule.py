"""When each duty of the sweep runs, which sweeper runs it, and whether the duties are healthy.

A sweeper wins a turn by compare-and-set on the duty's `next_at`, so several sweepers share the work without a
leader. `pulse` finds in one statement which duties are due and have work, so an idle installation costs one
statement per round. A duty that is due and has no work has succeeded; such successes are recorded from time
to time, in one statement for all of them.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, case, select, true, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.states import TaskState
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import carriers, duties, tasks

# While a duty is working, its success is recorded this often.
NOTE_EVERY = 10.0
MOST_ERROR = 500


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to run a duty now: when it last ran, and whether leases are in a grace period."""

    now: float
    last_at: float
    grace_until: float


_new = upsert(duties).values(name=bindparam("b_name"), every=bindparam("b_every"), enrolled_at=now())
ENROL = _new.on_conflict_do_update(
    index_elements=[duties.c.name],
    set_={
        "every": _new.excluded.every,
        "enrolled_at": case(
            (duties.c.enrolled_at > 0.0, duties.c.enrolled_at), else_=_new.excluded.enrolled_at
        ),
    },
)
ENROLLED = select(duties.c.name, duties.c.every, duties.c.enrolled_at)
DUTY_FOR_CHANGE = (
    select(duties.c.next_at, duties.c.last_at, duties.c.grace_until, now().label("now"))
    .where(duties.c.name == bindparam("name"))
    .with_for_update(skip_locked=True)
)
WIN = (
    update(duties)
    .where(duties.c.name == bindparam("b_name"))
    .values(next_at=bindparam("b_next"), last_at=bindparam("b_at"), grace_until=bindparam("b_grace"))
)


def enrol(db: Database, paces: Mapping[str, float]) -> None:
    """Every duty has a row with its interval."""

    def body(tx: Tx) -> None:
        known = {row.name: row.every for row in tx.all(ENROLLED) if row.enrolled_at}
        for name, every in sorted(paces.items()):
            if known.get(name) != every:
                tx.execute(ENROL, {"b_name": name, "b_every": every})

    db.write("enrol", body)


@dataclass(frozen=True, slots=True)
class Pulse:
    """The state of a duty in this round. `silent`: seconds since its last recorded success."""

    name: str
    is_due: bool
    has_work: bool
    silent: float
    failures: int


def pulse_of(waiting: Mapping[str, ColumnElement[bool]]) -> Select[Any]:
    """The statement of `pulse`. `waiting` maps a duty to the condition under which it has work."""
    conditions = [(duties.c.name == literal(name), condition) for name, condition in sorted(waiting.items())]
    has_work: ColumnElement[bool] = case(*conditions, else_=true()) if conditions else true()
    is_due = duties.c.next_at <= now()
    return select(
        duties.c.name,
        is_due.label("is_due"),
        case((is_due, has_work), else_=~true()).label("has_work"),
        (now() - duties.c.succeeded_at).label("silent"),
        duties.c.failures,
    )


def pulse(db: Database, statement: Select[Any]) -> dict[str, Pulse]:
    """The current state of every duty, by name, in one read-only statement."""
    return {
        row.name: Pulse(row.name, bool(row.is_due), bool(row.has_work), row.silent, row.failures)
        for row in db.look(statement)
    }


# Tolerance in seconds before a recent write of another process counts as being in the future.
CLOCK_SLACK = 5.0


def _not_later(column: ColumnElement[float]) -> ColumnElement[float]:
    return case((column > now(), now()), else_=column)


TIME_ANEW = update(duties).values(
    next_at=0.0,
    grace_until=0.0,
    **{name: _not_later(duties.c[name]) for name in ("last_at", "succeeded_at", "failed_at", "enrolled_at")},
)
SHORTEN_TASKS = (
    update(tasks)
    .where(tasks.c.state == literal(TaskState.RUNNING), tasks.c.lease_until > now() + bindparam("b_ttl"))
    .values(lease_until=now() + bindparam("b_ttl"))
)
SHORTEN_CARRIERS = (
    update(carriers)
    .where(carriers.c.lease_until > now() + bindparam("b_ttl"))
    .values(lease_until=now() + bindparam("b_ttl"))
)


def was_set_back(pulses: Mapping[str, Pulse]) -> bool:
    """True if a duty last ran in what is now the future: the database's clock was set back."""
    return any(pulse.silent < -CLOCK_SLACK for pulse in pulses.values())


def time_anew(db: Database, ttl: float) -> None:
    """After the clock was set back: every duty is due, and no lease lasts longer than `ttl` from now.

    Live workers renew; a dead one would otherwise keep its tasks until the clock caught up. Not covered:
    anything with its own due time (a retry, a rate limit) waits for that time on the new clock.
    """

    def body(tx: Tx) -> None:
        tx.execute(TIME_ANEW)
        tx.execute(SHORTEN_TASKS, {"b_ttl": ttl})
        tx.execute(SHORTEN_CARRIERS, {"b_ttl": ttl})

    db.write("time_anew", body)


def win(
    db: Database,
    name: str,
    *,
    every: float,
    grace_after: float,
    grace: float,
    away: Callable[[float], bool] | None = None,
) -> Turn | None:
    """The turn if the duty was due and no other sweeper took it; it is due again in `every` seconds.

    If no sweeper could run the duty for `grace_after` seconds, the database was unreachable: leases then get
    `grace` seconds before any of them counts as expired. `away`, if given, must confirm an outage since the
    last turn. It is called under the lock, as this transaction may be the first to notice that the outage is
    over.
    """
    taken: Turn | None = None

    def body(tx: Tx) -> Turn | None:
        nonlocal taken
        row = tx.one(DUTY_FOR_CHANGE, {"name": name})
        if row is not None and taken is not None and row.last_at == taken.now:
            return taken  # ours already; the response was lost
        if row is None or row.next_at > row.now:
            return None
        grace_until = row.grace_until
        gap = row.now - row.last_at
        if gap > grace_after and (bool(row.last_at) if away is None else away(gap)):
            grace_until = row.now + grace
        values = {"b_at": row.now, "b_next": row.now + every, "b_grace": grace_until}
        tx.execute(WIN, {"b_name": name, **values})
        taken = Turn(row.now, row.last_at, grace_until)
        return taken

    return db.write("win", body)


SUCCEEDED = (
    update(duties)
    .where(key_in(duties.c.name, bindparam("b_names", type_=KeyList())))
    .values(succeeded_at=now(), failures=0, error="")
)
FAILED = (
    update(duties)
    .where(duties.c.name == bindparam("b_name"))
    .values(
        failed_at=now(),
        failures=bindparam("b_failures"),
        error=bindparam("b_error"),
    )
)


def note_success(db: Database, names: Collection[str]) -> None:
    """Record that these duties have succeeded."""
    db.write("note_success", lambda tx: tx.execute(SUCCEEDED, {"b_names": sorted(names)}), relaxed=True)


def note_failure(db: Database, name: str, failures: int, error: str) -> None:
    """Record that the duty has failed `failures` times in a row, last with this error."""
    values = {"b_name": name, "b_failures": failures, "b_error": error[:MOST_ERROR]}
    db.write("note_failure", lambda tx: tx.execute(FAILED, values), relaxed=True)


@dataclass(frozen=True, slots=True)
class DutyHealth:
    """Health of a duty. `lag`: by how many seconds its next success is overdue, 0.0 if it is not.

    `succeeded` and `failed`: seconds since last recorded, None for never. `failures`: failures since the last
    success, with the last `error`.
    """

    name: str
    every: float
    lag: float
    succeeded: float | None
    failed: float | None
    failures: int
    error: str


HEALTH = (
    select(
        duties.c.name,
        duties.c.every,
        duties.c.enrolled_at,
        duties.c.succeeded_at,
        duties.c.failed_at,
        duties.c.failures,
        duties.c.error,
        now().label("now"),
    )
    .where(duties.c.enrolled_at > 0.0)
    .order_by(duties.c.name)
)


def health(db: Database) -> tuple[DutyHealth, ...]:
    """Every duty registered by a sweeper of this release, by name."""
    return tuple(
        DutyHealth(
            name=row.name,
            every=row.every,
            lag=max(0.0, row.now - max(row.succeeded_at, row.enrolled_at) - max(row.every, NOTE_EVERY)),
            succeeded=row.now - row.succeeded_at if row.succeeded_at else None,
            failed=row.now - row.failed_at if row.failed_at else None,
            failures=row.failures,
            error=row.error,
        )
        for row in db.look(HEALTH)
    )
