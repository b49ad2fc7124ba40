"""What programs asked of the gateway, for the web UI."""

from dataclasses import dataclass

from holdfast.store.access import keys
from holdfast.store.base.database import Database
from holdfast.store.money import gateway_usage
from holdfast.store.money.gateway_usage import GatewayReport, UsageCounts

HOURS = {"day": 24, "week": 7 * 24, "month": 30 * 24}
MOST_ROWS = 20


@dataclass(frozen=True, slots=True)
class GatewaySummary:
    """The requests of a tenant over a span of time, with the names of its keys."""

    span: str
    report: GatewayReport
    key_names: dict[str, str]

    @property
    def reuse_rate(self) -> float:
        """The share of requests that were answered without a charge, of those that were answered."""
        answered = self.report.sums.requests - self.report.sums.errors
        return (self.report.sums.reused + self.report.sums.waited) / answered if answered else 0.0

    @property
    def mean_seconds(self) -> float:
        """How long a request took on the whole."""
        return mean_seconds(self.report.sums)


def mean_seconds(counts: UsageCounts) -> float:
    """How long these requests took on the whole."""
    return counts.millis / counts.requests / 1000 if counts.requests else 0.0


class GatewayReports:
    """Requests to the gateway."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def summary(self, tenant: str, span: str = "day") -> GatewaySummary:
        """What was asked and saved in the last day, week or month; any other word means a day."""
        span = span if span in HOURS else "day"
        report = gateway_usage.report(self._db, tenant, hours=HOURS[span], most=MOST_ROWS)
        names = {each.id: each.name for each in keys.every(self._db) if each.tenant == tenant}
        return GatewaySummary(span, report, names)
