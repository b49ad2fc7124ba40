"""Progress: true counts, only forward, rolled up on read.

A task reports (done, total). The store keeps the larger of the stored and the reported values, so a slice
that restarts after a crash never moves the bar back. The share of a run is derived from its tasks, never
incremented: increments would count redelivered work twice. Counts are those of the current phase, the share
is that of the whole run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from holdfast.core.records import RunRecord
from holdfast.core.states import TaskState

PHASE_SHARE = 0.5
"""What part of the work that is left a phase does, if its kind does not say."""


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


def of_run(steps: Iterable[TaskProgress], run: RunRecord, phase_shares: Mapping[str, float]) -> Rolled:
    """The progress of a run by the tasks of its current phase.

    `phase_shares` has, for each kind that has several phases, what part of the work that is left one does.
    """
    rolled = roll_up(steps, planned=run.slices is not None)
    if run.kind not in phase_shares and not run.phase:
        return rolled
    return over_phases(rolled, run.phase, phase_shares.get(run.kind, PHASE_SHARE))


def over_phases(rolled: Rolled, phase: int, share: float) -> Rolled:
    """The progress of a run in its phase `phase`, from 0, with the phases before and after it.

    How many follow is not known: each is taken to do `share` of the work that is left. So the bar never falls
    when a phase begins, and what is left at the end of the last one it moves at once.
    """
    if rolled.complete:
        return rolled
    left = (1.0 - min(max(share, 0.0), 1.0)) ** phase
    whole = 1.0 - left + left * min(max(share, 0.0), 1.0) * rolled.share
    return replace(rolled, share=min(whole, 0.999))
