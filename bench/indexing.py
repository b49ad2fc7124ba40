"""Measures `holdfast index` beside LangChain on Chroma and LlamaIndex: cold, unchanged, one in ten edited.

    python -m bench.indexing [--quick] [--cold] [--docs N] [--repeats N] [--json FILE] [--strict]

The same texts of about 8 KB, the same embedder that costs about nothing, everything durable on disk, two
cores. Ours goes through its workers, its ledger and its fences; SQLite is its database.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import indexing_command, peers, places
from bench.results import Report, Result, at_least, at_most, ratios
from bench.sizes import Sizes, quiet

OURS = "Holdfast"
NAMES = {"langchain": "LangChain on Chroma", "llamaindex": "LlamaIndex"}
PHASES = ("cold", "unchanged", "edited")
SYLLABLES = [a + b for a in "bdfghklmnprstvw" for b in "aeiou"]
# As in a language: a few words make up most of a text.
_chance = random.Random("words")  # noqa: S311 - texts, not secrets
WORDS = ["".join(_chance.choices(SYLLABLES, k=_chance.randint(1, 4))) for _ in range(3000)]
WEIGHTS = [1 / rank for rank in range(1, len(WORDS) + 1)]


def main(words: Sequence[str]) -> int:
    """The exit code: 0, also on a miss, unless --strict."""
    parser = argparse.ArgumentParser(prog="bench.indexing", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="small: does it work, not how fast it is")
    parser.add_argument("--cold", action="store_true", help="the first time alone, for many short repeats")
    parser.add_argument("--docs", type=int, default=0, help="how many documents")
    parser.add_argument("--repeats", type=int, default=0, help="how often everything is measured")
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    options = parser.parse_args(words)
    docs = options.docs or (100 if options.quick else 1000)
    repeats = options.repeats or (1 if options.quick else 3)
    sizes = Sizes(repeats=repeats, wait=0.0 if options.quick else 20.0)
    cold = " --cold" if options.cold else ""
    report = Report(command=f"python -m bench.indexing{cold} --docs {docs} --repeats {repeats}")
    _measure(report, sizes, docs, PHASES[:1] if options.cold else PHASES)
    report.print()
    if options.json:
        report.write_json(options.json)
    missed = any(result.verdict == "miss" for result in report.results)
    return 1 if options.strict and missed else 0


def _measure(report: Report, sizes: Sizes, docs: int, phases: Sequence[str]) -> None:
    systems: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
        OURS: lambda corpus, state: indexing_command.index(str(corpus), str(state))
    }
    systems |= _peers(report)
    rates: dict[tuple[str, str], list[float]] = {}
    tokens: list[float] = []
    paid_again = 0.0
    # All folders go at the end: a file system without a journal takes its time to make files for minutes
    # after thousands were deleted.
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        for number in range(sizes.repeats):
            for place, (name, run) in enumerate(systems.items()):
                corpus, state = (Path(folder, f"{each}-{number}-{place}") for each in ("corpus", "state"))
                for phase in phases:
                    changed = write(corpus, docs, edited=phase == "edited")
                    state.mkdir(exist_ok=True)
                    report.busy.append(quiet(sizes))
                    told = run(corpus, state)
                    rates.setdefault((name, phase), []).append(told["docs"] / told["seconds"])
                    if name == OURS and phase == "unchanged":
                        paid_again += told["tokens"]
                    if name == OURS and phase == "edited":
                        tokens.append(told["tokens"] / changed)
    _tell(report, rates, tokens, paid_again)


def _tell(
    report: Report, rates: dict[tuple[str, str], list[float]], tokens: list[float], paid_again: float
) -> None:
    for (name, phase), found in rates.items():
        report.add(Result(phase, name, "documents/s", tuple(found)))
    others = [name for name, phase in rates if phase == "cold" and name != OURS]
    for name in others:
        shares = ratios(rates[OURS, "cold"], rates[name, "cold"])
        report.add(Result("cold", f"{OURS} / {name}", "ratio", shares, at_least(2)))
    if (OURS, "unchanged") not in rates:
        return
    if others:
        faster = max(others, key=lambda name: sum(rates[name, "unchanged"]))
        shares = ratios(rates[OURS, "unchanged"], rates[faster, "unchanged"])
        report.add(Result("unchanged", f"{OURS} / {faster}", "ratio", shares, at_least(5)))
    report.add(Result("unchanged", "tokens paid", "tokens", (paid_again,), at_most(0)))
    report.add(
        Result(
            "edited", "tokens paid / tokens of the changed paragraphs", "ratio", tuple(tokens), at_most(1.2)
        )
    )


def _peers(report: Report) -> dict[str, Callable[[Path, Path], dict[str, Any]]]:
    try:
        python = peers.install_indexing()
    except peers.NoPeersError as error:
        report.say(f"No peers ({error}): Holdfast alone was measured.")
        return {}
    return {NAMES[peer]: _peer(python, peer) for peer in NAMES}


def _peer(python: Path, peer: str) -> Callable[[Path, Path], dict[str, Any]]:
    def run(corpus: Path, state: Path) -> dict[str, Any]:
        command = [str(python), "-m", "bench.peer_indexing", peer, str(corpus), str(state)]
        done = subprocess.run(command, cwd=places.ROOT, capture_output=True, text=True, check=True)
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return told

    return run


def paragraph(rng: random.Random) -> str:
    """650 to 950 characters of sentences in no language."""
    target, found, size = rng.randint(650, 950), [], 0
    while size < target:
        sentence = " ".join(rng.choices(WORDS, WEIGHTS, k=rng.randint(8, 16))).capitalize() + "."
        found.append(sentence)
        size += len(sentence) + 1
    return " ".join(found)


def write(folder: Path, docs: int, *, edited: bool) -> float:
    """The corpus is in the folder; the tokens of the paragraphs that the edit changed (at least 1)."""
    folder.mkdir(exist_ok=True)
    changed = 0
    for number in range(docs):
        rng = random.Random(f"document {number}")  # noqa: S311 - texts, not secrets
        paragraphs = [paragraph(rng) for _ in range(rng.randint(8, 12))]
        if edited and number % 10 == 3:
            place = number // 10 % len(paragraphs)
            paragraphs[place] = paragraph(random.Random(f"edit {number}"))  # noqa: S311 - as above
            changed += len(paragraphs[place]) // 4
        Path(folder, f"document-{number:05d}.txt").write_text("\n\n".join(paragraphs))
    return max(1, changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
