"""The live feed: one query serves all listeners of this process; without listeners there is none.

A listener subscribes first and then reads what it missed, so nothing is lost in between; an event that
arrives both ways is sent once. A listener that cannot keep up is disconnected and continues from its last
event when it reconnects.

A stream may stay open for days, and its key may be revoked meanwhile. So the keys of all listeners are
checked again with every heartbeat, in one query, and listeners without a valid key are disconnected.

Streams are shared fairly: a tenant may have no more of them than are left for the others.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

from holdfast.core.errors import StoreUnavailableError
from holdfast.service.access import Credential, Identity
from holdfast.service.journal import Happening, Journal, Watch
from holdfast.service.records import BEGINNING, Event, Position, RunStanding

EVERY = 0.25
# Who hears nothing for several of these may take the connection, or this process, to be dead.
BEAT = 4.0
MOST_WAITING = 2000
MOST_LISTENERS = 2000

log = logging.getLogger(__name__)


class FullError(Exception):
    """So many listen that no more are taken, of this tenant or of anybody."""


Ended = Callable[[Collection[Credential | None]], set[Credential | None]]
"""Those of what was shown that open nothing any more. May wait for the database."""


@dataclass(eq=False, slots=True)
class Listener:
    """Somebody who listens to one tenant, since the journal was at `since`. None in the queue ends it."""

    tenant: str
    credential: Credential | None = None
    since: Position = BEGINNING
    waiting: "asyncio.Queue[Happening | None]" = field(
        default_factory=lambda: asyncio.Queue(MOST_WAITING + 1)
    )
    lost: bool = False
    watched: bool = False

    def tell(self, happening: Happening) -> None:
        """It will hear of this, unless it lags behind by too much."""
        if self.lost or self.waiting.qsize() >= MOST_WAITING:
            self.end()
        else:
            self.waiting.put_nowait(happening)

    def end(self) -> None:
        """It hears what it was told so far, and no more."""
        if not self.lost:
            self.lost = True
            self.waiting.put_nowait(None)


class Feed:
    """Tells listeners what happens. Everything but `close` belongs to the event loop."""

    def __init__(self, journal: Journal, ended: Ended, *, every: float = EVERY, beat: float = BEAT) -> None:
        self._journal = journal
        self._ended = ended
        self._every = every
        self.beat = beat
        self._taken: Counter[str] = Counter()
        self._listeners: set[Listener] = set()
        self._watching: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._looked = 0.0

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def close(self) -> None:
        """Every stream ends, and none begins. May be called from anywhere, also by a signal."""
        self._closed = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end_all)

    def _end_all(self) -> None:
        for listener in self._listeners:
            listener.end()

    def take(self, tenant: str) -> Callable[[], None]:
        """One more of the tenant may listen; call what is answered when that has ended. FullError if not."""
        free = MOST_LISTENERS - self._taken.total()
        if free <= 0 or self._taken[tenant] >= max(1, free):
            raise FullError
        self._taken[tenant] += 1

        def leave() -> None:
            self._taken[tenant] -= 1
            self._taken += Counter()  # drops tenants that hold none

        return leave

    async def listen(self, caller: Identity, after: Position | None) -> AsyncIterator[Happening | None]:
        """What happens to the caller's tenant, after a place in the journal or from now on.

        None now and then says that nothing happened. While the database cannot be read nobody knows that, and
        nothing is said. It ends when what the caller has shown ends.
        """
        self._loop = asyncio.get_running_loop()
        since, visible = await asyncio.to_thread(self._journal.here)
        listener = Listener(caller.tenant, caller.credential, since)
        self._listeners.add(listener)
        try:
            if self._closed:
                return
            if self._watching is None or self._watching.done():
                self._watching = self._loop.create_task(self._watch())
            # What could be seen before is nothing new to who begins now, though it was not settled yet.
            old = visible if after is None else frozenset()
            position = since if after is None else after
            async for happening in self._heard(listener, position):
                if isinstance(happening, Event):
                    if happening.position <= position:
                        continue
                    position = happening.position
                    if happening.id in old:
                        continue
                yield happening
        finally:
            self._listeners.discard(listener)

    async def _heard(self, listener: Listener, after: Position) -> AsyncIterator[Happening | None]:
        """What the listener missed, and then what it is told; what comes both ways, twice."""
        async for event in self._missed(listener.tenant, after):
            yield event
        while True:
            try:
                happening = await asyncio.wait_for(listener.waiting.get(), self.beat)
            except TimeoutError:
                if asyncio.get_running_loop().time() - self._looked < 2 * self.beat:
                    yield None
                continue
            if happening is None:
                return
            yield happening

    async def _missed(self, tenant: str, after: Position) -> AsyncIterator[Event]:
        while page := await asyncio.to_thread(self._journal.page, tenant, after=after, limit=500):
            for event in page:
                yield event
            after = page[-1].position
            if self._closed:
                return

    async def _watch(self) -> None:
        """Look again and again, until nobody listens. If that goes wrong all streams end, and come back."""
        watch, checked_at = self._journal.watch(), time.monotonic()
        try:
            while self._listeners:
                if time.monotonic() - checked_at >= self.beat:
                    await self._end_those_without_a_key()
                    checked_at = time.monotonic()
                await self._look(watch)
                await asyncio.sleep(self._every)
        finally:
            self._end_all()

    async def _end_those_without_a_key(self) -> None:
        shown = {listener.credential for listener in self._listeners}
        try:
            ended = await asyncio.to_thread(self._ended, shown)
        except StoreUnavailableError:
            return  # nothing is sent either while the database is unreachable
        for listener in self._listeners:
            if listener.credential in ended:
                listener.end()

    async def _look(self, watch: Watch) -> None:
        """Tell what is new; to who came since the last look, all since they came, which others skip."""
        new = [listener for listener in self._listeners if not listener.watched]
        tenants = {listener.tenant for listener in self._listeners}
        since = min((listener.since for listener in new), default=None)
        try:
            happenings = await asyncio.to_thread(watch.look, tenants, since)
        except StoreUnavailableError as error:
            log.warning("the event stream is waiting for the database: %s", error.message)
            return
        for listener in new:
            listener.watched = True
        for happening in happenings:
            self._tell(happening)
        self._looked = asyncio.get_running_loop().time()

    def _tell(self, happening: Happening) -> None:
        match happening:
            case Event():
                tenant: str | None = happening.tenant
            case RunStanding():
                tenant = happening.run.tenant
            case _:
                tenant = None
        for listener in list(self._listeners):
            if tenant is None or listener.tenant == tenant:
                listener.tell(happening)
