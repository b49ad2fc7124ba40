"""The commands of bundles and their options. Bodies import late, so that `holdfast --help` is quick."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Json, Tenant


def export(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    file: Annotated[Path, typer.Argument(help="Where to, like papers.holdfast.zip.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Write what is published in a collection into one file. Exit code 3 while an export is under way."""
    from holdfast.cli import bundling  # noqa: PLC0415

    raise typer.Exit(bundling.export(collection, file, tenant=tenant, force=force, as_json=as_json))


def import_(
    file: Annotated[Path, typer.Argument(help="A file that `holdfast export` has made.")],
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Into this one. Default: as it was called.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Follow it to its end, with a progress bar.")
    ] = True,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Bring in a collection from a file; pays nothing for what the file has. Exit code 3 beside another."""
    from holdfast.cli import bundling  # noqa: PLC0415

    raise typer.Exit(bundling.bring(file, collection=collection, tenant=tenant, wait=wait, as_json=as_json))


def register(app: typer.Typer) -> None:
    """The program has these commands."""
    app.command()(export)
    app.command("import")(import_)
