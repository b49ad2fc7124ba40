"""A pipe from a worker's main process to its children: when the parent closes it, or dies, every child knows.

Nobody writes to it. Reading from it returns once the last holder of the other end has closed it.
"""

import contextlib
import os


class ParentPipe:
    """Created by the parent before the first fork."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_inheritable(self._read_end, True)
        self._parent = os.getpid()
        self._open = True

    def enter_child(self) -> None:
        """Call it first thing in a child: its own copy of the write end would keep the pipe open."""
        if os.getpid() != self._parent and self._open:
            self._open = False
            os.close(self._write_end)

    def wait(self) -> None:
        """Return when the parent has closed the pipe."""
        with contextlib.suppress(OSError):
            os.read(self._read_end, 1)

    def close(self) -> None:
        """Tell every child to stop. May be called again, and from a signal handler."""
        if os.getpid() == self._parent and self._open:
            self._open = False
            os.close(self._write_end)
