"""What history looks like on the wire."""

from datetime import datetime
from typing import Any

from holdfast.api.schemas_documents import (
    Cost,
    FailureResponse,
    GapResponse,
    ProgressResponse,
    Shape,
    dollars,
    moment,
)
from holdfast.core import subjects
from holdfast.core.states import shown
from holdfast.service import explanations, records
from holdfast.service.records import WOULD_COST


class RunView(Shape):
    """One generation being carried out, or how it ended."""

    id: str
    kind: str
    subject: str
    generation: int
    status: str
    disposition: str
    reason: str
    actor: str
    lane: str
    priority: int
    slices: int | None
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    gaps: list[GapResponse]
    error: FailureResponse | None

    @classmethod
    def of(cls, detail: records.RunDetail) -> "RunView":
        """The run as it is shown."""
        run = detail.run
        return cls(
            id=run.id,
            kind=run.kind,
            subject=run.subject,
            generation=run.generation,
            status=shown(run.kind, run.status),
            disposition=run.disposition,
            reason=detail.reason,
            actor=detail.actor,
            lane=run.lane,
            priority=run.priority,
            slices=run.slices,
            queued_at=moment(run.queued_at),
            started_at=moment(run.started_at),
            finished_at=moment(run.finished_at),
            gaps=[GapResponse(**gap) for gap in GapResponse.as_dicts(detail.gaps)],
            error=FailureResponse.of(run),
        )


class Runs(Shape):
    """The runs of a document, the newest first."""

    runs: list[RunView]


class LogLineResponse(Shape):
    """One line of a run's log."""

    at: datetime | None
    text: str


class Log(Shape):
    """What a run says of itself."""

    run_id: str
    generation: int
    status: str
    progress: ProgressResponse
    cost: Cost
    lines: list[LogLineResponse]

    @classmethod
    def of(cls, progress: records.RunProgress) -> "Log":
        """The log as it is shown."""
        run = progress.run
        return cls(
            run_id=run.id,
            generation=run.generation,
            status=shown(run.kind, run.status),
            progress=ProgressResponse.of(progress),
            cost=Cost.of(progress.spent),
            lines=[LogLineResponse(at=moment(line.at), text=line.text) for line in progress.lines],
        )


class EventResponse(Shape):
    """One decision, by whom and about what.

    `would_cost` is what a refused duplicate would have cost, in US dollars: the price of the run that was in
    the way, as far as it is known by now.
    """

    id: int
    at: datetime | None
    verb: str
    reason: str
    kind: str | None
    subject: str | None
    collection: str | None
    run_id: str | None
    task_id: int | None
    generation: int | None
    epoch: int | None
    actor: str | None
    would_cost: float | None
    data: dict[str, Any] | None

    @classmethod
    def of(cls, event: records.Event) -> "EventResponse":
        """The event as it is shown."""
        apart = {"at", "data", "would_cost"}
        fields = {name: getattr(event, name) for name in cls.model_fields if name not in apart}
        return cls(
            **fields,
            at=moment(event.at),
            data=None if event.data is None else dict(event.data),
            would_cost=None if event.would_cost is None else dollars(event.would_cost),
        )

    @classmethod
    def noted(cls, entry: records.Noted, about: records.Document) -> "EventResponse":
        """An entry of a document's story as it is shown."""
        apart = {"at", "data", "kind", "subject", "collection", "would_cost"}
        noted = (entry.data or {}).get(WOULD_COST)
        fields = {name: getattr(entry, name) for name in cls.model_fields if name not in apart}
        return cls(
            **fields,
            at=moment(entry.at),
            data=None if entry.data is None else dict(entry.data),
            would_cost=None if noted is None else dollars(noted),
            kind=subjects.INDEX,
            subject=subjects.of_document(about.id),
            collection=about.collection,
        )


class Events(Shape):
    """A page of the journal, the oldest first; `next` is where to go on, now or later."""

    events: list[EventResponse]
    next: str


class SliceResponse(Shape):
    """A task of a run: who holds it, and what it has done."""

    ordinal: int
    state: str
    epoch: int
    attempts: int
    owner: str | None
    waiting_for: str | None
    done: int
    total: int
    unit: str
    cost: Cost


class GenerationResponse(Shape):
    """A generation: its run, and the tasks of that."""

    run: RunView
    tasks: list[SliceResponse]


class Why(Shape):
    """The story of a document: its generations, the newest first, and its journal, the oldest first.

    `sentence` says why it is as it is, `next_step` what is safe to do next, which `advice` says in words.
    """

    document_id: str
    sentence: str
    next_step: explanations.NextStep
    advice: str
    index_status: str
    index_generation: int
    published_generation: int
    generations: list[GenerationResponse]
    journal: list[EventResponse]


class OutlineEntryResponse(Shape):
    """An entry of a table of contents: its level from 1, and where it leads to: a page, slide or part."""

    level: int
    title: str
    page: int


class OutlineResponse(Shape):
    """The table of contents of the published version; empty if it has none."""

    generation: int
    entries: list[OutlineEntryResponse]


class PageReadingResponse(Shape):
    """How a page was read: `text`, `ocr` with its confidence, 0 to 100, or `empty`; why, if it is a gap."""

    page: int
    quality: str
    confidence: int | None
    gap: str | None
    words: int


class PageReadings(Shape):
    """Pages of the published version in order; `next` is the cursor of the next ones, if any."""

    generation: int
    pages: list[PageReadingResponse]
    next: str | None
