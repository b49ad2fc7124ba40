"""`holdfast reindex`: documents that other options or another model have indexed are asked for again."""

from holdfast.cli import context, costs, terminal
from holdfast.cli.exit_codes import Exit
from holdfast.service import formatting
from holdfast.service.requests import RequestContext


def reindex(collection: str, *, tenant: str, yes: bool, max_cost: float | None, as_json: bool) -> Exit:
    """What is not as it would be indexed now is asked for, unless a person did not agree with the price."""
    console = terminal.console(quiet=as_json)
    with context.services(None) as services:
        estimate = services.estimates().of_collection(tenant, collection)
        if not costs.agreed(console, estimate, "reindexing", yes=yes or as_json):
            return Exit.REFUSED
        wish = RequestContext(tenant, context.actor(), max_cost=costs.nano_dollars(max_cost))
        changed = services.collections.change(wish, collection, options={})
    if as_json:
        terminal.show_json({"requested": changed.requested, "to_follow": changed.to_follow})
        return Exit.OK
    more = f", {changed.to_follow} more to follow" if changed.to_follow else ""
    console.print(f"reindexing {formatting.count(changed.requested, 'document')}{more}; see: holdfast status")
    return Exit.OK
