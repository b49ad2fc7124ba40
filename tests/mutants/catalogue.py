"""The deliberate breaks: each is a patch of the shipped source, the promise it breaks, and who must notice.

A catcher is a test by its full name. It runs on the dialect where the break shows: most show on SQLite, those
of isolation on PostgreSQL alone, for SQLite lets one writer in at a time.
"""

from dataclasses import dataclass

G1 = "tests/races/test_g1_one_winner.py::test_"
G2 = "tests/races/test_g2_fenced_writes.py::test_"
G3 = "tests/races/test_g3_whole_or_nothing.py::test_"
G4 = "tests/races/test_g4_nothing_lost.py::test_"
G5 = "tests/races/test_g5_paid_once.py::test_"
G6 = "tests/races/test_g6_quick_refusals.py::test_"
G7 = "tests/races/test_g7_recovery.py::test_"
LEASES = "tests/conformance/test_leases.py::test_"


@dataclass(frozen=True)
class Patch:
    """In `file` of src/holdfast the text `old`, which stands there exactly once, becomes `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """One break. It is caught when any of its catchers fails."""

    name: str
    promise: str
    patches: tuple[Patch, ...]
    catchers: tuple[str, ...]


def mutant(name: str, promise: str, *patches: Patch, by: tuple[str, ...] | str) -> Mutant:
    """A mutant with one catcher or several."""
    return Mutant(name, promise, patches, (by,) if isinstance(by, str) else by)


DECIDE, ROWS, TASKS = "core/decide.py", "store/base/rows.py", "store/protocol/tasks.py"
CLAIMS, DUTIES, REQUESTS = (
    "store/protocol/claims.py",
    "store/protocol/duties.py",
    "store/protocol/requests.py",
)
CALLS, ORDERS, PAY = "store/money/calls.py", "store/money/orders.py", "ledger/pay.py"
EXCHANGES, LOSSES = "ledger/exchanges.py", "store/protocol/losses.py"
PHASES = "store/protocol/phases.py"
