"""The commands about money and their options. Bodies import late, so that `holdfast --help` is quick."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import AnyTenant, Json, Tenant
from holdfast.core.periods import Period

orders_app = typer.Typer(help="List unsettled orders; `resolve` settles one.", invoke_without_command=True)
budget_app = typer.Typer(help="List budgets; `set` changes one.", invoke_without_command=True)
DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]


class OrderState(StrEnum):
    """Order states to filter by."""

    IN_DOUBT = "in_doubt"
    PARKED = "parked"


class BillBy(StrEnum):
    """How to group the lines of a bill."""

    MODEL = "model"
    COLLECTION = "collection"
    DOCUMENT = "document"
    RUN = "run"
    TENANT = "tenant"
    REASON = "reason"
    DAY = "day"


def bill(
    tenant: AnyTenant = None,
    by: Annotated[BillBy, typer.Option("--by", help="Group by.")] = BillBy.MODEL,
    since: Annotated[
        datetime | None, typer.Option("--from", formats=DATES, help="From this date on (UTC).")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--to", formats=DATES, help="Before this date (UTC).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what was paid, what is in doubt, and what reuse and rejected duplicates saved."""
    from holdfast.cli import money  # noqa: PLC0415

    money.bill(tenant, by.value, since, until, as_json=as_json)


def estimate(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH...", help="Files and folders (recursive).")
    ] = None,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Target collection, or the one to change.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An indexing option to change. Repeatable."),
    ] = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Estimate the cost of indexing.

    Of files, or of a collection with different options. Nothing is paid and nothing is changed.
    """
    from holdfast.cli import money  # noqa: PLC0415

    money.estimate(paths or [], collection=collection, tenant=tenant, options=option or [], as_json=as_json)


@budget_app.callback()
def budget(context: typer.Context, tenant: AnyTenant = None, as_json: Json = False) -> None:
    """List budgets; `set` changes one."""
    if context.invoked_subcommand is None:
        from holdfast.cli import money  # noqa: PLC0415

        money.budgets(tenant, as_json=as_json)


@budget_app.command("set")
def set_budget(
    hard: Annotated[
        float | None, typer.Option("--hard", min=0, help="Spending stops at this amount (US$).")
    ] = None,
    soft: Annotated[float | None, typer.Option("--soft", min=0, help="Warn at this amount (US$).")] = None,
    no_hard: Annotated[bool, typer.Option("--no-hard", help="Remove the hard limit.")] = False,
    no_soft: Annotated[bool, typer.Option("--no-soft", help="Remove the soft limit.")] = False,
    period: Annotated[
        Period, typer.Option("--period", help="Period of the limits; days and months are in UTC.")
    ] = Period.TOTAL,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Only for this collection.")
    ] = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Limit what a tenant or a collection may spend, in total, per month or per day.

    Limits you do not set stay unchanged. Removing both limits removes the budget. Work that was waiting for
    its budget continues at once.
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
    """List unsettled orders, oldest first; `resolve` settles one."""
    if context.invoked_subcommand is None:
        from holdfast.cli import money  # noqa: PLC0415

        money.orders(state.value if state is not None else None, as_json=as_json)


@orders_app.command()
def resolve(
    order_id: Annotated[str, typer.Argument(metavar="ID", help="Order ID from `holdfast orders`.")],
    charged: Annotated[
        bool,
        typer.Option(
            "--charged/--not-charged",
            help="Charged, or unknown: it is resent with its key. Not charged: it becomes void.",
        ),
    ],
) -> None:
    """Say whether an order in doubt or parked was charged, so that work can continue."""
    from holdfast.cli import money  # noqa: PLC0415

    money.resolve(order_id, charged=charged)


def prices(as_json: Json = False) -> None:
    """List the known prices, in US dollars per million tokens, and where each comes from."""
    from holdfast.cli import money  # noqa: PLC0415

    money.prices(as_json=as_json)


def register(app: typer.Typer) -> None:
    """Every command about money is a command of `app`."""
    app.command()(bill)
    app.command()(estimate)
    app.command()(prices)
    app.add_typer(budget_app, name="budget")
    app.add_typer(orders_app, name="orders")
