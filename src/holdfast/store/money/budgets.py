"""Budgets and throttles: how much may still be spent, and when a provider may be called again.

A reservation is made in the transaction of the intent, and released or turned into spending in the
transaction that ends the order, so the limit holds under concurrency and crashes. Amounts are nano-dollars.

The hard limit refuses: `spent + reserved` never exceeds it. The soft limit warns: the order that reaches it
writes that to the journal, once, in the same transaction, under the lock of the budget's row.

A budget of a day or a month counts what is charged within it. The first change of its row after the end
starts the next period with nothing spent; reservations stay, because they will be charged in the new one.
Until then readers ignore the old sum.

Why a new budget misses nothing: it starts from the charges that it can see. On PostgreSQL it could not see
those of a transaction that looked for budgets, saw none and is about to commit. So it first locks the table
exclusively. Every transaction that looked for budgets holds a lock on the table until its end, whether or not
there were any; later ones wait and see the new row.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

from sqlalchemy import (
    Row,
    Text,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    not_,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.errors import BadRequestError, HoldfastError, WorkError
from holdfast.core.periods import Period, window
from holdfast.core.states import UNSETTLED, CallState, TaskState, Verb
from holdfast.store.base import journal
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import budgets, charges, heads, orders, tasks, throttles
from holdfast.store.base.schema import journal as entries
from holdfast.store.money import ceilings

TENANT = "tenant"
BATCH = 200


class KeepLimit(Enum):
    """Sentinel: leave this limit unchanged."""

    UNCHANGED = "unchanged"


UNCHANGED = KeepLimit.UNCHANGED
Limit: TypeAlias = int | KeepLimit | None


class OverBudgetError(HoldfastError):
    """The next order would exceed the hard limit; nothing was reserved or sent."""

    code = "over_budget"

    def __init__(self, scope: str) -> None:
        super().__init__(
            f"the budget of {scope} does not cover the next call; raise it, or wait for other orders to end"
        )
        self.scope = scope


class UnpricedError(WorkError):
    """The model has no known price and a hard limit applies; nothing was sent."""

    def __init__(self, scope: str) -> None:
        message = (
            f"{scope} has a hard limit, and no price is known for the model; set its price or `free = true` "
            "in [providers.NAME], or remove the limit"
        )
        super().__init__(message, code="unpriced")
        self.scope = scope


@dataclass(frozen=True, slots=True)
class Budget:
    """What a tenant or a collection may spend in a period, and what is used; None: no such limit.

    `resets_at` is when the next period begins with nothing spent; None: never.
    """

    tenant: str
    scope: str
    period: Period
    hard_limit: int | None
    soft_limit: int | None
    spent: int
    reserved: int
    starts_at: float
    resets_at: float | None
    warned: bool = False

    @property
    def used(self) -> int:
        """What is spent plus what orders under way may still cost."""
        return self.spent + self.reserved

    @property
    def over_soft(self) -> bool:
        """True if the soft limit is reached."""
        return self.soft_limit is not None and self.used >= self.soft_limit

    @property
    def over_hard(self) -> bool:
        """True if no more paid work is accepted."""
        return self.hard_limit is not None and self.used >= self.hard_limit

    @property
    def named(self) -> str:
        """Whose budget it is, and its period unless it is unlimited."""
        return self.scope if self.period is Period.TOTAL else f"{self.scope} for the {self.period}"


def _budget(row: Row[Any]) -> Budget:
    """The budget at the row's `now`: spending of a past period no longer counts."""
    period = Period(row.period)
    ended = row.window_end is not None and row.window_end <= row.now
    start, end = window(period, row.now) if ended else (row.window_start, row.window_end)
    return Budget(
        row.tenant,
        row.scope,
        period,
        row.hard_limit,
        row.soft_limit,
        0 if ended else row.spent,
        row.reserved,
        start,
        end,
        warned=bool(row.warned) and not ended,
    )


