"""The commands of flows and their options. Bodies import late, so that `holdfast --help` is quick."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Json, MaxCost, Tenant, Yes

flow_app = typer.Typer(
    help="List your flows, which are your own steps of indexing; `check`, `estimate` and `apply` a file.",
    invoke_without_command=True,
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A flow, as YAML or JSON; - is standard input.")]
Collection = Annotated[str, typer.Option("--collection", "-c", help="The collection.")]


@flow_app.callback()
def flows(context: typer.Context, tenant: Tenant = "default", as_json: Json = False) -> None:
    """List the flows by name and version, and the collections that use them."""
    if context.invoked_subcommand is None:
        from holdfast.cli import flow_command as doing  # noqa: PLC0415 - see the module's docstring

        doing.listed(tenant, as_json=as_json)


@flow_app.command()
def check(file: File, as_json: Json = False) -> None:
    """Check a file: every fault with its line, its column and the nearest name."""
    from holdfast.cli import flow_command as doing  # noqa: PLC0415

    raise typer.Exit(doing.check(file, as_json=as_json))


@flow_app.command()
def estimate(
    file: File, collection: Collection = "default", tenant: Tenant = "default", as_json: Json = False
) -> None:
    """Show what each step would cost if the collection took the flow. Nothing is paid or changed."""
    from holdfast.cli import flow_command as doing  # noqa: PLC0415

    doing.estimate(file, collection, tenant=tenant, as_json=as_json)


@flow_app.command()
def diff(
    file: File, collection: Collection = "default", tenant: Tenant = "default", as_json: Json = False
) -> None:
    """Show which steps differ from the collection's flow, and what would run again at what price."""
    from holdfast.cli import flow_command as doing  # noqa: PLC0415

    doing.diff(file, collection, tenant=tenant, as_json=as_json)


@flow_app.command("dry-run")
def dry_run(
    file: File,
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="The id of a document.")],
    chunks: Annotated[
        int, typer.Option("--chunks", min=1, max=50, help="So many chunks from its beginning.")
    ] = 3,
    yes: Yes = False,
    max_cost: MaxCost = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Carry a flow out on the first chunks of a document and print what each step makes.

    Nothing is indexed. What is paid for is not paid again when a collection takes the flow.
    """
    from holdfast.cli import flow_command as doing  # noqa: PLC0415

    target = doing.Target(document, tenant, yes=yes, max_cost=max_cost)
    raise typer.Exit(doing.dry_run(file, target, chunks, as_json=as_json))


@flow_app.command()
def apply(
    file: File,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Also index this collection by it.")
    ] = None,
    yes: Yes = False,
    max_cost: MaxCost = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Store a version of a flow for good; with a collection, index it by the flow after showing the cost."""
    from holdfast.cli import flow_command as doing  # noqa: PLC0415

    target = doing.Target(collection, tenant, yes=yes, max_cost=max_cost)
    raise typer.Exit(doing.apply(file, target, as_json=as_json))


@flow_app.command("list")
def listed(tenant: Tenant = "default", as_json: Json = False) -> None:
    """List the flows by name and version, and the collections that use them."""
    from holdfast.cli import flow_command as doing  # noqa: PLC0415

    doing.listed(tenant, as_json=as_json)


@flow_app.command()
def show(
    flow: Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help="Without a version: the newest.")],
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Print a flow as it was applied."""
    from holdfast.cli import flow_command as doing  # noqa: PLC0415

    doing.show(flow, tenant=tenant, as_json=as_json)
