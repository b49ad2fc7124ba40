"""`make fuzz`: hostile texts for everything that reads foreign text; 1 when anything grows too fast."""

import argparse
import itertools
import multiprocessing
import sys
import time
from typing import NamedTuple

from tests.fuzz import growth, targets, texts


class Outcome(NamedTuple):
    """What one target made of one text."""

    name: str
    recipe: texts.Recipe
    seconds: float
    memory: int
    problems: tuple[str, ...]


def main() -> int:
    """0 when time and memory of every target grow no faster than the text."""
    options = _options()
    recipes = texts.recipes(options.seed, options.recipes)
    work = [(name, recipe, options.size) for recipe, name in itertools.product(recipes, targets.TARGETS)]
    began, problems = time.monotonic(), 0
    worst: dict[str, tuple[float, int]] = {}
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for done, outcome in enumerate(pool.imap(_try, work, chunksize=len(targets.TARGETS)), start=1):
            seconds, memory = worst.get(outcome.name, (0.0, 0))
            worst[outcome.name] = max(seconds, outcome.seconds), max(memory, outcome.memory)
            for problem in outcome.problems:
                confined = outcome.name in targets.CONFINED
                problems += not confined
                where = " (in the child, within its limits)" if confined else ""
                print(f"{outcome.name}{where}, {outcome.recipe}: {problem}", flush=True)
            if time.monotonic() - began > options.minutes * 60:
                print(f"stopped after {done:,} of {len(work):,}: the time is up")
                break
    print(f"\n{len(recipes)} texts of {options.size:,} characters, seed {options.seed}:\n")
    print("| what | slowest, ms for 64 Ki characters | most memory, bytes for a character |\n|---|---|---|")
    for name, (seconds, memory) in worst.items():
        print(f"| {name} | {seconds * 1000 * 65_536 / options.size:.0f} | {memory / options.size:.0f} |")
    print(f"\n{problems} problems, {time.monotonic() - began:.0f} s")
    return 1 if problems else 0


def _try(work: tuple[str, texts.Recipe, int]) -> Outcome:
    name, recipe, size = work
    call = targets.TARGETS[name]
    seconds, slow = growth.time_of(call, recipe.text, size)
    memory, large = growth.memory_of(call, recipe.text, size // growth.STEP)
    items = tuple(str(each) for each in (slow, large) if each is not None)
    return Outcome(name, recipe, seconds, memory * growth.STEP, items)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recipes", type=int, default=400, help="how many texts are drawn")
    parser.add_argument("--size", type=int, default=64 * 1024, help="characters of the longest")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60.0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
