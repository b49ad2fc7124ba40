"""Measures the core of Holdfast on this machine, beside its peers, and compares with what was promised.

    python -m bench.core [--quick] [--only PART] [--json FILE] [--page FILE] [--strict]

`make bench` runs it with the private servers up. Peers are installed into .venv-peers the first time; where
that is impossible, it says so and measures Holdfast alone.
"""

import argparse
import platform
import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import claim, drain, growth, peers, places, request
from bench.results import Report
from bench.sizes import FULL, QUICK, Sizes, quiet

# Above this share others take turns with us on every core, and latencies show the scheduler.
SATURATED = 0.5
PARTS = ("drain", "claim", "request", "growth", "ledger")


def main(words: Sequence[str]) -> int:
    """The exit code: 0, also on a miss, unless --strict."""
    options = _options(words)
    sizes = QUICK if options.quick else FULL
    report = Report(command=_command(options))
    try:
        report.software = _software()
        for part in [options.only] if options.only else PARTS:
            if part == "ledger" and not options.only:
                continue  # measured with growth, in the same database
            print(f"bench: {part}", file=sys.stderr)
            report.busy.append(quiet(sizes))
            _measure(part)(report, sizes)
    except places.NoServerError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    if max(report.busy, default=0.0) > SATURATED:
        report.say(
            "Others saturated the machine meanwhile: no verdict here counts. Run it again when it is quiet."
        )
    report.print()
    if options.json:
        report.write_json(options.json)
    if options.page:
        report.write_page(options.page)
    missed = any(result.verdict == "miss" for result in report.results)
    return 1 if options.strict and missed else 0


def _command(options: argparse.Namespace) -> str:
    """What was asked to be measured, without where the answer goes."""
    words = ["python", "-m", "bench.core"]
    words += ["--quick"] * options.quick
    words += ["--only", options.only] if options.only else []
    return " ".join(words)


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.core", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it work, not how fast it is")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    parser.add_argument("--page", type=Path, help="put the numbers into this page, between its two marks")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args(words)


def _measure(part: str) -> Callable[[Report, Sizes], None]:
    return {
        "drain": _drain,
        "claim": claim.measure,
        "request": request.measure,
        "growth": growth.measure,
        "ledger": growth.look_up,
    }[part]


def _drain(report: Report, sizes: Sizes) -> None:
    try:
        peers.install()
    except peers.NoPeersError as error:
        report.say(f"NO PEERS: they could not be installed, so Holdfast was measured alone. {error}")
        drain.measure(report, sizes, ())
        return
    report.software |= peers.versions()
    drain.measure(report, sizes, peers.ALL)


def _software() -> dict[str, str]:
    return {
        "Python": platform.python_version(),
        "PostgreSQL": places.version(),
        "SQLite": sqlite3.sqlite_version,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
