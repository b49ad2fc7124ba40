"""Who is served next, against a rule so naive that it can be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.states import Lane
from tests import fairness
from tests.fairness import Waiting

LANES = ["interactive", "bulk", "follow-up"]
TENANTS = st.sampled_from("abc")


@st.composite
def queues(draw):
    """Due tasks with distinct ids; few distinct values, so that ties are common."""
    rows = st.tuples(st.sampled_from(LANES), TENANTS, st.integers(0, 2), st.sampled_from([1.0, 2.0]))
    return [Waiting(number, *row) for number, row in enumerate(draw(st.lists(rows, max_size=8)))]


def first_by_hand(waiting, last_served, lanes):
    """Filter step by step: lane, priority, tenant served longest ago, age, id."""
    left = [task for task in waiting if task.lane in lanes]
    for lane in LANES:
        if any(task.lane == lane for task in left):
            left = [task for task in left if task.lane == lane]
            break
    for measure in (
        lambda task: task.priority,
        lambda task: last_served.get((task.lane, task.tenant), 0.0),
        lambda task: task.age,
        lambda task: task.task_id,
    ):
        least = min(map(measure, left), default=None)
        left = [task for task in left if measure(task) == least]
    return left[0] if left else None


@given(
    queues(),
    st.dictionaries(st.tuples(st.sampled_from(LANES), TENANTS), st.sampled_from([0.0, 1.0, 2.0])),
    st.sets(st.sampled_from(LANES)),
    st.randoms(use_true_random=False),
)
def test_the_best_is_what_a_naive_sort_finds_in_any_order(waiting, last_served, lanes, random):
    """Lane, priority, the tenant served longest ago, age, id; the order of the rows does not matter."""
    expected = first_by_hand(waiting, last_served, lanes)
    random.shuffle(waiting)
    assert fairness.best(waiting, last_served, lanes) == expected


@given(st.integers(1, 30), st.integers(1, 3))
def test_a_tenant_with_one_task_waits_for_at_most_one_task_of_each_other(crowd, others):
    """However many tasks the others queued before, one late task is served within one round."""
    waiting = [Waiting(n, Lane.BULK, f"big{n % others}", 5, float(n)) for n in range(crowd * others)]
    waiting.append(Waiting(10_000, Lane.BULK, "small", 5, 1e6))
    last_served = {}
    for step in range(1, others + 2):
        served = fairness.best(waiting, last_served, LANES)
        if served.tenant == "small":
            return
        waiting.remove(served)
        last_served[served.lane, served.tenant] = float(step)
    pytest.fail("the small tenant was starved")


def test_nothing_due_is_none():
    """Neither an empty queue nor work in lanes that nobody asked for is served."""
    assert fairness.best([], {}, LANES) is None
    assert fairness.best([Waiting(1, Lane.BULK, "a", 0, 0.0)], {}, [Lane.INTERACTIVE]) is None