_this = (
    budgets.c.tenant == bindparam("b_tenant"),
    budgets.c.scope == bindparam("b_scope"),
    budgets.c.period == bindparam("b_period"),
)
_EVERY = select(budgets, now().label("now"))
OF_SCOPES_FOR_CHANGE = (
    _EVERY.where(
        budgets.c.tenant == bindparam("b_tenant"),
        key_in(budgets.c.scope, bindparam("scopes", type_=KeyList())),
    )
    .order_by(budgets.c.scope, budgets.c.period)
    .with_for_update()
)
THIS = _EVERY.where(*_this)
THIS_FOR_CHANGE = THIS.with_for_update()
CHANGE = (
    update(budgets)
    .where(*_this)
    .values(
        hard_limit=bindparam("b_hard"),
        soft_limit=bindparam("b_soft"),
        spent=bindparam("b_spent"),
        reserved=bindparam("b_reserved"),
        window_start=bindparam("b_start"),
        window_end=bindparam("b_end"),
        warned=bindparam("b_warned"),
    )
)
NEW = insert(budgets).values(
    tenant=bindparam("b_tenant"),
    scope=bindparam("b_scope"),
    period=bindparam("b_period"),
    hard_limit=bindparam("b_hard"),
    soft_limit=bindparam("b_soft"),
    spent=bindparam("b_spent"),
    reserved=bindparam("b_reserved"),
    window_start=bindparam("b_start"),
    window_end=bindparam("b_end"),
    warned=bindparam("b_warned"),
)
REMOVE = delete(budgets).where(*_this)
# Conflicts with every lock for change, including FOR UPDATE, but not with plain readers.
ALONE = text("LOCK TABLE holdfast_budgets IN EXCLUSIVE MODE")


def _values(budget: Budget) -> dict[str, Any]:
    return {
        "b_tenant": budget.tenant,
        "b_scope": budget.scope,
        "b_period": budget.period.value,
        "b_hard": budget.hard_limit,
        "b_soft": budget.soft_limit,
        "b_spent": budget.spent,
        "b_reserved": budget.reserved,
        "b_start": budget.starts_at,
        "b_end": budget.resets_at,
        "b_warned": budget.warned,
    }


def _held(tx: Tx, tenant: str, scopes: Sequence[str]) -> list[Budget]:
    """Every budget of the scopes in its current state, locked in a fixed order."""
    rows = tx.all(OF_SCOPES_FOR_CHANGE, {"b_tenant": tenant, "scopes": scopes})
    return [_budget(row) for row in rows]


def reserve(tx: Tx, tenant: str, scopes: Sequence[str], amount: int, *, unpriced: bool = False) -> None:
    """`amount` is reserved in every budget of `scopes`; otherwise OverBudgetError and nothing is reserved.

    Free calls need no budget. A call without a known price may cost anything: under a hard limit it is
    refused with UnpricedError.
    """
    if not amount and not unpriced:
        return
    for budget in _held(tx, tenant, scopes):
        if unpriced and budget.hard_limit is not None:
            raise UnpricedError(budget.named)
        if budget.hard_limit is not None and budget.used + amount > budget.hard_limit:
            raise OverBudgetError(budget.named)
        _keep(tx, replace(budget, reserved=budget.reserved + amount))
    ceilings.reserve(tx, scopes, amount, unpriced=unpriced)


def account(
    tx: Tx, tenant: str, scopes: Sequence[str], *, spent: int, freed: int, counted_at: float | None = None
) -> None:
    """Reservations of an ended order are released and its cost is spent.

    `counted_at`: when the amount was first counted, for a charge that is taken back. A period that began
    later never included it.
    """
    if not spent and not freed:
        return
    for budget in _held(tx, tenant, scopes):
        here = spent if counted_at is None or counted_at >= budget.starts_at else 0
        reserved = max(0, budget.reserved - freed)
        _keep(tx, replace(budget, spent=budget.spent + here, reserved=reserved))
    ceilings.account(tx, scopes, spent=spent, freed=freed)


def _keep(tx: Tx, budget: Budget) -> None:
    """The locked row is as `budget` says. If this crossed the soft limit, the journal has an entry."""
    warns = budget.over_soft and not budget.warned
    tx.execute(CHANGE, _values(replace(budget, warned=budget.warned or warns)))
    if warns:
        _warn(tx, budget)


def _warn(tx: Tx, budget: Budget) -> None:
    data = {
        "soft": budget.soft_limit,
        "hard": budget.hard_limit,
        "spent": budget.spent,
        "reserved": budget.reserved,
        "period": budget.period.value,
    }
    noted = journal.entry(Verb.WARN, f"soft_limit:{budget.scope}", tenant=budget.tenant, data=data)
    journal.write(tx, noted)


