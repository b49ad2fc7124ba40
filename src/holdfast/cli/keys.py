"""Commands about API keys: create, list, revoke."""

from collections.abc import Mapping
from typing import Any

import typer

from holdfast.cli import context, terminal
from holdfast.service.access import Scope
from holdfast.service.records import Key


def create(
    name: str,
    *,
    tenant: str,
    scopes: list[str],
    days: float | None,
    rate: float | None,
    concurrency: int | None,
    only: Mapping[str, Any] | None,
    as_json: bool,
) -> None:
    """A key is made, and its token told this once."""
    with context.services() as services:
        created = services.access.make(
            tenant=tenant,
            name=name,
            scopes=[Scope(each) for each in scopes],
            days=days,
            rate=rate,
            concurrency=concurrency,
            only=only,
        )
    if as_json:
        terminal.show_json({"key": created.key, "token": created.token})
        return
    typer.echo(created.token)
    typer.echo(
        f"key {created.key.id} of tenant {created.key.tenant}; store the token now, it is not shown again",
        err=True,
    )


def every(*, as_json: bool) -> None:
    """The keys, without their tokens."""
    with context.services() as services:
        keys = services.access.every()
    if as_json:
        terminal.show_json(keys)
        return
    console = terminal.console()
    if not keys:
        console.print("no keys; the API only serves this machine")
        return
    table = terminal.table("key", "name", "tenant", "scopes", "limits", "created", "state")
    for each in keys:
        cells = (each.id, each.name or "-", each.tenant, ", ".join(each.scopes), _limits(each))
        table.add_row(*terminal.cells(*cells, terminal.moment(each.created_at), _state(each)))
    console.print(table)


def _limits(key: Key) -> str:
    rate = [] if key.rate is None else [f"{key.rate:g}/s"]
    rate += [] if key.filter is None else ["filter"]
    return ", ".join([*rate, *([] if key.concurrency is None else [f"{key.concurrency} at once"])]) or "-"


def _state(key: Key) -> str:
    if key.revoked_at is not None:
        return f"revoked {terminal.moment(key.revoked_at)}"
    return "active" if key.expires_at is None else f"expires {terminal.moment(key.expires_at)}"


def revoke(key_id: str) -> None:
    """The key opens nothing any more."""
    with context.services() as services:
        services.access.revoke(key_id)
    typer.echo(f"key {key_id} is revoked")
