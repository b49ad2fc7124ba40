"""The bill: paid and saved, over time and by category, and orders that need a decision."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from holdfast.core.states import CallState
from holdfast.engine.kinds import Registry
from holdfast.service.records import DAY, BillRow, By, TimeRange
from holdfast.web import rendering
from holdfast.web.page_access import Services

DAYS = 30
REASONS = {
    "index:never_done": "First indexing",
    "index:changed": "Content or options changed",
    "index:forced": "Indexed again on request",
    "index:after_failed": "Retry after a failure",
    "index:after_cancelled": "Retry after a cancellation",
    "index:stuck_queued": "Taken over",
    "index:stuck_running": "Taken over",
    "action:follow_up": "Collection actions",
    "gateway:request": "Requests to the gateway",
}
WIDTH, HEIGHT = 720, 140

router = rendering.router()


@dataclass(frozen=True, slots=True)
class Bar:
    """A day of the chart: where it stands, and how high what was paid and saved reaches. In nano-dollars."""

    date: str
    x: float
    width: float
    paid: int
    saved: int
    paid_height: float
    saved_height: float


def bars(lines: tuple[BillRow, ...], today: int) -> list[Bar]:
    """The days up to `today`, the number of a day; those on which nothing happened too."""
    by_day = {int(each.about): each for each in lines if each.about is not None}
    days = range(today - DAYS + 1, today + 1)
    known = [by_day.get(day, BillRow(day)) for day in days]
    amounts = [(each.paid + each.second + each.in_doubt, each.saved + each.refused) for each in known]
    most = max(1, *(amount for pair in amounts for amount in pair))
    step = WIDTH / DAYS
    return [
        Bar(
            datetime.fromtimestamp(day * DAY, UTC).strftime("%-d %b"),
            round(column * step, 2),
            round((step - 6) / 2, 2),
            paid,
            saved,
            round(HEIGHT * paid / most, 2),
            round(HEIGHT * saved / most, 2),
        )
        for column, (day, (paid, saved)) in enumerate(zip(days, amounts, strict=True))
    ]


def reason(about: str | int | None, registry: Registry) -> str:
    """Why something was paid for, as people say it."""
    if about is None:
        return "Searches, and work whose history was pruned"
    text = str(about)
    kind, _, why = text.partition(":")
    spec = known.job if (known := registry.get(kind)) is not None else None
    return REASONS.get(text) or (spec.title if spec is not None else f"{kind}: {why.replace('_', ' ')}")


@router.get("/bill")
def bill(request: Request, services: Services, who: rendering.Who) -> Response:
    """Show the bill of the tenant."""
    money = services.billing
    today = int(services.operations.moment() // DAY)
    daily = money.bill(who.tenant, By.DAY, TimeRange((today - DAYS + 1) * DAY, None))
    open_ones = services.billing.open_orders(who.tenant)
    chart = bars(daily.lines, today)
    titles: dict[Any, str] = {each.id: each.title for each in services.collections.all(who.tenant)}
    return rendering.page(
        request,
        who,
        "bill.html",
        "Bill",
        bill=money.bill(who.tenant, By.MODEL),
        by_collection=money.bill(who.tenant, By.COLLECTION),
        by_reason=money.bill(who.tenant, By.REASON),
        by_key=money.bill(who.tenant, By.KEY),
        by_scope=money.bill(who.tenant, By.SCOPE),
        key_named=lambda about: about or "No key, or no request to the gateway",
        scope_named=lambda about: about or "No scope",
        reason=lambda about: reason(about, services.runtime.engine.registry),
        titles=titles,
        collection_named=lambda about: titles.get(about, about) if about else "No collection",
        model_named=lambda about: about or "No model",
        bars=chart,
        most=max((max(each.paid, each.saved) for each in chart), default=0),
        width=WIDTH,
        height=HEIGHT,
        orders=[each for each in open_ones if each.state in {CallState.IN_DOUBT, CallState.PARKED}],
        budgets=money.budgets(who.tenant),
        collections=services.collections.all(who.tenant),
    )
