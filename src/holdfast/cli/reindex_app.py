"""The command `reindex` and its options. Its body imports late, so that `holdfast --help` is quick."""

from typing import Annotated

import typer

from holdfast.cli.options import Json, MaxCost, Tenant, Yes


def reindex(
    collection: Annotated[str, typer.Option("--collection", "-c", help="Collection ID.")] = "default",
    yes: Yes = False,
    max_cost: MaxCost = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Reindex documents whose options or model are out of date, after showing the estimated cost."""
    from holdfast.cli import reindex_command  # noqa: PLC0415

    raise typer.Exit(
        reindex_command.reindex(collection, tenant=tenant, yes=yes, max_cost=max_cost, as_json=as_json)
    )


def register(app: typer.Typer) -> None:
    """The command is one of `app`."""
    app.command()(reindex)
