"""Measures real Celery workers of Holdfast on each broker, beside the peers on the same PostgreSQL.

    python -m bench.workers [--quick] [--json FILE] [--strict]

Drain: everything is requested beforehand, one worker with two processes is up, and the clock runs from the
first job start to the last; the wake-ups that start it go through the real broker. Latency: a request to an
idle worker until its task runs. Rest: what an idle worker weighs (PSS of all its processes) and asks of the
database.
"""

import argparse
import contextlib
import os
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from bench import drain, peers, places
from bench.marks import Marks
from bench.results import Report, Result, at_least, at_most, percentile, ratios
from bench.sizes import FULL, QUICK, Sizes, quiet
from holdfast import bootstrap, settings
from holdfast.core.records import Ask
from holdfast.store.base import dialect
from holdfast.worker import sender
from scripts.services import state

KINDS = "bench.worker_kinds:make"
BOOT = 60.0
REST = 10.0


@dataclass(frozen=True, slots=True)
class Stack:
    """A broker with its database."""

    name: str
    database: str
    broker: str = ""
    latency: float = 30.0


STACKS = (
    Stack("RabbitMQ + PostgreSQL", places.POSTGRESQL, "rabbitmq"),
    Stack("Redis + PostgreSQL", places.POSTGRESQL, "redis"),
    Stack("embedded + SQLite", places.SQLITE, latency=150.0),
)


@dataclass(slots=True)
class Installation:
    """One stack with a worker of two processes, up and idle."""

    environment: dict[str, str]
    marks: Marks
    url: str


