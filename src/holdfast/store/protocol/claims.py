"""Claim, renew, release: which worker holds a task.

A claim locks only the task row. It needs no lock on head or run, because ending a run closes its open tasks
in the same transaction: a task that is `queued` under my lock belongs to a live run of the current
generation. The first claim of a run also moves head and run to `running`. It takes the head's lock out of
order but never waits for it (SKIP LOCKED), so it cannot deadlock.

The epoch rises whenever the holder changes, including to none. A lease says who should work; only the fence
(`tasks.hold`) grants the right to write.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import CTE, FromClause, Row, Select, and_, bindparam, case, not_, select, true, update

from holdfast.core import decide
from holdfast.core.records import Claim, Fenced, Landed, Outcome, Skipped
from holdfast.core.states import LANE_RANK, Loss, Skip, Status, TaskState, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, Together, key_in, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import heads, runs, tasks, turns

CLAIM_TRIES = 8

Alive = Callable[[list[tuple[int, str]]], set[int]]
"""Given (task id, token) pairs whose database lease has expired: which are alive in another lease backend."""

_lanes = bindparam("lanes", type_=KeyList())
_pipelines = bindparam("pipelines", type_=KeyList())
_candidate = tasks.alias("candidate")

_skipped = bindparam("skipped", type_=KeyList())
_FIRST = (
    select(_candidate.c.id, _candidate.c.priority, _candidate.c.age)
    .where(
        _candidate.c.lane == turns.c.lane,
        _candidate.c.tenant == turns.c.tenant,
        _candidate.c.state == literal(TaskState.QUEUED),
        key_in(_candidate.c.pipeline, _pipelines),
    )
    .order_by(_candidate.c.priority, _candidate.c.age, _candidate.c.id)
    .limit(1)
)


def _best(*, lateral: bool) -> CTE:
    """The (lane, tenant) to serve next: one indexed probe per slot, never a ranking of all rows.

    PostgreSQL needs LATERAL: with a sub-select as the join condition it may hash the whole table instead.
    SQLite has no LATERAL and looks up the sub-select's single row by its key.
    """
    first: FromClause
    if lateral:
        first = _FIRST.lateral("first")
        source = turns.join(first, true())
    else:
        first = tasks.alias("first")
        probe = _FIRST.with_only_columns(_candidate.c.id).correlate(turns).scalar_subquery()
        source = turns.join(first, first.c.id == probe)
    return (
        select(turns.c.lane, turns.c.tenant)
        .select_from(source)
        .where(key_in(turns.c.lane, _lanes), not_(key_in(turns.c.tenant, _skipped)))
        .order_by(
            case(LANE_RANK, value=turns.c.lane, else_=len(LANE_RANK)),
            first.c.priority,
            turns.c.last_served,
            first.c.age,
            first.c.id,
        )
        .limit(1)
        .cte("best")
    )


_CLAIM_COLUMNS = [
    *rows.TASK_COLUMNS,
    tasks.c.tenant,
    tasks.c.lane,
    tasks.c.priority,
    tasks.c.pipeline,
    tasks.c.payload,
    tasks.c.deferrals,
    tasks.c.losses,
    tasks.c.only_waits,
    runs.c.kind,
    runs.c.subject,
    runs.c.content,
    runs.c.options,
    runs.c.status.label("run_status"),
    runs.c.slices,
    heads.c.collection,
    heads.c.generation.label("current_generation"),
    now().label("now"),
]
_joined = tasks.join(runs, runs.c.id == tasks.c.run_id).join(heads, heads.c.id == tasks.c.head_id)


def _pick(best: CTE) -> Select[Any]:
    """The best due task of the best slot, locked; tasks locked by others are skipped."""
    return (
        select(*_CLAIM_COLUMNS)
        .select_from(_joined)
        .where(
            tasks.c.lane == select(best.c.lane).scalar_subquery(),
            tasks.c.tenant == select(best.c.tenant).scalar_subquery(),
            tasks.c.state == literal(TaskState.QUEUED),
            key_in(tasks.c.pipeline, _pipelines),
        )
        .order_by(tasks.c.priority, tasks.c.age, tasks.c.id)
        .limit(1)
        .with_for_update(key_share=True, skip_locked=True, of=tasks)
    )


_lateral = _best(lateral=True)
PICK_BEST = {True: _pick(_lateral), False: _pick(_best(lateral=False))}
"""By whether the database is PostgreSQL."""
BEST_TENANT = select(_lateral.c.tenant)
_ONE = select(*_CLAIM_COLUMNS, rows.ADVANCED.label("has_advanced")).select_from(_joined)
PICK_NAMED = _ONE.where(tasks.c.id == bindparam("task_id")).with_for_update(key_share=True, of=tasks)
PICK_OF_RUN = _ONE.where(tasks.c.run_id == bindparam("run_id"), tasks.c.ordinal == 0).with_for_update(
    key_share=True, of=tasks
)
MINE_BY_TOKEN = (
    select(*_CLAIM_COLUMNS)
    .select_from(_joined)
    .where(tasks.c.token == bindparam("token"), tasks.c.state == literal(TaskState.RUNNING))
)
LOCK_HEAD_OR_SKIP = (
    select(heads.c.id)
    .where(heads.c.id == bindparam("head_id"))
    .with_for_update(key_share=True, skip_locked=True)
)

_take = (
    update(tasks)
    .where(tasks.c.id == bindparam("b_task"))
    .values(
        state=literal(TaskState.RUNNING),
        epoch=tasks.c.epoch + 1,
        owner=bindparam("b_owner"),
        token=bindparam("b_token"),
        lease_until=now() + bindparam("b_ttl"),
        claimed_at=now(),
        signed_at=now(),
        advanced=False,
        waiting_for=None,
        look_again_at=0.0,
        attempts=bindparam("b_attempts"),
        losses=bindparam("b_losses"),
        only_waits=False,
        carrier=bindparam("b_carrier"),
    )
)
# Another claim of the same tenant is writing the same value already: do not wait for it.
_slot = turns.alias("turn")
_serve = (
    update(turns)
    .where(
        turns.c.lane == bindparam("b_lane"),
        turns.c.tenant.in_(
            select(_slot.c.tenant)
            .where(_slot.c.lane == bindparam("b_lane"), _slot.c.tenant == bindparam("b_tenant"))
            .with_for_update(skip_locked=True)
        ),
    )
    .values(last_served=now())
)
_start_run = (
    update(runs)
    .where(runs.c.id == bindparam("b_run"))
    .values(status=literal(Status.RUNNING), started_at=now())
)
_start_head = (
    update(heads)
    .where(heads.c.id == bindparam("b_head"))
    .values(status=literal(Status.RUNNING), updated_at=now())
)
TAKE = Together(_take, _serve, journal.WRITE)
TAKE_AND_START = Together(_take, _serve, _start_run, _start_head, journal.WRITE)


class _Contended(Exception):  # noqa: N818 - inner signal: roll back and pick again
    def __init__(self, tenant: str) -> None:
        super().__init__(tenant)
        self.tenant = tenant


def claim_best(
    db: Database,
    *,
    lanes: Sequence[str],
    pipelines: Sequence[str],
    owner: str,
    token: str,
    ttl: float,
    carrier: str | None = None,
) -> Claim | None:
    """The best due task of `lanes`, now held under `token` for `ttl` seconds; None when nothing is due.

    `carrier` is the process that holds the task, so that its death can be detected.

    If another transaction has locked a tenant's best task, the next try skips that tenant, so that one frozen
    claimer does not block everyone else's work.
    """
    skipped: list[str] = []

    def body(tx: Tx) -> Claim | None:
        if tx.again and (mine := tx.one(MINE_BY_TOKEN, {"token": token})) is not None:
            return _claim(mine, mine.epoch, token, owner, mine.lease_until)
        values = {"lanes": lanes, "pipelines": pipelines, "skipped": skipped}
        row = tx.one(PICK_BEST[db.postgresql], values)
        if row is None:
            if db.postgresql and (hidden := tx.one(BEST_TENANT, values)) is not None:
                raise _Contended(hidden.tenant)
            return None
        return _take_over(tx, row, _Taker(owner, token, ttl, carrier))

    for number in range(CLAIM_TRIES):
        try:
            claim = db.write("claim", body, relaxed=True)
        except _Contended as error:
            skipped.append(error.tenant)
            continue
        if claim is not None or not skipped:
            return claim
        skipped.clear()
        db.pause(0.002 * 2**number)
    return None


def claim_named(
    db: Database,
    name: int | str,
    *,
    pipelines: Sequence[str],
    owner: str,
    token: str,
    ttl: float,
    rules: "LockHeld",
    alive: Alive | None = None,
    carrier: str | None = None,
) -> Claim | Skipped:
    """The named task, now held under `token`; or the reason why this delivery must not run.

    `name` is the id of the task, or that of its run, of which it is then the only task.
    `lock_held` never touches the live run: it only schedules another look, a limited number of times. `alive`
    checks a lease held in another backend, inside this transaction: once, and briefly.
    """

    def body(tx: Tx) -> Claim | Skipped:
        row = tx.one(*_named(name))
        if row is None:
            return Skipped(Skip.UNKNOWN)
        if row.token == token and row.state == TaskState.RUNNING:
            return _claim(row, row.epoch, token, owner, row.lease_until)
        task = rows.task(row)
        delivery = decide.NamedDelivery(
            task, Status(row.run_status), row.current_generation, _lives(row, alive), rules.attempt_cap
        )
        reason = decide.deliver(delivery, row.now)
        if reason is None and row.pipeline not in pipelines:
            reason = Skip.UNSUPPORTED
        taker = _Taker(owner, token, ttl, carrier)
        if reason is None and task.state is TaskState.RUNNING:
            lost = decide.Lost(Loss.LEASE_EXPIRED, row.attempts, row.losses, row.has_advanced, row.only_waits)
            expiry = decide.expire(lost, decide.Caps(rules.attempt_cap, rules.loss_cap))
            taker = dataclasses.replace(taker, losses=expiry.losses)
            reason = Skip.EXHAUSTED if expiry.abandoned else None
        if reason is not None:
            return _skip(tx, row, reason, owner=owner, token=token, rules=rules)
        return _take_over(tx, row, taker)

    for number in range(CLAIM_TRIES):
        try:
            return db.write("claim", body, relaxed=True)
        except _Contended:
            db.pause(0.002 * 2**number)
    return Skipped(Skip.LOCK_HELD, rules.delay)


def _named(name: int | str) -> tuple[Select[Any], dict[str, Any]]:
    return (PICK_NAMED, {"task_id": name}) if isinstance(name, int) else (PICK_OF_RUN, {"run_id": name})


def take(tx: Tx, name: int | str, *, owner: str, token: str, ttl: float, carrier: str | None = None) -> Claim:
    """The task, created by this transaction under the head's lock, is held from the start."""
    row = tx.execute(*_named(name)).one()
    return _take_over(tx, row, _Taker(owner, token, ttl, carrier))


