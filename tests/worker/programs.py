"""`holdfast` as a real process tree in a session of its own: started, signalled, listened to, never left."""

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

from holdfast.chaos.waiting import until

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).with_name("holdfast")
_HEALTH = re.compile(r"health: http://127\.0\.0\.1:(\d+)")


class ProcessGroup:
    """The process that programs are forked from; it is started with the first and ends with this one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def bear(self, words: tuple[str, ...], environment: Mapping[str, str], log: Path) -> int:
        """The process id of a new program."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.worker.child_processes"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env=os.environ | {"AUTOSCALE_KEEPALIVE": "1"},  # Celery reads it when it is loaded
                start_new_session=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        requested = {"words": words, "environment": dict(environment), "log": str(log)}
        self._process.stdin.write(json.dumps(requested) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """It has ended."""
        if self._process is not None:
            self._process.communicate()
            self._process = None


NURSERY = ProcessGroup()


class Program:
    """One `holdfast` command with everything it starts."""

    def __init__(self, words: tuple[str, ...], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        log.touch()
        self.pid = NURSERY.bear(words, environment, log)

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        with contextlib.suppress(FileNotFoundError):
            return int(Path(f"{self.log}.code").read_text())
        return None

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def says(self, pattern: str, seconds: float = 30.0) -> re.Match[str]:
        """The first place in its log that matches."""

        def found() -> re.Match[str] | None:
            match = re.search(pattern, self.said())
            assert match or self.poll() is None, f"it ended without {pattern!r}:\n{self.said()}"
            return match

        return until(found, seconds, f"it never says {pattern!r}", every=0.05)

    def ready(self, seconds: float = 40.0) -> "Program":
        """This worker, once it says that it can work."""

        def is_ready() -> bool:
            assert self.poll() is None, f"it ended:\n{self.said()}"
            return self.health("/readyz")[0] == 200

        until(is_ready, seconds, f"it is not ready: {self.log}")
        return self

    def health(self, path: str) -> tuple[int, Any]:
        """Status and answer of its health port; status 0 when it answers nothing."""
        hits = _HEALTH.search(self.said())
        if hits is None:
            return 0, None
        connection = http.client.HTTPConnection("127.0.0.1", int(hits[1]), timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()
        return answer.status, json.loads(body) if path.startswith(("/healthz", "/readyz")) else body

    def tell(self, number: signal.Signals = signal.SIGTERM, *, group: bool = False) -> None:
        """The signal was sent, to the main process or to all of its group."""
        (os.killpg if group else os.kill)(self.pid, number)

    def ended(self, seconds: float) -> tuple[int, float]:
        """Exit code, and how long it took until nothing of it was left."""
        began = time.monotonic()
        until(lambda: self.poll() is not None, seconds, f"it does not end:\n{self.said()}")
        until(lambda: not self.tree(), 5.0, f"it left processes behind: {self.tree()}\n{self.said()}")
        code = self.poll()
        assert code is not None
        return code, time.monotonic() - began

    def tree(self) -> set[int]:
        """The live processes of its session, and of the sessions that those have begun."""
        parents, leaders = _processes()
        result = {pid for pid, leader in leaders.items() if leader == self.pid}
        while more := {pid for pid, parent in parents.items() if parent in result} - result:
            result |= more
        return result

    def clear(self) -> None:
        """Nothing of it is left, whatever state it was in."""
        for pid in self.tree() | {self.pid}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: self.poll() is not None and not self.tree(), 10, "it cannot be killed")


def _processes() -> tuple[dict[int, int], dict[int, int]]:
    """Parent and session of every live process."""
    parents, leaders = {}, {}
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] not in "ZX":
            parents[int(path.name)], leaders[int(path.name)] = int(fields[1]), int(fields[3])
    return parents, leaders
