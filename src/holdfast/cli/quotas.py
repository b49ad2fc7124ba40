"""What tenants store and may store, for the operator."""

from holdfast.cli import context, terminal
from holdfast.core.errors import BadRequestError
from holdfast.service.records import Usage


def show(*, as_json: bool) -> None:
    """A line for each tenant that holds something, or has a limit."""
    with context.services() as services:
        usages = services.quotas.every()
    if as_json:
        terminal.show_json(usages)
        return
    if not usages:
        terminal.say("no tenant has stored anything yet")
    for each in usages:
        terminal.say(_line(each))


def change(tenant: str, *, documents: int | None, size: int | None, remove: bool, as_json: bool) -> None:
    """The tenant has these limits; one that is None stays as it was, with `remove` it is the settings'."""
    if remove == (documents is not None or size is not None):
        message = "use --documents, --bytes or both; or --remove alone"
        raise BadRequestError(message, code="bad_quota")
    with context.services() as services:
        usage = services.quotas.change(tenant, documents=documents, size=size, remove=remove)
    if as_json:
        terminal.show_json(usage)
        return
    terminal.say(_line(usage))


def _line(usage: Usage) -> str:
    parts = (
        (usage.documents, usage.quota.documents, "documents"),
        (usage.bytes, usage.quota.bytes, "bytes"),
    )
    held = ", ".join(
        f"{used:,} {unit}" if allowed is None else f"{used:,} of {allowed:,} {unit}"
        for used, allowed, unit in parts
    )
    return f"{usage.tenant}: {held}"
