"""The demonstration from beginning to end. It answers 0 only if every promise was kept."""

import contextlib
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from holdfast.cli import terminal
from holdfast.cli.demo import documents, guarded, unguarded, worker
from holdfast.cli.demo.narration import IncidentCost, Narrator
from holdfast.cli.demo.processes import Actor, Cast, StageError, ended_like_interrupted
from holdfast.cli.exit_codes import Exit

OPENING = """\
[head]Holdfast: what happens to paid work when workers die[/head]
Real processes, SQLite in a temporary folder, a provider that counts every charge.
To keep it short, leases last {lease:g} s here (default 12 s) and an order may take
{order:g} s (default 60 s). The provider ignores idempotency keys, as OpenAI documents
none: a response that is lost has to be paid for again."""


def tell(*, plain: bool = False) -> Exit:
    """The whole story; its exit code."""
    narrator = Narrator(plain=plain)
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder,
        ended_like_interrupted(narrator),
        Cast(Path(folder)) as cast,
    ):
        try:
            _act(cast, narrator)
        except StageError as error:
            narrator.promise(str(error), held=False)
        except KeyboardInterrupt:
            narrator.interrupted = False
            narrator.line("interrupted; stopping all processes", "care")
            return Exit.INTERRUPTED
    return _end(narrator)


def _act(cast: Cast, narrator: Narrator) -> None:
    narrator.print(OPENING.format(lease=worker.LEASE, order=worker.ORDER_DEADLINE))
    install = guarded.settle_in(cast, "holdfast", keyed=False)
    counts = []
    narrator.chapter(1, "A user clicks twice")
    count, hired = guarded.double_click(install, narrator)
    counts.append(count)
    narrator.chapter(2, "A worker is killed while it waits for a paid response")
    count, hired, free = _kill_twice(cast, install, narrator, hired)
    counts.append(count)
    narrator.promise(
        f"the same kill, with idempotency keys: {free.charges} charges for {free.inputs} paragraphs",
        held=free.charges == free.inputs,
    )
    narrator.chapter(3, "A worker freezes, loses its lease and wakes up")
    count, hired = guarded.freeze(install, narrator, hired)
    counts.append(count)
    narrator.chapter(4, "The same document again, and again with one paragraph changed")
    counts += guarded.again(install, narrator)
    hired.end()
    narrator.chapter(5, "The bill")
    narrator.line("the same incidents again, in a plain loop with retries and redelivery")
    others, totals = unguarded.run(cast)
    mine = install.meter.totals()
    install.db.close()
    _bill(narrator, counts, others, mine["distinct_inputs"], totals["distinct_inputs"])


def _kill_twice(
    cast: Cast, install: guarded.DemoInstall, narrator: Narrator, hired: Actor
) -> tuple[IncidentCost, Actor, IncidentCost]:
    """The kill, and beside it the same kill at a provider that honours keys."""
    # Left early, the stack ends the cast before the pool waits for the other kill.
    with ThreadPoolExecutor(max_workers=1) as aside, contextlib.ExitStack() as early:
        early.callback(cast.end)
        keyed = aside.submit(_kill_with_keys, cast)
        count, heir = guarded.kill(install, narrator, hired)
        free = keyed.result()
        early.pop_all()
    return count, heir, free


def _kill_with_keys(cast: Cast) -> IncidentCost:
    """The kill once more, at a provider that honours idempotency keys, without a word."""
    install = guarded.settle_in(cast, "with-keys", keyed=True)
    silent = Narrator(silent=True)
    count, heir = guarded.kill(install, silent, install.hire("worker-K"))
    heir.end()
    install.db.close()
    return count


def _bill(
    narrator: Narrator,
    mine: Sequence[IncidentCost],
    others: Sequence[IncidentCost],
    distinct: int,
    other_distinct: int,
) -> None:
    numbers = ("new inputs", "with Holdfast", "without")
    table = terminal.table("charges at the provider", *numbers, numbers=numbers)
    for own, other in zip(mine, others, strict=True):
        table.add_row(*terminal.cells(own.incident, own.inputs, own.charges, other.charges))
    paid, elsewhere = sum(count.charges for count in mine), sum(count.charges for count in others)
    table.add_row(*terminal.cells("total", distinct, paid, elsewhere), style="head")
    shares = [f"{paid / distinct:.2f}", f"{elsewhere / other_distinct:.2f}"]
    table.add_row(*terminal.cells("charges per distinct input", "", *shares), style="head")
    narrator.print()
    narrator.print(table)
    narrator.print()
    beyond = paid - distinct
    narrator.promise(
        f"each input paid for effectively once; {beyond} paid again, in flight at the kill",
        held=0 <= beyond <= documents.PER_ORDER,
    )


def _end(narrator: Narrator) -> Exit:
    if not narrator.broken:
        narrator.print(f"\nEvery promise was kept, in {narrator.seconds:.0f} s. Everything was cleaned up.")
        narrator.print("What Holdfast guarantees, and what it does not: docs/guarantees.md")
        return Exit.OK
    narrator.print("\nBroken promises:", style="bad")
    for text in narrator.broken:
        narrator.print(f"  {text}")
    return Exit.FAILED
