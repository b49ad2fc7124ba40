"""The periods of a budget, and where each begins and ends. All in UTC."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum


class Period(StrEnum):
    """The period of a budget's limits: all time, a calendar month, or a day."""

    TOTAL = "total"
    MONTH = "month"
    DAY = "day"


def window(period: Period, at: float) -> tuple[float, float | None]:
    """The first moment of the period that `at` is in, and the first after it (None: it never ends)."""
    if period is Period.TOTAL:
        return 0.0, None
    start = datetime.fromtimestamp(at, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period is Period.DAY:
        end = start + timedelta(days=1)
    else:
        start = start.replace(day=1)
        end = (start + timedelta(days=32)).replace(day=1)
    return start.timestamp(), end.timestamp()
