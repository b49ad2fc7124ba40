"""The time that an estimate may take."""

import time

from holdfast.core.errors import HoldfastError


class EstimateTimeoutError(HoldfastError):
    """The estimate was not made within its time."""

    code = "estimate_timeout"


class EstimateClock:
    """The time that an estimate may take; for ever without one."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self.until = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """Seconds that are left, more than none."""
        return None if self.until is None else max(0.001, self.until - time.monotonic())

    @property
    def is_over(self) -> bool:
        """True when the time is over."""
        return self.until is not None and time.monotonic() >= self.until

    def error(
        self, advice: str = "give a shorter text, or write it to a file and run: holdfast estimate FILE"
    ) -> EstimateTimeoutError:
        """What to raise when it is over."""
        return EstimateTimeoutError(
            f"the estimate took longer than {self._seconds:g} s and was stopped; {advice}"
        )

    def check(self) -> None:
        """Return while there is time for the estimate of a job; EstimateTimeoutError afterwards."""
        if self.is_over:
            raise self.error("estimate it for fewer documents: name some of them")
