"""The `graph` command and its options."""

from typing import Annotated

import typer

from holdfast.cli.options import Json, Tenant


def register(app: typer.Typer) -> None:
    """The command is one of the program's own."""
    app.command()(graph)


def graph(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    entity: Annotated[
        str | None, typer.Option("--entity", help="Name or key of an entity: its neighbours and sources.")
    ] = None,
    communities: Annotated[
        bool, typer.Option("--communities", help="Show the reports on communities.")
    ] = False,
    community: Annotated[
        str | None, typer.Option("--community", help="Key of a community: its report and its entities.")
    ] = None,
    named: Annotated[
        str, typer.Option("--name", help="Only entities whose names have these words, or their beginnings.")
    ] = "",
    entity_kind: Annotated[
        str | None, typer.Option("--kind", help="Only entities of this kind, like person.")
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, max=5000, help="Number of rows.")] = 50,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Show the knowledge graph of a collection: its entities, one of them, or its communities."""
    from holdfast.cli import graph_command  # noqa: PLC0415 - so that `holdfast --help` is quick

    tables = graph_command.GraphTables(collection, tenant, most, as_json=as_json)
    if entity is not None:
        tables.entity(entity)
    elif community is not None:
        tables.community(community)
    elif communities:
        tables.communities()
    else:
        tables.entities(named, entity_kind)
