"""Thread pools for requests that wait for another server.

Ordinary requests share a few threads; more would only slow each other down. If requests waited in those for
a slow URL, or for a provider that embeds a query, a handful would block everything. So they wait in separate
threads, of which there are many, in five pools: slow URLs, estimates, answers and rendering do not delay
queries.

Tenants share a pool. A tenant may hold no more threads than are left for the others: the first at most half
of the pool, the next half of the rest. Further requests wait, and a free thread goes to the tenant that holds
the fewest.
"""

from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum

from anyio import CapacityLimiter, Event, get_cancelled_exc_class
from anyio.lowlevel import RunVar


class Pool(StrEnum):
    """What is waited for."""

    FETCHES = "fetches"
    QUESTIONS = "questions"
    ESTIMATES = "estimates"
    THUMBNAILS = "thumbnails"
    ANSWERS = "answers"


# A provider has as many connections as there are places for questions and answers: behind a full pool of
# those a tenant would wait for another after all.
MOST = {
    Pool.FETCHES: 64,
    Pool.QUESTIONS: 32,
    Pool.ESTIMATES: 32,
    Pool.THUMBNAILS: 8,
    Pool.ANSWERS: 32,
}


class Places:
    """The places of one pool. They belong to the event loop."""

    def __init__(self, most: int) -> None:
        self._limiter = CapacityLimiter(most)
        self._free = most
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[Event]] = {}

    @asynccontextmanager
    async def place(self, tenant: str) -> AsyncIterator[CapacityLimiter]:
        """A place of the tenant's, once there is one: a thread to be had from this limiter at once."""
        await self._enter(tenant)
        try:
            yield self._limiter
        finally:
            self._leave(tenant)

    async def _enter(self, tenant: str) -> None:
        if tenant not in self._waiting and self._may(tenant):
            self._take(tenant)
            return
        slot = Event()
        self._waiting.setdefault(tenant, deque()).append(slot)
        try:
            await slot.wait()
        except get_cancelled_exc_class():  # the client went away
            if slot.is_set():
                self._leave(tenant)
            else:
                self._forget(tenant, slot)
            raise

    def _may(self, tenant: str) -> bool:
        return self._free > 0 and self._held[tenant] < max(1, self._free)

    def _take(self, tenant: str) -> None:
        self._held[tenant] += 1
        self._free -= 1

    def _leave(self, tenant: str) -> None:
        self._held[tenant] -= 1
        self._held += Counter()  # drops tenants that hold none
        self._free += 1
        while eligible := [each for each in self._waiting if self._may(each)]:
            following = min(eligible, key=lambda each: self._held[each])
            self._take(following)
            slot = self._waiting[following][0]
            self._forget(following, slot)
            slot.set()

    def _forget(self, tenant: str, slot: Event) -> None:
        self._waiting[tenant].remove(slot)
        if not self._waiting[tenant]:
            del self._waiting[tenant]


_pools: RunVar[dict[Pool, Places]] = RunVar("holdfast.patience")


def places(pool: Pool) -> Places:
    """The places of a pool, of the loop that runs."""
    pools = _pools.get(None)
    if pools is None:
        pools = {each: Places(most) for each, most in MOST.items()}
        _pools.set(pools)
    return pools[pool]
