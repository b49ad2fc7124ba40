"""The history of a document: its runs, text, journal and payments, and the reason for its status."""

from collections.abc import Sequence

from holdfast.core import subjects
from holdfast.core.errors import NotFoundError
from holdfast.service import explanations
from holdfast.service.explanations import Advice
from holdfast.store.base.database import Database
from holdfast.store.follow_ups import follow_up_retries
from holdfast.store.library.documents import Document
from holdfast.store.money import payments
from holdfast.store.money.payments import OrderPayment
from holdfast.store.views import reads
from holdfast.store.views.chunk_lists import ListedChunk
from holdfast.store.views.reads import RunDetail, Story

# How far the text of a document is searched for a heading: pages of chunks, and chunks of each.
HEADING_PAGES = 20
HEADING_CHUNKS = 500


class History:
    """Looks back at the documents of an installation."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def runs(self, document: Document) -> tuple[RunDetail, ...]:
        """Its runs, the newest generation first."""
        return reads.runs_of(self._db, document.head_id) if document.head_id is not None else ()

    def heading(self, document: Document, title: str, page: int) -> tuple[int, int] | None:
        """Slice and position of the text under a heading, or else of its page; None if there is neither."""
        after, first = (-1, -1), None
        for _ in range(HEADING_PAGES):
            part = reads.visible_chunks(self._db, document.head_id or 0, after=after, limit=HEADING_CHUNKS)
            if part is None or not part.chunks:
                return first
            for each in part.chunks:
                if each.chunk.page != page:
                    continue
                position = each.slice, each.chunk.position
                if title in each.headings or title in each.chunk.text:
                    return position
                first = first or position
            after = part.chunks[-1].slice, part.chunks[-1].chunk.position
        return first

    def story(
        self, document: Document, *, action: int | None = None, runs: int = reads.RUNS_SHOWN
    ) -> Story | None:
        """Its latest runs with their tasks, and its journal; with `action`, of what that did with it.

        None when nobody ever asked; NotFoundError for an action that did nothing with it.
        """
        head_id = document.head_id
        if action is not None:
            subject = follow_up_retries.subject_of(subjects.of_document(document.id), action)
            head_id = follow_up_retries.head_of(self._db, document.tenant, subject)
            if head_id is None:
                raise NotFoundError(f"action {action} has not run on this document", code="unknown_action")
        return reads.story(self._db, head_id, limit=runs) if head_id is not None else None

    def advice(self, document: Document, story: Story | None) -> Advice:
        """Why it is as it is, and what is safe to do next."""
        return explanations.about(self._db, document, story)

    def exchanges(self, document: Document, story: Story) -> dict[str, Sequence[OrderPayment]]:
        """What each run of a story has sent to providers."""
        return payments.exchanges(self._db, document.tenant, list(story.tasks))

    def payers(self, document: Document, chunks: Sequence[ListedChunk]) -> dict[str, str | None]:
        """Which run has paid for each of these chunks, by the key of its call."""
        return payments.payers(self._db, document.tenant, [each.call_key or "" for each in chunks])
