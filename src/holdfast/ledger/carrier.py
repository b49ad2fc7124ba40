"""This process as the carrier of its orders: known by name, with its own lease while it waits for responses.

The lease is not a fence, and nothing needs it to send or to settle. It shows others who need the same calls
that somebody is still waiting for the response, even if the task was released or there never was one.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

from holdfast.core.errors import StoreUnavailableError
from holdfast.core.ports import Host
from holdfast.leases.base import DATABASE_TERMS, LeaseTerms
from holdfast.store.base.database import Database
from holdfast.store.protocol import carriers


class Carrier:
    """The process as others see it. Safe to share between threads; a forked child is a different carrier."""

    def __init__(
        self,
        db: Database,
        host: Host,
        terms: LeaseTerms = DATABASE_TERMS,
        *,
        name: str = "",
        watched: bool = False,
        watch: Database | None = None,
        tell: Callable[[float], None] | None = None,
    ) -> None:
        """`watched`: its parent process reports its death. `watch` is the connection for renewing the lease.

        `tell` is called with the time until which responses are due, 0 if none are.
        """
        self._db = db
        self._watch = watch or db
        self._host = host
        self._terms = terms
        self.ttl = terms.ttl
        self._name = name
        self._watched = watched
        self._tell = tell or (lambda _until: None)
        self._lock = threading.Lock()
        self._pid = 0
        self._id = ""
        self._known_at: float | None = None
        self._in_flight: dict[str, float] = {}
        self.on_first_order: Callable[[], None] = lambda: None

    @property
    def id(self) -> str:
        """The id of this process in tasks and orders."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._id, self._known_at = os.getpid(), self._host.token(), None
                self._in_flight = {}
            return self._id

    def known(self) -> str:
        """The id, once it is in the database; call it before a task is held under it."""
        if not self.id or self._known_at is None:
            self.keep()
        return self._id

    def keep(self) -> str:
        """The id, with a lease that was renewed recently; call it before an order is sent."""
        carrier, sent_at = self.id, self._host.clock()
        if self._known_at is None or sent_at - self._known_at > self._terms.renew_every:
            self._renew(self._db, carrier, sent_at)
        return carrier

    def _renew(self, db: Database, carrier: str, sent_at: float) -> None:
        host = self._host
        parent = host.parent() if self._watched else ""
        names = {"name": self._name, "process": host.process(), "parent": parent}
        carriers.keep(db, carrier, ttl=self._terms.ttl, **names)
        self._known_at = sent_at

    @contextlib.contextmanager
    def carrying(self, order_id: str, until: float) -> Iterator[None]:
        """An order is in flight; by the host's clock its response comes before `until`, or never."""
        with self._lock:
            first = not self._in_flight
            self._in_flight[order_id] = until
            self._tell(max(self._in_flight.values()))
        try:
            if first:
                self.on_first_order()
            yield
        finally:
            with self._lock:
                self._in_flight.pop(order_id, None)
                self._tell(max(self._in_flight.values(), default=0.0))

    @property
    def orders(self) -> int:
        """How many orders are in flight."""
        return len(self._in_flight)

    @property
    def until(self) -> float:
        """When the last of them is answered or given up, by the host's clock; 0 if there is none."""
        with self._lock:
            return max(self._in_flight.values(), default=0.0)

    def beat(self) -> None:
        """While an order is in flight its lease is renewed; does nothing if the database is unreachable."""
        if self._in_flight:
            with contextlib.suppress(StoreUnavailableError):
                self._renew(self._watch, self.id, self._host.clock())
