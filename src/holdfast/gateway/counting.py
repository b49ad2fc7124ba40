"""What is asked and saved, counted in memory and written every second."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from holdfast.core.errors import HoldfastError
from holdfast.store.base.database import Database
from holdfast.store.money import gateway_usage
from holdfast.store.money.gateway_usage import HOUR, Note, UsageCounts, UsageKey

# Of each minute: so many of the slowest requests, and so many errors.
SLOW_A_MINUTE = 5
ERRORS_A_MINUTE = 20
SLOW_FROM = 1.0
MOST_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request that is over. `charge` is `paid`, `reused`, `waited` or `none`."""

    tenant: str
    key_id: str
    scope: str
    provider: str
    endpoint: str
    model: str
    status: int
    code: str
    charge: str
    seconds: float
    reused_calls: int = 0
    saved: int = 0
    order_id: str | None = None


@dataclass(slots=True)
class _Minute:
    number: int = 0
    slow: list[Note] = field(default_factory=list)
    errors: int = 0


class GatewayCounts:
    """The counts of one gateway process. Safe to share between threads."""

    def __init__(
        self, gateway: str, token: Callable[[], str], clock: Callable[[], float] = time.time
    ) -> None:
        self._gateway = gateway
        self._token = token
        self._clock = clock
        self._lock = threading.Lock()
        self._totals: dict[UsageKey, UsageCounts] = {}
        self._changed: set[UsageKey] = set()
        self._notes: list[Note] = []
        self._minute = _Minute()

    def note(self, request: AnsweredRequest) -> None:
        """The request is counted."""
        now = self._clock()
        key = UsageKey(
            request.tenant,
            int(now // HOUR),
            self._gateway,
            request.key_id,
            request.scope,
            request.provider,
            request.endpoint,
            request.model,
        )
        with self._lock:
            counts = self._totals.get(key)
            if counts is None:
                counts = self._totals[key] = UsageCounts()
            counts.requests += 1
            counts.reused += request.charge == "reused"
            counts.waited += request.charge == "waited"
            counts.errors += request.status >= 400
            counts.reused_calls += request.reused_calls
            counts.saved += request.saved
            counts.millis += round(request.seconds * 1000)
            self._changed.add(key)
            self._remember(request, int(now // 60))

    def _remember(self, request: AnsweredRequest, minute: int) -> None:
        current = self._minute
        if current.number != minute:
            self._notes += current.slow
            current = self._minute = _Minute(minute)
        if request.status >= 400 and current.errors < ERRORS_A_MINUTE:
            current.errors += 1
            self._notes.append(self._noted(request, "error"))
        elif request.status < 400 and request.seconds >= SLOW_FROM:
            current.slow.append(self._noted(request, "slow"))
            current.slow.sort(key=lambda note: -note.millis)
            del current.slow[SLOW_A_MINUTE:]

    def _noted(self, request: AnsweredRequest, kind: str) -> Note:
        return Note(
            self._token(),
            request.tenant,
            kind,
            request.key_id,
            request.scope,
            request.endpoint,
            request.model,
            request.status,
            request.code,
            round(request.seconds * 1000),
            request.order_id,
        )

    def flush(self, db: Database, *, whole: bool = False) -> None:
        """What has changed is written; `whole`: also the slowest of a minute that is not over.

        If that fails it is tried again with the next flush.
        """
        hour = int(self._clock() // HOUR)
        with self._lock:
            if whole or self._minute.number != int(self._clock() // 60):
                self._notes += self._minute.slow
                self._minute.slow = []
            changed, self._changed = self._changed, set()
            notes, self._notes = self._notes, []
            totals = {key: replace(self._totals[key]) for key in changed}
        try:
            gateway_usage.write(db, totals, notes)
        except HoldfastError:
            with self._lock:
                self._changed |= changed
                self._notes = (notes + self._notes)[:MOST_ROWS]
            raise
        with self._lock:
            over = [key for key in self._totals if key.hour < hour and key not in self._changed]
            for key in over:
                del self._totals[key]
