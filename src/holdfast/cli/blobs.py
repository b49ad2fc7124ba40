"""`holdfast blobs`: where the bytes of documents lie, and a store that was moved."""

import typer

from holdfast import bootstrap
from holdfast.cli import context, terminal
from holdfast.service import blob_identity
from holdfast.service.blob_identity import BlobStoreIdentity


def show(*, as_json: bool) -> None:
    """The store and the ids are on standard output."""
    with context.services() as services:
        _print_identity(
            bootstrap.blobs_named(services.runtime),
            blob_identity.look(services.runtime.db, services.runtime.shelf),
            as_json=as_json,
        )


def adopt(*, force: bool, as_json: bool) -> None:
    """The store of these settings belongs to the database of these settings."""
    with context.services() as services:
        adopted = blob_identity.adopt(services.runtime.db, services.runtime.shelf, force=force)
        _print_identity(bootstrap.blobs_named(services.runtime), adopted, as_json=as_json)


def _print_identity(where: str, identity: BlobStoreIdentity, *, as_json: bool) -> None:
    if as_json:
        terminal.show_json({"where": where, "belongs": identity.database == identity.store, "ids": identity})
        return
    typer.echo(f"document files are stored in {where}")
    typer.echo(
        f"store id: {identity.store or 'not set'}; the database expects: {identity.database or 'none yet'}"
    )
    typer.echo(f"checked the files of {identity.checked} documents: {identity.missing} missing")
