"""The bill and the unsettled orders of one tenant or of all. Amounts are nano-dollars. Read-only.

The bill adds up four sources: what was charged (`charges`), what tasks (`tasks`) and requests to the gateway
(`gateway_usage`) reused from the ledger, and refused duplicates (`journal`, priced as described in
`refusals`). Charges are kept for ever; savings of tasks are deleted with the history of their runs, if
HISTORY_RETENTION is set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Row,
    Select,
    Subquery,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    not_,
    select,
    text,
    union_all,
)

from holdfast.core.states import UNSETTLED, CallState
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import (
    calls,
    charges,
    gateway_usage,
    heads,
    journal,
    one_of,
    orders,
    runs,
    tasks,
)
from holdfast.store.protocol import refusals

DAY = 86_400
HOUR = 3600
MOST_ROWS = 1000


class By(StrEnum):
    """What the rows of a bill are grouped by."""

    MODEL = "model"
    COLLECTION = "collection"
    DOCUMENT = "document"
    RUN = "run"
    TENANT = "tenant"
    REASON = "reason"
    DAY = "day"
    # Of requests to the gateway: the API key, and the scope in which answers are reused.
    KEY = "key"
    SCOPE = "scope"


@dataclass(frozen=True, slots=True)
class BillRow:
    """Cost and savings of one group. `about` is None if there is no such group; a day is its number.

    `paid` is the first charge of each order, `second` every further one, `in_doubt` what may have been
    charged and is not cleared. `saved` was reused from the ledger; `refused` is what refused duplicates would
    have cost.
    """

    about: str | int | None
    orders: int = 0
    calls: int = 0
    tokens: int = 0
    paid: int = 0
    second: int = 0
    in_doubt: int = 0
    reused_calls: int = 0
    saved: int = 0
    duplicates: int = 0
    refused: int = 0
    # Calls without a known price; they are not included in `paid`.
    unpriced_calls: int = 0

    @property
    def unpriced(self) -> bool:
        """True if something was paid for, but at no known price."""
        return self.unpriced_calls > 0 and not self.paid


@dataclass(frozen=True, slots=True)
class Bill:
    """The rows, sorted by group, and the totals over all rows, including those on later pages.

    `total` is every charge and every doubt: a bill never shows less than was spent. `next` is the group of
    the last row if more rows follow, else None.
    """

    by: By
    lines: tuple[BillRow, ...]
    sums: BillRow
    total: int
    next: str | None


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `since` (inclusive) to `until` (exclusive), in database seconds; None: unbounded."""

    since: float | None = None
    until: float | None = None

    def over(self, at: ColumnElement[float]) -> list[ColumnElement[bool]]:
        """The conditions under which `at` is in the range."""
        low = [] if self.since is None else [at >= self.since]
        return low if self.until is None else [*low, at < self.until]


_SUMMED = [name for name in BillRow.__dataclass_fields__ if name != "about"]
_MODEL = runs.c.options["model"].as_string()
# Why something was paid for: the kind of its run, and why that was started. Charges without a run have none.
_REASON = runs.c.kind + ":" + runs.c.reason
GATEWAY_REASON = "gateway:request"
_NOTHING = cast(literal(None), Text)


def _day(at: ColumnElement[float]) -> ColumnElement[int]:
    return cast(func.floor(at / DAY), BigInteger)


def _sums(**known: Any) -> list[ColumnElement[int]]:
    """Every column of a row, unknown ones as 0: the parts of a union need the same columns."""
    nothing = cast(literal(0), BigInteger)
    return [cast(known.get(name, nothing), BigInteger).label(name) for name in _SUMMED]


def _mine(tenant: str | None, column: Any) -> list[ColumnElement[bool]]:
    return [] if tenant is None else [column == tenant]


