"""Progress: true counts, only forward, rolled up on read.

A task reports (done, total). The store keeps the larger of the stored and the reported values, so a slice
that restarts after a crash never moves the bar back. The share of a run is derived from its tasks, never
incremented: increments would count redelivered work twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.core.states import TaskState


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """Progress of one task."""

    state: TaskState
    done: int
    total: int
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Rolled:
    """Progress of a run. `done` and `total` count only in tasks that were begun: of a run with several parts,
    `parts_done` of `parts` says how much is left.
    """

    share: float
    done: int
    total: int
    failed: bool
    complete: bool
    parts_done: int = 0
    parts: int = 0


def forward(old: tuple[int, int], new: tuple[int, int]) -> tuple[int, int]:
    """(done, total) after a report: neither ever falls, and done never exceeds total."""
    done, total = max(old[0], new[0], 0), max(old[1], new[1], 0)
    return done, max(total, done)


def roll_up(steps: Iterable[TaskProgress], *, planned: bool) -> Rolled:
    """The run's progress: any failed slice fails it, all done is done, otherwise the weighted share."""
    share, weights, done, total = 0.0, 0, 0, 0
    failed, complete = False, planned
    parts_done, parts = 0, 0
    for step in steps:
        failed = failed or step.state is TaskState.FAILED
        finished = step.state is TaskState.DONE
        complete = complete and finished
        part = 1.0 if finished else (step.done / step.total if step.total else 0.0)
        share += part * step.weight
        weights += step.weight
        total += step.total
        done += step.total if finished else step.done
        parts_done += finished
        parts += 1
    complete = complete and not failed
    portion = 1.0 if complete else min(share / weights, 0.999) if weights else 0.0
    return Rolled(portion, done, total, failed, complete, parts_done, parts)
