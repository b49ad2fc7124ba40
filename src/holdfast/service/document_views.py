"""Documents as people see them: with the progress, times, cost and error of their latest run.

A page of documents takes as many statements as a single document.
"""

import base64
import binascii
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from holdfast.core import subjects
from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.records import TENANT
from holdfast.core.states import Status, shown
from holdfast.core.text import is_plain
from holdfast.service import explanations
from holdfast.service.explanations import Waiting
from holdfast.store.base.database import Database
from holdfast.store.library import document_lists
from holdfast.store.library.document_lists import RESTING, Counts, DocumentQuery, PagePosition, SortKey
from holdfast.store.library.documents import Document
from holdfast.store.views import events, reads
from holdfast.store.views.events import RunStanding
from holdfast.store.views.reads import RunProgress

# By what people call them, the statuses that a document can have.
STATUSES = {
    shown(subjects.INDEX, status): status
    for status in (Status.FAILED, Status.RUNNING, Status.QUEUED, Status.IDLE, Status.SUCCESS)
}
MOST_CURSOR = 4000
# Below this share of the work the pace says nothing about the rest.
SOONEST = 0.03


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document and how its latest run stands; None when nobody asked, or its history was pruned."""

    document: Document
    standing: RunStanding | None

    @property
    def word(self) -> str:
        """The word a person is shown for its status."""
        return shown(subjects.INDEX, self.document.status)

    @property
    def is_imported(self) -> bool:
        """True for one that was imported and has no content here: it rests, and no query finds it."""
        return not self.document.has_content and self.document.status in RESTING

    @property
    def stage(self) -> str:
        """What its run is doing now; empty when nothing is known."""
        if self.standing is None or self.standing.run.status is not Status.RUNNING:
            return ""
        behind = [name for name, (done, total) in self.standing.stages.items() if done < total]
        return behind[0] if behind else ""

    @property
    def waiting(self) -> Waiting | None:
        """What its run waits for; None when it is at work, or nobody asked."""
        return explanations.waiting(self.standing)

    @property
    def eta(self) -> float | None:
        """Seconds to go at the pace so far; None while there is too little to estimate from."""
        run = self.standing.run if self.standing is not None else None
        if self.standing is None or run is None or run.status is not Status.RUNNING or not run.started_at:
            return None
        if run.phase:  # how many phases follow is not known
            return None
        share, seconds = self.standing.rolled.share, self.standing.now - run.started_at
        return seconds * (1 - share) / share if share >= SOONEST and seconds > 1 else None

    @property
    def in_progress(self) -> str:
        """The message for a request for work that is already in progress."""
        far = ""
        if self.standing is not None and self.standing.run.status is Status.RUNNING:
            far = f", {self.standing.rolled.share * 100:.0f} %"
        word = shown(subjects.INDEX, self.standing.run.status) if self.standing is not None else self.word
        return f"{self.document.title} is already in progress ({word}{far})"


class Viewing:
    """Looks at the documents of an installation."""

    def __init__(self, db: Database, phase_shares: Mapping[str, float]) -> None:
        self._db = db
        self._phase_shares = phase_shares

    def view(self, document: Document) -> DocumentView:
        """The document as it stands."""
        return self.views([document])[0]

    def views(self, documents: Sequence[Document]) -> list[DocumentView]:
        """The documents as they stand, in the same order."""
        runs = {one.run_id for one in documents if one.run_id is not None}
        known = events.standings(self._db, runs, self._phase_shares)
        return [DocumentView(one, known.get(one.run_id or "")) for one in documents]

    def listed(self, query: DocumentQuery) -> tuple[list[DocumentView], str | None]:
        """The documents of a query, and the cursor of the next page; None when this is the last."""
        views, position = self.page(query)
        return views, None if position is None else cursor_of(query.sort, position)

    def page(self, query: DocumentQuery) -> tuple[list[DocumentView], PagePosition | None]:
        """As `listed`, with the place itself, for a reader in this process."""
        rows = document_lists.page(self._db, query)
        follows = rows[-1].position if len(rows) == query.limit else None
        return self.views([each.document for each in rows]), follows

    def some(self, tenant: str, collection: str, ids: Collection[str]) -> list[DocumentView]:
        """Those of the documents that are in the collection."""
        return self.views(document_lists.some(self._db, tenant, collection, ids))

    def counts(self, tenant: str) -> dict[str, Counts]:
        """How many documents of each status, by collection that has some."""
        return document_lists.counts(self._db, tenant)

    def count(self, tenant: str, collection: str) -> Counts:
        """How many documents of each status a collection has."""
        return document_lists.counts(self._db, tenant, collection).get(collection, Counts({}))

    def run(self, tenant: str, run_id: str, *, lines: int) -> RunProgress:
        """A run of the tenant with the latest lines of its log; NotFoundError when it has no such run."""
        progress = reads.progress_of(self._db, run_id, lines, self._phase_shares)
        if progress is None or progress.run.tenant != tenant:
            raise NotFoundError(f"there is no run {run_id!r}", code="unknown_run")
        return progress


def cursor_of(key: SortKey, position: PagePosition) -> str:
    """The cursor of a position in a sorted list; for a list sorted by id it is the id itself."""
    if key is SortKey.ID:
        return position.id
    encoded = json.dumps([key, position.value, position.id]).encode()
    return base64.urlsafe_b64encode(encoded).decode().rstrip("=")


def position_of(key: SortKey, cursor: str | None) -> PagePosition | None:
    """The place that a cursor stands for, None for none; BadRequestError for one of another list."""
    if cursor is None:
        return None
    wrong = BadRequestError("this cursor is not valid; use `next` from the previous page", code="bad_cursor")
    if key is SortKey.ID:
        if not TENANT.fullmatch(cursor):
            raise wrong
        return PagePosition(cursor, cursor)
    try:
        fields = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        raise wrong from None
    if not isinstance(fields, list) or len(fields) != 3 or fields[0] != key:
        raise wrong
    _, value, name = fields
    fits = (
        isinstance(value, str) if key is SortKey.TITLE else type(value) in {int, float} and abs(value) < 1e18
    )
    if not fits or (isinstance(value, str) and not is_plain(value)):
        raise wrong
    if not isinstance(name, str) or not TENANT.fullmatch(name):
        raise wrong
    return PagePosition(value, name)
