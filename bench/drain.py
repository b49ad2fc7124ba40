"""How fast queued no-op tasks are worked off: claim, run, finish, publish. Ours and the peers, in turns.

Everything is requested beforehand. Workers are up, imported and waiting when the clock may start; the rate
counts from the first job start to the last, for all alike, so no boot is in it. Ours ends only when every
run is published, and a job that is missing or ran twice is an error.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select

from bench import peers, places, worker
from bench.marks import Marks
from bench.results import Report, Result, at_least, ratios
from bench.sizes import Sizes, quiet
from holdfast.core.states import Status
from holdfast.store.base.schema import runs
from holdfast.store.features import open_database

PATIENCE = 300.0


class LostError(Exception):
    """A worker died, or not every job was done."""


@dataclass(frozen=True, slots=True)
class Ours:
    """One way of running our workers."""

    name: str
    database: str
    processes: int = 2
    prepare: bool = False


POSTGRESQL = Ours("ours, PostgreSQL", places.POSTGRESQL)
PREPARED = Ours("ours, PostgreSQL, prepared", places.POSTGRESQL, prepare=True)
ONE = Ours("ours, PostgreSQL, 1 process", places.POSTGRESQL, processes=1)
SQLITE = Ours("ours, SQLite", places.SQLITE)
OURS = (POSTGRESQL, PREPARED, ONE, SQLITE)


def measure(report: Report, sizes: Sizes, others: tuple[peers.Peer, ...]) -> None:
    """The rates of everybody, repeats interleaved, so that a busy minute hits all."""
    enqueued: dict[str, list[float]] = {peer.name: [] for peer in others}
    drained: dict[str, list[float]] = {name: [] for name in (*(ours.name for ours in OURS), *enqueued)}
    for _ in range(sizes.repeats):
        for ours in OURS:
            report.busy.append(quiet(sizes))
            drained[ours.name].append(_ours(ours, sizes.jobs))
        for peer in others:
            report.busy.append(quiet(sizes))
            speed, asked = of_peer(peer, sizes.jobs)
            drained[peer.name].append(speed)
            enqueued[peer.name].append(asked)
    _tell(report, drained, enqueued)


def _tell(report: Report, drained: dict[str, list[float]], enqueued: dict[str, list[float]]) -> None:
    bounds = {SQLITE.name: at_least(150)}
    for name, rates in drained.items():
        report.add(Result("drain", name, "tasks/s", tuple(rates), bounds.get(name)))
    wanted = {peers.DBOS.name: at_least(1.5), peers.PROCRASTINATE.name: at_least(0.5)}
    for ours in (POSTGRESQL, PREPARED):
        for name in enqueued:
            shares = ratios(drained[ours.name], drained[name])
            report.add(Result("drain", f"{ours.name} / {name}", "ratio", shares, wanted.get(name)))
    for name in (peer.name for peer in (peers.DBOS, peers.PROCRASTINATE) if peer.name in enqueued):
        rates = enqueued[name]
        report.add(Result("request", f"enqueue, {name}", "tasks/s", tuple(rates)))


def _ours(ours: Ours, jobs: int) -> float:
    with places.fresh(ours.database) as url:
        asking = worker.engine(url)
        for job in range(jobs):
            assert asking.request(worker.ask(job)).created
        asking.db.close()
        if ours.database == places.POSTGRESQL:
            places.settle()
        words = ["prepare"] if ours.prepare else []
        with _marks() as marks:
            command = [sys.executable, "-m", "bench.worker", url, str(marks.path), *words]
            with _workers([command] * ours.processes):
                speed = rate(marks, jobs)
                all_published(url, jobs)
        return speed


def of_peer(peer: peers.Peer, jobs: int) -> tuple[float, float]:
    """Jobs a second that a peer works off, and that it takes in."""
    with places.empty_postgresql() as url, _marks() as marks:
        _call(peer.command("prepare", url))
        asked = float(_call(peer.command("enqueue", url, str(jobs))).split()[-1])
        places.settle()
        command = peer.command("work", url, str(marks.path), str(peer.concurrency))
        with _workers([command] * peer.processes):
            return rate(marks, jobs), asked


@contextlib.contextmanager
def _marks() -> Iterator[Marks]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        marks = Marks(str(Path(folder) / "marks"))
        try:
            yield marks
        finally:
            marks.close()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(places.ROOT)}


def _call(command: list[str]) -> str:
    done = subprocess.run(
        command, cwd=places.ROOT, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LostError(f"{command[2]} failed: {done.stderr[-1500:]}")
    return done.stdout


@contextlib.contextmanager
def _workers(commands: list[list[str]]) -> Iterator[None]:
    with tempfile.TemporaryFile("w+") as errors:
        started = [
            subprocess.Popen(
                command,
                cwd=places.ROOT,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            for command in commands
        ]
        try:
            for process in started:
                if not process.stdout or process.stdout.readline() != "ready\n":
                    raise LostError("a worker did not start")
            for process in started:
                assert process.stdin
                process.stdin.write("go\n")
                process.stdin.flush()
            yield
            if any(process.poll() is not None for process in started):
                raise LostError("a worker ended early")
        except LostError as error:
            errors.seek(0)
            raise LostError(f"{error}: {errors.read()[-1500:]}") from error
        finally:
            _end(started)


def _end(started: "list[subprocess.Popen[str]]") -> None:
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


def rate(marks: Marks, jobs: int) -> float:
    """Jobs a second, from the first start to the last; LostError when one is missing or ran twice."""
    begun = time.monotonic()
    while marks.count() < jobs:
        if time.monotonic() - begun > PATIENCE:
            raise LostError(f"only {marks.count()} of {jobs} jobs were done")
        time.sleep(0.02)
    found = marks.read()
    if sorted(job for job, _ in found) != list(range(jobs)):
        raise LostError("a job is missing or ran twice")
    times = [at for _, at in found]
    return (jobs - 1) / (max(times) - min(times))


PUBLISHED = select(func.count()).select_from(runs).where(runs.c.status == Status.SUCCESS.value)


def all_published(url: str, jobs: int) -> None:
    """Every run has been published; LostError when that takes too long."""
    db = open_database(url)
    begun = time.monotonic()
    while db.read(lambda tx: tx.execute(PUBLISHED).scalar_one()) < jobs:
        if time.monotonic() - begun > PATIENCE:
            raise LostError("not every run was published")
        time.sleep(0.05)
    db.close()
