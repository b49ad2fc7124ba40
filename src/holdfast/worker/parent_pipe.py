"""A rope from the main process of a worker to its children: when it is let go of, every child knows at once.

It is a pipe that nobody writes to. Reading from it returns when the last holder of the other end has closed
it, which is when the parent lets go, or dies.
"""

import contextlib
import os


class Tether:
    """Made by the parent before the first fork."""

    def __init__(self) -> None:
        self._mine, self._theirs = os.pipe()
        os.set_inheritable(self._mine, True)
        self._parent = os.getpid()
        self._held = True

    def hold(self) -> None:
        """Call it first thing in a child: its own copy of the parent's end would keep the rope tight."""
        if os.getpid() != self._parent and self._held:
            self._held = False
            os.close(self._theirs)

    def wait(self) -> None:
        """Return when the parent has let go."""
        with contextlib.suppress(OSError):
            os.read(self._mine, 1)

    def let_go(self) -> None:
        """Every child is told to stop. May be called again, and from a signal handler."""
        if os.getpid() == self._parent and self._held:
            self._held = False
            os.close(self._theirs)
