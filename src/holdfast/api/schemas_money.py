"""What money looks like on the wire, in US dollars."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from holdfast.api.schemas_documents import Shape, dollars, moment
from holdfast.core.periods import Period
from holdfast.service import records
from holdfast.service.billing import told_about
from holdfast.service.records import By


class BillSums(Shape):
    """What was paid and saved.

    `paid` is the first charge of each order, `charged_twice` every further one, `in_doubt` what may have been
    charged; `saved` was known from before, `saved_by_refusals` is what refused duplicates would have cost.
    For `unpriced_calls` no price is known: no sum has anything of them, and `paid` is null where it has
    nothing else.
    """

    orders: int
    calls: int
    tokens: int
    paid: float | None
    unpriced_calls: int
    charged_twice: float
    in_doubt: float
    reused_calls: int
    saved: float
    refused_duplicates: int
    saved_by_refusals: float


class BillLine(BillSums):
    """The sums of one thing; `about` is null for what belongs to none."""

    about: str | None


class BudgetResponse(Shape):
    """A limit on spending in a `period`; `reserved` is what orders under way may yet cost.

    At `hard` new work is refused and running work waits; at `soft` the journal says `warn`. null is no limit.
    `resets_at` is when the next day or month begins (UTC), with nothing spent; null for a total.
    """

    scope: str
    period: Period
    hard: float | None
    soft: float | None
    spent: float
    reserved: float
    over_soft: bool
    over_hard: bool
    resets_at: datetime | None

    @classmethod
    def of(cls, budget: records.Budget) -> "BudgetResponse":
        """The budget as it is shown."""
        return cls(
            scope=budget.scope,
            period=budget.period,
            hard=None if budget.hard_limit is None else dollars(budget.hard_limit),
            soft=None if budget.soft_limit is None else dollars(budget.soft_limit),
            spent=dollars(budget.spent),
            reserved=dollars(budget.reserved),
            over_soft=budget.over_soft,
            over_hard=budget.over_hard,
            resets_at=moment(budget.resets_at),
        )


class BillResponse(BillSums):
    """The bill: its lines, and the sums over all of them, also over those of other pages.

    `total` is paid, charged twice and in doubt together: it never promises less than was spent.
    """

    by: By
    lines: list[BillLine]
    next: str | None
    total: float
    budgets: list[BudgetResponse]

    @classmethod
    def of(cls, bill: records.Bill, limits: list[BudgetResponse]) -> "BillResponse":
        """The bill as it is shown."""
        lines = [BillLine(about=told_about(bill.by, each.about), **_sums(each)) for each in bill.lines]
        return cls(
            by=bill.by,
            lines=lines,
            next=bill.next,
            total=dollars(bill.total),
            budgets=limits,
            **_sums(bill.sums),
        )


def _sums(line: records.BillRow) -> dict[str, Any]:
    return {
        "orders": line.orders,
        "calls": line.calls,
        "tokens": line.tokens,
        "paid": None if line.unpriced else dollars(line.paid),
        "unpriced_calls": line.unpriced_calls,
        "charged_twice": dollars(line.second),
        "in_doubt": dollars(line.in_doubt),
        "reused_calls": line.reused_calls,
        "saved": dollars(line.saved),
        "refused_duplicates": line.duplicates,
        "saved_by_refusals": dollars(line.refused),
    }


class Budgets(Shape):
    """The budgets of the tenant."""

    budgets: list[BudgetResponse]


Dollars = Annotated[float, Field(ge=0, le=1_000_000_000, allow_inf_nan=False)]


class BudgetChange(Shape):
    """Limits of a scope: `tenant`, or `collection:ID`. One that is left out stays as it is; null removes it.

    A scope may have a budget of each period. Without any limit there is no budget any more.
    """

    scope: Annotated[str, Field(max_length=100)]
    period: Period = Period.TOTAL
    hard: Dollars | None = None
    soft: Dollars | None = None

    def limits(self) -> dict[str, float | None]:
        """The limits that the request names."""
        return {name: getattr(self, name) for name in ("hard", "soft") if name in self.model_fields_set}


class ChangedBudget(Shape):
    """The budget as it is now, null when it was removed, and how many waiting tasks go on because of it."""

    budget: BudgetResponse | None
    resumed: int


class OrderResponse(Shape):
    """An order that is not settled."""

    id: str
    state: str
    provider: str
    endpoint: str
    model: str
    calls: int
    estimate: float
    keyed: bool
    sends: int
    doubts: int
    reason: str | None
    run_id: str | None
    subject: str | None
    created_at: datetime | None

    @classmethod
    def of(cls, order: records.OpenOrder) -> "OrderResponse":
        """The order as it is shown."""
        apart = {"estimate", "created_at"}
        fields = {name: getattr(order, name) for name in cls.model_fields if name not in apart}
        return cls(**fields, estimate=dollars(order.estimate), created_at=moment(order.created_at))


class Orders(Shape):
    """The orders that are not settled, the oldest first."""

    orders: list[OrderResponse]


class Resolution(Shape):
    """What a person has found out; also `charged` when it is not known."""

    charged: bool
