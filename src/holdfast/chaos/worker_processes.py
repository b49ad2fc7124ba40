"""Workers as real process trees: started, killed, frozen, thawed, told to stop, and none left behind."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.chaos.expectations import expect
from holdfast.chaos.waiting import until
from holdfast.clock import boot_time

PROGRAM = Path(sys.executable).with_name("holdfast")
LANES = "interactive,bulk,follow-up"
READY_WITHIN = 60.0
DRAINED_WITHIN = 40.0
SHOWN = 60
_HEALTH = re.compile(r"health: http://127\.0\.0\.1:(\d+)")


class WorkerProcess:
    """One `holdfast worker` with its children, in a session of its own."""

    def __init__(self, name: str, environment: Mapping[str, str], folder: Path, concurrency: int) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        words = ["worker", "--name", name, "--lanes", LANES, "--concurrency", str(concurrency)]
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [str(PROGRAM), *words, "--health-port", "0"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
        self.pid = self._process.pid

    def ready(self, seconds: float = READY_WITHIN) -> "WorkerProcess":
        """This worker, once it says that it can work."""

        def is_ready() -> bool:
            code = self._process.poll()
            expect(code is None, f"{self.name} ended with code {code}\n{self.said()}")
            return self.health("/readyz")[0] == 200

        until(is_ready, seconds, f"{self.name} is not ready\n{self.said()}")
        return self

    def health(self, path: str) -> tuple[int, Any]:
        """What it answers on its health port; status 0 when it answers nothing."""
        address = _HEALTH.search(self.log.read_text(errors="replace"))
        if address is None:
            return 0, None
        connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()
        with contextlib.suppress(ValueError):
            return answer.status, json.loads(body)
        return answer.status, body

    def tree(self) -> set[int]:
        """The live processes of its session."""
        return {pid for pid, state in _session(self.pid).items() if state not in "ZX"}

    def owns(self, owner: str | None) -> bool:
        """Whether a claim's owner is one of its processes."""
        return owner is not None and owner.partition("/")[0] == self.name

    def kill(self) -> tuple[float, float]:
        """Parent and children are gone; answers when, by the wall and by the clock since boot."""
        at = time.time(), boot_time()
        self._signal(signal.SIGKILL)
        self._gone()
        return at

    def freeze(self) -> float:
        """Every process of it stands still; answers since when, by the clock since boot."""
        self._signal(signal.SIGSTOP)
        until(lambda: set(_session(self.pid).values()) <= set("TtZX"), 10, f"{self.name} does not freeze")
        return boot_time()

    def thaw(self) -> None:
        """It goes on as if nothing had happened."""
        self._signal(signal.SIGCONT)

    def terminate(self) -> None:
        """It was told to stop; it may still be settling what is in flight."""
        os.kill(self.pid, signal.SIGTERM)

    def drained(self, seconds: float = DRAINED_WITHIN) -> int:
        """Its exit code, once it has stopped after being told to; nothing of it is left."""
        until(lambda: self._process.poll() is not None, seconds, f"{self.name} does not stop\n{self.said()}")
        self._gone()
        return self._process.returncode

    @property
    def running(self) -> bool:
        """Whether its parent process runs."""
        return self._process.poll() is None

    def clear(self) -> None:
        """Nothing of it is left, whatever state it was in. SIGKILL also ends what is frozen."""
        self._signal(signal.SIGKILL)
        self._gone()

    def said(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"--- {self.name}", *lines[-SHOWN:]])

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        for pid in self.tree():
            # A child that made a group of its own is still of this session.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _gone(self) -> None:
        self._process.wait(10)
        until(lambda: not self.tree(), 10, f"{self.name} left processes behind: {self.tree()}")


def _session(leader: int) -> dict[int, str]:
    """The processes of a session, and the state of each."""
    states = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == leader:
            states[int(path.name)] = fields[0]
    return states
