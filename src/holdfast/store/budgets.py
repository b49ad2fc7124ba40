"""Budgets and throttles: how much may still be spent, and when a provider may be asked again.

A reservation is made in the transaction of the intent and given back or turned into spending in the
transaction that ends the order, so the cap holds under concurrency and crashes. Amounts are nano-dollars.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, bindparam, case, exists, func, not_, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.errors import HoldfastError
from holdfast.core.states import UNSETTLED, CallState
from holdfast.store.database import Database, Tx
from holdfast.store.dialect import now
from holdfast.store.rows import literal
from holdfast.store.schema import budgets, charges, orders, throttles

TENANT = "tenant"


class OverBudgetError(HoldfastError):
    """The next order would pass the hard limit; nothing was reserved and nothing was sent."""

    code = "over_budget"

    def __init__(self, scope: str) -> None:
        super().__init__(
            f"the budget of {scope} does not cover the next call; raise it, or wait for others to end"
        )
        self.scope = scope


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
)


def reserve(tx: Tx, tenant: str, scopes: Sequence[str], amount: int) -> None:
    """`amount` is reserved in every budget there is for `scopes`; otherwise OverBudgetError, and nothing.

    What costs nothing needs no budget.
    """
    if not amount:
        return
    for scope in sorted(scopes):
        values = {"b_tenant": tenant, "b_scope": scope, "b_amount": amount}
        if tx.execute(RESERVE, values).rowcount:
            continue
        if tx.execute(EXISTS, {"b_tenant": tenant, "b_scope": scope}).scalar():
            raise OverBudgetError(scope)


def account(tx: Tx, tenant: str, scopes: Sequence[str], *, spent: int, freed: int) -> None:
    """Reservations of an ended order are freed and what it cost is spent."""
    if not spent and not freed:
        return
    for scope in sorted(scopes):
        tx.execute(ACCOUNT, {"b_tenant": tenant, "b_scope": scope, "b_spent": spent, "b_freed": freed})


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
        set_={"hard_limit": bindparam("b_hard"), "soft_limit": bindparam("b_soft")},
    )
)


def set_budget(db: Database, tenant: str, scope: str, *, hard: int | None, soft: int | None = None) -> None:
    """The budget of (tenant, scope) has these limits; a new one starts from what was spent so far."""

    def body(tx: Tx) -> None:
        query = SPENT_BY_TENANT if scope == TENANT else SPENT_BY_SCOPE
        spent = int(tx.execute(query, {"b_tenant": tenant, "b_scope": scope}).scalar_one())
        values = {"b_tenant": tenant, "b_scope": scope, "b_hard": hard, "b_soft": soft, "b_spent": spent}
        tx.execute(SET, values)
        # Orders under way before there was a budget count in it from the start.
        reserved = _open(tx).get((tenant, scope), 0)
        tx.execute(SET_RESERVED, {"b_tenant": tenant, "b_scope": scope, "b_reserved": reserved})

    db.write("set_budget", body)


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
    wait = db.read(lambda tx: tx.execute(WAIT, {"scope": scope}).scalar())
    return max(0.0, wait) if wait is not None else 0.0


def of_tenant(db: Database, tenant: str) -> list[dict[str, Any]]:
    """The budgets of a tenant, as they stand."""
    query = select(budgets).where(budgets.c.tenant == tenant).order_by(budgets.c.scope)
    return db.read(lambda tx: [dict(row._mapping) for row in tx.all(query)])
