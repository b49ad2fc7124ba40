"""For commands that wait: if no worker is running, one is started for the time being."""

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Self

from rich.console import Console

from holdfast.cli import processes, supervisor
from holdfast.core.errors import NotReadyError
from holdfast.service.operations import Operations
from holdfast.service.records import WorkerState

WORKERS_EVERY = 2.0


class Helper:
    """Sees to it that somebody works on `pipeline`: a worker of its own where nobody else does."""

    def __init__(self, operations: Operations, console: Console, pipeline: str) -> None:
        self._operations = operations
        self._console = console
        self._pipeline = pipeline
        self._own: OwnWorker | None = None
        self._look_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.end()

    def see_to_it(self) -> None:
        """Somebody works, as far as a look every few seconds can tell. Call it while waiting."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + WORKERS_EVERY
        if self._own is not None:
            self._own.check()
        elif not self._somebody_works():
            self._console.print("no worker is online; starting one until this command ends", style="quiet")
            self._own = OwnWorker()

    def _somebody_works(self) -> bool:
        return any(
            each.state in {WorkerState.WORKING, WorkerState.STARTING} and self._pipeline in each.pipelines
            for each in self._operations.workers()
        )


class OwnWorker:
    """A worker for as long as this command runs, where nobody else works."""

    def __init__(self) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the worker
        self._process = subprocess.Popen(  # noqa: S603 - our own module, our own words
            processes.command(["worker"]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,
            preexec_fn=supervisor.end_with_parent,  # noqa: PLW1509 - one system call, no lock is taken in it
        )

    def check(self) -> None:
        """Return while it is up; NotReadyError with its last words when it is not."""
        if self._process.poll() is None:
            return
        self._said.seek(0)
        words = self._said.read().decode(errors="replace").strip().splitlines() or ["it printed nothing"]
        raise NotReadyError(f"the worker exited: {words[-1]}", code="worker_ended")

    def end(self) -> None:
        """It has drained and ended."""
        self._process.terminate()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()


@contextlib.contextmanager
def ended_by_a_signal() -> Iterator[None]:
    """SIGTERM unwinds like Ctrl-C, so that a worker of our own is not left behind."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
