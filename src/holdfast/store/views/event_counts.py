"""Counts of what happened since a position: for metrics, which are read every few seconds for ever.

Nothing here scans a whole table. Each call counts only what is newer than the previous one, along an index,
and at most so many rows; the caller keeps the sums. Journal entries are counted in the order in which no
other can appear before them (see `events`). Charges get their numbers before they are committed, so on
PostgreSQL a lower one may appear after a higher one: charges younger than `HOLD_BACK` are left for a later
call. It is longer than the server allows a transaction to be idle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Subquery,
    Table,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
)

from holdfast.core.states import LIVE, Verb
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.journal_order import comes_after, is_settled
from holdfast.store.base.schema import A_DELIVERY, charges, journal, one_of, orders, runs, tasks
from holdfast.store.protocol import refusals
from holdfast.store.views import events
from holdfast.store.views.events import Position

HOLD_BACK = 12.0
MOST = 50_000


@dataclass(frozen=True, slots=True)
class CountPosition:
    """Up to where was counted: a journal position, a charge number, the end time of runs."""

    entry: Position = events.BEGINNING
    charge: int = 0
    ended: float = 0.0


@dataclass(frozen=True, slots=True)
class Stage:
    """How often something ended, and how many seconds it took in total."""

    number: int
    seconds: float


@dataclass(frozen=True, slots=True)
class EventTally:
    """What is new since the previous position. Money is in nano-dollars.

    `decisions` by verb and reason (only where there are few reasons); `charged` by model and kind: orders,
    tokens and amount; `stages` by stage and kind or model; `delivered` by how deliveries ended. `saved` was
    reused by runs that have ended, `refused` is what refused duplicates would have cost at the time.
    """

    position: CountPosition
    decisions: Mapping[tuple[str, str], int]
    charged: Mapping[tuple[str, str], tuple[int, int, int]]
    stages: Mapping[tuple[str, str], Stage]
    delivered: Mapping[str, int]
    reused_calls: int
    saved: int
    refused: int
    # By model, calls paid for without a known price.
    unpriced: Mapping[str, int] = field(default_factory=dict)


ENDS = select(
    select(func.coalesce(func.max(charges.c.id), 0)).scalar_subquery().label("charge"),
    now().label("ended"),
)
_settled = now() - bindparam("hold")


def _fresh(source: Table, after: str) -> Subquery:
    """The oldest rows after a number before which no other can appear."""
    return (
        select(source)
        .where(source.c.id > bindparam(after), source.c.at <= _settled)
        .order_by(source.c.id)
        .limit(bindparam("most"))
        .subquery("fresh")
    )


_entries = (
    select(journal)
    .where(
        comes_after(
            journal.c.xid,
            journal.c.id,
            bindparam("entry_xid", type_=BigInteger),
            bindparam("entry_id", type_=BigInteger),
        ),
        is_settled(journal.c.xid),
    )
    .order_by(journal.c.xid, journal.c.id)
    .limit(bindparam("most"))
    .subquery("fresh")
)
LAST_ENTRY = (
    select(_entries.c.xid, _entries.c.id).order_by(_entries.c.xid.desc(), _entries.c.id.desc()).limit(1)
)
_FEW = (Verb.REQUEST, Verb.SKIP, Verb.PUT_BACK, Verb.RELEASE)
_reason = case(
    (_entries.c.verb.in_([verb.value for verb in _FEW]), _entries.c.reason),
    (_entries.c.reason.like("fenced_out:%"), literal_column("'fenced_out'")),
    else_=literal_column("''"),
)
_worth = cast(_entries.c.data[refusals.WOULD_COST].as_string(), BigInteger)
DECISIONS = select(
    _entries.c.verb,
    _reason.label("reason"),
    func.count().label("number"),
    func.coalesce(func.sum(_worth), 0).label("worth"),
).group_by(_entries.c.verb, _reason)
_charges = _fresh(charges, "charge")
CHARGED = select(
    _charges.c.model,
    _charges.c.sort,
    func.count().label("number"),
    func.sum(_charges.c.tokens).label("tokens"),
    func.sum(_charges.c.amount).label("amount"),
    func.max(_charges.c.id).label("last"),
).group_by(_charges.c.model, _charges.c.sort)
UNPRICED = (
    select(_charges.c.model, func.sum(func.json_array_length(orders.c.call_keys)).label("number"))
    .select_from(_charges.join(orders, orders.c.id == _charges.c.order_id))
    .where(_charges.c.sort == "paid", _charges.c.prices == "unpriced")
    .group_by(_charges.c.model)
)
_took = orders.c.settled_at - orders.c.sent_at
EXCHANGES = (
    select(_charges.c.model.label("about"), func.count().label("number"), func.sum(_took).label("seconds"))
    .select_from(_charges.join(orders, orders.c.id == _charges.c.order_id))
    .where(_charges.c.sort == "paid", _took >= 0.0)
    .group_by(_charges.c.model)
)
_ended = and_(runs.c.finished_at > bindparam("ended"), runs.c.finished_at <= bindparam("until"))


def _of_runs(seconds: object) -> Select[tuple[str, int, float]]:
    return (
        select(runs.c.kind.label("about"), func.count().label("number"), func.sum(seconds).label("seconds"))
        .where(_ended, runs.c.started_at.is_not(None))
        .group_by(runs.c.kind)
    )


STAGES = {
    "queue": _of_runs(runs.c.started_at - runs.c.queued_at),
    "run": _of_runs(runs.c.finished_at - runs.c.started_at),
}
REUSED = (
    select(
        func.coalesce(func.sum(tasks.c.reused_calls), 0).label("calls"),
        func.coalesce(func.sum(tasks.c.saved), 0).label("saved"),
    )
    .select_from(runs.join(tasks, tasks.c.run_id == runs.c.id))
    .where(_ended)
)
_of_deliveries: ColumnElement[bool] = literal_column(f"holdfast_runs.{A_DELIVERY}")
DELIVERED = (
    select(runs.c.status, func.count().label("number")).where(_ended, _of_deliveries).group_by(runs.c.status)
)
UNTIL = select(_settled)


def here(db: Database) -> CountPosition:
    """The position from which nothing has been counted yet."""
    row = db.look(ENDS)[0]
    return CountPosition(events.latest(db), int(row.charge), float(row.ended))


def since(db: Database, position: CountPosition) -> EventTally:
    """What came after `position`, in one snapshot."""
    # SQLite has one writer: numbers appear in order. Below 0, because its clock is coarse.
    hold = HOLD_BACK if db.postgresql else -1.0

    def body(tx: Tx) -> EventTally:
        values = {"hold": hold, "most": MOST}
        since = {"entry_xid": position.entry.xid, "entry_id": position.entry.id, "most": MOST}
        noted = tx.all(DECISIONS, since)
        last = tx.one(LAST_ENTRY, since) if noted else None
        charged = tx.all(CHARGED, {**values, "charge": position.charge})
        until = max(position.ended, float(tx.execute(UNTIL, {"hold": max(0.0, hold)}).scalar_one()))
        span = {"ended": position.ended, "until": until}
        stages = {
            (stage, row.about): Stage(row.number, float(row.seconds))
            for stage, query in STAGES.items()
            for row in tx.all(query, span)
        }
        known = tx.execute(REUSED, span).one()
        unpriced = tx.all(UNPRICED, {**values, "charge": position.charge}) if charged else ()
        if charged:
            stages |= {
                ("order", row.about): Stage(row.number, float(row.seconds))
                for row in tx.all(EXCHANGES, {**values, "charge": position.charge})
            }
        return EventTally(
            CountPosition(
                position.entry if last is None else Position(last.xid, last.id),
                max([position.charge, *(row.last for row in charged)]),
                until,
            ),
            {(row.verb, row.reason): row.number for row in noted},
            {(row.model, row.sort): (row.number, int(row.tokens), int(row.amount)) for row in charged},
            stages,
            {row.status: row.number for row in tx.all(DELIVERED, span)},
            int(known.calls),
            int(known.saved),
            sum(int(row.worth) for row in noted),
            {row.model: int(row.number) for row in unpriced},
        )

    return db.read(body)


DOUBTS = (
    select(func.count().label("number"), func.coalesce(func.sum(charges.c.amount), 0).label("amount"))
    .where(literal_column("sort = 'in_doubt' AND NOT cleared"))
    .select_from(charges)
)


def in_doubt(db: Database) -> tuple[int, int]:
    """How many charges are in doubt now, and their total price; uses the index of just those."""
    row = db.look(DOUBTS)[0]
    return int(row.number), int(row.amount)


WAITING = (
    select(func.count().label("number"), func.coalesce(func.max(now() - runs.c.queued_at), 0.0).label("age"))
    .where(_of_deliveries, literal_column(f"holdfast_runs.{one_of('status', LIVE)}"))
    .select_from(runs)
)


def waiting_deliveries(db: Database) -> tuple[int, float]:
    """How many deliveries are undelivered, and the age of the oldest; uses the index of just those."""
    row = db.look(WAITING)[0]
    return int(row.number), float(row.age)
