"""Relays as real processes: started, killed, told to stop, and none left behind."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from holdfast.chaos.expectations import expect
from holdfast.chaos.waiting import until
from holdfast.chaos.worker_processes import PROGRAM, READY_WITHIN, SHOWN


class RelayProcess:
    """One `holdfast relay`, in a session of its own."""

    def __init__(self, name: str, environment: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [str(PROGRAM), "relay"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
        self.pid = self._process.pid

    def ready(self, seconds: float = READY_WITHIN) -> "RelayProcess":
        """This relay, once it says that it takes orders."""

        def is_ready() -> bool:
            code = self._process.poll()
            expect(code is None, f"{self.name} ended with code {code}\n{self.said()}")
            return "holdfast relay: " in self.log.read_text(errors="replace")

        until(is_ready, seconds, f"{self.name} is not ready\n{self.said()}")
        return self

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """It is gone at once."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._process.wait(10)

    def terminate(self) -> None:
        """It was told to stop; it may still be ending what is in flight."""
        self._process.send_signal(signal.SIGTERM)

    def drained(self, seconds: float = 40.0) -> int:
        """Its exit code, once it has stopped after being told to."""
        until(lambda: not self.running, seconds, f"{self.name} does not stop\n{self.said()}")
        return int(self._process.returncode)

    def said(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"--- {self.name}", *lines[-SHOWN:]])
