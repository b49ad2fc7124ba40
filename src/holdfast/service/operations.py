"""The installation as its operator sees it: workers, lanes, leases, duties, providers, brokers."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

from holdfast.core import subjects
from holdfast.store.base.database import Database
from holdfast.store.money import provider_troubles, relays
from holdfast.store.protocol import duty_schedule, workers
from holdfast.store.views import dashboard, event_counts, events, live_runs, reads, run_summaries

Depths = Callable[[], Sequence[tuple[str, str, int | None]]]
"""(broker, lane, wake-ups that wait) for every broker; None for one that does not answer."""

KEPT = 5.0


class Operations:
    """Reads the whole installation; the API and the web UI decide what a caller may see of it.

    Each read is one of the store's, bound to this installation: what it answers is said there.
    """

    def __init__(self, db: Database, depths: Depths = tuple) -> None:
        self._depths = depths
        self._lock = Lock()
        self._asked_at = 0.0
        self._known_depths: list[tuple[str, str, int | None]] = []
        self.moment = partial(reads.moment, db)
        self.workers = partial(workers.known, db)
        self.lanes = partial(reads.lanes, db)
        self.leases = partial(reads.leases, db)
        self.duties = partial(duty_schedule.health, db)
        self.relays = partial(relays.present, db)
        self.troubles = partial(provider_troubles.all_of, db)
        self.live_runs = partial(live_runs.live_runs, db)
        self.live_counts = partial(events.live_counts, db)
        self.today = partial(dashboard.today, db, kind=subjects.INDEX)
        self.refusals = partial(dashboard.refusals, db)
        self.count_position = partial(event_counts.here, db)
        self.counts_since = partial(event_counts.since, db)
        self.with_gaps = partial(run_summaries.with_gaps, db)
        self.waiting_deliveries = partial(event_counts.waiting_deliveries, db)
        self.in_doubt = partial(event_counts.in_doubt, db)

    def depths(self) -> list[tuple[str, str, int | None]]:
        """What the brokers said a few seconds ago; while one asks, nobody else waits for a slow broker."""
        if self._lock.acquire(blocking=False):
            try:
                if not self._asked_at or time.monotonic() - self._asked_at > KEPT:
                    self._known_depths = list(self._depths())
                    self._asked_at = time.monotonic()
            finally:
                self._lock.release()
        return self._known_depths