# A charge counts when it is made. A doubt about an order that is still open is part of its reservation; one
# that outlived its order has been spent since that settled.
_charges = select(func.coalesce(func.sum(charges.c.amount), 0)).where(
    charges.c.tenant == bindparam("b_tenant"),
    or_(bindparam("b_scope") == TENANT, charges.c.scope == bindparam("b_scope")),
)
CHARGED = _charges.where(charges.c.sort != "in_doubt", charges.c.at >= bindparam("b_start"))
DOUBTED = _charges.where(
    charges.c.sort == literal("in_doubt"),
    not_(charges.c.cleared),
    exists().where(
        orders.c.id == charges.c.order_id,
        orders.c.state == literal(CallState.SETTLED),
        orders.c.settled_at >= bindparam("b_start"),
    ),
)
LATEST_SETS = (
    select(entries.c.data)
    .where(entries.c.tenant == bindparam("tenant"), entries.c.verb == literal(Verb.SET_BUDGET))
    .order_by(entries.c.id.desc())
    .limit(20)
)


def set_budget(
    db: Database,
    tenant: str,
    scope: str,
    *,
    hard: Limit = UNCHANGED,
    soft: Limit = UNCHANGED,
    period: Period = Period.TOTAL,
    actor: str = "",
) -> Budget | None:
    """The budget of (tenant, scope, period) has these limits; a new one starts from what was spent so far.

    Returns it, or None: without limits there is no budget any more. BadRequestError if the soft limit is
    above the hard one. Tasks waiting for the budget are not queued: see `resume`.
    """
    token = db.token()
    this = {"b_tenant": tenant, "b_scope": scope, "b_period": period.value}

    def body(tx: Tx) -> Budget | None:
        again = tx.again and any(
            row.data["token"] == token for row in tx.all(LATEST_SETS, {"tenant": tenant})
        )
        if tx.one(THIS, this) is None and tx.db.postgresql:
            tx.execute(ALONE)
        row = tx.one(THIS_FOR_CHANGE, this)
        known = None if row is None else _budget(row)
        if again:
            return known
        before = known or _counted(tx, tenant, scope, period)
        after = replace(
            before,
            hard_limit=before.hard_limit if isinstance(hard, KeepLimit) else hard,
            soft_limit=before.soft_limit if isinstance(soft, KeepLimit) else soft,
            warned=False,
        )
        _sensible(after)
        data = {"hard": after.hard_limit, "soft": after.soft_limit, "period": period.value, "token": token}
        journal.write(tx, journal.entry(Verb.SET_BUDGET, scope, tenant=tenant, actor=actor, data=data))
        if after.hard_limit is None and after.soft_limit is None:
            tx.execute(REMOVE, this)
            return None
        if known is None:
            tx.execute(NEW, _values(after))
        _keep(tx, after)
        return after

    return db.write("set_budget", body)


def _sensible(budget: Budget) -> None:
    hard, soft = budget.hard_limit, budget.soft_limit
    if hard is not None and soft is not None and soft > hard:
        message = "a soft limit above the hard one would never warn; put it below, or remove one of them"
        raise BadRequestError(message, code="bad_budget")


NOW = select(now())


def _counted(tx: Tx, tenant: str, scope: str, period: Period) -> Budget:
    """A budget without limits, with the spending of this period and the reservations of orders."""
    start, end = window(period, float(tx.execute(NOW).scalar_one()))
    since = {"b_tenant": tenant, "b_scope": scope, "b_start": start}
    spent = sum(int(tx.execute(query, since).scalar_one()) for query in (CHARGED, DOUBTED))
    # Orders under way before the budget existed count from the start.
    reserved = _open(tx).get((tenant, scope), 0)
    return Budget(tenant, scope, period, None, None, spent, reserved, start, end)


_collection = bindparam("collection", type_=Text())
WAITS = (
    select(tasks.c.id, tasks.c.lane)
    .join(heads, heads.c.id == tasks.c.head_id)
    .where(
        tasks.c.state == literal(TaskState.WAITING),
        tasks.c.waiting_for == "budget",
        tasks.c.tenant == bindparam("tenant"),
        or_(_collection.is_(None), heads.c.collection == _collection),
    )
    .limit(BATCH)
    .with_for_update(key_share=True, skip_locked=True, of=tasks)
)
QUEUE = (
    update(tasks)
    .where(tasks.c.id == bindparam("b_task"))
    .values(state=literal(TaskState.QUEUED), waiting_for=None, due_at=now())
)


