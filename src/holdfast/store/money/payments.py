"""What was paid, by run: the exchanges of runs, and which run paid for a call."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, case, func, select

from holdfast.core.records import Spent
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import calls, charges, orders

MOST = 500

# What a run has paid comes from the bill, not from its tasks: a run that failed, was cancelled or superseded
# has also paid. A second charge of an order pays for no further call.
CHARGED = charges.join(orders, orders.c.id == charges.c.order_id)
CALLS = case((charges.c.sort == literal("paid"), func.json_array_length(orders.c.call_keys)), else_=0)
UNPRICED_CALLS = case((charges.c.prices == literal("unpriced"), CALLS), else_=0)
OF_RUNS = (
    select(
        charges.c.run_id,
        func.sum(CALLS).label("paid_calls"),
        func.sum(charges.c.tokens).label("tokens"),
        func.sum(charges.c.amount).label("paid"),
        func.sum(UNPRICED_CALLS).label("unpriced_calls"),
    )
    .select_from(CHARGED)
    .where(
        key_in(charges.c.run_id, bindparam("runs", type_=KeyList())), charges.c.sort != literal("in_doubt")
    )
    .group_by(charges.c.run_id)
)


def by_run(tx: Tx, runs: Collection[str]) -> dict[str, Spent]:
    """What was paid, by run: calls, tokens and money. Runs that paid nothing are missing."""
    return {
        # PostgreSQL sums 64-bit numbers to a numeric.
        row.run_id: Spent(
            paid_calls=int(row.paid_calls),
            tokens=int(row.tokens),
            paid=int(row.paid),
            unpriced_calls=int(row.unpriced_calls),
        )
        for row in (tx.all(OF_RUNS, {"runs": list(runs)}) if runs else ())
    }


PROVIDERS = select(orders.c.provider).where(orders.c.run_id == bindparam("run_id")).distinct()


def providers_of(tx: Tx, run_id: str) -> tuple[str, ...]:
    """The providers that a run has ordered from, sorted."""
    return tuple(sorted(row.provider for row in tx.all(PROVIDERS, {"run_id": run_id})))


@dataclass(frozen=True, slots=True)
class OrderPayment:
    """An order of a run: what it carried, its outcome, and what the provider charged."""

    id: str
    run_id: str
    model: str
    state: str
    calls: int
    sends: int
    reason: str | None
    created_at: float
    seconds: float | None
    charges: int
    tokens: int
    amount: int


_charged = (
    select(
        charges.c.order_id,
        func.count().label("charges"),
        func.sum(charges.c.tokens).label("tokens"),
        func.sum(charges.c.amount).label("amount"),
    )
    .where(key_in(charges.c.run_id, bindparam("runs", type_=KeyList())), ~charges.c.cleared)
    .group_by(charges.c.order_id)
    .subquery("charged")
)
EXCHANGES = (
    select(
        orders.c.id,
        orders.c.run_id,
        orders.c.model,
        orders.c.state,
        orders.c.call_keys,
        orders.c.sends,
        orders.c.reason,
        orders.c.created_at,
        (orders.c.settled_at - orders.c.sent_at).label("seconds"),
        func.coalesce(_charged.c.charges, 0).label("charges"),
        func.coalesce(_charged.c.tokens, 0).label("tokens"),
        func.coalesce(_charged.c.amount, 0).label("amount"),
    )
    .select_from(orders.outerjoin(_charged, _charged.c.order_id == orders.c.id))
    .where(
        orders.c.tenant == bindparam("tenant"), key_in(orders.c.run_id, bindparam("runs", type_=KeyList()))
    )
    .order_by(orders.c.created_at.desc())
    .limit(MOST)
)
PAYERS = select(calls.c.key, calls.c.run_id).where(
    calls.c.tenant == bindparam("tenant"), key_in(calls.c.key, bindparam("keys", type_=KeyList()))
)


def _exchange(row: Row[Any]) -> OrderPayment:
    values = row._asdict()
    values["calls"] = len(values.pop("call_keys"))
    # PostgreSQL sums 64-bit numbers to a numeric.
    return OrderPayment(**values | {"tokens": int(row.tokens), "amount": int(row.amount)})


def exchanges(db: Database, tenant: str, runs: Collection[str]) -> dict[str, Sequence[OrderPayment]]:
    """The orders of these runs by run, newest first; at most a few hundred in total."""
    by_run: dict[str, list[OrderPayment]] = {}
    for row in db.read(lambda tx: tx.all(EXCHANGES, {"tenant": tenant, "runs": list(runs)})):
        by_run.setdefault(row.run_id, []).append(_exchange(row))
    return {run: tuple(each) for run, each in by_run.items()}


def payers(db: Database, tenant: str, keys: Collection[str]) -> dict[str, str | None]:
    """The run that paid for each known call, by the key of the call."""
    rows = db.read(lambda tx: tx.all(PAYERS, {"tenant": tenant, "keys": list(keys)}))
    return {row.key: row.run_id for row in rows}
