"""The runner: scenarios on stacks, with random timing, and one table at the end.

A seed fixes what the harness draws: when it strikes, whom and how. It does not fix what the machine does
meanwhile, so a failure comes back often, not always.
"""

import argparse
import random
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.chaos import stacks
from holdfast.chaos.catalogue import SCENARIOS, Scenario
from holdfast.chaos.expectations import ScenarioFailedError
from holdfast.chaos.figures import Figures
from holdfast.chaos.servers import Servers
from holdfast.extras import MissingExtraError, require

IMPOSSIBLE = "cannot exist"
# Minutes: a machine on which one round takes longer is too slow for its figures to mean anything.
ONE_ROUND = 44.0
MOST_ROUNDS = 10_000


@dataclass(slots=True)
class Cell:
    """What is known of a scenario on a stack."""

    figures: Figures | None = None
    failures: int = 0
    rounds: int = 0
    seconds: float = 0.0

    def text(self) -> str:
        """The cell as it is printed."""
        if not self.rounds:
            return "not run"
        shown = self.figures
        figures = f"{shown.ratio}, lost {shown.lost}, {shown.recovery}" if shown else "no figures"
        return f"{f'BROKEN {self.failures}/{self.rounds}: ' if self.failures else ''}{figures}"


Cells = dict[tuple[str, str], Cell]


def main(
    servers: Servers,
    scenarios: Sequence[Scenario] = SCENARIOS,
    stack_names: Sequence[str] = stacks.NAMES,
    program: str = "python -m holdfast.chaos",
) -> int:
    """0 when every promise was kept in every cell, 1 otherwise, 2 when a stack is not to be had."""
    options = _options(program, scenarios, stack_names)
    chosen = [each for each in scenarios if not options.only or each.number in options.only]
    names = options.stack or list(stack_names)
    if (why := _unavailable(servers, names)) is not None:
        print(f"chaos: {why}", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    lasts = f"again and again for {options.minutes:g} minutes" if options.minutes else "one round"
    print(f"chaos: seed {seed}, {lasts}", flush=True)
    cells = {(each.number, name): Cell() for each in chosen for name in names if name not in each.impossible}
    try:
        _play(servers, chosen, cells, seed, options.minutes)
    finally:
        _print_table(chosen, names, cells)
    broken = sum(bool(cell.failures) for cell in cells.values())
    skipped = sum(not cell.rounds for cell in cells.values())
    passed = len(cells) - broken - skipped
    print(f"chaos: {passed} cells kept every promise, {broken} did not, {skipped} were not run")
    return 1 if broken else 0


def _options(program: str, scenarios: Sequence[Scenario], names: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program, description=__doc__)
    parser.add_argument(
        "--minutes", type=float, help="begin new rounds until this time is over; default: one"
    )
    parser.add_argument("--seed", type=int, help="draw the same timing again")
    numbers = [each.number for each in scenarios]
    parser.add_argument("--only", nargs="*", default=[], choices=numbers, help="these scenarios")
    parser.add_argument("--stack", nargs="*", default=[], choices=names, help="these stacks")
    return parser.parse_args()


def _unavailable(servers: Servers, names: Sequence[str]) -> str | None:
    """Why one of these stacks is not to be had; None when all are."""
    for name in names:
        if (why := stacks.missing(servers, name)) is not None:
            return f"{stacks.TITLES[name]} is not to be had: {why}"
        try:
            require(stacks.EXTRAS[name], stacks.TITLES[name])
        except MissingExtraError as error:
            return str(error)
    return None


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _play(
    servers: Servers, scenarios: Sequence[Scenario], cells: Cells, seed: int, minutes: float | None
) -> None:
    end = time.monotonic() + 60 * (minutes or ONE_ROUND)
    by_number = {each.number: each for each in scenarios}
    for number_of_round in range(MOST_ROUNDS if minutes else 1):
        for (number, name), cell in cells.items():
            if time.monotonic() > end:
                return
            _round(servers, by_number[number], name, cell, f"{seed}/{number_of_round}/{number}/{name}")


def _round(servers: Servers, scenario: Scenario, name: str, cell: Cell, seed: str) -> None:
    began = time.monotonic()
    cell.rounds += 1
    title = f"{scenario.number:>3} {scenario.title}, {stacks.TITLES[name]}"
    try:
        figures = scenario.run(servers, name, random.Random(seed))
    except Exception as error:  # noqa: BLE001 - outermost loop: one broken cell must not hide the others
        cell.failures += 1
        shown = str(error) if isinstance(error, ScenarioFailedError) else traceback.format_exc()
        print(f"{title}: BROKEN after {time.monotonic() - began:.0f} s\n{shown}", flush=True)
        return
    finally:
        cell.seconds += time.monotonic() - began
    cell.figures = figures if cell.figures is None else cell.figures + figures
    notes = f" ({', '.join(figures.notes)})" if figures.notes else ""
    print(f"{title}: {cell.text()}, {time.monotonic() - began:.0f} s{notes}", flush=True)


def _print_table(chosen: Sequence[Scenario], names: Sequence[str], cells: Cells) -> None:
    rows = [["scenario", *(stacks.TITLES[name] for name in names)]]
    reasons: dict[str, None] = {}
    for each in chosen:
        texts = []
        for name in names:
            if name in each.impossible:
                reasons[each.impossible[name]] = None
                texts.append(f"{IMPOSSIBLE} [{list(reasons).index(each.impossible[name]) + 1}]")
            else:
                texts.append(cells[each.number, name].text())
        rows.append([f"{each.number:>3} {each.title}", *texts])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print("\ncharges ÷ distinct inputs, lost requests, recovery p50/max")
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    for number, reason in enumerate(reasons, 1):
        print(f"[{number}] {reason}")
