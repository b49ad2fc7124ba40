"""Who may send next: a bounded number of orders and bytes at a time, urgent ones first, tenants round robin.

What waits here is not marked and costs nothing if this process dies. The queue is short on purpose: a
worker that finds it full is told at once, and sends elsewhere or comes back.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.core.states import Lane
from holdfast.ledger.relay_talk import BUSY, RATE, NotCarried

MIB = 1024 * 1024
# How long the provider's wish to slow down is waited out here; if it is longer, the worker is told.
SHORT_WAIT = 2.0
LOOK_EVERY = 0.25


@dataclass(slots=True, eq=False)
class SlotRequest:
    """A request for a slot; with `is_admitted`, the slot."""

    tenant: str
    is_urgent: bool
    size: int
    is_admitted: bool = False


@dataclass(slots=True)
class _Line:
    """Those who wait in one class of urgency: a queue per tenant, and the tenants one after another."""

    tenants: deque[str] = field(default_factory=deque)
    queues: dict[str, deque[SlotRequest]] = field(default_factory=dict)

    def add(self, request: SlotRequest) -> None:
        if request.tenant not in self.queues:
            self.queues[request.tenant] = deque()
            self.tenants.append(request.tenant)
        self.queues[request.tenant].append(request)

    def first(self) -> SlotRequest | None:
        return self.queues[self.tenants[0]][0] if self.tenants else None

    def remove(self, request: SlotRequest, *, served: bool) -> None:
        queue = self.queues[request.tenant]
        queue.remove(request)
        if not queue:
            del self.queues[request.tenant]
            self.tenants.remove(request.tenant)
        elif served:
            self.tenants.remove(request.tenant)
            self.tenants.append(request.tenant)


class Admission:
    """The slots of a relay. Safe to share between threads."""

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        *,
        slots: int = 200,
        most_waiting: int = 400,
        most_bytes: int = 64 * MIB,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._slots = slots
        self._most_waiting = most_waiting
        self._most_bytes = most_bytes
        self._changed = threading.Condition()
        self._urgent, self._others = _Line(), _Line()
        self._waiting = self._running = self._bytes = 0
        self._not_before: dict[str, float] = {}
        self._is_open = True

    @property
    def running(self) -> int:
        """How many orders have a slot."""
        return self._running

    def enter(
        self, tenant: str, lane: str, size: int, scope: str, still_waits: Callable[[], bool]
    ) -> SlotRequest | NotCarried | None:
        """A slot for an order of this size; why there is none; or None if nobody waits for it any more."""
        wait = self._not_before.get(scope, 0.0) - self._clock()
        if wait > SHORT_WAIT:
            return NotCarried(RATE, "the provider asked to slow down", wait)
        if wait > 0:
            self._sleep(wait)
        request = SlotRequest(tenant, lane == Lane.INTERACTIVE, size)
        with self._changed:
            if self._waiting >= self._most_waiting:
                return NotCarried(BUSY, "the relay is busy", 1.0)
            self._line(request).add(request)
            self._waiting += 1
            self._admit()
            while not self._changed.wait_for(lambda: request.is_admitted or not self._is_open, LOOK_EVERY):
                if not still_waits():
                    break
            if request.is_admitted:
                return request
            self._line(request).remove(request, served=False)
            self._waiting -= 1
            self._admit()
        return None

    def leave(self, request: SlotRequest) -> None:
        """The slot is free."""
        with self._changed:
            self._running -= 1
            self._bytes -= request.size
            self._admit()

    def throttle(self, scope: str, seconds: float) -> None:
        """Nothing of `scope` is admitted for so long."""
        with self._changed:
            until = self._clock() + seconds
            self._not_before[scope] = max(until, self._not_before.get(scope, 0.0))

    def close(self) -> None:
        """Nobody who waits is admitted any more."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()

    def _line(self, request: SlotRequest) -> _Line:
        return self._urgent if request.is_urgent else self._others

    def _admit(self) -> None:
        """Give free slots to those who are next. One order is admitted however large it is."""
        admitted = False
        while self._is_open and self._running < self._slots:
            request = self._urgent.first() or self._others.first()
            if request is None or (self._running and self._bytes + request.size > self._most_bytes):
                break
            self._line(request).remove(request, served=True)
            request.is_admitted = admitted = True
            self._waiting -= 1
            self._running += 1
            self._bytes += request.size
        if admitted:
            self._changed.notify_all()
