"""The journal of an installation: page by page, and what is new since the last look."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from holdfast.store.base.database import Database
from holdfast.store.library.documents import Document
from holdfast.store.protocol import workers
from holdfast.store.views import events
from holdfast.store.views.events import Event, Position, RunStanding

# Looks at the journal between two looks at the workers, who tell of themselves every few seconds.
CREW_EVERY = 8


@dataclass(frozen=True, slots=True)
class Crew:
    """How many workers are in each state. What they do is not told: it may be another tenant's work."""

    states: dict[str, int]


Happening = Event | RunStanding | Crew


class Journal:
    """Reads the journal; each read is one of the store's, bound to this installation."""

    def __init__(self, db: Database, phase_shares: Mapping[str, float]) -> None:
        self._db = db
        self.adopt = partial(events.adopt, db)
        self.page = partial(events.page, db)
        self.page_of_collection = partial(events.page_of_collection, db)
        self.latest = partial(events.latest, db)
        self.here = partial(events.here, db)
        self.position = partial(events.known, db)
        self.watch = partial(Watch, db, phase_shares)

    def of_document(self, document: Document, *, after: Position, limit: int) -> tuple[Event, ...]:
        """The entries of a document's indexing."""
        if document.head_id is None:
            return ()
        return events.of_head(self._db, document.head_id, after=after, limit=limit)


class Watch:
    """What is new since the last look. The cost of a look does not depend on how much others did before."""

    def __init__(self, db: Database, phase_shares: Mapping[str, float]) -> None:
        self._db = db
        self._phase_shares = phase_shares
        self._position: Position | None = None
        self._far: dict[str, tuple[object, ...]] = {}
        self._crew: Crew | None = None
        self._looks = 0

    def look(self, tenants: Iterable[str], since: Position | None) -> list[Happening]:
        """The events and the progress of these tenants that were not there at the look before.

        With `since` the events after that, too: somebody has begun to listen there.
        """
        names = sorted(tenants)
        starts = [each for each in (self._position, since) if each is not None]
        happenings: list[Happening] = [*self._fresh(names, min(starts, default=events.BEGINNING))]
        far = {one.run.id: one for one in events.running(self._db, names, self._phase_shares)}
        happenings += [one for name, one in far.items() if self._far.get(name) != _measure(one)]
        self._far = {name: _measure(one) for name, one in far.items()}
        return [*happenings, *self._changed_crew()]

    def _fresh(self, tenants: list[str], after: Position) -> tuple[Event, ...]:
        until = events.latest(self._db)
        if until <= after:
            self._position = after
            return ()
        page = events.of_tenants(self._db, tenants, after=after, until=until)
        self._position = page[-1].position if len(page) == events.MOST else until
        return page

    def _changed_crew(self) -> list[Crew]:
        """The workers, if they have changed; a new listener has read them already."""
        self._looks += 1
        if self._looks % CREW_EVERY != 1:
            return []
        states = Counter(each.state.value for each in workers.known(self._db))
        before, self._crew = self._crew, Crew(dict(sorted(states.items())))
        return [self._crew] if before is not None and before != self._crew else []


def _measure(one: RunStanding) -> tuple[object, ...]:
    return (
        one.run.status,
        one.run.phase,
        one.rolled.done,
        one.rolled.total,
        one.rolled.share,
        one.rolled.parts_done,
        tuple(one.stages.items()),
    )
