"""Documents as people look at them: with the progress, the times, the cost and the error of their latest run.

A page of documents costs as many statements as one document.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core.errors import NotFoundError
from holdfast.core.states import Status, shown
from holdfast.store import documents, events, reads
from holdfast.store.database import Database
from holdfast.store.documents import Document
from holdfast.store.events import Standing
from holdfast.store.reads import RunProgress


@dataclass(frozen=True, slots=True)
class View:
    """A document and how its latest run stands; None when nobody asked, or its history was pruned."""

    document: Document
    standing: Standing | None

    @property
    def word(self) -> str:
        """The word a person is shown for its status."""
        return shown(documents.KIND, self.document.status)

    @property
    def in_progress(self) -> str:
        """The sentence for whoever asks for work that is under way."""
        far = ""
        if self.standing is not None and self.standing.run.status is Status.RUNNING:
            far = f", {self.standing.rolled.share * 100:.0f} %"
        word = shown(documents.KIND, self.standing.run.status) if self.standing is not None else self.word
        return f"{self.document.title} is already in progress ({word}{far})"


class Viewing:
    """Looks at the documents of an installation."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def view(self, document: Document) -> View:
        """The document as it stands."""
        return self.views([document])[0]

    def views(self, found: Sequence[Document]) -> list[View]:
        """The documents as they stand, in the same order."""
        known = events.standings(self._db, {one.run_id for one in found if one.run_id is not None})
        return [View(one, known.get(one.run_id or "")) for one in found]

    def page(self, tenant: str, collection: str, *, after: str, limit: int) -> list[View]:
        """The documents of a collection after the id `after`."""
        return self.views(documents.page(self._db, tenant, collection, after=after, limit=limit))

    def run(self, tenant: str, run_id: str, *, lines: int) -> RunProgress:
        """A run of the tenant with the latest lines of its log; NotFoundError when it has no such run."""
        found = reads.progress_of(self._db, run_id, lines)
        if found is None or found.run.tenant != tenant:
            raise NotFoundError(f"there is no run {run_id!r}", code="unknown_run")
        return found
