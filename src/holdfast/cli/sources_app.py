"""The commands of sources and their options. Bodies import late, so that `holdfast --help` is quick."""

from typing import Annotated

import typer

from holdfast.cli.options import Json, Labels, MetadataText, Tenant

sources_app = typer.Typer(
    help="List a collection's sources, which bring documents by themselves; `add` and `remove` change them.",
    invoke_without_command=True,
)

Collection = Annotated[str, typer.Option("--collection", "-c", help="The collection.")]
SourceId = Annotated[str, typer.Argument(metavar="ID", help="Source ID from the list.")]


@sources_app.callback()
def sources(
    context: typer.Context,
    collection: Collection = "default",
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """List the sources of a collection, with their last and next looks."""
    if context.invoked_subcommand is None:
        from holdfast.cli import sources as doing  # noqa: PLC0415 - see the module's docstring

        doing.listed(tenant, collection, as_json=as_json)


@sources_app.command()
def add(
    source_type: Annotated[
        str, typer.Argument(metavar="TYPE", help="folder, s3, urls, sitemap, feed or git.")
    ],
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="NAME=VALUE", help="Option of the type. Repeatable."),
    ] = None,
    options: Annotated[
        str | None, typer.Option("--options", metavar="JSON", help="All options as JSON, or @FILE.")
    ] = None,
    every: Annotated[
        str | None, typer.Option("--every", help="Look again after this time: 300, 15m, 6h, 1d.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete documents whose item is gone from the source.")
    ] = False,
    name: Annotated[str, typer.Option("--name", help="Display name.")] = "",
    metadata: MetadataText = None,
    label: Labels = None,
    collection: Collection = "default",
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Add a source; its first look is requested at once."""
    from holdfast.cli import sources as doing  # noqa: PLC0415 - see the module's docstring

    new = doing.SourceInput(source_type, option or [], options, every, name, metadata, label or [])
    doing.add(tenant, collection, new, prune=prune, as_json=as_json)


@sources_app.command("list")
def list_(collection: Collection = "default", tenant: Tenant = "default", as_json: Json = False) -> None:
    """List the sources of a collection, with their last and next looks."""
    from holdfast.cli import sources as doing  # noqa: PLC0415

    doing.listed(tenant, collection, as_json=as_json)


@sources_app.command()
def show(
    source_id: SourceId, collection: Collection = "default", tenant: Tenant = "default", as_json: Json = False
) -> None:
    """Show a source: its options, what the last look counted, and the items that failed."""
    from holdfast.cli import sources as doing  # noqa: PLC0415

    doing.show(tenant, collection, source_id, as_json=as_json)


@sources_app.command()
def refresh(
    source_id: SourceId, collection: Collection = "default", tenant: Tenant = "default", as_json: Json = False
) -> None:
    """Look at a source now."""
    from holdfast.cli import sources as doing  # noqa: PLC0415

    doing.refresh(tenant, collection, source_id, as_json=as_json)


@sources_app.command()
def remove(
    source_id: SourceId,
    delete_documents: Annotated[
        bool, typer.Option("--delete-documents", help="Delete its documents as well.")
    ] = False,
    collection: Collection = "default",
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Remove a source; its documents are kept unless you say otherwise."""
    from holdfast.cli import sources as doing  # noqa: PLC0415

    doing.remove(tenant, collection, source_id, delete_documents=delete_documents, as_json=as_json)
