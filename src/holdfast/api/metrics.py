"""`/metrics`: counts of this process, and of the whole installation as the database knows it.

What the installation did is counted from when this process started: each scrape reads only what is new
(`store.views.tallies`), so its cost does not grow with the ledger. Prometheus expects counters that start at
0 with their process. Several API processes count the same events, each for itself: use one of them, or the
largest.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from threading import Lock

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from holdfast.core.states import Disposition, Status, Verb
from holdfast.doctor.catalogue import DoctorReport
from holdfast.ledger.prices import NANO
from holdfast.service.operations import Operations
from holdfast.service.records import CountPosition, EventTally, Stage

OUTCOMES = {"sent": Status.SUCCESS, "failed": Status.FAILED, "cancelled": Status.CANCELLED}
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"})


class MetricSums:
    """What was counted so far, over all looks."""

    def __init__(self) -> None:
        self.place: CountPosition | None = None
        self.decisions: Counter[tuple[str, str]] = Counter()
        self.charges: Counter[tuple[str, str]] = Counter()
        self.tokens: Counter[tuple[str, str]] = Counter()
        self.amounts: Counter[tuple[str, str]] = Counter()
        self.stages: dict[tuple[str, str], Stage] = {}
        self.delivered: Counter[str] = Counter()
        self.unpriced: Counter[str] = Counter()
        self.reused_calls = self.saved = self.refused = 0

    def add(self, tally: EventTally) -> None:
        """Count what is new."""
        self.place = tally.position
        self.decisions.update(tally.decisions)
        for key, (number, tokens, amount) in tally.charged.items():
            self.charges[key] += number
            self.tokens[key] += tokens
            self.amounts[key] += amount
        for key, stage in tally.stages.items():
            before = self.stages.get(key, Stage(0, 0.0))
            self.stages[key] = Stage(before.number + stage.number, before.seconds + stage.seconds)
        self.delivered.update(tally.delivered)
        self.unpriced.update(tally.unpriced)
        self.reused_calls += tally.reused_calls
        self.saved += tally.saved
        self.refused += tally.refused


class Counting:
    """Counts the requests of this process, and what happens in the installation."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._lock = Lock()
        self._looking = Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._sums = MetricSums()
        self.listeners = 0
        self.connected: Callable[[], int] = lambda: 0
        self.refused: Callable[[], int] = lambda: 0
        self.sender: object = None
        self.doctor: Callable[[], DoctorReport | None] = lambda: None

    def begin(self) -> None:
        """Count from now on, if nothing is counted yet."""
        if self._sums.place is None:
            self._sums.place = self._operations.count_position()

    def note(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request has been answered. One of no known route counts as `other`, so that labels stay few."""
        name = route or "other"
        verb = method if method in METHODS else "other"
        with self._lock:
            self._requests[name, verb, status] += 1
            self._seconds[name] += seconds  # type: ignore[assignment]  # Counter adds up any numbers

    def collect(self) -> Iterator[Metric]:
        """Everything, for Prometheus."""
        yield from self._of_process()
        yield from self._of_work()
        with self._looking:
            self.begin()
            self._sums.add(self._operations.counts_since(self._sums.place or CountPosition()))
            yield from _decided(self._sums)
            yield from _spent(self._sums)
            yield _delivered(self._sums)
        yield from self._waiting()
        yield from self._in_doubt()
        yield _examined(self.doctor())

    def _of_process(self) -> Iterator[Metric]:
        with self._lock:
            requests, seconds = dict(self._requests), dict(self._seconds)
        request_counter = CounterMetricFamily(
            "holdfast_api_requests", "Requests answered", labels=["route", "method", "status"]
        )
        for (route, method, status), number in requests.items():
            request_counter.add_metric([route, method, str(status)], number)
        yield request_counter
        took = CounterMetricFamily("holdfast_api_seconds", "Seconds spent on requests", labels=["route"])
        for route, total in seconds.items():
            took.add_metric([route], total)
        yield took
        yield GaugeMetricFamily("holdfast_api_connections", "Open connections", value=self.connected())
        yield GaugeMetricFamily("holdfast_api_listeners", "Open event streams", value=self.listeners)
        yield CounterMetricFamily(
            "holdfast_api_rate_limited", "Requests refused because of a key's limits", value=self.refused()
        )
        sent = CounterMetricFamily(
            "holdfast_api_wake_ups", "Wake-ups sent to brokers, by outcome", labels=["outcome"]
        )
        for outcome in ("sent", "refused", "failed"):
            sent.add_metric([outcome], getattr(self.sender, outcome, 0))
        yield sent

    def _of_work(self) -> Iterator[Metric]:
        lanes = self._operations.lanes().values()
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
        known = Counter(str(each.state) for each in self._operations.workers())
        up = GaugeMetricFamily("holdfast_workers", "Workers, by state", labels=["state"])
        for state, number in known.items():
            up.add_metric([state], number)
        yield up
        lag = GaugeMetricFamily(
            "holdfast_duty_lag_seconds", "Seconds by which a duty of the sweep is overdue", labels=["duty"]
        )
        failures = GaugeMetricFamily(
            "holdfast_duty_failures", "Failures of a duty since its last success", labels=["duty"]
        )
        for duty in self._operations.duties():
            lag.add_metric([duty.name], duty.lag)
            failures.add_metric([duty.name], duty.failures)
        yield lag
        yield failures

    def _waiting(self) -> Iterator[Metric]:
        number, age = self._operations.waiting_deliveries()
        yield GaugeMetricFamily(
            "holdfast_deliveries_waiting", "Events that are not delivered yet", value=number
        )
        yield GaugeMetricFamily(
            "holdfast_deliveries_oldest_seconds", "Age of the oldest of these events", value=age
        )

    def _in_doubt(self) -> Iterator[Metric]:
        number, amount = self._operations.in_doubt()
        yield GaugeMetricFamily("holdfast_in_doubt", "Charges in doubt now", value=number)
        yield GaugeMetricFamily("holdfast_in_doubt_dollars", "Their price together", value=amount / NANO)


def _examined(report: DoctorReport | None) -> Metric:
    """What the doctor says; nothing before its first examination has ended."""
    findings = GaugeMetricFamily(
        "holdfast_doctor_findings",
        "Findings of holdfast doctor, by check, severity and state",
        labels=["check", "severity", "state"],
    )
    for labels, number in sorted((Counter() if report is None else report.states()).items()):
        findings.add_metric(list(labels), number)
    return findings


def _decided(sums: MetricSums) -> Iterator[Metric]:
    decided = CounterMetricFamily(
        "holdfast_decisions", "Entries of the journal, by verb", labels=["verb", "reason"]
    )
    decisions: Counter[str] = Counter({each.value: 0 for each in Disposition})
    for (verb, reason), number in sorted(sums.decisions.items()):
        decided.add_metric([verb, reason], number)
        if verb == Verb.REQUEST:
            decisions[reason.partition(":")[0]] += number
    yield decided
    dispositions = CounterMetricFamily(
        "holdfast_dispositions", "Requests for work, by outcome", labels=["disposition"]
    )
    for disposition, number in decisions.items():
        dispositions.add_metric([disposition], number)
    yield dispositions
    took = SummaryMetricFamily(
        "holdfast_stage_seconds", "Seconds that a stage took", labels=["stage", "about"]
    )
    for (stage, about), known in sorted(sums.stages.items()):
        took.add_metric([stage, about], count_value=known.number, sum_value=known.seconds)
    yield took


def _delivered(sums: MetricSums) -> Metric:
    ended = CounterMetricFamily("holdfast_deliveries", "Webhook events, by outcome", labels=["outcome"])
    for outcome, status in OUTCOMES.items():
        ended.add_metric([outcome], sums.delivered[status])
    return ended


def _spent(sums: MetricSums) -> Iterator[Metric]:
    families = {
        "holdfast_charges": ("Orders charged by providers", sums.charges, 1),
        "holdfast_tokens": ("Tokens charged by providers", sums.tokens, 1),
        "holdfast_charged_dollars": ("Money charged by providers", sums.amounts, NANO),
    }
    for name, (words, counted, unit) in families.items():
        family = CounterMetricFamily(name, words, labels=["model", "sort"])
        for (model, label), number in sorted(counted.items()):
            family.add_metric([model, label], number / unit)
        yield family
    unpriced = CounterMetricFamily(
        "holdfast_unpriced_calls", "Calls charged by providers for which no price is known", labels=["model"]
    )
    for model, number in sorted(sums.unpriced.items()):
        unpriced.add_metric([model], number)
    yield unpriced
    yield CounterMetricFamily(
        "holdfast_reused_calls", "Calls of ended runs that were already paid for", value=sums.reused_calls
    )
    saved = CounterMetricFamily("holdfast_saved_dollars", "Money saved, by reason", labels=["by"])
    saved.add_metric(["reuse"], sums.saved / NANO)
    saved.add_metric(["refusal"], sums.refused / NANO)
    yield saved
