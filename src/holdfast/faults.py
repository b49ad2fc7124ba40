"""Named fault points at every commit and every send. They do nothing unless armed.

A test arms one handler for the process; the handler may raise, block on a barrier, freeze or kill. Names have
the form `verb.moment`: `finish.commit` is just before the commit of `finish`, `finish.committed` just after
it, before the caller knows. `send.first_byte` is just before the first byte of an order, `send.piece` after a
piece of a streamed answer, `send.answered` just after all of it was read; `post` has the same moments for an
event that is delivered.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Handler = Callable[[str], None]

_handler: Handler | None = None


class Crash(BaseException):
    """Raised by a handler to end a simulated process. Nothing may catch it."""


def point(name: str) -> None:
    """Call the armed handler, if there is one."""
    if _handler is not None:
        _handler(name)


def arm(handler: Handler | None) -> None:
    """Make `handler` meet every fault point of this process; None disarms."""
    global _handler  # noqa: PLW0603 - one handler per process is the point
    _handler = handler


@contextmanager
def armed(handler: Handler) -> Iterator[None]:
    """Arm for the length of a block."""
    arm(handler)
    try:
        yield
    finally:
        arm(None)
