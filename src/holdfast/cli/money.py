"""Commands about money: bill, estimate, budget, orders, orders resolve."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from holdfast import bootstrap
from holdfast.cli import context, terminal
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.core.periods import Period
from holdfast.core.states import CallState
from holdfast.ledger.prices import FREE, NANO, Price
from holdfast.service import folder, formatting
from holdfast.service.billing import told_about
from holdfast.service.estimates import Estimate
from holdfast.service.records import UNCHANGED, Bill, Budget, By, KeepLimit, OpenOrder, TimeRange


def bill(
    tenant: str | None, by: str, since: datetime | None, until: datetime | None, *, as_json: bool
) -> None:
    """What was paid, line by line, and what was not."""
    grouping = By(by)
    span = TimeRange(*(None if at is None else at.replace(tzinfo=UTC).timestamp() for at in (since, until)))
    with context.services() as services:
        money = services.billing
        page = money.bill(tenant, grouping, span)
        lines = list(page.lines)
        while page.next is not None:
            page = money.bill(tenant, grouping, span, after=page.next)
            lines += page.lines
    if as_json:
        rows = [{**terminal.plain(each), "about": told_about(grouping, each.about)} for each in lines]
        terminal.show_json({"by": by, "lines": rows, "sums": page.sums, "total": page.total})
        return
    console = terminal.console()
    if not lines:
        console.print("nothing has been charged yet")
    else:
        numbers = ("orders", "calls", "tokens", "paid", "charged twice", "in doubt", "reused", "rejected")
        table = terminal.table(by, *numbers, numbers=numbers)
        for each in lines:
            amounts = (each.second, each.in_doubt, each.saved, each.refused)
            counts = (told_about(grouping, each.about) or "-", each.orders, each.calls, each.tokens)
            paid = formatting.paid(each.paid, each.unpriced_calls)
            table.add_row(*terminal.cells(*counts, paid, *(formatting.money(amount) for amount in amounts)))
        console.print(table)
        console.print()
    console.print(summary(page))


def summary(bill: Bill) -> str:
    """The bill in one line."""
    sums = bill.sums
    total = formatting.paid(bill.total, sums.unpriced_calls)
    return (
        f"total {total}, of which in doubt {formatting.money(sums.in_doubt)} "
        f"and charged twice {formatting.money(sums.second)}; saved {formatting.money(sums.saved)} on "
        f"{formatting.count(sums.reused_calls, 'call')} already paid for, and "
        f"{formatting.money(sums.refused)} on {formatting.count(sums.duplicates, 'rejected duplicate')}"
    )


def budgets(tenant: str | None, *, as_json: bool) -> None:
    """The budgets there are."""
    with context.services() as services:
        rows = services.billing.budgets(tenant)
    if as_json:
        terminal.show_json(rows)
        return
    if not rows:
        typer.echo("no budgets; create one with: holdfast budget set --hard DOLLARS")
    for each in rows:
        typer.echo(f"{each.tenant}: {budget_line(each)}")


def budget_line(budget: Budget) -> str:
    """A budget in one line."""
    limits = [
        f"{name} limit {formatting.money(amount)}"
        for name, amount in (("hard", budget.hard_limit), ("soft", budget.soft_limit))
        if amount is not None
    ]
    over = ", used up" if budget.over_hard else ", over its soft limit" if budget.over_soft else ""
    spent, reserved = formatting.money(budget.spent), formatting.money(budget.reserved)
    return f"{budget.named}: spent {spent}, reserved {reserved}, {', '.join(limits)}{over}"


def limit(amount: float | None, *, remove: bool, name: str) -> float | KeepLimit | None:
    """What a pair of options like `--hard` and `--no-hard` says about a limit."""
    if remove and amount is not None:
        message = f"--{name} sets a limit and --no-{name} removes it; use one of them"
        raise CommandError(message, Exit.USAGE, code="bad_budget")
    return None if remove else UNCHANGED if amount is None else amount


def set_budget(
    tenant: str,
    collection: str | None,
    *,
    hard: float | KeepLimit | None = UNCHANGED,
    soft: float | KeepLimit | None = UNCHANGED,
    period: Period = Period.TOTAL,
    as_json: bool,
) -> None:
    """A tenant or a collection has these limits from now on; None removes one."""
    scope = "tenant" if collection is None else f"collection:{collection}"
    with context.services() as services:
        changed = services.billing.set_budget(
            tenant, scope, hard=hard, soft=soft, period=period, actor=context.actor()
        )
    if as_json:
        terminal.show_json(changed)
        return
    said = f"{scope}: budget removed" if changed.budget is None else budget_line(changed.budget)
    typer.echo(f"{tenant}: {said}")
    if changed.resumed:
        typer.echo(f"{formatting.count(changed.resumed, 'waiting task')} can continue")


def estimate(
    paths: Sequence[Path], *, collection: str | None, tenant: str, options: Sequence[str], as_json: bool
) -> None:
    """What indexing files, or a collection with changed options, would cost."""
    chosen = dict(_option(each) for each in options)
    refused: dict[str, str] = {}
    with context.services(None) as services:
        estimator = services.estimates()
        if paths:
            files = [each.path for each in folder.files(paths)]
            result = estimator.of_files(
                tenant,
                files,
                collection=collection,
                options=chosen,
                refuse=lambda path, why: refused.update({str(path): why}),
            )
        elif collection is not None:
            result = estimator.of_collection(tenant, collection, options=chosen)
        else:
            message = "nothing to estimate: name files, or --collection with a changed --option"
            raise CommandError(message, Exit.USAGE, code="bad_request")
    if as_json:
        terminal.show_json({**terminal.plain(result), "refused": refused})
        return
    typer.echo(_estimated(result))
    for name, why in refused.items():
        terminal.say(f"{name}: {why}", err=True)


def _option(argument: str) -> tuple[str, Any]:
    name, equals, value = argument.partition("=")
    if not equals:
        message = f"--option {argument!r} should look like chunk_size=128; an empty value means the default"
        raise CommandError(message, Exit.USAGE, code="bad_option")
    if not value:
        return name, None
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _estimated(estimate: Estimate) -> str:
    forecast = estimate.forecast
    about = "" if estimate.exact else "about "
    unknown = f"; {estimate.unknown} not read yet and not included" if estimate.unknown else ""
    price = formatting.paid(forecast.cost, forecast.unpriced_calls)
    calls = formatting.count(forecast.calls, "call")
    if estimate.calls_between is not None:
        calls += f" ({estimate.calls_between[0]} to {estimate.calls_between[1]})"
    return (
        f"{about}{price} for {formatting.count(estimate.documents, 'document')}: "
        f"{forecast.tokens} tokens in {calls} to {estimate.model}; "
        f"{formatting.count(forecast.known_calls, 'call')} reused{unknown} "
        f"(based on {estimate.estimated_from}, prices of {estimate.prices})"
    )


def prices(*, as_json: bool) -> None:
    """The known prices; those of the settings come before the shipped ones of the same model."""
    settings = context.loaded()
    table = bootstrap.prices_of(settings)
    rows: list[dict[str, Any]] = []
    for name, provider in sorted(settings.providers.items()):
        own = table.providers.get(provider.named)
        listed = {} if own is None else {"*": FREE} if own.free else own.models
        rows += [_priced(model, name, price, "settings") for model, price in sorted(listed.items())]
    rows += [_priced(model, None, price, "shipped") for model, price in sorted(table.models.items())]
    if as_json:
        terminal.show_json({"version": table.version, "prices": rows})
        return
    console = terminal.console()
    numbers = ("input", "output", "unit")
    shown = terminal.table("model", "provider", *numbers, "from", numbers=numbers)
    for row in rows:
        amounts = (*(f"${row[name]:g}" for name in numbers[:2]), f"${row['unit']:g}" if row["unit"] else "")
        shown.add_row(*terminal.cells(row["model"], row["provider"] or "any", *amounts, row["source"]))
    console.print(shown)
    units = "US dollars per million tokens, or per unit (a search, a page)"
    console.print(f"\n{units}, version {table.version}; any other model is unpriced")


def _priced(model: str, provider: str | None, price: Price, source: str) -> dict[str, Any]:
    amounts = {"input": price.input / NANO, "output": price.output / NANO, "unit": price.unit / NANO}
    return {"model": model, "provider": provider, **amounts, "source": source}


def orders(state: str | None, *, as_json: bool) -> None:
    """The orders whose outcome is not settled."""
    with context.services() as services:
        open_orders = services.billing.open_orders(None, None if state is None else CallState(state))
    if as_json:
        terminal.show_json(open_orders)
        return
    console = terminal.console()
    if not open_orders:
        console.print(f"no order is {state.replace('_', ' ') if state else 'unsettled'}")
        return
    table = terminal.table("order", "state", "subject", "model", "calls", "estimate", "sent", "age", "reason")
    for each in open_orders:
        table.add_row(
            *terminal.cells(
                each.id,
                each.state.replace("_", " "),
                each.subject or "-",
                each.model,
                each.calls,
                formatting.money(each.estimate),
                formatting.count(each.sends, "time"),
                formatting.span(each.age),
                each.reason or "-",
            )
        )
    console.print(table)
    if any(each.state == CallState.PARKED for each in open_orders):
        console.print("\nparked orders wait for you: holdfast orders resolve ID --charged or --not-charged")


def resolve(order_id: str, *, charged: bool) -> None:
    """A person has looked; the order goes on, or is void."""
    with context.services() as services:
        order = services.billing.order(None, order_id)
        state = services.billing.resolve(order, charged=charged, actor=context.actor())
    typer.echo(_resolved(order, state))


def _resolved(order: OpenOrder, state: CallState) -> str:
    calls = formatting.count(order.calls, "call")
    if state is CallState.VOID:
        return f"order {order.id} is void: its {calls} will be sent again when they are needed"
    if state is not CallState.IN_DOUBT:
        return f"order {order.id} is already {state}; nothing was changed"
    charge = "at no extra cost" if order.keyed else "and the provider may charge for it again"
    return f"order {order.id} will be resent with its key, {charge}"
