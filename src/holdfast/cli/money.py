"""Commands about money: bill, orders, orders resolve."""

import typer

from holdfast.cli import opening, queries, terminal
from holdfast.cli.exits import CommandError, Exit
from holdfast.core.states import CallState
from holdfast.store import billing
from holdfast.store import orders as store_orders
from holdfast.store.billing import OpenOrder


def bill(tenant: str | None, *, as_json: bool) -> None:
    """What was paid, by tenant and model, and what was not."""
    with opening.runtime() as runtime:
        found = queries.bill(runtime.db, tenant)
    if as_json:
        terminal.show_json(found)
        return
    console = terminal.console()
    if not found.rows:
        console.print("nothing was charged yet")
    else:
        numbers = ("orders", "tokens", "paid", "charged twice", "in doubt")
        table = terminal.table("tenant", "model", *numbers, numbers=numbers)
        for row in found.rows:
            amounts = [terminal.money(each) for each in (row.paid, row.second, row.in_doubt)]
            table.add_row(*terminal.cells(row.tenant, row.model, row.orders, row.tokens, *amounts))
        console.print(table)
        console.print()
    console.print(summary(found))


def summary(found: queries.Bill) -> str:
    """The bill in one line."""
    return (
        f"total {terminal.money(found.total)}, of which in doubt {terminal.money(found.in_doubt)} "
        f"and charged twice {terminal.money(found.second)}; saved {terminal.money(found.saved)} on "
        f"{terminal.count(found.reused_calls, 'call')} already paid for; "
        f"{terminal.count(found.refused_duplicates, 'duplicate request')} refused"
    )


def orders(state: str | None, *, as_json: bool) -> None:
    """The orders whose outcome is not settled."""
    with opening.runtime() as runtime:
        found = billing.open_orders(runtime.db, None, None if state is None else CallState(state))
    if as_json:
        terminal.show_json(found)
        return
    console = terminal.console()
    if not found:
        console.print(f"no order is {state.replace('_', ' ') if state else 'unsettled'}")
        return
    table = terminal.table("order", "state", "subject", "model", "calls", "estimate", "sent", "age", "reason")
    for each in found:
        table.add_row(
            *terminal.cells(
                each.id,
                each.state.replace("_", " "),
                each.subject or "-",
                each.model,
                each.calls,
                terminal.money(each.estimate),
                terminal.count(each.sends, "time"),
                terminal.span(each.age),
                each.reason or "-",
            )
        )
    console.print(table)
    if any(each.state == CallState.PARKED for each in found):
        console.print("\na parked order waits for you: holdfast orders resolve ID --charged or --not-charged")


def resolve(order_id: str, *, charged: bool) -> None:
    """A person has looked; the order goes on, or is void."""
    with opening.runtime() as runtime:
        found = billing.order(runtime.db, None, order_id)
        if found is None:
            raise CommandError(f"there is no order {order_id}", Exit.NOT_FOUND, code="unknown_order")
        if found.state not in {CallState.PARKED, CallState.IN_DOUBT}:
            message = f"order {order_id} is {found.state}; only one in doubt or parked can be resolved"
            raise CommandError(message, Exit.REFUSED, code="nothing_to_resolve")
        state = store_orders.resolve(runtime.db, order_id, charged=charged, actor=opening.actor())
    typer.echo(_resolved(found, state))


def _resolved(order: OpenOrder, state: CallState) -> str:
    calls = terminal.count(order.calls, "call")
    if state is CallState.VOID:
        return f"order {order.id} is void: its {calls} will be ordered anew by whoever needs them"
    if state is not CallState.IN_DOUBT:
        return f"order {order.id} is {state} by now; nothing was changed"
    charge = "which costs nothing more" if order.keyed else "which the provider may charge again"
    return f"order {order.id} will be sent again with its own key, {charge}"
