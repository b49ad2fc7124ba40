"""The bill and the unsettled orders of one tenant. Amounts are nano-dollars; nothing here writes or locks."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, Row, Select, bindparam, case, cast, func, literal, not_, select

from holdfast.core.states import UNSETTLED, CallState, Disposition, Verb
from holdfast.store import rows
from holdfast.store.database import Database, Tx
from holdfast.store.dialect import now
from holdfast.store.schema import charges, journal, orders, runs, tasks

DAY = 86_400
MOST_ROWS = 1000


class By(StrEnum):
    """What the lines of a bill are about."""

    MODEL = "model"
    COLLECTION = "collection"
    DOCUMENT = "document"
    RUN = "run"
    DAY = "day"


# A charge of a whole tenant has the scope `tenant`, that of a collection `collection:<id>`.
_ABOUT: dict[By, Any] = {
    By.MODEL: charges.c.model,
    By.COLLECTION: charges.c.scope,
    By.DOCUMENT: runs.c.subject,
    By.RUN: charges.c.run_id,
    By.DAY: cast(func.floor(charges.c.at / DAY), BigInteger),
}


@dataclass(frozen=True, slots=True)
class Line:
    """What one thing cost: paid, charged a second time, and in doubt. `about` is None for none."""

    about: str | int | None
    orders: int
    tokens: int
    paid: int
    second: int
    in_doubt: int


@dataclass(frozen=True, slots=True)
class Bill:
    """What was charged, and what was not because it was known or refused. Doubts count as money."""

    lines: tuple[Line, ...]
    total: int
    in_doubt: int
    second: int
    reused_calls: int
    saved: int
    refused_duplicates: int


def _amount(sort: str) -> Any:
    return func.coalesce(func.sum(case((charges.c.sort == sort, charges.c.amount), else_=0)), 0).label(sort)


_SUMS = (
    func.count(func.distinct(charges.c.order_id)).label("orders"),
    func.coalesce(func.sum(charges.c.tokens), 0).label("tokens"),
    *(_amount(sort) for sort in ("paid", "second", "in_doubt")),
)
_charged = charges.outerjoin(runs, runs.c.id == charges.c.run_id)
_mine = (charges.c.tenant == bindparam("tenant"), not_(charges.c.cleared))
LINES = {
    by: select(about.label("about"), *_SUMS)
    .select_from(_charged)
    .where(*_mine)
    .group_by(about)
    .order_by(about)
    .limit(MOST_ROWS)
    for by, about in _ABOUT.items()
}
TOTAL = select(literal(None).label("about"), *_SUMS).where(*_mine)
REUSED = select(
    func.coalesce(func.sum(tasks.c.reused_calls), 0).label("calls"),
    func.coalesce(func.sum(tasks.c.saved), 0).label("saved"),
).where(tasks.c.tenant == bindparam("tenant"))
DUPLICATES = select(func.count()).where(
    journal.c.tenant == bindparam("tenant"),
    journal.c.verb == Verb.REQUEST.value,
    journal.c.reason.startswith(f"{Disposition.DUPLICATE}:"),
)


def bill(db: Database, tenant: str, by: By = By.MODEL) -> Bill:
    """The bill of a tenant, in lines about `by`; the totals count every line, also those beyond the last."""
    mine = {"tenant": tenant}

    def body(tx: Tx) -> Bill:
        total = _line(tx.execute(TOTAL, mine).one())
        known = tx.execute(REUSED, mine).one()
        return Bill(
            tuple(_line(row) for row in tx.all(LINES[by], mine)),
            total.paid + total.second + total.in_doubt,
            total.in_doubt,
            total.second,
            int(known.calls),
            int(known.saved),
            tx.execute(DUPLICATES, mine).scalar_one(),
        )

    return db.read(body)


def _line(row: Row[Any]) -> Line:
    # PostgreSQL adds 64-bit numbers up to a numeric.
    numbers = ("orders", "tokens", "paid", "second", "in_doubt")
    return Line(row.about, *(int(getattr(row, name)) for name in numbers))


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """An order as its owner sees it. `age` is seconds since it was intended."""

    id: str
    tenant: str
    provider: str
    endpoint: str
    model: str
    state: str
    calls: int
    estimate: int
    keyed: bool
    sends: int
    doubts: int
    reason: str | None
    run_id: str | None
    subject: str | None
    created_at: float
    age: float


def _orders(tenant: str | None) -> Select[Any]:
    query = select(orders, runs.c.subject, now().label("now")).outerjoin(runs, runs.c.id == orders.c.run_id)
    return query if tenant is None else query.where(orders.c.tenant == tenant)


def open_orders(db: Database, tenant: str | None, state: CallState | None = None) -> tuple[OpenOrder, ...]:
    """The unsettled orders of a tenant, or of all, the oldest first; only those in `state`, when given."""
    wanted = sorted(UNSETTLED) if state is None else [state]
    query = _orders(tenant).where(orders.c.state.in_([rows.literal(each) for each in wanted]))
    query = query.order_by(orders.c.created_at).limit(MOST_ROWS)
    return tuple(_order(row) for row in db.read(lambda tx: tx.all(query)))


def order(db: Database, tenant: str | None, order_id: str) -> OpenOrder | None:
    """The order with this id, if it is the tenant's or any will do, whatever its state; else None."""
    row = db.read(lambda tx: tx.one(_orders(tenant).where(orders.c.id == order_id)))
    return None if row is None else _order(row)


def _order(row: Row[Any]) -> OpenOrder:
    named = {name: getattr(row, name) for name in OpenOrder.__dataclass_fields__ if name in row._fields}
    return OpenOrder(**named, calls=len(row.call_keys), age=row.now - row.created_at)
