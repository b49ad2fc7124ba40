"""`holdfast reindex`: documents that other options or another model have indexed are asked for again."""

from holdfast import bootstrap
from holdfast.cli import context, costs, terminal
from holdfast.cli.exit_codes import Exit
from holdfast.service import formatting
from holdfast.service.library import Wish
from holdfast.worker import sender


def reindex(collection: str, *, tenant: str, yes: bool, max_cost: float | None, as_json: bool) -> Exit:
    """What is not as it would be indexed now is asked for, unless a person did not agree with the price."""
    console = terminal.console(quiet=as_json)
    loaded = context.loaded()
    sending = sender.open_sender(loaded)
    try:
        with bootstrap.open_runtime(loaded, sender=sending) as runtime:
            estimate = bootstrap.estimating(runtime).of_collection(tenant, collection)
            if not costs.agreed(console, estimate, "reindexing", yes=yes or as_json):
                return Exit.REFUSED
            library = bootstrap.library(runtime)
            wish = Wish(tenant, context.actor(), max_cost=costs.nano_dollars(max_cost))
            changed = library.change_collection(wish, collection, options={})
    finally:
        sending.close()
    if as_json:
        terminal.show_json({"requested": changed.asked, "to_follow": changed.to_follow})
        return Exit.OK
    more = f", {changed.to_follow} more to follow" if changed.to_follow else ""
    console.print(f"reindexing {formatting.count(changed.asked, 'document')}{more}; see: holdfast status")
    return Exit.OK
