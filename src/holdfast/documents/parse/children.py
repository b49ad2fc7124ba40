"""The owner's side of the parser process: start it, send requests with a time limit, find out why it died.

`subprocess`, not `multiprocessing`: the children of a Celery pool are daemonic and may not start such
processes. Starting Python takes a tenth of a second, so one child serves many documents, and is replaced
after `MOST_REQUESTS`, when it has grown, and after any violation of a limit.
"""

import contextlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.documents.parse import wire
from holdfast.documents.parse.records import MIB, ParseLimits

MOST_REQUESTS = 2000
GROWN = 192 * MIB
LOOK_EVERY = 0.05
# Out-of-memory messages of Rust, C++ and Python.
_STARVED = ("memory allocation of", "bad_alloc", "MemoryError")
_BOOT = (
    "import sys; sys.path[:] = sys.argv[4:];"
    " from holdfast.documents.parse import child; child.main(int(sys.argv[1]), sys.argv[2], sys.argv[3])"
)


class DiedError(Exception):
    """The child has died.

    `cause` is `timeout`, `memory`, `size` (of its answer), `crash`, `killed` (by another process) or `unfit`
    (it could not run at all); `words` is its last output.
    """

    def __init__(self, cause: str, words: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.words = words


class ParserProcess:
    """One running parser process. Used by one thread at a time."""

    def __init__(self, limits: ParseLimits, parsers: Sequence[str] = ()) -> None:
        self._limits = limits
        self._served = 0
        self._resident = 0
        self._largest = 0
        self._waiting = False
        self._said = tempfile.TemporaryFile("a+b")  # noqa: SIM115 (closed with the child)
        # `-I -S` and an explicit path: the child imports what its owner does, and reads no start-up file and
        # nothing from the current folder. An empty environment: its owner's holds keys and passwords.
        # -B: its limit on file sizes would leave a truncated .pyc behind.
        self._channel, theirs = socket.socketpair()
        command = [sys.executable, "-ISB", "-c", _BOOT, str(os.getpid()), json.dumps(asdict(limits))]
        command.append(json.dumps(list(parsers)))
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter, our own arguments)
            command + [str(Path(entry).resolve()) for entry in sys.path if entry],
            stdin=theirs.fileno(),
            stdout=subprocess.PIPE,
            stderr=self._said,
            bufsize=0,
            env={},
            cwd="/",
            start_new_session=True,  # not in the terminal's process group
        )
        theirs.close()

    @property
    def worn(self) -> bool:
        """True if the child should be replaced before the next document.

        An answer that was not read, because of an exception meanwhile, would go to the next document.
        """
        used_up = self._served >= MOST_REQUESTS or self._resident > GROWN
        return used_up or self._waiting or self._process.poll() is not None

    def ask(
        self, request: dict[str, Any], files: Sequence[int] = (), seconds: float | None = None
    ) -> dict[str, Any]:
        """The child's answer, within the time limit. After DiedError the child has ended.

        `files` are the open document and what is known about it; the child gets its own descriptors.
        """
        if self._served:  # output during start-up explains a failure of the first document
            self._said.truncate(0)
        self._served += 1
        self._largest = 0
        self._waiting = True
        allowed = self._limits.seconds if seconds is None else min(seconds, self._limits.seconds)
        deadline = time.monotonic() + allowed
        try:
            self._channel.settimeout(max(0.001, allowed))
            wire.send(self._channel, request, files)
            size = wire.length(self._take(wire.HEADER, deadline))
            if size > self._limits.reply:
                raise DiedError("size")
            answer: dict[str, Any] = json.loads(self._take(size, deadline))
            self._resident = int(answer["resident"])
            self._waiting = False
        except DiedError:
            self.close()
            raise
        except TimeoutError:
            self.close()
            raise DiedError("timeout") from None
        except (OSError, EOFError):
            raise self._autopsy() from None
        except (ValueError, KeyError, TypeError):
            self.close()
            raise DiedError("crash") from None
        return answer

    def close(self) -> None:
        """End the child and close its pipes."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._shut()
        self._process.wait()

    def abandon(self) -> None:
        """Drop a child that belongs to the parent of this forked process; it keeps running there."""
        self._shut()
        self._process.returncode = 0

    def _shut(self) -> None:
        self._channel.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._said.close()

    def _take(self, size: int, deadline: float) -> bytes:
        """Exactly `size` bytes of the answer, or DiedError at the deadline, EOFError at the end."""
        assert self._process.stdout is not None  # noqa: S101 (PIPE above)
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        taken = bytearray()
        while len(taken) < size:
            left = deadline - time.monotonic()
            # An answer that arrived while this process was suspended is accepted.
            if not poll.poll(max(0.0, min(left, LOOK_EVERY)) * 1000):
                if left <= 0:
                    raise DiedError("timeout")
                self._look()
                continue
            part = os.read(self._process.stdout.fileno(), min(size - len(taken), MIB))
            if not part:
                raise EOFError
            taken += part
        return bytes(taken)

    def _look(self) -> None:
        """Record the child's address space while it works: it is unknown after its death."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[0]
            self._largest = max(self._largest, int(pages) * resource.getpagesize())

    def _autopsy(self) -> DiedError:
        """Why the child died.

        Native code crashes when out of memory; its last output or its size distinguish that from a bug.
        """
        code = self._ended()
        self._said.seek(0)
        words = self._said.read().decode("utf-8", "replace").strip()
        self._shut()
        if code == -signal.SIGXCPU:
            return DiedError("timeout")
        if code == -signal.SIGKILL:
            return DiedError("killed")
        if any(sign in words for sign in _STARVED) or self._largest > self._limits.memory * 3 // 4:
            return DiedError("memory")
        return DiedError("crash") if code < 0 else DiedError("unfit", words[-300:])

    def _ended(self) -> int:
        """The exit code of a child that closed its side; killed if it keeps running."""
        try:
            return self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
