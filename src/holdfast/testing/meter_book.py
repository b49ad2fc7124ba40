"""The meter's book: every exchange, every charge, and waiting callers, all under one condition variable."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal

from holdfast.clock import boot_time

When = Literal["before", "after", "during"]


@dataclass(frozen=True, slots=True)
class MeterOrder:
    """The order in a request: `params` is the body without the inputs, in canonical form."""

    endpoint: str
    model: str
    params: str
    inputs: tuple[str, ...]
    tokens: int


@dataclass(slots=True)
class MeterEntry:
    """One exchange in the log; times are `boot_time` seconds.

    A request whose body never arrived completely has an arrival and no order.
    """

    id: int
    arrived_at: float
    client: str
    idempotency_key: str = ""
    endpoint: str = ""
    model: str = ""
    inputs: tuple[str, ...] = ()
    charged: bool = False
    charged_at: float | None = None
    replayed: bool = False
    replied_at: float | None = None
    cut: bool = False
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """The bill; `excess` is charges beyond one per distinct (endpoint, model, parameters, text)."""

    charges: int
    distinct_inputs: int
    excess: int
    max_charges: int
    tokens: int
    exchanges: int
    replays: int
    open: int
    open_charged: int


class Book:
    """Counts charges and keeps the log; always consistent."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._held: When | None = None
        self._entries: list[MeterEntry] = []
        self._open: dict[int, MeterEntry] = {}
        self._charges: Counter[tuple[str, str, str, str]] = Counter()
        self._tokens = 0
        self._next_id = 1

    def arrive(self, client: str) -> MeterEntry:
        """Record that the first byte of a request has arrived, from this address and port."""
        with self._changed:
            entry = MeterEntry(self._next_id, boot_time(), client)
            self._next_id += 1
            self._entries.append(entry)
            self._changed.notify_all()
            return entry

    def open(self, entry: MeterEntry, order: MeterOrder, key: str) -> None:
        """Count the exchange as open, until it is ended."""
        with self._changed:
            entry.endpoint, entry.model, entry.inputs = order.endpoint, order.model, order.inputs
            entry.idempotency_key = key
            self._open[entry.id] = entry
            self._changed.notify_all()

    def charge(self, entry: MeterEntry, order: MeterOrder) -> None:
        """Take the money for every input of the order."""
        with self._changed:
            entry.charged, entry.charged_at = True, boot_time()
            self._tokens += order.tokens
            self._charges.update((order.endpoint, order.model, order.params, text) for text in order.inputs)
            self._changed.notify_all()

    def end(
        self, entry: MeterEntry, *, status: int | None, cut: bool = False, replayed: bool = False
    ) -> None:
        """Record how the exchange ended, as seen by the server; the last call wins."""
        with self._changed:
            entry.status, entry.cut, entry.replayed = status, cut, replayed
            entry.replied_at = None if cut else boot_time()
            self._open.pop(entry.id, None)
            self._changed.notify_all()

    def is_closed(self) -> bool:
        """Say whether the meter is being closed."""
        return self._closing.is_set()

    def hold(self, when: When | None) -> None:
        """Hold back all exchanges before or after they are charged, or streams `during` their answer, behind
        its first piece; None releases them.
        """
        with self._changed:
            self._held = when
            self._changed.notify_all()

    def pause(self, when: When) -> None:
        """Wait while exchanges are held back at this stage."""
        with self._changed:
            self._changed.wait_for(lambda: self._held != when or self.is_closed())

    def idle(self, seconds: float) -> None:
        """Wait some seconds, or until the meter closes."""
        if seconds > 0:
            self._closing.wait(seconds)

    def wait(self, enough: Callable[[Collection[MeterEntry]], bool], timeout: float) -> Totals:
        """Return the totals once `enough` is true of the open exchanges; else TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: enough(self._open.values()), timeout):
                raise TimeoutError(f"the meter waited {timeout} s in vain; totals: {self._sum()}")
            return self._sum()

    def totals(self) -> Totals:
        """Return the current bill."""
        with self._changed:
            return self._sum()

    def _sum(self) -> Totals:
        charges = self._charges.total()
        return Totals(
            charges=charges,
            distinct_inputs=len(self._charges),
            excess=charges - len(self._charges),
            max_charges=max(self._charges.values(), default=0),
            tokens=self._tokens,
            exchanges=len(self._entries),
            replays=sum(entry.replayed for entry in self._entries),
            open=len(self._open),
            open_charged=sum(entry.charged for entry in self._open.values()),
        )

    def charges_of(self, text: str) -> int:
        """Return how often an input was charged, over all endpoints, models and parameters."""
        with self._changed:
            return sum(count for key, count in self._charges.items() if key[-1] == text)

    def log(self) -> list[dict[str, Any]]:
        """Return every exchange since the last reset, in order of arrival."""
        with self._changed:
            return [asdict(entry) for entry in self._entries]

    def reset(self) -> None:
        """Clear charges and log; open exchanges stay in the log, and are billed once charged."""
        with self._changed:
            self._entries = list(self._open.values())
            self._charges.clear()
            self._tokens = 0

    def close(self) -> None:
        """End all pauses and holds, now and in future."""
        with self._changed:
            self._closing.set()
            self._changed.notify_all()
