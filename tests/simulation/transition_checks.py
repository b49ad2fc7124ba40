"""Every change of a state, commit by commit, is one of the table of transitions."""

from holdfast.core.states import TRANSITIONS
from tests.simulation.world import Violation

# Tables and the column of their state, as the oracles read them; the sort of thing in the table.
WATCHED = {"heads": ("head", 6), "runs": ("run", 3), "tasks": ("task", 5), "orders": ("call", 2)}


ALLOWED = {
    what: {(str(source), str(target)) for (source, _verb), targets in known.items() for target in targets}
    for what, known in TRANSITIONS.items()
}


def check(old, new) -> None:
    """No row of `new` is in a state that the table does not reach from its state in `old`."""
    for name, (what, column) in WATCHED.items():
        if old[name] is new[name]:
            continue
        for key, row in new[name].items():
            was = old[name].get(key)
            if was is None or was[column] == row[column] or (was[column], row[column]) in ALLOWED[what]:
                continue
            raise Violation(
                "table", f"a {what} went from {was[column]} to {row[column]}: no transition does that"
            )
