"""Progress only moves forward, and what a run shows is derived from its tasks."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import progress
from holdfast.core.progress import Rolled, TaskProgress
from holdfast.core.states import TaskState

COUNTS = st.integers(-5, 1000)
REPORT = st.tuples(COUNTS, COUNTS)


@st.composite
def steps(draw):
    done, total = progress.forward((0, 0), draw(REPORT))
    return TaskProgress(draw(st.sampled_from(TaskState)), done, total, draw(st.integers(0, 20)))


@given(st.lists(REPORT, min_size=1))
def test_whatever_is_reported_neither_count_ever_falls(reports):
    """A slice that starts again from zero does not move the bar back, and done never exceeds total."""
    seen = list(itertools.accumulate(reports, progress.forward, initial=(0, 0)))
    for (done, total), (next_done, next_total) in itertools.pairwise(seen):
        assert done <= next_done <= next_total
        assert total <= next_total


@given(REPORT, REPORT)
def test_the_order_and_the_number_of_reports_do_not_matter(one, two):
    """Reports that come twice or overtake each other end in the same place."""
    there = progress.forward(progress.forward((0, 0), one), two)
    assert there == progress.forward(progress.forward((0, 0), two), one)
    assert progress.forward(progress.forward(there, one), two) == there


@given(st.lists(steps()), st.booleans())
def test_a_share_is_a_share(counted, planned):
    """Between 0 and 1; exactly 1 only when the run is complete; never complete when a slice failed."""
    rolled = progress.roll_up(counted, planned=planned)
    assert 0.0 <= rolled.share <= 1.0
    assert (rolled.share == 1.0) == rolled.complete
    assert rolled.complete == (planned and all(step.state is TaskState.DONE for step in counted))
    assert rolled.failed == any(step.state is TaskState.FAILED for step in counted)
    assert 0 <= rolled.done <= rolled.total


@given(st.lists(steps(), min_size=1), st.data())
def test_a_slice_that_moves_on_never_lowers_the_share(counted, data):
    """A report or a finish of any one slice leaves the share of its run where it was, or higher."""
    position = data.draw(st.integers(0, len(counted) - 1))
    step = counted[position]
    done = data.draw(st.integers(step.done, step.total))
    state = data.draw(st.sampled_from([step.state, TaskState.DONE]))
    moved = [
        *counted[:position],
        TaskProgress(state, done, step.total, step.weight),
        *counted[position + 1 :],
    ]
    before, after = (progress.roll_up(each, planned=True) for each in (counted, moved))
    assert after.share >= before.share - 1e-12
    assert after.done >= before.done


@pytest.mark.parametrize(
    ("counted", "planned", "rolled"),
    [
        ([], False, Rolled(0.0, 0, 0, failed=False, complete=False)),
        (
            [TaskProgress(TaskState.QUEUED, 0, 0)],
            True,
            Rolled(0.0, 0, 0, failed=False, complete=False, parts=1),
        ),
        (
            [TaskProgress(TaskState.RUNNING, 3, 12)],
            True,
            Rolled(0.25, 3, 12, failed=False, complete=False, parts=1),
        ),
        # Planned and done is done; done before the plan is known is not.
        (
            [TaskProgress(TaskState.DONE, 12, 12)],
            True,
            Rolled(1.0, 12, 12, failed=False, complete=True, parts_done=1, parts=1),
        ),
        (
            [TaskProgress(TaskState.DONE, 12, 12)],
            False,
            Rolled(0.999, 12, 12, failed=False, complete=False, parts_done=1, parts=1),
        ),
        # A done slice counts whole, whatever its last report said.
        (
            [TaskProgress(TaskState.DONE, 5, 12)],
            True,
            Rolled(1.0, 12, 12, failed=False, complete=True, parts_done=1, parts=1),
        ),
        # Weights: one heavy slice done of four parts.
        (
            [TaskProgress(TaskState.DONE, 9, 9, weight=3), TaskProgress(TaskState.QUEUED, 0, 3)],
            True,
            Rolled(0.75, 9, 12, failed=False, complete=False, parts_done=1, parts=2),
        ),
        # All reported, none finished: almost.
        (
            [TaskProgress(TaskState.RUNNING, 4, 4)],
            True,
            Rolled(0.999, 4, 4, failed=False, complete=False, parts=1),
        ),
        # One failed slice fails the run, however much is done.
        (
            [TaskProgress(TaskState.DONE, 1, 1), TaskProgress(TaskState.FAILED, 0, 1)],
            True,
            Rolled(0.5, 1, 2, failed=True, complete=False, parts_done=1, parts=2),
        ),
    ],
)
def test_the_roll_up(counted, planned, rolled):
    """Any failed slice fails the run, all done is done, otherwise the weighted share."""
    assert progress.roll_up(counted, planned=planned) == rolled
