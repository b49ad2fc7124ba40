"""What readers cache of a collection in memory, stamped with the `publish_seq` of its snapshot.

Cached objects never change; for another stamp a new object is made from the last one and the difference. A
reader whose snapshot is older than the cached one makes its own and does not cache it: the stamp never falls.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

# A reader waiting for another's loading holds a snapshot open meanwhile, so it does not wait for long.
PATIENCE = 5.0

Name = tuple[str, str]  # tenant, collection


class Stamped(Protocol):
    """Anything made from one snapshot."""

    @property
    def publish_seq(self) -> int:
        """The stamp of that snapshot."""

    @property
    def nbytes(self) -> int:
        """About how much memory it uses."""


T = TypeVar("T", bound=Stamped)


class SnapshotCache(Generic[T]):
    """The latest of each collection; least recently used ones are dropped above `budget` bytes in total."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._latest: OrderedDict[Name, T] = OrderedDict()
        self._loading: dict[Name, threading.Lock] = {}
        self._lock = threading.Lock()

    def at(self, name: Name, publish_seq: int, make: Callable[[T | None], T]) -> T:
        """The object cached at exactly this stamp, or what `make` makes of the last one, if any."""
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
        """The object cached at exactly this stamp; None if it would have to be made."""
        cached = self._latest.get(name)
        return cached if cached is not None and cached.publish_seq == publish_seq else None

    @property
    def nbytes(self) -> int:
        """About how much memory everything cached uses."""
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