def mine(tx: Tx, token: str) -> Claim | None:
    """The claim held under this token, if any."""
    row = tx.one(MINE_BY_TOKEN, {"token": token})
    return None if row is None else _claim(row, row.epoch, token, row.owner, row.lease_until)


def _lives(row: Row[Any], alive: Alive | None) -> bool:
    if row.state != TaskState.RUNNING:
        return False
    return row.lease_until > row.now or (alive is not None and row.id in alive([(row.id, row.token)]))


class LockHeld:
    """How often and after what delay to retry a task that a live worker holds."""

    __slots__ = ("attempt_cap", "delay", "loss_cap", "times")

    def __init__(self, *, attempt_cap: int, loss_cap: int = 20, delay: float = 15.0, times: int = 10) -> None:
        self.attempt_cap = attempt_cap
        self.loss_cap = loss_cap
        self.delay = delay
        self.times = times


LOOK_AGAIN = (
    update(tasks)
    .where(tasks.c.id == bindparam("b_task"))
    .values(deferrals=tasks.c.deferrals + 1, look_again_at=now() + bindparam("b_delay"))
)


def _skip(tx: Tx, row: Row[Any], reason: Skip, *, owner: str, token: str, rules: LockHeld) -> Skipped:
    noted = journal.entry(
        Verb.SKIP,
        reason,
        tenant=row.tenant,
        head_id=row.head_id,
        run_id=row.run_id,
        task_id=row.id,
        generation=row.generation,
        epoch=row.epoch,
        actor=owner,
        data={"token": token},
    )
    landed = tx.again and journal.has(tx, noted)
    retry = reason is Skip.LOCK_HELD and row.deferrals - landed < rules.times
    if not landed:
        if retry:
            tx.execute(LOOK_AGAIN, {"b_task": row.id, "b_delay": rules.delay})
        journal.write(tx, noted)
    return Skipped(reason, rules.delay if retry else None)


