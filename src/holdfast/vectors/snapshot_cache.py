"""What readers keep in memory of a collection, stamped with the `publish_seq` it was made at.

What is kept never changes; another stamp gets another object, made from the last one and the difference. A
reader whose snapshot is older than what is kept makes its own and keeps it to itself: the stamp never falls.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

# A reader that waits for another's loading holds a snapshot open meanwhile, so it does not wait for long.
PATIENCE = 5.0

Name = tuple[str, str]  # tenant, collection


class Stamped(Protocol):
    """Anything made of what one snapshot shows."""

    @property
    def publish_seq(self) -> int:
        """The stamp of that snapshot."""

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""


T = TypeVar("T", bound=Stamped)


class SnapshotCache(Generic[T]):
    """The latest of each collection; the least recently used go when all take more than `budget` bytes."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._latest: OrderedDict[Name, T] = OrderedDict()
        self._loading: dict[Name, threading.Lock] = {}
        self._lock = threading.Lock()

    def at(self, name: Name, publish_seq: int, make: Callable[[T | None], T]) -> T:
        """What is kept at exactly this stamp, or what `make` makes of the last one (None: from nothing)."""
        cached = self._find(name)
        if cached is not None and cached.publish_seq == publish_seq:
            return cached
        with self._lock:
            loading = self._loading.setdefault(name, threading.Lock())
        waited = loading.acquire(timeout=PATIENCE)
        try:
            cached = self._find(name)
            if cached is not None and cached.publish_seq == publish_seq:
                return cached
            fresh = make(cached)
            self._keep(name, fresh)
            return fresh
        finally:
            if waited:
                loading.release()

    def known(self, name: Name, publish_seq: int) -> T | None:
        """What is kept at exactly this stamp; None when that would have to be made."""
        cached = self._latest.get(name)
        return cached if cached is not None and cached.publish_seq == publish_seq else None

    @property
    def nbytes(self) -> int:
        """About how much memory everything kept takes."""
        with self._lock:
            return sum(one.nbytes for one in self._latest.values())

    def _find(self, name: Name) -> T | None:
        with self._lock:
            cached = self._latest.get(name)
            if cached is not None:
                self._latest.move_to_end(name)
            return cached

    def _keep(self, name: Name, fresh: T) -> None:
        with self._lock:
            there = self._latest.get(name)
            if there is None or there.publish_seq < fresh.publish_seq:
                self._latest[name] = fresh
            self._latest.move_to_end(name)
            size = sum(one.nbytes for one in self._latest.values())
            while size > self._budget and len(self._latest) > 1:
                gone, one = self._latest.popitem(last=False)
                size -= one.nbytes
                self._loading.pop(gone, None)
