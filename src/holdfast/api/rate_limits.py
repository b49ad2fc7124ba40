"""How many requests each key may make per second and at the same time.

A token bucket per key: each request takes one token, and tokens return at the key's rate, up to two seconds'
worth. Requests in progress and open streams are counted per key, too. All of it is kept in this process, so
with several API processes a key has several times its limits. That is enough against a runaway client and
costs no query; it is not meant for billing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from holdfast.clock import boot_time
from holdfast.core.errors import HoldfastError
from holdfast.service.access import Identity

BURST_SECONDS = 2.0
MOST_KEPT = 10_000
SLOT = "holdfast.slot"
"""Where a request stores the function that releases its slot when it ends."""


class RateLimitedError(HoldfastError):
    """The key has asked too often, or for too much at once; nothing was done."""

    code = "rate_limited"

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = max(1, math.ceil(retry_after))


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a key may do that does not say otherwise: requests a second, requests and streams at once."""

    rate: float = 500.0
    concurrency: int = 100
    listeners: int = 1000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float
    under_way: int = 0
    listening: int = 0

    def at_rest(self, now: float) -> bool:
        """True when forgetting it would make no difference."""
        return not self.under_way and not self.listening and now - self.at > BURST_SECONDS


@dataclass(slots=True)
class Turnstile:
    """Lets requests in, or says when to come back."""

    allowance: Allowance = field(default_factory=Allowance)
    clock: Callable[[], float] = boot_time
    refused: int = 0
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def enter(self, caller: Identity) -> Callable[[], None]:
        """The request may go on; call what is answered when it has ended. Otherwise RateLimitedError."""
        rate = caller.rate or self.allowance.rate
        most = caller.concurrency or self.allowance.concurrency
        with self._lock:
            bucket = self._bucket(caller.key_id, rate)
            if bucket.under_way >= most:
                self.refused += 1
                raise RateLimitedError(
                    f"{most} requests of this key are in progress; wait for one to finish", 1
                )
            if bucket.tokens < 1.0:
                self.refused += 1
                message = f"this key is limited to {rate:g} requests per second; retry later"
                raise RateLimitedError(message, (1.0 - bucket.tokens) / rate)
            bucket.tokens -= 1.0
            bucket.under_way += 1
        return _Once(lambda: self._leave(bucket, "under_way"))

    def listen(self, caller: Identity) -> Callable[[], None]:
        """One more stream of the key may be open; call what is answered when it has ended."""
        with self._lock:
            bucket = self._bucket(caller.key_id, caller.rate or self.allowance.rate)
            if bucket.listening >= self.allowance.listeners:
                self.refused += 1
                message = f"{bucket.listening} event streams of this key are already open; close one"
                raise RateLimitedError(message, 5)
            bucket.listening += 1
        return _Once(lambda: self._leave(bucket, "listening"))

    def _leave(self, bucket: _Bucket, what: str) -> None:
        with self._lock:
            setattr(bucket, what, getattr(bucket, what) - 1)

    def _bucket(self, key_id: str, rate: float) -> _Bucket:
        now, most = self.clock(), max(1.0, rate * BURST_SECONDS)
        bucket = self._buckets.get(key_id)
        if bucket is None:
            if len(self._buckets) >= MOST_KEPT:
                self._buckets = {key: each for key, each in self._buckets.items() if not each.at_rest(now)}
            bucket = self._buckets[key_id] = _Bucket(most, now)
        bucket.tokens = min(most, bucket.tokens + (now - bucket.at) * rate)
        bucket.at = now
        return bucket


class _Once:
    """Does something the first time it is called."""

    def __init__(self, do: Callable[[], None]) -> None:
        self._do: Callable[[], None] | None = do

    def __call__(self) -> None:
        do, self._do = self._do, None
        if do is not None:
            do()
