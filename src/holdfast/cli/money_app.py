"""The commands about money and their options. Bodies import late, so that `holdfast --help` is quick."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import AnyTenant, Json, Tenant
from holdfast.core.periods import Period

orders_app = typer.Typer(
    help="List unsettled orders; `resolve` decides about one.", invoke_without_command=True
)
budget_app = typer.Typer(help="List budgets; `set` changes one.", invoke_without_command=True)
DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]


class OrderState(StrEnum):
    """The states of an order that a person may want to see."""

    IN_DOUBT = "in_doubt"
    PARKED = "parked"


class BillBy(StrEnum):
    """What the lines of a bill are about."""

    MODEL = "model"
    COLLECTION = "collection"
    DOCUMENT = "document"
    RUN = "run"
    TENANT = "tenant"
    REASON = "reason"
    DAY = "day"


def bill(
    tenant: AnyTenant = None,
    by: Annotated[BillBy, typer.Option("--by", help="What each line is about.")] = BillBy.MODEL,
    since: Annotated[
        datetime | None, typer.Option("--from", formats=DATES, help="From this date on, in UTC.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--to", formats=DATES, help="Before this date, in UTC.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what was paid, is in doubt, and was saved: by reuse, and by refusing duplicates."""
    from holdfast.cli import money  # noqa: PLC0415

    money.bill(tenant, by.value, since, until, as_json=as_json)


def estimate(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH...", help="Files, and folders with all below.")
    ] = None,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Where they belong; or what is to change.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="An option, as it would be.")
    ] = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Say what indexing would cost, before it is asked for.

    Of files; or of a collection, if it had other options. Nothing is paid, and nothing is changed.
    """
    from holdfast.cli import money  # noqa: PLC0415

    money.estimate(paths or [], collection=collection, tenant=tenant, options=option or [], as_json=as_json)


@budget_app.callback()
def budget(context: typer.Context, tenant: AnyTenant = None, as_json: Json = False) -> None:
    """List the budgets; `set` changes one."""
    if context.invoked_subcommand is None:
        from holdfast.cli import money  # noqa: PLC0415

        money.budgets(tenant, as_json=as_json)


@budget_app.command("set")
def set_budget(
    hard: Annotated[
        float | None, typer.Option("--hard", min=0, help="Dollars at which nothing more is paid.")
    ] = None,
    soft: Annotated[
        float | None, typer.Option("--soft", min=0, help="Dollars at which the journal warns.")
    ] = None,
    no_hard: Annotated[bool, typer.Option("--no-hard", help="Remove the hard limit.")] = False,
    no_soft: Annotated[bool, typer.Option("--no-soft", help="Remove the soft limit.")] = False,
    period: Annotated[
        Period, typer.Option("--period", help="What the limits are for; days and months are UTC.")
    ] = Period.TOTAL,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Of this collection alone.")
    ] = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Limit what a tenant or a collection may spend, in all, each month or each day.

    A limit that is not named stays as it is. Without any limit left there is no budget any more. Work that
    waited for money goes on at once.
    """
    from holdfast.cli import money  # noqa: PLC0415

    limits = {
        "hard": money.limit(hard, remove=no_hard, name="hard"),
        "soft": money.limit(soft, remove=no_soft, name="soft"),
    }
    money.set_budget(tenant, collection, **limits, period=period, as_json=as_json)


@orders_app.callback()
def orders(
    context: typer.Context,
    state: Annotated[OrderState | None, typer.Option("--state", help="Only orders in this state.")] = None,
    as_json: Json = False,
) -> None:
    """List the orders that are not settled, the oldest at the top; `resolve` decides about one."""
    if context.invoked_subcommand is None:
        from holdfast.cli import money  # noqa: PLC0415

        money.orders(state.value if state is not None else None, as_json=as_json)


@orders_app.command()
def resolve(
    order_id: Annotated[str, typer.Argument(metavar="ID", help="The order, as `holdfast orders` names it.")],
    charged: Annotated[
        bool,
        typer.Option(
            "--charged/--not-charged",
            help="Charged, or not known: it is sent again under its own key. Not charged: it is void.",
        ),
    ],
) -> None:
    """Say whether an order that is in doubt or parked was charged, so that work can go on."""
    from holdfast.cli import money  # noqa: PLC0415

    money.resolve(order_id, charged=charged)


def prices(as_json: Json = False) -> None:
    """List the prices that are known, in US dollars for a million tokens, and where each comes from."""
    from holdfast.cli import money  # noqa: PLC0415

    money.prices(as_json=as_json)


def register(app: typer.Typer) -> None:
    """Every command about money is a command of `app`."""
    app.command()(bill)
    app.command()(estimate)
    app.command()(prices)
    app.add_typer(budget_app, name="budget")
    app.add_typer(orders_app, name="orders")