def _charged(by: By, tenant: str | None, span: TimeRange) -> Select[Any]:
    about: dict[By, Any] = {
        By.MODEL: charges.c.model,
        # A charge for a whole tenant has the scope `tenant`, one for a collection `collection:<id>`.
        By.COLLECTION: case((charges.c.scope == "tenant", ""), else_=func.substr(charges.c.scope, 12)),
        By.DOCUMENT: runs.c.subject,
        By.RUN: charges.c.run_id,
        By.TENANT: charges.c.tenant,
        By.REASON: case((orders.c.key_id.is_not(None), GATEWAY_REASON), else_=_REASON),
        By.DAY: _day(charges.c.at),
        By.KEY: orders.c.key_id,
        By.SCOPE: orders.c.reuse_scope,
    }
    first = charges.c.sort == "paid"
    sums = _sums(
        orders=case((first, 1), else_=0),
        calls=case((first, func.json_array_length(orders.c.call_keys)), else_=0),
        tokens=charges.c.tokens,
        paid=case((first, charges.c.amount), else_=0),
        second=case((charges.c.sort == "second", charges.c.amount), else_=0),
        in_doubt=case((charges.c.sort == "in_doubt", charges.c.amount), else_=0),
        unpriced_calls=case(
            (and_(first, charges.c.prices == "unpriced"), func.json_array_length(orders.c.call_keys)), else_=0
        ),
    )
    source = charges.join(orders, orders.c.id == charges.c.order_id)
    if by in {By.DOCUMENT, By.REASON}:
        source = source.outerjoin(runs, runs.c.id == charges.c.run_id)
    query = select(about[by].label("about"), *sums).select_from(source)
    return query.where(not_(charges.c.cleared), *_mine(tenant, charges.c.tenant), *span.over(charges.c.at))


def _reused(by: By, tenant: str | None, span: TimeRange) -> Select[Any]:
    about: dict[By, Any] = {
        By.MODEL: _MODEL,
        By.COLLECTION: heads.c.collection,
        By.DOCUMENT: heads.c.subject,
        By.RUN: tasks.c.run_id,
        By.TENANT: tasks.c.tenant,
        By.REASON: _REASON,
        By.DAY: _day(tasks.c.signed_at),
        By.KEY: _NOTHING,
        By.SCOPE: _NOTHING,
    }
    source = tasks.join(runs, runs.c.id == tasks.c.run_id).join(heads, heads.c.id == tasks.c.head_id)
    sums = _sums(reused_calls=tasks.c.reused_calls, saved=tasks.c.saved)
    query = select(about[by].label("about"), *sums).select_from(source)
    return query.where(
        tasks.c.reused_calls > 0, *_mine(tenant, tasks.c.tenant), *span.over(tasks.c.signed_at)
    )


def _refused(by: By, tenant: str | None, span: TimeRange) -> Select[Any]:
    about: dict[By, Any] = {
        By.MODEL: _MODEL,
        By.COLLECTION: heads.c.collection,
        By.DOCUMENT: heads.c.subject,
        By.RUN: journal.c.run_id,
        By.TENANT: journal.c.tenant,
        By.REASON: _REASON,
        By.DAY: _day(journal.c.at),
        By.KEY: _NOTHING,
        By.SCOPE: _NOTHING,
    }
    conditions = [refusals.IS_DUPLICATE, *_mine(tenant, journal.c.tenant), *span.over(journal.c.at)]
    # Each run is priced once, however often it was requested.
    hit = select(journal.c.run_id).where(*conditions).distinct().subquery("hit")
    priced = select(hit.c.run_id, refusals.price_of(hit.c.run_id).label("price")).subquery("priced")
    worth = case((priced.c.price > refusals.NOTED, priced.c.price), else_=refusals.NOTED)
    source = (
        journal.join(priced, priced.c.run_id == journal.c.run_id)
        .join(heads, heads.c.id == journal.c.head_id)
        .outerjoin(runs, runs.c.id == journal.c.run_id)
    )
    sums = _sums(duplicates=literal(1), refused=worth)
    return select(about[by].label("about"), *sums).select_from(source).where(*conditions)


def _reused_by_requests(by: By, tenant: str | None, span: TimeRange) -> Select[Any]:
    """What requests to the gateway reused, by the hour: an hour belongs to a range if it begins in it."""
    at = cast(gateway_usage.c.hour * HOUR, Double)
    about: dict[By, Any] = {
        By.MODEL: gateway_usage.c.model,
        By.TENANT: gateway_usage.c.tenant,
        By.REASON: cast(literal(GATEWAY_REASON), Text),
        By.DAY: _day(at),
        By.KEY: gateway_usage.c.key_id,
        By.SCOPE: gateway_usage.c.scope,
    }
    sums = _sums(reused_calls=gateway_usage.c.reused_calls, saved=gateway_usage.c.saved)
    query = select(about.get(by, _NOTHING).label("about"), *sums)
    conditions = [gateway_usage.c.reused_calls > 0, *_mine(tenant, gateway_usage.c.tenant), *span.over(at)]
    return query.where(*conditions)


