"""When to try again: one rule for refused orders, one for tasks that must wait."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential delays with jitter, capped."""

    first: float = 0.5
    factor: float = 2.0
    most: float = 60.0

    def delay(self, attempt: int, jitter: float) -> float:
        """Seconds before try `attempt` + 1; `jitter` in [0, 1) spreads retries over half the delay."""
        grown = min(self.most, self.first * self.factor ** max(0, min(attempt, 60)))
        return grown * (0.5 + jitter / 2)


def provider_delay(backoff: Backoff, attempt: int, jitter: float, retry_after: float | None) -> float:
    """Seconds to wait before calling a provider again. Its own value is a minimum, capped at an hour."""
    own = backoff.delay(attempt, jitter)
    return own if retry_after is None else max(own, min(retry_after, 3600.0))
