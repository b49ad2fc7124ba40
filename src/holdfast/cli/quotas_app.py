"""`holdfast quota` and its options. Bodies import late, so that `holdfast --help` is quick."""

from typing import Annotated

import typer

from holdfast.cli.options import Json, Tenant

quota_app = typer.Typer(help="List each tenant's usage and limits; `set` changes a limit.")


@quota_app.callback(invoke_without_command=True)
def quota(context: typer.Context, as_json: Json = False) -> None:
    """List each tenant's usage and limits; `set` changes a limit."""
    if context.invoked_subcommand is None:
        from holdfast.cli import quotas  # noqa: PLC0415

        quotas.show(as_json=as_json)


@quota_app.command("set")
def set_quota(
    documents: Annotated[
        int | None, typer.Option("--documents", min=0, help="Maximum number of documents.")
    ] = None,
    size: Annotated[
        int | None, typer.Option("--bytes", min=0, help="Maximum size of all original files, in bytes.")
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Reset both limits to those of the settings.")
    ] = False,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Limit what a tenant may store. A limit you do not set stays unchanged."""
    from holdfast.cli import quotas  # noqa: PLC0415

    quotas.change(tenant, documents=documents, size=size, remove=remove, as_json=as_json)
