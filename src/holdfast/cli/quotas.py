"""What tenants hold and may hold, for the operator."""

from holdfast import bootstrap
from holdfast.cli import context, terminal
from holdfast.core.errors import BadRequestError
from holdfast.core.records import TENANT
from holdfast.store.library import quotas
from holdfast.store.library.quotas import UNLIMITED, Quota, Usage


def show(*, as_json: bool) -> None:
    """A line for each tenant that holds something, or has a limit."""
    with context.runtime() as runtime:
        usages = quotas.every(runtime.db, bootstrap.quota(runtime.settings))
    if as_json:
        terminal.show_json(usages)
        return
    if not usages:
        terminal.say("no tenant has stored anything yet")
    for each in usages:
        terminal.say(_line(each))


def change(tenant: str, *, documents: int | None, size: int | None, remove: bool, as_json: bool) -> None:
    """The tenant has these limits; one that is None stays as it was, with `remove` it is the settings'."""
    if not TENANT.fullmatch(tenant):
        raise BadRequestError(f"{tenant!r:.80} is not a valid tenant name", code="bad_tenant")
    if remove == (documents is not None or size is not None):
        message = "use --documents, --bytes or both; or --remove alone"
        raise BadRequestError(message, code="bad_quota")
    with context.runtime() as runtime:
        before = UNLIMITED if remove else quotas.limits(runtime.db, tenant)
        own = Quota(
            before.documents if documents is None else documents, before.bytes if size is None else size
        )
        quotas.set_limits(runtime.db, tenant, own)
        usage = quotas.usage(runtime.db, tenant, bootstrap.quota(runtime.settings))
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
