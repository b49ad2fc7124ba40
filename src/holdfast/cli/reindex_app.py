"""The command `reindex` and its options. Its body imports late, so that `holdfast --help` is quick."""

from typing import Annotated

import typer

from holdfast.cli.options import Json, MaxCost, Tenant, Yes


def reindex(
    collection: Annotated[str, typer.Option("--collection", "-c", help="Which one.")] = "default",
    yes: Yes = False,
    max_cost: MaxCost = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Index again what is not as it would be indexed now, after saying what that costs."""
    from holdfast.cli import reindexing  # noqa: PLC0415

    raise typer.Exit(
        reindexing.reindex(collection, tenant=tenant, yes=yes, max_cost=max_cost, as_json=as_json)
    )


def register(app: typer.Typer) -> None:
    """The command is one of `app`."""
    app.command()(reindex)
