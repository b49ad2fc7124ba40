"""The commands of bundles and their options. Bodies import late, so that `holdfast --help` is quick."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import FilterText, Json, Tenant, json_of


def export(
    collection: Annotated[str, typer.Argument(help="Collection ID.")],
    file: Annotated[Path, typer.Argument(help="Output file, like papers.holdfast.zip.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    passing: FilterText = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Export the published documents of a collection to one file. Exit code 3 while another export runs."""
    from holdfast.cli import bundles  # noqa: PLC0415

    only = None if passing is None else json_of(passing)
    raise typer.Exit(bundles.export(collection, file, tenant=tenant, only=only, force=force, as_json=as_json))


def import_(
    file: Annotated[Path, typer.Argument(help="A file created by `holdfast export`.")],
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Target collection. Default: its original name.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until it is done, with a progress bar.")
    ] = True,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Import a collection from a file, at no cost for what it contains. Exit code 3 while another runs."""
    from holdfast.cli import bundles  # noqa: PLC0415

    raise typer.Exit(bundles.bring(file, collection=collection, tenant=tenant, wait=wait, as_json=as_json))


def register(app: typer.Typer) -> None:
    """The program has these commands."""
    app.command()(export)
    app.command("import")(import_)