@dataclasses.dataclass(frozen=True, slots=True)
class _Taker:
    """Who takes a task. `losses` is the new number of losses; None leaves it unchanged."""

    owner: str
    token: str
    ttl: float
    carrier: str | None
    losses: int | None = None


def _take_over(tx: Tx, row: Row[Any], taker: _Taker) -> Claim:
    values = {
        "b_task": row.id,
        "b_owner": taker.owner,
        "b_token": taker.token,
        "b_ttl": taker.ttl,
        "b_carrier": taker.carrier,
        "b_lane": row.lane,
        "b_tenant": row.tenant,
        "b_attempts": row.attempts,
        "b_losses": row.losses if taker.losses is None else taker.losses,
        "b_run": row.run_id,
        "b_head": row.head_id,
    }
    claim = _claim(row, row.epoch + 1, taker.token, taker.owner, row.now + taker.ttl)
    values |= journal.of_claim(Verb.CLAIM, "over_expired" if row.state == TaskState.RUNNING else "due", claim)
    if row.run_status == Status.QUEUED:
        if tx.one(LOCK_HEAD_OR_SKIP, {"head_id": row.head_id}) is None:
            raise _Contended(row.tenant)
        tx.together(TAKE_AND_START, values)
    else:
        tx.together(TAKE, values)
    return claim


