"""The real process: boot-time clock, threads, randomness."""

import contextvars
import os
import random
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.clock import boot_time
from holdfast.core.ports import Lock
from holdfast.engine import lock_files, processes

T = TypeVar("T")


class ThreadHost:
    """The host of a real worker."""

    def clock(self) -> float:
        """Seconds since boot, suspended time included."""
        return boot_time()

    def sleep(self, seconds: float) -> None:
        """Return after about `seconds`."""
        time.sleep(max(0.0, seconds))

    def token(self) -> str:
        """A fresh random id of 32 hex digits."""
        return secrets.token_hex(16)

    def jitter(self) -> float:
        """A random number in [0, 1)."""
        return random.random()  # noqa: S311 - spreads load, guards nothing

    def gather(self, jobs: Sequence[Callable[[], T]], limit: int) -> list[T]:
        """Run the jobs, at most `limit` at once; results in order. All end before an error is raised."""
        if len(jobs) == 1:
            return [jobs[0]()]
        with ThreadPoolExecutor(
            max_workers=max(1, min(limit, len(jobs))), thread_name_prefix="holdfast-pay"
        ) as pool:
            # Each with the context of this thread, so that its logs and traces belong to the same work.
            futures = [pool.submit(contextvars.copy_context().run, job) for job in jobs]
        return [future.result() for future in futures]

    def process(self) -> str:
        """The name of this process."""
        return processes.name_of(os.getpid())

    def parent(self) -> str:
        """The name of the process that started this one."""
        return processes.name_of(os.getppid())

    def has_died(self, process: str) -> bool:
        """True if the process of this name has provably ended."""
        return processes.has_died(process)

    def lock_is_free(self, lock: Lock) -> bool:
        """True if the process that held this lock has provably ended."""
        return lock_files.is_free(lock)
