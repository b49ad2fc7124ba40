"""`holdfast quota` and its options. Bodies import late, so that `holdfast --help` is quick."""

from typing import Annotated

import typer

from holdfast.cli.options import Json, Tenant

quota_app = typer.Typer(help="List what tenants hold and may hold; `set` changes a limit.")


@quota_app.callback(invoke_without_command=True)
def quota(context: typer.Context, as_json: Json = False) -> None:
    """List what tenants hold and may hold; `set` changes a limit."""
    if context.invoked_subcommand is None:
        from holdfast.cli import quotas  # noqa: PLC0415

        quotas.show(as_json=as_json)


@quota_app.command("set")
def set_quota(
    documents: Annotated[
        int | None, typer.Option("--documents", min=0, help="The most documents that the tenant may hold.")
    ] = None,
    size: Annotated[
        int | None, typer.Option("--bytes", min=0, help="The most bytes that their originals may have.")
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Both limits are those of the settings again.")
    ] = False,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Limit what a tenant may hold. A limit that is not named stays as it is."""
    from holdfast.cli import quotas  # noqa: PLC0415

    quotas.change(tenant, documents=documents, size=size, remove=remove, as_json=as_json)
