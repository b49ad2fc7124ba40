"""Memory shared by a worker's processes, from which the main process sees their progress.

Only a child writes its own row; the main process reads. A number is eight bytes and is written atomically, so
no lock is needed. Times are seconds of the boot-time clock, the same in every process.
"""

import mmap
import os
from enum import StrEnum

from holdfast.clock import boot_time
from holdfast.core.states import Skip
from holdfast.engine import processes
from holdfast.engine.events import Claimed, Done, Ending, Renewed


class Mark(StrEnum):
    """What a child records about itself, apart from counts."""

    PID = "pid"
    UP_AT = "up_at"
    TASK = "task"
    EPOCH = "epoch"
    BEGAN = "began"
    ORDERS_UNTIL = "orders_until"
    BUSY_SINCE = "busy_since"
    HARD_AT = "hard_at"
    LAST_CLAIM = "last_claim"
    LAST_RENEWAL = "last_renewal"
    LAST_WAKE = "last_wake"
    LAST_END = "last_end"
    LAST_SIGN = "last_sign"


class Left(StrEnum):
    """What the previous child of this row was running when it died."""

    PID = "left_pid"
    BEGAN = "left_began"
    TASK = "left_task"
    EPOCH = "left_epoch"


class ChildCounter(StrEnum):
    """What a child counts, apart from endings and skips. Counts outlive the child."""

    CLAIMS = "claims"
    RENEWALS = "renewals"
    LEASES_LOST = "leases_lost"
    WAKE_UPS = "wake_ups"
    SPARE = "spare_wake_ups"
    REDELIVERED = "redelivered"
    DELIVERIES = "deliveries"
    STORE_AWAY = "database_away"
    STRANGE = "strange_messages"


COUNTS = [
    *(count.value for count in ChildCounter),
    *(f"ended_{ending}" for ending in Ending),
    *(f"skipped_{skip}" for skip in Skip),
]
_FIELDS = {name: index for index, name in enumerate([*Mark, *Left, *COUNTS])}


class ChildRow:
    """The row of one child."""

    def __init__(self, numbers: "memoryview[float]") -> None:
        self._numbers = numbers

    def __getitem__(self, name: str) -> float:
        return self._numbers[_FIELDS[name]]

    def __setitem__(self, name: str, value: float) -> None:
        self._numbers[_FIELDS[name]] = value

    def add(self, name: str) -> None:
        """Increment a count."""
        self._numbers[_FIELDS[name]] += 1

    def enter(self) -> None:
        """Take the row for this process; its counts stay, and what the previous process left unfinished."""
        if self[Mark.TASK]:
            self[Left.TASK] = 0.0
            self[Left.PID], self[Left.BEGAN] = self[Mark.PID], self[Mark.BEGAN]
            self[Left.EPOCH], self[Left.TASK] = self[Mark.EPOCH], self[Mark.TASK]
        for mark in Mark:
            self[mark] = 0.0
        self[Mark.BEGAN] = float(processes.began(os.getpid()))
        self[Mark.PID] = float(os.getpid())
        self[Mark.UP_AT] = boot_time()
        self.show_life()

    def show_life(self) -> None:
        """Record that this process's threads run."""
        self[Mark.LAST_SIGN] = boot_time()

    def note(self, event: Claimed | Renewed | Done) -> None:
        """Record an event of the engine."""
        now = boot_time()
        match event:
            case Claimed(claim, hard_at):
                self.add(ChildCounter.CLAIMS)
                self[Mark.LAST_CLAIM] = self[Mark.BUSY_SINCE] = now
                self[Mark.HARD_AT], self[Mark.EPOCH] = hard_at, float(claim.epoch)
                self[Mark.TASK] = float(claim.task_id)
            case Renewed(_, granted):
                self.add(ChildCounter.RENEWALS if granted else ChildCounter.LEASES_LOST)
                self[Mark.LAST_RENEWAL] = now
            case Done(_, ending):
                self.add(f"ended_{ending}")
                self[Mark.LAST_END] = now
                self.rest()

    def rest(self) -> None:
        """Record that no task is running."""
        self[Mark.TASK] = self[Mark.BUSY_SINCE] = self[Mark.HARD_AT] = 0.0

    def note_orders(self, until: float) -> None:
        """Record until when answers to orders in flight are due; 0 if there are none."""
        self[Mark.ORDERS_UNTIL] = until

    @property
    def pid(self) -> int:
        """The process that has the row; 0 if none has."""
        return int(self[Mark.PID])

    def silent_for(self, now: float) -> float:
        """Seconds since a busy process last reported; 0 for an idle one."""
        return now - max(self[Mark.LAST_SIGN], self[Mark.BUSY_SINCE]) if self.busy else 0.0

    @property
    def busy(self) -> bool:
        """True while a task is running."""
        return self[Mark.BUSY_SINCE] > 0


class PoolState:
    """One row per child. Create it before the first fork."""

    def __init__(self, rows: int) -> None:
        width = len(_FIELDS) * 8
        self._memory = mmap.mmap(-1, rows * width)  # shared with every process forked from here
        numbers = memoryview(self._memory).cast("d")
        self.rows = [
            ChildRow(numbers[index * len(_FIELDS) : (index + 1) * len(_FIELDS)]) for index in range(rows)
        ]

    def total(self, name: str) -> int:
        """A count over all children so far."""
        return int(sum(row[name] for row in self.rows))

    def latest(self, name: str) -> float:
        """The latest value of a time over all children; 0 for never."""
        return max(row[name] for row in self.rows)

    def taken(self) -> list[ChildRow]:
        """The rows of the children that are alive.

        The row of a dead child is not cleared here: that could wipe out its successor.
        """
        return [row for row in self.rows if row.pid and _is_alive(row.pid)]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
