"""The whole body of a measured job: one 16-byte append that says which job started, and when.

Peers run this file in an environment of their own, so it needs the standard library alone.
"""

import os
import struct
import sys
import time
from pathlib import Path

MARK = struct.Struct("<qd")


class Marks:
    """A file that any number of processes append to; the monotonic clock is one for all of them."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, job: int) -> None:
        """Job `job` has started now."""
        os.write(self._file, MARK.pack(job, time.monotonic()))

    def count(self) -> int:
        """How many jobs have started."""
        return self.path.stat().st_size // MARK.size

    def read(self) -> list[tuple[int, float]]:
        """Every start so far: job and time."""
        return list(MARK.iter_unpack(self.path.read_bytes()))

    def close(self) -> None:
        """No more is added through this object."""
        os.close(self._file)


def wait_for_go() -> None:
    """Everything is imported and connected: tell the parent, and start when it says so."""
    print("ready", flush=True)
    sys.stdin.readline()
