"""The worker's side of the processes that run the user's own functions: time limits, and why one died.

A function that hangs, eats memory or crashes takes its process with it, not the worker, which holds the lease
of the task and perhaps paid answers. A process is used by one thread at a time and kept for the next.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.kinds.flows.function_child import MOST_OUTPUT

MIB = 1024 * 1024
# Seconds that importing the module of a function may take beside its first call.
START = 60.0
LOOK_EVERY = 0.5
MOST_ANSWER = 16 * MOST_OUTPUT
_BOOT = (
    "import sys; memory = int(sys.argv[1]); sys.path[:] = sys.argv[2:];"
    " from holdfast.kinds.flows import function_child; function_child.main(memory)"
)


@dataclass(frozen=True, slots=True)
class FunctionLimits:
    """Seconds that a call may take, and bytes of memory that the process may have."""

    seconds: float = 60.0
    memory: int = 2048 * MIB


class FunctionDiedError(Exception):
    """The process has ended; the message says how, as the end of a sentence about the function."""


class FunctionProcess:
    """One process. Used by one thread at a time."""

    def __init__(self, limits: FunctionLimits) -> None:
        self._limits = limits
        self._served = 0
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own arguments
            [sys.executable, "-P", "-c", _BOOT, str(limits.memory)]
            + [str(Path(entry).resolve()) for entry in sys.path if entry],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C in the terminal is for its owner, which closes it
        )
        for pipe in (self._process.stdin, self._process.stdout):
            os.set_blocking(pipe.fileno(), False)  # type: ignore[union-attr]  # PIPE above

    @property
    def is_usable(self) -> bool:
        """True if the process runs."""
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], check: Callable[[], None]) -> dict[str, Any]:
        """The answer; FunctionDiedError if there is none. What `check` raises ends the process, too."""
        seconds = self._limits.seconds + (0.0 if self._served else START)
        self._served += 1
        deadline = time.monotonic() + seconds
        answer: Any = None
        try:
            self._send(json.dumps(request).encode() + b"\n", deadline, check)
            answer = json.loads(self._line(deadline, check))
        except (TimeoutError, OSError, EOFError, ValueError) as error:
            raise FunctionDiedError(self._ended(error)) from None
        finally:
            # An answer that comes later would be taken for that to the next request.
            if not isinstance(answer, dict):
                self.close()
        if not isinstance(answer, dict):
            raise FunctionDiedError("wrote into the pipe of its process")
        return answer

    def close(self) -> None:
        """The process has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._shut()
        self._process.wait()

    def abandon(self) -> None:
        """Drop a process that belongs to the parent of this forked one; it keeps running there."""
        self._shut()
        self._process.returncode = 0

    def _shut(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _send(self, data: bytes, deadline: float, check: Callable[[], None]) -> None:
        descriptor = self._process.stdin.fileno()  # type: ignore[union-attr]  # PIPE above
        rest = memoryview(data)
        while rest:
            _wait(descriptor, select.POLLOUT, deadline, check)
            with contextlib.suppress(BlockingIOError):
                rest = rest[os.write(descriptor, rest) :]

    def _line(self, deadline: float, check: Callable[[], None]) -> bytes:
        descriptor = self._process.stdout.fileno()  # type: ignore[union-attr]  # PIPE above
        line = bytearray()
        while not line.endswith(b"\n"):
            _wait(descriptor, select.POLLIN, deadline, check)
            part = os.read(descriptor, MIB)
            if not part:
                raise EOFError
            line += part
            if len(line) > MOST_ANSWER:
                raise ValueError
        return bytes(line)

    def _ended(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            self.close()
            return f"took longer than {self._limits.seconds:g} s and was stopped"
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(2.0)
        self.close()
        if code is not None and code < 0:
            hint = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
            return f"ended its process by signal {-code}{hint}"
        return "ended its process" if code is not None else "wrote into the pipe of its process"


def _wait(descriptor: int, event: int, deadline: float, check: Callable[[], None]) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    while not poll.poll(1000 * max(0.0, min(LOOK_EVERY, deadline - time.monotonic()))):
        if time.monotonic() >= deadline:
            raise TimeoutError
        check()


class FunctionProcesses:
    """The processes of one owner: as many as functions run at the same time."""

    def __init__(self, limits: FunctionLimits | None = None) -> None:
        self.limits = limits or FunctionLimits()
        self._free: list[FunctionProcess] = []
        self._lock = threading.Lock()
        _every.add(self)

    @contextlib.contextmanager
    def lent(self) -> Iterator[FunctionProcess]:
        """A process for one caller, free again afterwards if it still runs."""
        with self._lock:
            process = self._free.pop() if self._free else None
        if process is None or not process.is_usable:
            process = FunctionProcess(self.limits)
        try:
            yield process
        finally:
            if process.is_usable:
                with self._lock:
                    self._free.append(process)
            else:
                process.close()

    def close(self) -> None:
        """Every process that nobody uses has ended; the next call starts another."""
        with self._lock:
            free, self._free = self._free, []
        for process in free:
            process.close()

    def forked(self) -> None:
        """After a fork: a new lock, because a thread may have held the old one, and no process yet."""
        self._lock = threading.Lock()
        free, self._free = self._free, []
        for process in free:
            process.abandon()


_every: "weakref.WeakSet[FunctionProcesses]" = weakref.WeakSet()


def _after_fork() -> None:
    for processes in list(_every):
        processes.forked()


os.register_at_fork(after_in_child=_after_fork)
