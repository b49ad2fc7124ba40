"""The board: memory that a worker's processes share, so that the main one can prove progress.

Each child writes its own row, and nobody else does; the main process reads. A number is eight bytes and is
written whole, so no lock is needed. Times are seconds of the boot-time clock, the same in every process.
"""

import mmap
import os
from enum import StrEnum

from holdfast.clock import boot_time
from holdfast.core.states import Skip
from holdfast.engine import processes
from holdfast.engine.events import Claimed, Done, Ending, Renewed


class Mark(StrEnum):
    """What a child notes about itself, apart from counts."""

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
    """What the child before this one had in hand when it died: it had no time to say so itself."""

    PID = "left_pid"
    BEGAN = "left_began"
    TASK = "left_task"
    EPOCH = "left_epoch"


class ChildCounter(StrEnum):
    """What a child counts, apart from endings and skips. Counts outlive the child that made them."""

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
_FIELDS = {name: place for place, name in enumerate([*Mark, *Left, *COUNTS])}


class ChildRow:
    """The row of one child."""

    def __init__(self, numbers: "memoryview[float]") -> None:
        self._numbers = numbers

    def __getitem__(self, name: str) -> float:
        return self._numbers[_FIELDS[name]]

    def __setitem__(self, name: str, value: float) -> None:
        self._numbers[_FIELDS[name]] = value

    def add(self, name: str) -> None:
        """One more."""
        self._numbers[_FIELDS[name]] += 1

    def enter(self) -> None:
        """This process has the row now; the counts of whoever had it before stay, and what it left undone."""
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
        """This process runs, and no code of a task keeps its threads from running."""
        self[Mark.LAST_SIGN] = boot_time()

    def note(self, happening: Claimed | Renewed | Done) -> None:
        """Write down what the engine tells."""
        now = boot_time()
        match happening:
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
        """No task is in hand."""
        self[Mark.TASK] = self[Mark.BUSY_SINCE] = self[Mark.HARD_AT] = 0.0

    def note_orders(self, until: float) -> None:
        """Answers to orders in flight are due until then; 0 when there is none."""
        self[Mark.ORDERS_UNTIL] = until

    @property
    def pid(self) -> int:
        """The process that has the row; 0 when nobody has."""
        return int(self[Mark.PID])

    def silent_for(self, now: float) -> float:
        """For how many seconds a process with a task in hand has shown no sign of life; 0 for one at rest."""
        return now - max(self[Mark.LAST_SIGN], self[Mark.BUSY_SINCE]) if self.busy else 0.0

    @property
    def busy(self) -> bool:
        """True while a task is in hand."""
        return self[Mark.BUSY_SINCE] > 0


class Board:
    """One row per child. Make it before the first fork."""

    def __init__(self, rows: int) -> None:
        width = len(_FIELDS) * 8
        self._memory = mmap.mmap(-1, rows * width)  # shared with every process forked from here
        numbers = memoryview(self._memory).cast("d")
        self.rows = [
            ChildRow(numbers[place * len(_FIELDS) : (place + 1) * len(_FIELDS)]) for place in range(rows)
        ]

    def total(self, name: str) -> int:
        """A count over all children that ever were."""
        return int(sum(row[name] for row in self.rows))

    def latest(self, name: str) -> float:
        """The latest of a time over all children; 0 when it never was."""
        return max(row[name] for row in self.rows)

    def taken(self) -> list[ChildRow]:
        """The rows of the children that are alive.

        Only a child writes to its row, also when it has died: a clean-up here could wipe out its successor.
        """
        return [row for row in self.rows if row.pid and _is_alive(row.pid)]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
