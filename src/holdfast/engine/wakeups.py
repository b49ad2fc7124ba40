"""Wake-ups: messages that say "there is work in this lane". They carry no ids; losing one is harmless."""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

MOST_AT_ONCE = 8

log = logging.getLogger(__name__)


class Sender(Protocol):
    """A way to reach the workers. It may fail with an OSError; the sweep repeats lost wake-ups."""

    def wake(self, lane: str) -> None:
        """Announce work in `lane`."""
        ...

    def wake_task(self, task_id: int, lane: str) -> None:
        """Ask the workers of `lane` to try a delivery of this task."""
        ...


class Nobody:
    """Sends nothing: for inline mode, where the caller does the work."""

    def wake(self, lane: str) -> None:
        """Say nothing."""

    def wake_task(self, task_id: int, lane: str) -> None:
        """Say nothing."""


class Recorder:
    """Records what was sent."""

    def __init__(self) -> None:
        self.lanes: Counter[str] = Counter()
        self.tasks: list[int] = []

    def wake(self, lane: str) -> None:
        """Record a wake-up."""
        self.lanes[lane] += 1

    def wake_task(self, task_id: int, lane: str) -> None:  # noqa: ARG002 - the lane is a matter of routing
        """Record a named wake-up."""
        self.tasks.append(task_id)


def wake_lanes(sender: Sender, due: Mapping[str, int]) -> None:
    """As many wake-ups per lane as tasks became due, up to a bound. An unreachable broker is not an error."""
    for lane, count in due.items():
        for _ in range(min(count, MOST_AT_ONCE)):
            try:
                sender.wake(lane)
            except OSError as error:
                log.warning("wake-up for lane %s was not sent (%s); the sweep will wake again", lane, error)
                return


def wake_tasks(sender: Sender, lanes: Mapping[int, str]) -> None:
    """A wake-up for each of these tasks, by id. An unreachable broker is not an error."""
    for task_id, lane in lanes.items():
        try:
            sender.wake_task(task_id, lane)
        except OSError as error:
            log.warning("wake-up for task %s was not sent (%s); its lease decides", task_id, error)
            return
