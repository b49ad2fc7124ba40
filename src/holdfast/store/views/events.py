"""What happened, and the progress of running work: the journal in pages, and many runs at once.

Journal rows get their numbers before they are committed, so on PostgreSQL a lower number may appear after a
higher one, however much later its transaction commits. So entries are read in the order of (transaction,
number), and returned only below the oldest transaction that is still open (`is_settled`): nothing can appear
before a returned entry, and a reader that continues after the last one misses nothing.

The price: a transaction that stays open for long delays the entries after it, even one of another database on
the same server, if it has written something. Nothing is lost, only late.

Transaction numbers belong to one server. If a database was restored on another, its entries have numbers that
mean nothing there: `adopt` sets them to 0, before all others.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Row,
    Select,
    Text,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
    update,
)

from holdfast.core import progress
from holdfast.core.records import RunRecord, Spent
from holdfast.core.states import LIVE, Status, TaskState
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, Numbers, key_in, now
from holdfast.store.base.journal_order import comes_after, comes_up_to, is_open, is_settled
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import charges, heads, journal, orders, runs, tasks
from holdfast.store.base.schema import provider_troubles as troubles
from holdfast.store.money import payments, provider_troubles
from holdfast.store.money.provider_troubles import Trouble
from holdfast.store.protocol import refusals

MOST = 1000
MOST_RUNNING = 500


class Position(NamedTuple):
    """A position in the journal: after the entry `id` of the transaction `xid`. The first is before all."""

    xid: int = 0
    id: int = 0


BEGINNING = Position()


@dataclass(frozen=True, slots=True)
class Event:
    """One decision, and what it was about.

    `price` is, for a refused duplicate, the current price of the run that blocked it; otherwise None.
    """

    id: int
    xid: int
    at: float
    tenant: str
    verb: str
    reason: str
    kind: str | None
    subject: str | None
    collection: str | None
    run_id: str | None
    task_id: int | None
    generation: int | None
    epoch: int | None
    actor: str | None
    data: Mapping[str, Any] | None
    price: int | None

    @property
    def position(self) -> Position:
        """Its position in the journal."""
        return Position(self.xid, self.id)

    @property
    def would_cost(self) -> int | None:
        """What a refused duplicate would have cost, in nano-dollars; otherwise None."""
        return None if self.price is None else max(self.price, (self.data or {}).get(refusals.WOULD_COST, 0))


_OF_JOURNAL = (
    "id",
    "xid",
    "at",
    "tenant",
    "verb",
    "reason",
    "run_id",
    "task_id",
    "generation",
    "epoch",
    "actor",
)
_settled = is_settled(journal.c.xid)
_ENTRY = select(
    *(journal.c[name] for name in _OF_JOURNAL),
    journal.c.data,
    heads.c.kind,
    heads.c.subject,
    heads.c.collection,
    case((refusals.IS_DUPLICATE, refusals.price_of(journal.c.run_id))).label("price"),
).select_from(journal.outerjoin(heads, heads.c.id == journal.c.head_id))
_after_position = comes_after(
    journal.c.xid,
    journal.c.id,
    bindparam("after_xid", type_=BigInteger),
    bindparam("after_id", type_=BigInteger),
)
_AFTER = _ENTRY.where(_after_position).order_by(journal.c.xid, journal.c.id).limit(bindparam("limit"))
PAGE = _AFTER.where(journal.c.tenant == bindparam("tenant"), _settled)
# How many entries of the tenant are searched for those of a collection, which may have none for long; a
# thousand at a time.
LOOKED_THROUGH, AT_ONCE = 10_000, 1000
STRETCH = (
    select(journal.c.xid, journal.c.id, journal.c.head_id)
    .where(journal.c.tenant == bindparam("tenant"), _settled, _after_position)
    .order_by(journal.c.xid, journal.c.id)
    .limit(AT_ONCE)
)
IN_COLLECTION = select(heads.c.id).where(
    key_in(heads.c.id, bindparam("heads", type_=Numbers())), heads.c.collection == bindparam("collection")
)
ENTRIES = _ENTRY.where(key_in(journal.c.id, bindparam("ids", type_=Numbers()))).order_by(
    journal.c.xid, journal.c.id
)
OF_HEAD = _AFTER.where(journal.c.head_id == bindparam("head_id"), _settled)
OF_TENANTS = _AFTER.where(
    comes_up_to(
        journal.c.xid,
        journal.c.id,
        bindparam("until_xid", type_=BigInteger),
        bindparam("until_id", type_=BigInteger),
    ),
    key_in(journal.c.tenant, bindparam("tenants", type_=KeyList())),
)
_newest = select(journal.c.xid, journal.c.id).order_by(journal.c.xid.desc(), journal.c.id.desc()).limit(1)
LATEST = _newest.where(_settled)
NEWEST = _newest
UNSETTLED = select(journal.c.id).where(is_open(journal.c.xid)).limit(MOST)
UP_TO = (
    select(journal.c.xid, journal.c.id)
    .where(journal.c.id <= bindparam("id"))
    .order_by(journal.c.id.desc())
    .limit(1)
)
# PostgreSQL: the first transaction number that the server has not assigned yet.
NUMBERS = select(literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", BigInteger))
ADOPT = update(journal).where(journal.c.xid > 0).values(xid=0)
THESE = (
    _ENTRY.where(key_in(journal.c.id, bindparam("ids", type_=Numbers())))
    .where(journal.c.id > bindparam("after"))
    .order_by(journal.c.xid, journal.c.id)
    .limit(bindparam("limit"))
)


def _event(row: Row[Any]) -> Event:
    return Event(**row._asdict())


def _after(after: Position, limit: int) -> dict[str, int]:
    return {"after_xid": after.xid, "after_id": after.id, "limit": limit}


def page(db: Database, tenant: str, *, after: Position = BEGINNING, limit: int = 100) -> tuple[Event, ...]:
    """The decisions of a tenant after a position in the journal, oldest first."""
    return tuple(_event(row) for row in db.look(PAGE, {"tenant": tenant, **_after(after, limit)}))


def page_of_collection(
    db: Database, tenant: str, collection: str, *, after: Position = BEGINNING, limit: int = 100
) -> tuple[tuple[Event, ...], Position]:
    """The decisions about one collection after a position, oldest first; and where to continue.

    It searches a limited number of the tenant's entries, so that a page stays cheap: a short or empty page is
    the last one only if the position to continue from is the one that was passed in.
    """

    def body(tx: Tx) -> tuple[tuple[Event, ...], Position]:
        end, ids = after, list[int]()
        for _ in range(LOOKED_THROUGH // AT_ONCE):
            stretch = tx.all(STRETCH, {"tenant": tenant, "after_xid": end.xid, "after_id": end.id})
            named = sorted({row.head_id for row in stretch if row.head_id is not None})
            inside = {row.id for row in tx.all(IN_COLLECTION, {"heads": named, "collection": collection})}
            for row in stretch:
                end = Position(row.xid, row.id)
                if row.head_id in inside:
                    ids.append(row.id)
                if len(ids) == limit:
                    break
            if len(ids) == limit or len(stretch) < AT_ONCE:
                break
        return tuple(_event(row) for row in tx.all(ENTRIES, {"ids": ids})), end

    return db.read(body)


def of_head(
    db: Database,
    head_id: int,
    *,
    after: Position = BEGINNING,
    limit: int = 100,
) -> tuple[Event, ...]:
    """The decisions about one head after a position in the journal, oldest first."""
    values = {"head_id": head_id, **_after(after, limit)}
    return tuple(_event(row) for row in db.look(OF_HEAD, values))


def of_tenants(
    db: Database, tenants: Collection[str], *, after: Position, until: Position, limit: int = MOST
) -> tuple[Event, ...]:
    """The decisions of several tenants between two positions; the later, included, must be settled."""
    values = {"tenants": list(tenants), "until_xid": until.xid, "until_id": until.id, **_after(after, limit)}
    return tuple(_event(row) for row in db.look(OF_TENANTS, values))


def these(db: Database, ids: Sequence[int]) -> tuple[Event, ...]:
    """The decisions with these numbers, oldest first."""
    if not ids:
        return ()
    values = {"ids": list(ids), "after": min(ids) - 1, "limit": len(ids)}
    return tuple(_event(row) for row in db.look(THESE, values))


def latest(db: Database) -> Position:
    """The last position before which nothing will appear any more."""
    row = db.first(LATEST)
    return BEGINNING if row is None else Position(row.xid, row.id)


def here(db: Database) -> tuple[Position, frozenset[int]]:
    """Like `latest`, plus the numbers of the visible entries after it; in one snapshot."""

    def body(tx: Tx) -> tuple[Position, frozenset[int]]:
        row = tx.one(LATEST)
        position = BEGINNING if row is None else Position(row.xid, row.id)
        return position, frozenset(row.id for row in tx.all(UNSETTLED))

    return db.read(body)


def up_to(db: Database, number: int) -> Position:
    """The position of the entry with this number, or of the one before it."""
    row = db.first(UP_TO, {"id": number}) if number > 0 else None
    return BEGINNING if row is None else Position(row.xid, row.id)


def known(db: Database, xid: int | None, number: int) -> Position:
    """The position that a reader means by its cursor.

    Without a transaction, or with one that this server has not assigned yet, by the number alone: readers of
    an older release send no more, and the database may have been on another server at that time.
    """
    if xid is not None and (not db.postgresql or xid < int(db.look(NUMBERS)[0][0])):
        return Position(xid, number)
    return up_to(db, number)


def adopt(db: Database) -> None:
    """Entries written on another server come before all that are written on this one."""
    if not db.postgresql:
        return

    def body(tx: Tx) -> None:
        row = tx.one(NEWEST)
        if row is not None and row.xid >= int(tx.execute(NUMBERS).scalar_one()):
            tx.execute(ADOPT)

    db.write("adopt_journal", body)


@dataclass(frozen=True, slots=True)
class RunStanding:
    """The progress and cost of a run; `now` is the time by the database clock."""

    run: RunRecord
    rolled: progress.Rolled
    unit: str
    stages: Mapping[str, tuple[int, int]]
    spent: Spent
    now: float = 0.0
    waits: "RunWaits | None" = None
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class RunWaits:
    """What the tasks of a run wait for, while none is being worked on; and until when the first waits."""

    reason: str
    until: float


NO_SHARES: Mapping[str, float] = {}
_ids = bindparam("runs", type_=KeyList())


_TROUBLE = ("provider", "endpoint", "reason", "status", "tries", "since", "last_at")
_STATES = {str(state): state for state in TaskState}


class _Step(NamedTuple):
    """One task of a run, as its progress and its cost need it."""

    ordinal: int
    phase: int
    state: str
    done: int
    total: int
    weight: int
    unit: str
    stages: Mapping[str, Sequence[int]] | None
    reused_calls: int
    saved: int
    waiting_for: str | None
    due_at: float


def _standings_of(many: Any, several: Any, within: Any) -> Select[Any]:
    """One row per run: its columns, and one list of its tasks and of what it was charged.

    One statement instead of three, and a list is read much faster than rows. `many` makes a list of rows,
    `several` of values, `within` puts a list into another.
    """
    fields = [tasks.c[name] if name != "stages" else within(tasks.c.stages) for name in _Step._fields]
    steps = select(many(several(*fields))).where(tasks.c.run_id == runs.c.id).scalar_subquery()
    bill = (
        select(
            several(
                func.sum(charges.c.amount),
                func.sum(charges.c.tokens),
                func.sum(payments.CALLS),
                func.sum(payments.UNPRICED_CALLS),
            )
        )
        .select_from(payments.CHARGED)
        .where(charges.c.run_id == runs.c.id, charges.c.sort != literal("in_doubt"))
        .scalar_subquery()
    )
    # The provider that a live run needs, or has ordered from, if it does not respond.
    ordered = exists().where(orders.c.run_id == runs.c.id, orders.c.provider == troubles.c.provider)
    trouble = (
        select(several(*(troubles.c[name] for name in _TROUBLE)))
        .where(
            runs.c.status.in_([literal(status) for status in sorted(LIVE)]),
            or_(
                troubles.c.provider == runs.c.options["provider"].as_string(),
                # Without this the runs in it would be all runs, not the one that is asked for.
                ordered.correlate(runs, troubles),
            ),
            troubles.c.last_at > now() - provider_troubles.SHOWN_FOR,
        )
        .limit(1)
        .scalar_subquery()
    )
    # As text: the driver would guess the encoding of each, although PostgreSQL has declared it.
    tally = cast(several(within(steps), within(bill), within(trouble)), Text).label("tally")
    return select(*rows.RUN_COLUMNS, tally, now().label("now")).where(key_in(runs.c.id, _ids))


STANDINGS = {
    True: _standings_of(func.json_agg, func.json_build_array, lambda value: value),
    False: _standings_of(func.json_group_array, func.json_array, func.json),
}
"""By whether the database is PostgreSQL."""

RUNNING = (
    select(runs.c.id)
    .where(
        runs.c.status == literal(Status.RUNNING),
        key_in(runs.c.tenant, bindparam("tenants", type_=KeyList())),
    )
    .limit(MOST_RUNNING)
)
COUNTS = (
    select(runs.c.lane, runs.c.status, func.count().label("number"))
    .where(
        runs.c.status.in_([literal(status) for status in sorted(LIVE)]),
        runs.c.tenant == bindparam("tenant"),
    )
    .group_by(runs.c.lane, runs.c.status)
)


def standings(
    db: Database, run_ids: Collection[str], phase_shares: Mapping[str, float] = NO_SHARES
) -> dict[str, RunStanding]:
    """The standings of the runs by id, in one snapshot; runs whose history was pruned are missing.

    `phase_shares` has, for each kind that has several phases, what part of the work that is left one does.
    """
    if not run_ids:
        return {}
    return _standings(db.look(STANDINGS[db.postgresql], {"runs": list(run_ids)}), phase_shares)


def running(
    db: Database, tenants: Collection[str], phase_shares: Mapping[str, float] = NO_SHARES
) -> tuple[RunStanding, ...]:
    """The standings of the running runs of these tenants, limited so that the read stays cheap."""

    def body(tx: Tx) -> tuple[RunStanding, ...]:
        ids = [row.id for row in tx.all(RUNNING, {"tenants": list(tenants)})]
        if not ids:
            return ()
        listed = tx.all(STANDINGS[db.postgresql], {"runs": ids})
        return tuple(_standings(listed, phase_shares).values())

    return db.read(body)


def live_counts(db: Database, tenant: str) -> dict[str, dict[str, int]]:
    """By lane and status, how many runs of a tenant are live."""
    by_lane: dict[str, dict[str, int]] = {}
    for row in db.look(COUNTS, {"tenant": tenant}):
        by_lane.setdefault(row.lane, {})[row.status] = row.number
    return by_lane


def _standings(listed: Sequence[Row[Any]], phase_shares: Mapping[str, float]) -> dict[str, RunStanding]:
    return {row.id: _standing(row, phase_shares) for row in listed}


def _standing(row: Row[Any], phase_shares: Mapping[str, float]) -> RunStanding:
    run = rows.run(row)
    step_rows, (amount, tokens, paid_calls, unpriced_calls), trouble = json.loads(row.tally)
    steps = [_Step._make(step) for step in step_rows or ()]
    if len(steps) > 1:
        steps.sort()
    # Planning is no progress of a sliced document: its slices are. Alone, the plan task does the work.
    counted = [one for one in steps if one.phase == run.phase]
    counted = counted[1:] or counted
    parts = [progress.TaskProgress(_STATES[one.state], one.done, one.total, one.weight) for one in counted]
    stages: dict[str, tuple[int, int]] = {}
    for one in counted:
        for name, (done, total) in (one.stages or {}).items():
            before = stages.get(name, (0, 0))
            stages[name] = (before[0] + done, before[1] + total)
    spent = Spent(
        paid_calls or 0,
        sum([one.reused_calls for one in steps]),
        tokens or 0,
        amount or 0,
        sum([one.saved for one in steps]),
        unpriced_calls or 0,
    )
    unit = next((one.unit for one in counted if one.unit), "")
    rolled = progress.of_run(parts, run, phase_shares)
    return RunStanding(run, rolled, unit, stages, spent, row.now, _waits(steps), _trouble(trouble, row.now))


def _waits(steps: Sequence[_Step]) -> RunWaits | None:
    waiting = [one for one in steps if one.state == TaskState.WAITING]
    if not waiting or any(one.state == TaskState.RUNNING for one in steps):
        return None
    first = min(waiting, key=lambda one: one.due_at)
    return RunWaits(first.waiting_for or "", first.due_at)


def _trouble(row: Sequence[Any] | None, at: float) -> Trouble | None:
    if row is None:
        return None
    provider, endpoint, reason, status, tries, since, last = row
    return Trouble(provider, endpoint, reason, status, tries, max(0.0, at - since), max(0.0, at - last))