def resume(db: Database, tenant: str, scope: str) -> dict[str, int]:
    """Tasks waiting for this budget are queued now, before their wait ends. Returns how many per lane.

    Not covered: a task that hit the old limit and is being put back at this moment waits its full time.
    """
    collection = None if scope == TENANT else scope.partition(":")[2]
    woken: dict[int, str] = {}  # over all tries: a spare wake-up is harmless, a lost one costs a sweep

    def body(tx: Tx) -> int:
        waiting = tx.all(WAITS, {"tenant": tenant, "collection": collection})
        for row in waiting:
            tx.execute(QUEUE, {"b_task": row.id})
            woken[row.id] = row.lane
        return len(waiting)

    while db.write("resume", body) == BATCH:
        pass
    return Counter(woken.values())


def held(row: Any) -> int:
    """What an open order has reserved: its price, once for each of its sends that may be charged.

    With an idempotency key all sends are one charge. Without one every doubtful send may be charged, and so
    may the one under way.
    """
    if row.keyed:
        return int(row.estimate)
    under_way = row.state in {CallState.INTENT, CallState.SENT}
    return int(row.estimate) * (int(row.doubts) + int(under_way))


ALL_FOR_CHANGE = (
    select(budgets).order_by(budgets.c.tenant, budgets.c.scope, budgets.c.period).with_for_update()
)
UNSETTLED_ORDERS = select(
    orders.c.tenant, orders.c.scopes, orders.c.estimate, orders.c.keyed, orders.c.doubts, orders.c.state
).where(orders.c.state.in_([literal(state) for state in sorted(UNSETTLED)]))
SET_RESERVED = update(budgets).where(*_this).values(reserved=bindparam("b_reserved"))


def _open(tx: Tx) -> dict[tuple[str, str], int]:
    """What the open orders of each (tenant, scope) have reserved."""
    sums: dict[tuple[str, str], int] = {}
    for order in tx.all(UNSETTLED_ORDERS):
        for scope in order.scopes:
            budget = (order.tenant, scope)
            sums[budget] = sums.get(budget, 0) + held(order)
    return sums


def recompute(db: Database) -> int:
    """Every reservation equals the sum of its open orders. Returns how many had drifted.

    With the budget rows locked no transaction is between its reservation and its commit, so the sum is exact.
    """

    def body(tx: Tx) -> int:
        locked = tx.all(ALL_FOR_CHANGE)
        if not locked:
            return 0
        sums = _open(tx)
        drifted = [row for row in locked if row.reserved != sums.get((row.tenant, row.scope), 0)]
        for row in drifted:
            this = {"b_tenant": row.tenant, "b_scope": row.scope, "b_period": row.period}
            tx.execute(SET_RESERVED, this | {"b_reserved": sums.get((row.tenant, row.scope), 0)})
        return len(drifted)

    return db.write("recompute", body)


_until = now() + bindparam("b_delay")
THROTTLE = (
    upsert(throttles)
    .values(scope=bindparam("b_scope"), not_before=_until, refusals=1)
    .on_conflict_do_update(
        index_elements=[throttles.c.scope],
        set_={
            "not_before": case((throttles.c.not_before > _until, throttles.c.not_before), else_=_until),
            "refusals": throttles.c.refusals + 1,
        },
    )
)
WAIT = select(throttles.c.not_before - now()).where(throttles.c.scope == bindparam("scope"))


def throttle(db: Database, scope: str, delay: float) -> None:
    """No worker calls `scope` again for `delay` seconds."""
    db.write("throttle", lambda tx: tx.execute(THROTTLE, {"b_scope": scope, "b_delay": delay}))


def wait_for(db: Database, scope: str) -> float:
    """Seconds until `scope` may be called again; 0 if it may be called now."""
    row = db.first(WAIT, {"scope": scope})
    return max(0.0, row[0]) if row is not None else 0.0


def of_tenant(db: Database, tenant: str) -> tuple[Budget, ...]:
    """The budgets of a tenant in their current state."""
    query = _EVERY.where(budgets.c.tenant == tenant).order_by(budgets.c.scope, budgets.c.period)
    return tuple(_budget(row) for row in db.read(lambda tx: tx.all(query)))


def every(db: Database) -> tuple[Budget, ...]:
    """All budgets in their current state."""
    query = _EVERY.order_by(budgets.c.tenant, budgets.c.scope, budgets.c.period)
    return tuple(_budget(row) for row in db.read(lambda tx: tx.all(query)))
