"""A source made for a test: as many items as it is told, some of which fail."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.documents.sources import source_types
from holdfast.documents.sources.source import FetchedItem, Listing, SourceError, SourceItem


@dataclass
class FlakySource:
    """Items of a few words. `breaks_after`: the list fails after so many; `bad`: these cannot be fetched."""

    items: int
    breaks_after: int | None = None
    bad: set[int] = field(default_factory=set)
    version: str = "1"
    complete: bool = True
    states: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def use(self, patch) -> None:
        """Sources of the type `flaky` are this one."""
        patch.setitem(source_types._OPENERS, "flaky", lambda _options, _limits: self)

    def list(self, state: str) -> Listing:
        self.states.append(state)
        return Listing(self._items(), state=f"after {len(self.states)}", complete=self.complete)

    def _items(self) -> Iterator[SourceItem]:
        for number in range(self.items):
            if number == self.breaks_after:
                raise SourceError("unreachable", "the line went dead")
            yield SourceItem(f"id-{number}", self.version, f"{number}.txt")

    def fetch(self, item: SourceItem, version: str) -> FetchedItem | None:
        number = int(item.external_id.removeprefix("id-"))
        self.fetched.append(item.external_id)
        if number in self.bad:
            raise SourceError("unreachable", f"nobody answers for {number}")
        words = f"Item {number}, version {self.version or 'unknown'}."
        return FetchedItem(io.BytesIO(words.encode()), self.version, item.name)
