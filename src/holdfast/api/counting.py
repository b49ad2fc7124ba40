"""What `/metrics` tells of this process, and of the installation as the database has it."""

from collections import Counter
from collections.abc import Iterator
from threading import Lock

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from holdfast.store import reads, workers
from holdfast.store.database import Database


class Counting:
    """Counts the requests of this process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self.listeners = 0

    def note(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request has been answered. One of no known route counts as `other`, so that labels stay few."""
        name = route or "other"
        verb = method if method in {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"} else "other"
        with self._lock:
            self._requests[name, verb, status] += 1
            self._seconds[name] += seconds  # type: ignore[assignment]  # Counter adds up any numbers

    def collect(self) -> Iterator[Metric]:
        """Everything, for Prometheus."""
        with self._lock:
            requests, seconds = dict(self._requests), dict(self._seconds)
        asked = CounterMetricFamily(
            "holdfast_api_requests", "Requests answered", labels=["route", "method", "status"]
        )
        for (route, method, status), number in requests.items():
            asked.add_metric([route, method, str(status)], number)
        yield asked
        took = CounterMetricFamily("holdfast_api_seconds", "Seconds spent on requests", labels=["route"])
        for route, total in seconds.items():
            took.add_metric([route], total)
        yield took
        yield GaugeMetricFamily("holdfast_api_listeners", "Open event streams", value=self.listeners)
        yield from self._of_installation()

    def _of_installation(self) -> Iterator[Metric]:
        lanes = reads.lanes(self._db).values()
        work = GaugeMetricFamily("holdfast_lane_tasks", "Open tasks", labels=["lane", "state"])
        oldest = GaugeMetricFamily(
            "holdfast_lane_oldest_seconds", "Seconds that the oldest queued task has waited", labels=["lane"]
        )
        for lane in lanes:
            for state in ("queued", "waiting", "running"):
                work.add_metric([lane.lane, state], getattr(lane, state))
            oldest.add_metric([lane.lane], lane.oldest)
        yield work
        yield oldest
        known = Counter(str(each.state) for each in workers.known(self._db))
        up = GaugeMetricFamily("holdfast_workers", "Workers by what they are doing", labels=["state"])
        for state, number in known.items():
            up.add_metric([state], number)
        yield up
