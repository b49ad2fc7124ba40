"""`make simulate`: many seeds on several processes, or one seed again."""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator
from typing import Any

from tests.simulation.report import Report, explain
from tests.simulation.runner import Result, run_seed
from tests.simulation.storage import Storage

CHUNK = 25


def main() -> int:
    """0 when every seed kept every promise, 1 otherwise."""
    options = _options()
    if options.seed is not None:
        return _replay(options.seed, whole=options.trace)
    report, began = Report(), time.monotonic()
    seeds = range(options.start, options.start + options.seeds)
    for result in _results(seeds, options.workers):
        report.add(result)
        if result.failure and (options.fail_fast or len(report.failures) <= options.shown):
            print(explain(result), flush=True)
        if result.failure and options.fail_fast:
            return 1
        if not options.quiet and report.seeds % 1000 == 0:
            print(f"{report.seeds} seeds, {len(report.failures)} failures", flush=True)
        if time.monotonic() - began > options.minutes * 60 and report.seeds < options.seeds:
            print(f"stopped after {report.seeds} of {options.seeds} seeds: the time is up (--minutes)")
            break
    if not options.quiet:
        print(report.table(time.monotonic() - began))
        for reason in report.shallow():
            print(f"too shallow: {reason}")
    if report.failures:
        print(
            f"{len(report.failures)} of {report.seeds} seeds failed:",
            [one.seed for one in report.failures[:40]],
        )
        return 1
    print(f"{report.seeds} seeds from {options.start}: every promise was kept")
    return 1 if report.shallow() and options.seeds >= 20_000 and not options.quiet else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seed", type=int, help="live through this seed alone and show it")
    parser.add_argument("--trace", action="store_true", help="with --seed: show every step")
    parser.add_argument("--seeds", type=int, default=20_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after this time")
    parser.add_argument("--shown", type=int, default=3, help="how many failures to tell in full")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--fail-fast", action="store_true", help="end at the first failure")
    return parser.parse_args()


def _replay(seed: int, *, whole: bool) -> int:
    storage = Storage()
    try:
        result = run_seed(storage, seed, story=whole, fingerprint=True)
    finally:
        storage.close()
    if result.story and not result.failure:
        print(result.story)
    if result.failure:
        print(explain(result))
        return 1
    print(
        f"seed {seed}: {result.steps} steps, faults {dict(result.faults)}, trace {result.fingerprint}: kept"
    )
    return 0


_storage: Storage | None = None


def _prepare() -> None:
    global _storage  # noqa: PLW0603 - one per worker of the pool
    _storage = Storage()


def _some(seeds: range) -> list[Result]:
    return [run_seed(_storage, seed) for seed in seeds]


def _results(seeds: range, workers: int) -> Iterator[Result]:
    parts = [seeds[n : n + CHUNK] for n in range(0, len(seeds), CHUNK)]
    context: Any = multiprocessing.get_context("fork")
    with context.Pool(workers, initializer=_prepare) as pool:
        for results in pool.imap_unordered(_some, parts):
            yield from results


if __name__ == "__main__":
    sys.exit(main())
