"""What the code needs from the process it runs in: a clock, sleep, randomness, threads.

The real host uses threads and the boot-time clock; the simulator has its own. Local clocks may only make a
worker stop sooner: leases are judged by the database clock.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Lock(Protocol):
    """A lock file of another process; it is the same file only if device and inode are the same."""

    @property
    def path(self) -> str:
        """Its path."""
        ...

    @property
    def device(self) -> str:
        """The device it is on."""
        ...

    @property
    def inode(self) -> str:
        """Its inode on that device."""
        ...


class Host(Protocol):
    """The process around the engine."""

    def clock(self) -> float:
        """Seconds of a clock that continues while the machine sleeps and never jumps."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after about `seconds`."""
        ...

    def token(self) -> str:
        """A fresh random id of 32 hex digits."""
        ...

    def jitter(self) -> float:
        """A random number in [0, 1)."""
        ...

    def gather(self, jobs: Sequence[Callable[[], T]], limit: int) -> list[T]:
        """Run the jobs, at most `limit` at once; results in order. All end before an error is raised."""
        ...

    def process(self) -> str:
        """A name of this process by which others can find out that it has died; "" if there is none."""
        ...

    def parent(self) -> str:
        """The same for the process that started this one."""
        ...

    def has_died(self, process: str) -> bool:
        """True if the process of this name has provably ended; False also if that cannot be known here."""
        ...

    def lock_is_free(self, lock: Lock) -> bool:
        """True if the process that held this lock has provably ended; False also if that cannot be known."""
        ...
