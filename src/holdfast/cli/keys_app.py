"""`holdfast keys`: create, list and revoke API keys."""

from enum import StrEnum
from typing import Annotated

import typer

from holdfast.cli.options import FilterText, Json, Tenant, json_of

keys_app = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)


class KeyScope(StrEnum):
    """What a key may do; each scope includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@keys_app.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="A label, shown in the history.")] = "",
    tenant: Tenant = "default",
    scope: Annotated[
        list[KeyScope] | None, typer.Option("--scope", help="What it may do. Repeatable.")
    ] = None,
    days: Annotated[float | None, typer.Option("--days", min=0.001, help="Days until it expires.")] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.01, help="Requests per second. Default: HOLDFAST_API_RATE."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", min=1, help="Concurrent requests. Default: HOLDFAST_API_CONCURRENCY."),
    ] = None,
    passing: FilterText = None,
    as_json: Json = False,
) -> None:
    """Create an API key and print its token once.

    As soon as one key exists, every API request needs a key.
    """
    from holdfast.cli import keys  # noqa: PLC0415

    scopes = [each.value for each in scope or [KeyScope.READ, KeyScope.WRITE]]
    keys.create(
        name,
        tenant=tenant,
        scopes=scopes,
        days=days,
        rate=rate,
        concurrency=concurrency,
        only=None if passing is None else json_of(passing),
        as_json=as_json,
    )


@keys_app.command("list")
def list_keys(as_json: Json = False) -> None:
    """List API keys, without their tokens."""
    from holdfast.cli import keys  # noqa: PLC0415

    keys.every(as_json=as_json)


@keys_app.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Key ID from `holdfast keys list`.")],
) -> None:
    """Revoke an API key immediately."""
    from holdfast.cli import keys  # noqa: PLC0415

    keys.revoke(key_id)
