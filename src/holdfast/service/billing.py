"""The bill and the budgets, for the API, the web UI and the CLI.

Limits are in US dollars and apply for all time, per month or per day, to a tenant as a whole (`tenant`) or
to one of its collections (`collection:<id>`); an order must fit into all that apply.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeAlias

from holdfast.core import states
from holdfast.core.errors import BadRequestError, ConflictError, NotFoundError
from holdfast.core.periods import Period
from holdfast.core.records import TENANT
from holdfast.core.states import CallState, Verb
from holdfast.engine.engine import Engine
from holdfast.ledger import prices
from holdfast.store.money import billing, budgets, orders
from holdfast.store.money.billing import Bill, By, OpenOrder, TimeRange
from holdfast.store.money.budgets import UNCHANGED, Budget, KeepLimit, Limit

MOST_DOLLARS = 1_000_000_000
Dollars: TypeAlias = Decimal | float | KeepLimit | None


@dataclass(frozen=True, slots=True)
class Change:
    """A budget as it was set, None when it was removed, and how many waiting tasks go on because of it."""

    budget: Budget | None
    resumed: int


# A day's number, as the last line of a page by day has it; no day that anybody meets has more digits.
DAY = re.compile(r"-?[0-9]{1,9}")


class Billing:
    """What was spent and saved, and what may be."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = engine.db

    def bill(
        self,
        tenant: str | None,
        by: By = By.MODEL,
        span: TimeRange | None = None,
        *,
        after: str | None = None,
    ) -> Bill:
        """The bill of a tenant, or of all; BadRequestError for a span that ends before it begins."""
        if span is not None and None not in {span.since, span.until} and span.since >= span.until:  # type: ignore[operator]
            raise BadRequestError("`from` must be before `to`", code="bad_span")
        if after is not None and by is By.DAY and not DAY.fullmatch(after):
            message = "this cursor is not valid; use `next` from the previous page"
            raise BadRequestError(message, code="bad_cursor")
        return billing.bill(self._db, tenant, by, span, after=after)

    def budgets(self, tenant: str | None) -> Sequence[Budget]:
        """The budgets of a tenant, or of all."""
        return budgets.every(self._db) if tenant is None else budgets.of_tenant(self._db, tenant)

    def open_orders(self, tenant: str | None, state: CallState | None = None) -> tuple[OpenOrder, ...]:
        """The orders of a tenant, or of all, that are not settled, the oldest first."""
        return billing.open_orders(self._db, tenant, state)

    def order(self, tenant: str | None, order_id: str) -> OpenOrder:
        """An order that is not settled; NotFoundError when there is none."""
        order = billing.order(self._db, tenant, order_id)
        if order is None:
            raise NotFoundError(f"there is no order {order_id!r}", code="unknown_order")
        return order

    def resolve(self, order: OpenOrder, *, charged: bool, actor: str) -> CallState:
        """A person has said whether the order was charged: it is resent, or void. Else ConflictError."""
        if not states.may("call", CallState(order.state), Verb.RESOLVE):
            message = f"order {order.id} is {order.state}; only one in doubt or parked can be resolved"
            raise ConflictError(message, code="nothing_to_resolve")
        return orders.resolve(self._db, order.id, charged=charged, actor=actor)

    def limited(self, tenant: str, scope: str) -> bool:
        """True when the scope has a budget, of whatever period."""
        return any(each.scope == scope for each in self.budgets(tenant))

    def set_budget(
        self,
        tenant: str,
        scope: str,
        *,
        hard: Dollars = UNCHANGED,
        soft: Dollars = UNCHANGED,
        period: Period = Period.TOTAL,
        actor: str = "",
    ) -> Change:
        """The scope has these limits; None removes one, and a limit that is not named stays as it is.

        Work that waited for the budget continues, if there is some.
        """
        checked_scope(scope)
        if hard is UNCHANGED and soft is UNCHANGED:
            message = "name the limit to set or remove: hard or soft"
            raise BadRequestError(message, code="bad_budget")
        if not TENANT.fullmatch(tenant):
            message = f"tenant {tenant!r} is not a valid name; use letters, digits, . - _, at most 64"
            raise BadRequestError(message, code="bad_tenant")
        limits: dict[str, Limit] = {"hard": _nano(hard), "soft": _nano(soft)}
        budget = budgets.set_budget(self._db, tenant, scope, **limits, period=period, actor=actor)
        if budget is not None and budget.over_hard:
            return Change(budget, 0)
        woken = budgets.resume(self._db, tenant, scope)
        self._engine.wake(woken)
        return Change(budget, sum(woken.values()))


def refusal(reason: str) -> tuple[str, str]:
    """The code and the sentence for a request that was refused for its price."""
    refusal_type, _, scope = reason.partition(":")
    if (refusal_type, scope) == ("unpriced", "max_cost"):
        message = (
            "the request has a `max_cost`, and no price is known for the model; set its price or "
            "`free = true` in [providers.NAME], or omit `max_cost`"
        )
        return "unpriced", message
    if refusal_type == "unpriced":
        message = (
            f"the budget of the {scope} has a hard limit, and no price is known for the model; set its price "
            "or `free = true` in [providers.NAME], or remove the limit"
        )
        return "unpriced", message
    return "over_budget", f"the budget of the {scope.rpartition(':')[2]} is used up; raise it, then retry"


def checked_scope(scope: str) -> str | None:
    """The collection that a scope names, None for the tenant as a whole; BadRequestError for neither."""
    if scope == budgets.TENANT:
        return None
    scope_type, _, collection = scope.partition(":")
    if scope_type != "collection" or not TENANT.fullmatch(collection):
        message = f"scope {scope!r:.80} is neither `tenant` nor `collection:ID`"
        raise BadRequestError(message, code="bad_budget")
    return collection


def _nano(amount: Dollars) -> Limit:
    if amount is None or isinstance(amount, KeepLimit):
        return amount
    if not 0 <= amount <= MOST_DOLLARS:  # also false for what is no number
        message = f"a limit must be from 0 to {MOST_DOLLARS:,} dollars"
        raise BadRequestError(message, code="bad_budget")
    return round(Decimal(str(amount)) * prices.NANO)


def told_about(by: By, about: str | int | None) -> str | None:
    """What a line is about, as people know it: a day is its date, a document its id."""
    if about is None:
        return None
    if by is By.DAY:
        return datetime.fromtimestamp(int(about) * billing.DAY, UTC).date().isoformat()
    return str(about).removeprefix("document:") if by is By.DOCUMENT else str(about)