def main(words: Sequence[str]) -> int:
    """The exit code: 0, also on a miss, unless --strict."""
    parser = argparse.ArgumentParser(prog="bench.workers", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it work, not how fast it is")
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    options = parser.parse_args(words)
    sizes = QUICK if options.quick else FULL
    report = Report(command=f"python -m bench.workers{' --quick' if options.quick else ''}")
    try:
        _measure(report, sizes)
    except places.NoServerError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    report.print()
    if options.json:
        report.write_json(options.json)
    missed = any(result.verdict == "miss" for result in report.results)
    return 1 if options.strict and missed else 0


def _measure(report: Report, sizes: Sizes) -> None:
    others = _peers(report)
    drained: dict[str, list[float]] = {
        name: [] for name in (*(s.name for s in STACKS), *(p.name for p in others))
    }
    for number in range(sizes.repeats):
        for stack in STACKS:
            report.busy.append(quiet(sizes))
            drained[stack.name].append(_drain(stack, sizes))
        for peer in others:
            report.busy.append(quiet(sizes))
            drained[peer.name].append(drain.of_peer(peer, sizes.jobs)[0])
        print(f"bench: repeat {number + 1} of {sizes.repeats}", file=sys.stderr)
    for name, rates in drained.items():
        report.add(Result("drain", name, "tasks/s", tuple(rates)))
    wanted = {peers.DBOS.name: at_least(1.5), peers.PROCRASTINATE.name: at_least(0.5)}
    for stack in STACKS[:2]:
        for peer in others:
            shares = ratios(drained[stack.name], drained[peer.name])
            report.add(Result("drain", f"{stack.name} / {peer.name}", "ratio", shares, wanted.get(peer.name)))
    for stack in STACKS:
        report.busy.append(quiet(sizes))
        _rest(report, stack, sizes)


def _peers(report: Report) -> tuple[peers.Peer, ...]:
    try:
        peers.install()
    except peers.NoPeersError as error:
        report.say(f"No peers ({error}): Holdfast alone was measured.")
        return ()
    return (peers.DBOS, peers.PROCRASTINATE)


def _drain(stack: Stack, sizes: Sizes) -> float:
    with installed(stack) as place:
        _ask_all(place, sizes.jobs)
        if stack.database == places.POSTGRESQL:
            places.settle()
        with worker(place.environment):
            rate = drain.rate(place.marks, sizes.jobs)
            drain.all_published(place.url, sizes.jobs)
            return rate


def _rest(report: Report, stack: Stack, sizes: Sizes) -> None:
    with installed(stack) as place, worker(place.environment) as pid:
        with _requester(place) as ask:
            waits = [_latency(place, ask, number) for number in range(sizes.samples // 5)]
        report.add(
            Result(
                "latency", f"{stack.name}, p50", "ms", (statistics.median(waits),), at_most(stack.latency)
            ),
            Result("latency", f"{stack.name}, p99", "ms", (percentile(waits, 0.99),)),
            Result("rest", f"{stack.name}, worker of 2", "MiB PSS", (_pss(pid),), at_most(200)),
        )
        if stack.database == places.POSTGRESQL:
            report.add(
                Result("rest", f"{stack.name}, database", "transactions/s", (_asked(place.url),), at_most(5))
            )


def _latency(place: Installation, ask: Callable[[int], object], number: int) -> float:
    time.sleep(0.15 + secrets.randbelow(100) / 1000)  # idle, and not in step with any pace
    job = 1_000_000 + number
    before = place.marks.count()
    asked = time.monotonic()
    ask(job)
    while place.marks.count() == before:
        if time.monotonic() - asked > BOOT:
            raise drain.LostError("an idle worker did not take a task")
        time.sleep(0.0005)
    return (place.marks.read()[-1][1] - asked) * 1000


@contextlib.contextmanager
def installed(stack: Stack) -> Iterator[Installation]:
    """An installation of its own, with nothing in it."""
    with contextlib.ExitStack() as undo:
        url = undo.enter_context(places.fresh(stack.database))
        folder = undo.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-"))
        marks = Marks(f"{folder}/marks")
        undo.callback(marks.close)
        environment = {
            "HOLDFAST_DATABASE_URL": url,
            "HOLDFAST_DATA_DIR": folder,
            "HOLDFAST_KINDS": KINDS,
            "HOLDFAST_LOG_LEVEL": "warning",
            "BENCH_MARKS": str(marks.path),
        }
        if stack.broker:
            environment["HOLDFAST_BROKER_URL"] = undo.enter_context(_broker(stack.broker))
        yield Installation(environment, marks, url)


@contextlib.contextmanager
def _broker(name: str) -> Iterator[str]:
    """A broker that nothing is left in, and that nobody else uses meanwhile."""
    entry = state.read().get(name, {})
    if "url" not in entry:
        raise places.NoServerError(f"no {name}: run `make bench`")
    address = str(entry["url"])
    if name == "redis":
        address = f"{address.rstrip('/')}/13"
    _purge(name, address)
    try:
        yield address
    finally:
        _purge(name, address)


def _purge(name: str, address: str) -> None:
    from kombu import Connection  # noqa: PLC0415 - only here

    with Connection(address) as connection:
        channel: Any = connection.default_channel
        if name == "redis":
            channel.client.flushdb()
            return
        for lane in ("interactive", "bulk", "follow-up"):
            fresh = connection.channel()
            with contextlib.suppress(Exception):
                fresh.queue_delete(f"holdfast.{lane}")


@contextlib.contextmanager
def _requester(place: Installation) -> Iterator[Callable[[int], object]]:
    with _environment(place):
        loaded = settings.load()
        sending = sender.open_sender(loaded)
        with bootstrap.open_runtime(loaded, sender=sending) as runtime:
            yield lambda job: runtime.engine.request(Ask(kind="noop", subject=f"job:{job}"))
        sending.close()


@contextlib.contextmanager
def _environment(place: Installation) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(place.environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _ask_all(place: Installation, jobs: int) -> None:
    with _requester(place) as ask:
        for job in range(jobs):
            ask(job)


def whole(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process of this installation."""
    return {**os.environ, **environment, "PYTHONPATH": str(places.ROOT), "HOLDFAST_LOG_LEVEL": "info"}


@contextlib.contextmanager
def worker(environment: Mapping[str, str], more: Sequence[str] = ()) -> Iterator[int]:
    """A worker of two processes, up and idle; its process id."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.cli", "worker", "--concurrency", "2", *more],
            cwd=places.ROOT,
            env=whole(environment),
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
        try:
            _ready(process, said)
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _ready(process: "subprocess.Popen[bytes]", said: "tempfile._TemporaryFileWrapper[str]") -> None:
    until = time.monotonic() + BOOT
    while time.monotonic() < until:
        said.seek(0)
        words = said.read()
        if process.poll() is not None:
            raise drain.LostError(f"the worker ended: {words[-1500:]}")
        if "health: " in words:
            address = words.split("health: ", 1)[1].split()[0]
            answer = urllib.request.urlopen
            with contextlib.suppress(OSError), answer(f"{address}/readyz", timeout=2):
                return
        time.sleep(0.1)
    raise drain.LostError("the worker did not become ready")


def _pss(pid: int) -> float:
    """Mebibytes of a process and all below it, each shared page counted once."""
    total = 0
    for each in [pid, *_children(pid)]:
        for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def rss(pid: int) -> float:
    """Mebibytes that a process has now."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def peak_rss(pid: int) -> float:
    """Mebibytes that the largest process below `pid` ever had."""
    most = 0
    for each in _children(pid):
        for line in Path(f"/proc/{each}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                most = max(most, int(line.split()[1]))
    return most / 1024


def _children(pid: int) -> list[int]:
    found = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [below for each in found for below in _children(each)]


def _asked(url: str) -> float:
    """Transactions a second that an idle installation makes."""
    counted = text(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    )
    engine = create_engine(dialect.parse(url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_stat_clear_snapshot()"))
        before = connection.execute(counted).scalar_one()
        time.sleep(REST)
        connection.execute(text("SELECT pg_stat_clear_snapshot()"))
        after = connection.execute(counted).scalar_one()
    engine.dispose()
    return (after - before) / REST


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
