"""`make mutants`: break the protocol on purpose; every break must be noticed.

Each mutant is a copy of src/ with a patch, put before the installed package on the path of its processes.
First the untouched copy must pass every catcher; then each mutant must make one of its own fail. A mutant
whose tests all pass is given to the simulator; one that survives that too ends the command with 1.
"""

import argparse
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.catalogue import Mutant
from tests.mutants.hooks import HOOKS
from tests.mutants.money import MONEY
from tests.mutants.phases import IN_PHASES
from tests.mutants.relays import RELAYED
from tests.mutants.work import FENCE, GENERATION, LEASE

ALL = FENCE + LEASE + GENERATION + MONEY + RELAYED + HOOKS + IN_PHASES
ROOT = Path(__file__).resolve().parents[2]
SEEDS = 1000
LIMIT = 240.0
AT_ONCE = 2
ONE_BASELINE = threading.Lock()
FAILED = re.compile(r"^FAILED \S+::(\S+)", re.MULTILINE)


class BrokenPatchError(Exception):
    """A patch does not fit the source: whoever changed the source must look at the mutant."""


@dataclass(frozen=True)
class Verdict:
    """Who noticed a mutant, if anybody did."""

    mutant: Mutant
    caught_by: str | None
    seconds: float
    note: str = ""


def copy_of_source(folder: Path) -> Path:
    """A fresh copy of src/ in `folder`, without compiled files."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    return source


def apply(mutant: Mutant, source: Path) -> None:
    """The copy is broken as the mutant says; raises BrokenPatchError if it does not fit exactly once."""
    for patch in mutant.patches:
        path = source / "holdfast" / patch.file
        text = path.read_text(encoding="utf-8")
        if (result := text.count(patch.old)) != 1:
            raise BrokenPatchError(f"{mutant.name}: its text is {result} times in {patch.file}:\n{patch.old}")
        path.write_text(text.replace(patch.old, patch.new), encoding="utf-8")


def environment(source: Path) -> dict[str, str]:
    """The environment in which the copy is what `import holdfast` finds."""
    return os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}


def run(source: Path, *words: str, limit: float = LIMIT) -> tuple[int, str]:
    """Exit code and output of a Python command over the copy; 124 when it took too long."""
    command = [sys.executable, *words]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(source),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)  # a session of its own, so this is the command and what it started
            output, _ = process.communicate()
            return 124, output
        return process.returncode, output


def check_import(source: Path) -> None:
    """The copy, not the installed package, is on trial."""
    code, output = run(source, "-c", "import holdfast; print(holdfast.__file__)")
    if code != 0 or not output.strip().startswith(str(source)):
        raise BrokenPatchError(
            f"the copy in {source} cannot be imported, or something else was: {output.strip()}"
        )


def tests(source: Path, names: Sequence[str], *more: str) -> tuple[int, str]:
    """Exit code and output of the named tests over the copy."""
    fixed = ["-q", "-rfE", "-p", "no:cacheprovider", "--timeout", "60", "--tb", "line"]
    return run(source, "-m", "pytest", *fixed, *more, *names)


def baseline(mutants: Sequence[Mutant]) -> None:
    """Every catcher passes over the untouched copy; one that is skipped could catch nothing."""
    names = sorted({name for mutant in mutants for name in mutant.catchers})
    with tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as folder:
        source = copy_of_source(Path(folder))
        check_import(source)
        began = time.monotonic()
        code, output = tests(source, names, "-n", str(AT_ONCE))
        if code != 0 or "skipped" in output:
            sys.exit(f"{output}\nmutants: the untouched source does not pass every catcher")
        print(f"baseline: {len(names)} tests pass ({time.monotonic() - began:.0f} s)", flush=True)


def judge(mutant: Mutant, seeds: int, *, always_simulate: bool) -> Verdict:
    """Whether the tests, or else the simulator, notice the mutant."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"holdfast-{mutant.name}-") as folder:
        source = copy_of_source(Path(folder))
        apply(mutant, source)
        check_import(source)
        caught_by, note = by_tests(mutant, source)
        if always_simulate or caught_by is None:
            seen = by_simulator(source, seeds)
            note = f"{note} simulator: {seen or 'no'}".strip() if caught_by else note
            caught_by = caught_by or seen
    return Verdict(mutant, caught_by, time.monotonic() - began, note)


def by_tests(mutant: Mutant, source: Path) -> tuple[str | None, str]:
    """The name of the test that failed; errors outside a test's own body do not count."""
    code, output = tests(source, mutant.catchers, "-x")
    if code == 1 and (hits := FAILED.search(output)):
        return hits[1], ""
    return None, "" if code == 0 else f"exit {code}: {output[-2000:]}"


def by_simulator(source: Path, seeds: int) -> str | None:
    """The simulator's word if it found a broken promise where the untouched copy keeps them all."""
    with ONE_BASELINE:
        green = simulator_is_green(seeds)
    if not green:
        return None
    return f"simulator ({seeds} seeds)" if simulate(source, seeds) == 1 else None


@functools.cache
def simulator_is_green(seeds: int) -> bool:
    """Whether the untouched copy keeps every promise; a simulator that fails it proves nothing."""
    with tempfile.TemporaryDirectory(prefix="holdfast-simulator-") as folder:
        green = simulate(copy_of_source(Path(folder)), seeds) == 0
    print(f"baseline: simulator, {seeds} seeds: {'green' if green else 'NOT GREEN, not used'}", flush=True)
    return green


def simulate(source: Path, seeds: int) -> int:
    """Exit code of the simulator over the copy; 1 is a broken promise."""
    words = ("--seeds", str(seeds), "--quiet", "--fail-fast", "--workers", "1")
    return run(source, "-m", "tests.simulation", *words)[0]


def show(verdict: Verdict) -> None:
    """One line for one mutant."""
    word = f"caught by {verdict.caught_by}" if verdict.caught_by else "SURVIVED"
    print(f"{verdict.mutant.name:<40} {word} ({verdict.seconds:.1f} s) {verdict.note}".rstrip(), flush=True)


def main() -> int:
    """0 when every mutant was caught."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="this mutant alone; may be repeated")
    parser.add_argument("--list", action="store_true", help="name every mutant and what it breaks")
    parser.add_argument("--simulate", action="store_true", help="ask the simulator about every mutant")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds the simulator lives through")
    options = parser.parse_args()
    chosen = [mutant for mutant in ALL if not options.only or mutant.name in options.only]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name:<40} {mutant.promise}")
        return 0
    if not chosen or len(chosen) < len(set(options.only or ())):
        parser.error("there is no such mutant; see --list")
    baseline(chosen)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [
            pool.submit(judge, mutant, options.seeds, always_simulate=options.simulate) for mutant in chosen
        ]
        verdicts = []
        for job in jobs:
            verdicts.append(job.result())
            show(verdicts[-1])
    caught = sum(verdict.caught_by is not None for verdict in verdicts)
    print(f"mutants: {caught} of {len(chosen)} caught")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
