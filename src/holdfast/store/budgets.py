"""Budgets and throttles: how much may still be spent, and when a provider may be asked again.

A reservation is made in the transaction of the intent and given back or turned into spending in the
transaction that ends the order, so the cap holds under concurrency and crashes. Amounts are nano-dollars.

The hard limit refuses: `spent + reserved` never passes it. The soft limit warns: whoever's order brings the
sum to it notes that in the journal, once, in the same transaction, under the lock of the budget's row.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Text, and_, bindparam, case, delete, exists, func, not_, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.errors import HoldfastError
from holdfast.core.states import UNSETTLED, CallState, TaskState, Verb
from holdfast.store import journal
from holdfast.store.database import Database, Tx
from holdfast.store.dialect import now
from holdfast.store.rows import literal
from holdfast.store.schema import budgets, charges, heads, orders, tasks, throttles
from holdfast.store.schema import journal as entries

TENANT = "tenant"
BATCH = 200


class OverBudgetError(HoldfastError):
    """The next order would pass the hard limit; nothing was reserved and nothing was sent."""

    code = "over_budget"

    def __init__(self, scope: str) -> None:
        super().__init__(
            f"the budget of {scope} does not cover the next call; raise it, or wait for others to end"
        )
        self.scope = scope


@dataclass(frozen=True, slots=True)
class Budget:
    """What a tenant or a collection may spend, over all time, and what of it is gone; None: no such limit."""

    tenant: str
    scope: str
    hard_limit: int | None
    soft_limit: int | None
    spent: int
    reserved: int

    @property
    def used(self) -> int:
        """What is spent, and what orders under way may yet cost."""
        return self.spent + self.reserved

    @property
    def over_soft(self) -> bool:
        """True when the warning is due."""
        return self.soft_limit is not None and self.used >= self.soft_limit

    @property
    def over_hard(self) -> bool:
        """True when nothing that costs is taken on any more."""
        return self.hard_limit is not None and self.used >= self.hard_limit


_this = (budgets.c.tenant == bindparam("b_tenant"), budgets.c.scope == bindparam("b_scope"))
RESERVE = (
    update(budgets)
    .where(
        *_this,
        or_(
            budgets.c.hard_limit.is_(None),
            budgets.c.spent + budgets.c.reserved + bindparam("b_amount") <= budgets.c.hard_limit,
        ),
    )
    .values(reserved=budgets.c.reserved + bindparam("b_amount"))
    .returning(budgets)
)
EXISTS = select(exists().where(*_this))
ACCOUNT = (
    update(budgets)
    .where(*_this)
    .values(
        spent=budgets.c.spent + bindparam("b_spent"),
        reserved=case(
            (budgets.c.reserved > bindparam("b_freed"), budgets.c.reserved - bindparam("b_freed")), else_=0
        ),
    )
    .returning(budgets)
)
WARNED = update(budgets).where(*_this).values(warned=True)


def reserve(tx: Tx, tenant: str, scopes: Sequence[str], amount: int) -> None:
    """`amount` is reserved in every budget there is for `scopes`; otherwise OverBudgetError, and nothing.

    What costs nothing needs no budget.
    """
    if not amount:
        return
    for scope in sorted(scopes):
        values = {"b_tenant": tenant, "b_scope": scope, "b_amount": amount}
        if (row := tx.one(RESERVE, values)) is not None:
            _warn(tx, row)
            continue
        if tx.execute(EXISTS, {"b_tenant": tenant, "b_scope": scope}).scalar():
            raise OverBudgetError(scope)


def account(tx: Tx, tenant: str, scopes: Sequence[str], *, spent: int, freed: int) -> None:
    """Reservations of an ended order are freed and what it cost is spent."""
    if not spent and not freed:
        return
    for scope in sorted(scopes):
        values = {"b_tenant": tenant, "b_scope": scope, "b_spent": spent, "b_freed": freed}
        if (row := tx.one(ACCOUNT, values)) is not None:
            _warn(tx, row)


def _warn(tx: Tx, row: Row[Any]) -> None:
    """The crossing of a soft limit is in the journal, if this was it; the row is locked by its change."""
    used = row.spent + row.reserved
    if row.soft_limit is None or row.warned or used < row.soft_limit:
        return
    tx.execute(WARNED, {"b_tenant": row.tenant, "b_scope": row.scope})
    data = {"soft": row.soft_limit, "hard": row.hard_limit, "spent": row.spent, "reserved": row.reserved}
    journal.write(tx, journal.entry(Verb.WARN, f"soft_limit:{row.scope}", tenant=row.tenant, data=data))


# A doubt about an order that is still open is in its reservation; one that outlived its order is spent.
_settled = exists().where(orders.c.id == charges.c.order_id, orders.c.state == literal(CallState.SETTLED))
SPENT_BY_TENANT = select(func.coalesce(func.sum(charges.c.amount), 0)).where(
    charges.c.tenant == bindparam("b_tenant"),
    or_(charges.c.sort != "in_doubt", and_(not_(charges.c.cleared), _settled)),
)
SPENT_BY_SCOPE = SPENT_BY_TENANT.where(charges.c.scope == bindparam("b_scope"))
SET = (
    upsert(budgets)
    .values(
        tenant=bindparam("b_tenant"),
        scope=bindparam("b_scope"),
        hard_limit=bindparam("b_hard"),
        soft_limit=bindparam("b_soft"),
        spent=bindparam("b_spent"),
    )
    .on_conflict_do_update(
        index_elements=[budgets.c.tenant, budgets.c.scope],
        set_={"hard_limit": bindparam("b_hard"), "soft_limit": bindparam("b_soft"), "warned": False},
    )
)
REMOVE = delete(budgets).where(*_this)
THIS_FOR_CHANGE = select(budgets).where(*_this).with_for_update()
LATEST_SETS = (
    select(entries.c.data)
    .where(entries.c.tenant == bindparam("tenant"), entries.c.verb == Verb.SET_BUDGET.value)
    .order_by(entries.c.id.desc())
    .limit(20)
)


def set_budget(
    db: Database, tenant: str, scope: str, *, hard: int | None, soft: int | None = None, actor: str = ""
) -> None:
    """The budget of (tenant, scope) has these limits; a new one starts from what was spent so far.

    Without any limit there is no budget any more. Work that waits for it is another matter: `resume`.
    """
    token = db.token()

    def body(tx: Tx) -> None:
        if tx.again and any(row.data["token"] == token for row in tx.all(LATEST_SETS, {"tenant": tenant})):
            return
        this = {"b_tenant": tenant, "b_scope": scope}
        data = {"hard": hard, "soft": soft, "token": token}
        noted = journal.entry(Verb.SET_BUDGET, scope, tenant=tenant, actor=actor, data=data)
        journal.write(tx, noted)
        if hard is None and soft is None:
            tx.execute(REMOVE, this)
            return
        query = SPENT_BY_TENANT if scope == TENANT else SPENT_BY_SCOPE
        spent = int(tx.execute(query, this).scalar_one())
        tx.execute(SET, this | {"b_hard": hard, "b_soft": soft, "b_spent": spent})
        # Orders under way before there was a budget count in it from the start.
        tx.execute(SET_RESERVED, this | {"b_reserved": _open(tx).get((tenant, scope), 0)})
        _warn(tx, tx.execute(THIS_FOR_CHANGE, this).one())

    db.write("set_budget", body)


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
    """What waits for this budget is queued now, instead of when its wait would end; answers how much by lane.

    Not covered: a task that met the old limit and is being put back in this very moment waits its time.
    """
    collection = None if scope == TENANT else scope.partition(":")[2]
    woken: dict[int, str] = {}  # over all tries: a spare wake-up is harmless, a lost one costs a sweep

    def body(tx: Tx) -> int:
        found = tx.all(WAITS, {"tenant": tenant, "collection": collection})
        for row in found:
            tx.execute(QUEUE, {"b_task": row.id})
            woken[row.id] = row.lane
        return len(found)

    while db.write("resume", body) == BATCH:
        pass
    return Counter(woken.values())


def held(row: Any) -> int:
    """What an open order has in reserve: its price, once for each of its sends that may be charged.

    Under a key all sends are one charge. Without one every doubt may be, and so may the send under way.
    """
    if row.keyed:
        return int(row.estimate)
    under_way = row.state in {CallState.INTENT, CallState.SENT}
    return int(row.estimate) * (int(row.doubts) + int(under_way))


ALL_FOR_CHANGE = select(budgets).order_by(budgets.c.tenant, budgets.c.scope).with_for_update()
UNSETTLED_ORDERS = select(
    orders.c.tenant, orders.c.scopes, orders.c.estimate, orders.c.keyed, orders.c.doubts, orders.c.state
).where(orders.c.state.in_([literal(state) for state in sorted(UNSETTLED)]))
SET_RESERVED = update(budgets).where(*_this).values(reserved=bindparam("b_reserved"))


def _open(tx: Tx) -> dict[tuple[str, str], int]:
    """What the open orders of each (tenant, scope) have in reserve."""
    sums: dict[tuple[str, str], int] = {}
    for order in tx.all(UNSETTLED_ORDERS):
        for scope in order.scopes:
            place = (order.tenant, scope)
            sums[place] = sums.get(place, 0) + held(order)
    return sums


def recompute(db: Database) -> int:
    """Every reservation equals the sum of its open orders; answers how many had drifted.

    With the budget rows locked nobody is between its reservation and its commit, so the sum is exact.
    """

    def body(tx: Tx) -> int:
        found = tx.all(ALL_FOR_CHANGE)
        if not found:
            return 0
        sums = _open(tx)
        drifted = [row for row in found if row.reserved != sums.get((row.tenant, row.scope), 0)]
        for row in drifted:
            reserved = sums.get((row.tenant, row.scope), 0)
            tx.execute(SET_RESERVED, {"b_tenant": row.tenant, "b_scope": row.scope, "b_reserved": reserved})
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
    """No worker asks `scope` again before `delay` seconds from now."""
    db.write("throttle", lambda tx: tx.execute(THROTTLE, {"b_scope": scope, "b_delay": delay}))


def wait_for(db: Database, scope: str) -> float:
    """Seconds until `scope` may be asked again; 0 when it may be asked now."""
    row = db.first(WAIT, {"scope": scope})
    return max(0.0, row[0]) if row is not None else 0.0


_BUDGET = [budgets.c[name] for name in Budget.__dataclass_fields__]


def of_tenant(db: Database, tenant: str) -> tuple[Budget, ...]:
    """The budgets of a tenant, as they stand."""
    query = select(*_BUDGET).where(budgets.c.tenant == tenant).order_by(budgets.c.scope)
    return tuple(Budget(**row._asdict()) for row in db.read(lambda tx: tx.all(query)))


def every(db: Database) -> tuple[Budget, ...]:
    """All budgets, as they stand."""
    query = select(*_BUDGET).order_by(budgets.c.tenant, budgets.c.scope)
    return tuple(Budget(**row._asdict()) for row in db.read(lambda tx: tx.all(query)))
