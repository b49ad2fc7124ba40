"""What history and money look like on the wire."""

from datetime import UTC, datetime
from typing import Any

from holdfast.api.shapes import Cost, Failure, Progress, Shape, dollars, moment
from holdfast.core.states import shown
from holdfast.store import billing, documents, events, reads
from holdfast.store.billing import By


class Run(Shape):
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
    error: Failure | None

    @classmethod
    def of(cls, found: reads.RunDetail) -> "Run":
        """The run as it is shown."""
        run = found.run
        return cls(
            id=run.id,
            kind=run.kind,
            subject=run.subject,
            generation=run.generation,
            status=shown(run.kind, run.status),
            disposition=run.disposition,
            reason=found.reason,
            actor=found.actor,
            lane=run.lane,
            priority=run.priority,
            slices=run.slices,
            queued_at=moment(run.queued_at),
            started_at=moment(run.started_at),
            finished_at=moment(run.finished_at),
            error=Failure.of(run),
        )


class Runs(Shape):
    """The runs of a document, the newest first."""

    runs: list[Run]


class Line(Shape):
    """One line of a run's log."""

    at: datetime | None
    text: str


class Log(Shape):
    """What a run says of itself."""

    run_id: str
    generation: int
    status: str
    progress: Progress
    cost: Cost
    lines: list[Line]

    @classmethod
    def of(cls, found: reads.RunProgress) -> "Log":
        """The log as it is shown."""
        run = found.run
        return cls(
            run_id=run.id,
            generation=run.generation,
            status=shown(run.kind, run.status),
            progress=Progress.of(found),
            cost=Cost.of(found.spent),
            lines=[Line(at=moment(line.at), text=line.text) for line in found.lines],
        )


class Event(Shape):
    """One decision, by whom and about what."""

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
    data: dict[str, Any] | None

    @classmethod
    def of(cls, found: events.Event) -> "Event":
        """The event as it is shown."""
        kept = {name: getattr(found, name) for name in cls.model_fields if name not in {"at", "data"}}
        return cls(**kept, at=moment(found.at), data=None if found.data is None else dict(found.data))

    @classmethod
    def noted(cls, found: reads.Noted, about: documents.Document) -> "Event":
        """An entry of a document's story as it is shown."""
        apart = {"at", "data", "kind", "subject", "collection"}
        kept = {name: getattr(found, name) for name in cls.model_fields if name not in apart}
        return cls(
            **kept,
            at=moment(found.at),
            data=None if found.data is None else dict(found.data),
            kind=documents.KIND,
            subject=documents.subject(about.id),
            collection=about.collection,
        )


class Events(Shape):
    """A page of the journal, the oldest first; `next` is where to go on, now or later."""

    events: list[Event]
    next: str


class Chunk(Shape):
    """A piece of text of the published generation."""

    slice: int
    position: int
    page: int | None
    text: str


class Chunks(Shape):
    """A page of the chunks of one generation, in the order of the document."""

    generation: int
    chunks: list[Chunk]
    next: str | None


class Slice(Shape):
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


class Chapter(Shape):
    """A generation: its run, and the tasks of that."""

    run: Run
    tasks: list[Slice]


class Why(Shape):
    """The story of a document: its generations, the newest first, and its journal, the oldest first."""

    document_id: str
    index_status: str
    index_generation: int
    published_generation: int
    generations: list[Chapter]
    journal: list[Event]


class BillLine(Shape):
    """What one thing cost, in US dollars; `about` is null for what belongs to none."""

    about: str | None
    orders: int
    tokens: int
    paid: float
    charged_twice: float
    in_doubt: float


class Bill(Shape):
    """What was paid, is in doubt and was saved, in US dollars. `total` counts doubts as money."""

    by: By
    lines: list[BillLine]
    total: float
    in_doubt: float
    charged_twice: float
    reused_calls: int
    saved: float
    refused_duplicates: int

    @classmethod
    def of(cls, by: By, found: billing.Bill) -> "Bill":
        """The bill as it is shown."""
        lines = [
            BillLine(
                about=_about(by, line.about),
                orders=line.orders,
                tokens=line.tokens,
                paid=dollars(line.paid),
                charged_twice=dollars(line.second),
                in_doubt=dollars(line.in_doubt),
            )
            for line in found.lines
        ]
        return cls(
            by=by,
            lines=lines,
            total=dollars(found.total),
            in_doubt=dollars(found.in_doubt),
            charged_twice=dollars(found.second),
            reused_calls=found.reused_calls,
            saved=dollars(found.saved),
            refused_duplicates=found.refused_duplicates,
        )


def _about(by: By, about: str | int | None) -> str | None:
    if about is None or (by is By.COLLECTION and about == "tenant"):
        return None
    if by is By.DAY:
        return datetime.fromtimestamp(int(about) * billing.DAY, UTC).date().isoformat()
    return str(about).removeprefix(f"{by}:")


class Order(Shape):
    """An order that is not settled; `estimate` is in US dollars."""

    id: str
    state: str
    provider: str
    endpoint: str
    model: str
    calls: int
    estimate: float
    keyed: bool
    sends: int
    doubts: int
    reason: str | None
    run_id: str | None
    subject: str | None
    created_at: datetime | None

    @classmethod
    def of(cls, found: billing.OpenOrder) -> "Order":
        """The order as it is shown."""
        apart = {"estimate", "created_at"}
        kept = {name: getattr(found, name) for name in cls.model_fields if name not in apart}
        return cls(**kept, estimate=dollars(found.estimate), created_at=moment(found.created_at))


class Orders(Shape):
    """The orders that are not settled, the oldest first."""

    orders: list[Order]


class Resolution(Shape):
    """What a person has found out; also `charged` when it is not known."""

    charged: bool
