"""A call under way, and everybody who waits for it.

A flight has a thread of its own: it goes on when its readers leave, so that what was paid for is recorded and
the next one gets it. Readers get what has come so far and then the rest, each at its own pace; none of them
slows the reading down.

A flight outside a scope holds its call (`store.money.gateway_calls`). Once it has ended and the last reader
has left, the call is forgotten if one of them got the whole answer, and otherwise released for adoption.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.gateway.responses import Charged
from holdfast.llm_requests.http_messages import HttpAnswer
from holdfast.store.money.gateway_calls import HeldCall

log = logging.getLogger(__name__)

Wake = Callable[[], None]
# Seconds for which the release of a call is waited for.
RELEASE_PATIENCE = 5.0


class GatewayBusyError(Exception):
    """As many calls are under way as may be."""


@dataclass(frozen=True, slots=True)
class FlightParts:
    """What a reader has not got yet. `answer` is there once the flight has ended."""

    head: HttpAnswer | None
    chunks: Sequence[bytes]
    answer: HttpAnswer | None


@dataclass(eq=False)
class Flight:
    """One call under way. Its readers are counted by `Flights`."""

    tenant: str
    key: str
    content: str = ""
    held: HeldCall | None = None
    head: HttpAnswer | None = None
    chunks: list[bytes] = field(default_factory=list)
    answer: HttpAnswer | None = None
    # What it came to, once it has ended.
    charged: Charged = field(default_factory=Charged)
    readers: int = 0
    delivered: bool = False
    # It ended without a charge and without a doubt: there is nothing to adopt.
    is_void: bool = False
    is_ending: bool = False
    _wakes: dict[object, Wake] = field(default_factory=dict)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """A streamed answer has begun."""
        self.head = HttpAnswer(status, dict(headers), b"")
        self._wake()

    def hear(self, chunk: bytes) -> None:
        """A piece of it has come."""
        self.chunks.append(chunk)
        self._wake()

    def end(self, answer: HttpAnswer) -> None:
        """Nothing comes after this."""
        self.answer = answer
        self._wake()

    def after(self, position: int) -> FlightParts:
        """What has come since `position` pieces; the end is read first, so that it has all of them."""
        answer = self.answer
        return FlightParts(self.head, self.chunks[position:], answer)

    def listen(self, reader: object, wake: Wake) -> None:
        """`wake` is called whenever something has come, from any thread."""
        self._wakes[reader] = wake

    def ignore(self, reader: object) -> None:
        """It is called no more."""
        self._wakes.pop(reader, None)

    def _wake(self) -> None:
        for wake in list(self._wakes.values()):
            with contextlib.suppress(RuntimeError):  # the loop of the reader is closed
                wake()


class Flights:
    """The flights of one process, at most so many at a time."""

    def __init__(self, most: int, release: Callable[[HeldCall], None]) -> None:
        """`release` makes a call an orphan; it may wait for the database."""
        self._most = most
        self._release = release
        self._changed = threading.Condition()
        self._by_key: dict[tuple[str, str], Flight] = {}
        self._singles: dict[tuple[str, str], list[Flight]] = {}
        self._running = 0
        self._delivered: list[str] = []

    @property
    def running(self) -> int:
        """How many are under way."""
        return self._running

    def join(self, tenant: str, key: str) -> Flight | None:
        """The flight with this key, with one more reader; None if there is none."""
        with self._changed:
            flight = self._by_key.get((tenant, key))
            if flight is not None:
                flight.readers += 1
            return flight

    def adopt(self, tenant: str, content: str) -> Flight | None:
        """A flight with this content that everybody has left, now with a reader; None if there is none.

        One whose call is just being released is waited for: after that the database has it.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._is_releasing(tenant, content), RELEASE_PATIENCE)
            for flight in self._singles.get((tenant, content), ()):
                if not flight.readers and not flight.delivered and not flight.is_ending:
                    flight.readers += 1
                    return flight
        return None

    def _is_releasing(self, tenant: str, content: str) -> bool:
        return any(each.is_ending for each in self._singles.get((tenant, content), ()))

    def start(self, flight: Flight, fly: Callable[[Flight], HttpAnswer]) -> Flight:
        """The flight is under way, with one reader; or the one with the same key that already is.

        Raises GatewayBusyError, and then nothing was started.
        """
        named = (flight.tenant, flight.key)
        with self._changed:
            if flight.key and (other := self._by_key.get(named)) is not None:
                other.readers += 1
                return other
            if self._running >= self._most:
                raise GatewayBusyError
            self._running += 1
            flight.readers = 1
            if flight.key:
                self._by_key[named] = flight
            if flight.held is not None:
                self._singles.setdefault((flight.tenant, flight.content), []).append(flight)
        threading.Thread(target=self._fly, args=(flight, fly), name="holdfast-gateway", daemon=True).start()
        return flight

    def _fly(self, flight: Flight, fly: Callable[[Flight], HttpAnswer]) -> None:
        try:
            answer = fly(flight)
            # First: who comes after the answer finds it in the ledger.
            with self._changed:
                if self._by_key.get((flight.tenant, flight.key)) is flight:
                    del self._by_key[flight.tenant, flight.key]
            flight.end(answer)
        finally:
            self._finish(flight)
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def leave(self, flight: Flight, *, delivered: bool) -> None:
        """A reader leaves, with the whole answer or without it. May wait for the database."""
        with self._changed:
            flight.readers -= 1
            flight.delivered = flight.delivered or delivered
        self._finish(flight)

    def _finish(self, flight: Flight) -> None:
        """Once it has ended and nobody reads it, its call is forgotten or released."""
        with self._changed:
            if flight.answer is None or flight.readers or flight.is_ending:
                return
            flight.is_ending = True
            if flight.held is None:
                return
            if flight.delivered or flight.is_void:
                self._delivered.append(flight.held.call)
                self._remove(flight)
                return
        self._release(flight.held)
        with self._changed:
            self._remove(flight)

    def _remove(self, flight: Flight) -> None:
        same = self._singles[flight.tenant, flight.content]
        same.remove(flight)
        if not same:
            del self._singles[flight.tenant, flight.content]
        self._changed.notify_all()

    def held(self) -> list[str]:
        """The calls that are held."""
        with self._changed:
            return [
                each.held.call for same in self._singles.values() for each in same if each.held is not None
            ]

    def take_delivered(self) -> list[str]:
        """The calls whose answers were delivered since the last time; put them back if they are not kept."""
        with self._changed:
            delivered, self._delivered = self._delivered, []
            return delivered

    def put_back(self, delivered: Sequence[str]) -> None:
        """They are returned by the next `take_delivered`."""
        with self._changed:
            self._delivered += delivered

    def wait(self, seconds: float) -> bool:
        """True if nothing is under way any more, within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds)
