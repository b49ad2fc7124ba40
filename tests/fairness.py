"""Which due task is served next: the rule, stated once.

Lane first, then priority (0 first), then the tenant served longest ago, then age. The store answers the same
question with one indexed probe per tenant; the conformance suite compares the two.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.core.states import LANE_RANK


@dataclass(frozen=True, slots=True)
class Waiting:
    """A due task, as the rule sees it."""

    task_id: int
    lane: str
    tenant: str
    priority: int
    age: float


def best(
    waiting: Iterable[Waiting], last_served: Mapping[tuple[str, str], float], lanes: Iterable[str]
) -> Waiting | None:
    """The task to serve next, or None. `last_served` is by (lane, tenant); never served is 0."""
    open_lanes = set(lanes)

    def rank(task: Waiting) -> tuple[int, int, float, float, int]:
        served = last_served.get((task.lane, task.tenant), 0.0)
        return (LANE_RANK[task.lane], task.priority, served, task.age, task.task_id)

    return min((task for task in waiting if task.lane in open_lanes), key=rank, default=None)