def _all(by: By, tenant: str | None, span: TimeRange) -> Subquery:
    parts = [part(by, tenant, span) for part in (_charged, _reused, _reused_by_requests, _refused)]
    return union_all(*parts).subquery("noted")


def bill(
    db: Database,
    tenant: str | None,
    by: By = By.MODEL,
    span: TimeRange | None = None,
    *,
    after: str | None = None,
    limit: int = MOST_ROWS,
) -> Bill:
    """The bill of a tenant or of all, grouped by `by`, with the rows after `after`; one snapshot."""
    noted = _all(by, tenant, span or TimeRange())
    summed = [func.coalesce(func.sum(noted.c[name]), 0).label(name) for name in _SUMMED]
    # A missing key is the empty text, so that rows have a total order to page by.
    about = noted.c.about if by is By.DAY else func.coalesce(cast(noted.c.about, Text), "")
    lines = select(about.label("about"), *summed).group_by(about).order_by(about).limit(limit + 1)
    if after is not None:
        lines = lines.where(about > (int(after) if by is By.DAY else after))
    sums = select(literal(None).label("about"), *summed)

    def body(tx: Tx) -> Bill:
        listed = [_line(row) for row in tx.all(lines)]
        follows = str(listed[limit - 1].about or "") if len(listed) > limit else None
        whole = _line(tx.execute(sums).one())
        total = whole.paid + whole.second + whole.in_doubt
        return Bill(by, tuple(listed[:limit]), whole, total, follows)

    return db.read(body)


def _line(row: Row[Any]) -> BillRow:
    # PostgreSQL sums 64-bit numbers to a numeric.
    return BillRow(row.about if row.about != "" else None, *(int(getattr(row, name)) for name in _SUMMED))


SETTLED = select(calls.c.key).where(
    calls.c.tenant == bindparam("tenant"),
    key_in(calls.c.key, bindparam("keys", type_=KeyList())),
    calls.c.state == rows.literal(CallState.SETTLED),
)


def settled(db: Database, tenant: str, keys: Sequence[str]) -> frozenset[str]:
    """The keys among these that the tenant has paid for; their results are not read."""
    calls_settled = db.read(lambda tx: tx.all(SETTLED, {"tenant": tenant, "keys": keys}))
    return frozenset(row.key for row in calls_settled)


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """An order as its owner sees it. `age`: seconds since it was intended."""

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
    unpriced: bool = False


def _orders(tenant: str | None) -> Select[Any]:
    query = select(orders, runs.c.subject, now().label("now")).outerjoin(runs, runs.c.id == orders.c.run_id)
    return query if tenant is None else query.where(orders.c.tenant == tenant)


def open_orders(db: Database, tenant: str | None, state: CallState | None = None) -> tuple[OpenOrder, ...]:
    """The unsettled orders of a tenant or of all, oldest first; only those in `state`, if given."""
    # Written as in the index, as SQLite does not see that one state is among several.
    query = _orders(tenant).where(text(f"holdfast_orders.{one_of('state', UNSETTLED)}"))
    if state is not None:
        query = query.where(orders.c.state == rows.literal(state))
    query = query.order_by(orders.c.created_at).limit(MOST_ROWS)
    return tuple(_order(row) for row in db.read(lambda tx: tx.all(query)))


def order(db: Database, tenant: str | None, order_id: str) -> OpenOrder | None:
    """The order with this id in any state, if it belongs to the tenant (None: any tenant); else None."""
    row = db.read(lambda tx: tx.one(_orders(tenant).where(orders.c.id == order_id)))
    return None if row is None else _order(row)


def _order(row: Row[Any]) -> OpenOrder:
    named = {name: getattr(row, name) for name in OpenOrder.__dataclass_fields__ if name in row._fields}
    return OpenOrder(**named, calls=len(row.call_keys), age=row.now - row.created_at)