def _claim(row: Row[Any], epoch: int, token: str, owner: str, lease_until: float) -> Claim:
    return Claim(
        task_id=row.id,
        run_id=row.run_id,
        head_id=row.head_id,
        tenant=row.tenant,
        kind=row.kind,
        subject=row.subject,
        collection=row.collection,
        generation=row.generation,
        ordinal=row.ordinal,
        epoch=epoch,
        token=token,
        owner=owner,
        lane=row.lane,
        priority=row.priority,
        pipeline=row.pipeline,
        content=row.content,
        options=row.options,
        payload=row.payload,
        attempts=row.attempts,
        lease_until=lease_until,
        phase=row.phase,
        plans=row.slices is None or row.ordinal > row.slices,
    )


_HELD = and_(
    tasks.c.id == bindparam("b_task"),
    tasks.c.token == bindparam("b_token"),
    tasks.c.epoch == bindparam("b_epoch"),
    rows.may(tasks.c.state, "task", Verb.RENEW),
)
RENEW = update(tasks).where(_HELD, tasks.c.lease_until > now()).values(lease_until=now() + bindparam("b_ttl"))


def renew(db: Database, claim: Claim, ttl: float) -> bool:
    """True if the lease now runs for `ttl` more seconds. An expired lease is never re-acquired."""

    def body(tx: Tx) -> bool:
        return tx.execute(RENEW, {**_mine(claim), "b_ttl": ttl}).rowcount == 1

    return db.write("renew", body, relaxed=True)


WAIT = update(tasks).where(_HELD).values(only_waits=bindparam("b_waits"))


def note_wait(db: Database, claim: Claim, *, waits: bool) -> None:
    """Record whether the holder of the task is only waiting for another worker's order."""
    db.write("note_wait", lambda tx: tx.execute(WAIT, _mine(claim) | {"b_waits": waits}), relaxed=True)


SIGN = update(tasks).where(_HELD).values(signed_at=now())


def sign(db: Database, claim: Claim) -> None:
    """A task still held under this claim has shown a sign of life now.

    For leases held in another backend: the row's own lease has expired, so nothing else shows a request that
    the run is alive.
    """

    def body(tx: Tx) -> None:
        tx.execute(SIGN, _mine(claim))

    db.write("sign", body, relaxed=True)


def _mine(claim: Claim) -> dict[str, Any]:
    return {"b_task": claim.task_id, "b_token": claim.token, "b_epoch": claim.epoch}


_let_go = {"owner": None, "token": None, "lease_until": 0.0, "epoch": tasks.c.epoch + 1, "signed_at": now()}
RELEASE = update(tasks).where(_HELD).values(state=literal(TaskState.QUEUED), due_at=now(), **_let_go)
PUT_BACK = (
    update(tasks)
    .where(_HELD)
    .values(
        state=literal(TaskState.WAITING),
        due_at=now() + bindparam("b_delay"),
        waiting_for=bindparam("b_reason"),
        **_let_go,
    )
)


def release(db: Database, claim: Claim, reason: str) -> Outcome:
    """The task is queued again at once, without a holder; no attempt is counted."""

    def body(tx: Tx) -> Outcome:
        if tx.execute(RELEASE, _mine(claim)).rowcount != 1:
            return Landed() if tx.again else Fenced("stale_epoch")
        journal.write(tx, journal.of_claim(Verb.RELEASE, reason, claim))
        return Landed()

    return db.write("release", body, relaxed=True)


def put_back(db: Database, claim: Claim, *, reason: str, delay: float) -> Outcome:
    """The task waits for `reason` for `delay` seconds, without a holder; no attempt is counted."""

    def body(tx: Tx) -> Outcome:
        values = {**_mine(claim), "b_delay": delay, "b_reason": reason}
        if tx.execute(PUT_BACK, values).rowcount != 1:
            return Landed() if tx.again else Fenced("stale_epoch")
        journal.write(tx, journal.of_claim(Verb.PUT_BACK, reason, claim, {"delay": delay}))
        return Landed()

    return db.write("put_back", body, relaxed=True)
