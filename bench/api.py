"""Measures the HTTP API under load while documents are indexed: duplicates, reads and small uploads, mixed.

    python -m bench.api [--quick] [--uploads N] [--json FILE] [--strict]

200 requests a second: of twenty, five are duplicates that must be refused, `--uploads` (two) are small texts
that a worker of two processes indexes meanwhile, and the others are reads: a document, a page of fifty, a
search. Everything is on this machine, with the settings for that (`SETTINGS`). Seconds count from
when a request was due, not from when it was sent. Then: what 500 listeners that hear nothing cost.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import load, places, workers
from bench.results import Report, Result, at_least, at_most, percentile
from bench.sizes import QUICK, Sizes, quiet

RATE = 200.0
LISTENERS = 500
PATIENCE = 180.0
# No pooler stands before PostgreSQL, and the worker shares its machine with the API.
SETTINGS = {"HOLDFAST_DATABASE_PREPARE": "true", "HOLDFAST_WORKER_NICE": "5"}
# Mebibytes that the API may grow while thousands of documents come into what its searches keep in memory.
GROWTH = 32
WORDS = tuple("anchor rope harbour lighthouse tide keel compass mast sail storm chart pilot quay fog".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Place:
    """An API with a worker behind it; one document of it waits in a lane that nobody serves."""

    host: str
    port: int
    pid: int
    waiting: str

    @property
    def address(self) -> tuple[str, int]:
        """Where it is served."""
        return self.host, self.port

    def call(self, method: str, path: str, body: object = None) -> dict[str, object]:
        """The answer to one request, as it is used around the measurement."""
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.host}:{self.port}/api/v1{path}",
            data=sent,
            method=method,
            headers={"Content-Type": "application/json"},
        )
        answer = urllib.request.urlopen
        with answer(request, timeout=30) as told:
            found: dict[str, object] = json.load(told)
            return found


def main(words: Sequence[str]) -> int:
    """The exit code: 0, also on a miss, unless --strict."""
    parser = argparse.ArgumentParser(prog="bench.api", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="10 s instead of 60, 50 listeners")
    parser.add_argument("--uploads", type=int, default=2, help="of twenty requests, 2 unless said")
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    options = parser.parse_args(words)
    report = Report(
        command=f"python -m bench.api{' --quick' if options.quick else ''} --uploads {options.uploads}"
    )
    for stack in (workers.STACKS[0], workers.STACKS[2]):
        report.busy.append(quiet(QUICK if options.quick else Sizes()))
        with _api(stack) as place:
            _say(f"{stack.name}: up")
            _under_load(report, stack, place, 10.0 if options.quick else 60.0, options.uploads)
            _listeners(report, stack, place, 50 if options.quick else LISTENERS)
    report.print()
    if options.json:
        report.write_json(options.json)
    missed = any(result.verdict == "miss" for result in report.results)
    return 1 if options.strict and missed else 0


def _say(words: str) -> None:
    """Told at once: of a run that is cut short, what was measured so far is seen."""
    print(f"bench: {words}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _api(stack: workers.Stack) -> Iterator[Place]:
    with workers.installed(stack) as install, tempfile.TemporaryFile("w+") as said:
        served = ["--lanes", "bulk,follow-up"]
        install.environment.update(SETTINGS)
        with workers.worker(install.environment, served):
            process = subprocess.Popen(
                [sys.executable, "-m", "holdfast.cli", "api", "--port", "0"],
                cwd=places.ROOT,
                env=workers.whole(install.environment),
                stdout=said,
                stderr=subprocess.STDOUT,
                text=True,
            )
            try:
                host, port = _address(process, said)
                place = Place(host, port, process.pid, "")
                place.call("POST", "/collections", {"id": "bench"})
                body = {"text": "It waits.", "title": "waiting", "lane": "interactive"}
                taken = place.call("POST", "/collections/bench/documents", body)
                document = taken["document"]
                assert isinstance(document, dict)
                yield Place(host, port, process.pid, str(document["id"]))
            finally:
                process.terminate()
                process.wait(30)


def _address(
    process: "subprocess.Popen[str]", said: "tempfile._TemporaryFileWrapper[str]"
) -> tuple[str, int]:
    until = time.monotonic() + workers.BOOT
    while time.monotonic() < until and process.poll() is None:
        said.seek(0)
        for line in said.read().splitlines():
            if line.startswith("holdfast api: http://"):
                host, _, port = line.rpartition("/")[2].rpartition(":")
                return host, int(port)
        time.sleep(0.1)
    raise RuntimeError("the API did not start")


def _under_load(report: Report, stack: workers.Stack, place: Place, seconds: float, uploads: int) -> None:
    make = _mixture(place, uploads)
    asyncio.run(load.send(place.address, RATE, 3.0, lambda number: make(-1 - number)))  # warm
    _say(f"{stack.name}: warm; {RATE:g} requests a second for {seconds:g} s")
    busy, own = _processor(place.pid), time.process_time()
    heard, sizes = asyncio.run(_sent(place, seconds, make))
    busy, own = _processor(place.pid) - busy, time.process_time() - own
    _tell(report, stack, heard)
    asked = sum(map(len, heard.seconds.values()))
    wrong = sum(heard.wrong.values())
    cost, ours = 1000 * busy / max(1, asked), 1000 * own / max(1, asked)
    grown = max(sizes) - sizes[0]
    _say(
        f"{stack.name}: {wrong} wrong of {asked}, {cost:.2f} ms of processor each ({ours:.2f} to send it), "
        f"{grown:.0f} MiB more"
    )
    for what, number in heard.wrong.items():
        report.say(f"{stack.name}: {number} x {what}")
    ended = _all_end(place, heard.accepted)
    share = ended / max(1, len(heard.accepted))
    _say(f"{stack.name}: {ended} of {len(heard.accepted)} uploads are ready")
    report.add(
        Result(stack.name, "wrong answers", "requests", (float(wrong),), at_most(0)),
        Result(stack.name, "processor time of the API per request", "ms", (cost,)),
        # The same work in every run: how fast the machine was.
        Result(stack.name, "processor time of the sender per request", "ms", (ours,)),
        Result(stack.name, "memory of the API before, after", "MiB", (sizes[0], sizes[-1])),
        Result(stack.name, "its growth under load", "MiB", (grown,), at_most(GROWTH)),
        Result(stack.name, "accepted uploads that became ready", "share", (share,), at_least(1)),
    )


def _tell(report: Report, stack: workers.Stack, heard: load.Heard) -> None:
    limit = 400.0 if stack.database == places.SQLITE else 50.0
    for name in sorted(heard.seconds):
        found = heard.seconds[name]
        bound = at_most(limit) if name == "duplicate" else None
        told = {part: 1000 * percentile(found, part) for part in (0.5, 0.99)}
        _say(f"{stack.name}: {name} p50 {told[0.5]:.0f} ms, p99 {told[0.99]:.0f} ms of {len(found)}")
        for part, value in told.items():
            shown = f"{name} p{100 * part:.0f}"
            report.add(Result(stack.name, shown, "ms", (value,), bound if part == 0.99 else None))


async def _sent(
    place: Place, seconds: float, make: Callable[[int], load.Request]
) -> tuple[load.Heard, list[float]]:
    """What came of the requests, and the memory of the API second by second meanwhile."""
    sizes = [workers.rss(place.pid)]
    sending = asyncio.create_task(load.send(place.address, RATE, seconds, make))
    while not sending.done():
        await asyncio.wait([sending], timeout=1)
        sizes.append(workers.rss(place.pid))
    return await sending, sizes


def _processor(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _mixture(place: Place, uploads: int) -> Callable[[int], load.Request]:
    again = f"/api/v1/documents/{place.waiting}/index"

    def make(number: int) -> load.Request:
        sort = number % 20
        if sort < uploads:
            words = " ".join(WORDS[(number * step + step) % len(WORDS)] for step in range(1, 60))
            note = {"text": f"Note {number}. {words}.", "title": f"note {number}", "lane": "bulk"}
            body = json.dumps(note).encode()
            return load.Request("upload", "POST", "/api/v1/collections/bench/documents", body, (200, 202))
        if sort >= 15:
            return load.Request("duplicate", "POST", again, b'{"mode": "retry"}', (409,))
        if sort % 3 == 0:
            return load.Request("document", "GET", f"/api/v1/documents/{place.waiting}")
        if sort % 3 == 1:
            return load.Request("page", "GET", "/api/v1/collections/bench/documents?limit=50")
        word = WORDS[number % len(WORDS)]
        return load.Request("search", "GET", f"/api/v1/search?collection=bench&q={word}&k=5")

    return make


def _all_end(place: Place, accepted: Sequence[str]) -> int:
    """How many of these documents are ready in the end; asked for by the page, once nothing is open."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        left = sum(len(_page(place, f"&status={status}")[0]) for status in ("queued", "indexing"))
        if left <= 1:  # the one that waits
            break
        time.sleep(1)
    ready: set[str] = set()
    more: str | None = ""
    while more is not None:
        found, more = _page(place, f"&cursor={more}" if more else "")
        ready |= {str(one["id"]) for one in found if one["ready"]}
    return len(ready & set(accepted))


def _page(place: Place, more: str) -> tuple[list[dict[str, object]], str | None]:
    told: Any = place.call("GET", f"/collections/bench/documents?limit=500{more}")
    return told["documents"], told["next"]


def _listeners(report: Report, stack: workers.Stack, place: Place, number: int) -> None:
    before = workers.rss(place.pid)

    async def measure() -> tuple[int, float]:
        listening = asyncio.create_task(load.listen(place.address, number, 8.0))
        await asyncio.sleep(6)
        during = workers.rss(place.pid)
        return await listening, during

    let_in, during = asyncio.run(measure())
    _say(f"{stack.name}: {let_in} listeners cost {during - before:.0f} MiB")
    report.add(Result(stack.name, "listeners let in", "listeners", (float(let_in),), at_least(number)))
    report.add(Result(stack.name, f"{number} idle listeners", "MiB", (during - before,), at_most(100)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
