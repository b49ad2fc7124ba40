"""What collections and documents look like on the wire. Times are UTC, money is in US dollars."""

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pydantic
import pydantic_core
from pydantic import Field

from holdfast.core import subjects
from holdfast.core.gaps import Gap
from holdfast.core.records import RunRecord, Spent
from holdfast.core.states import Disposition, Status, shown
from holdfast.kinds.index import Choices
from holdfast.ledger.prices import NANO
from holdfast.service import gap_sentences, records
from holdfast.service.document_views import DocumentView
from holdfast.service.explanations import Waiting
from holdfast.service.records import Family, RunProgress, RunStanding

LaneName = Literal["interactive", "bulk", "follow-up"]
Priority = Annotated[int, Field(ge=0, le=9, strict=True)]
MaxCost = Annotated[
    float | None,
    Field(ge=0, le=1_000_000_000, allow_inf_nan=False, description="Cost limit of a run, in US dollars."),
]

Rerank = Annotated[
    bool | Annotated[str, Field(min_length=1, max_length=100)] | None,
    Field(description="True, or the name of a provider: it ranks the hits. Null: as the collections say."),
]

MetadataField = Annotated[
    dict[str, Any] | None, Field(description="Any JSON object; filters find documents by its values.")
]
LabelsField = Annotated[
    list[str] | None, Field(max_length=50, description="Access labels, for the filters of API keys.")
]


ExternalIdField = Annotated[
    str | None,
    Field(min_length=1, max_length=500, description="Your own id of it, unique in the collection."),
]


def moment(at: float | None) -> datetime | None:
    """A database time for the wire; None for none."""
    return None if not at else datetime.fromtimestamp(at, UTC)


def dollars(nano: int) -> float:
    """Nano-dollars for the wire."""
    return nano / NANO


def nano_dollars(amount: float | None) -> int | None:
    """US dollars off the wire; None for none."""
    return None if amount is None else round(amount * NANO)


class Shape(pydantic.BaseModel):
    """What everything on the wire has in common: no field is taken that is not known."""

    model_config = pydantic.ConfigDict(extra="forbid")


class CollectionResponse(Shape):
    """What is searched together. `options` are those that differ from the defaults.

    `provider` and `model` are who embeds its documents and questions, by the options or by default.
    """

    id: str
    title: str
    options: dict[str, Any]
    search: dict[str, Any]
    provider: str
    model: str
    created_at: datetime | None

    @classmethod
    def of(cls, collection: records.Collection, chosen: Choices) -> "CollectionResponse":
        """The collection as it is shown."""
        return cls(
            id=collection.id,
            title=collection.title,
            options=dict(collection.options),
            search=dict(collection.search),
            provider=chosen.provider_name,
            model=chosen.model,
            created_at=moment(collection.created_at),
        )


class NewCollection(Shape):
    """A collection to be made; without an id it is given one."""

    id: Annotated[str, Field(max_length=64)] | None = None
    title: Annotated[str, Field(max_length=500)] = ""
    options: dict[str, Any] = {}


class CollectionChange(Shape):
    """What is to change; an option that is null goes back to its default.

    `estimate` is the `fingerprint` of an estimate: 409 `other_estimate` if that was of other options.
    `max_cost` is what indexing each document again may cost at most. `search` replaces the rules of search:
    `synonyms`, a list of lists of words, and `stop_words`; nothing is indexed again for it.
    """

    title: Annotated[str, Field(max_length=500)] | None = None
    options: dict[str, Any] | None = None
    search: dict[str, Any] | None = None
    estimate: Annotated[str, Field(max_length=128)] | None = None
    max_cost: MaxCost = None


class ChangedCollection(Shape):
    """The collection as changed, how many documents were asked for again because of it, how many will be."""

    collection: CollectionResponse
    requested: int
    to_follow: int


class Deleted(Shape):
    """How many documents went, and for how many of them work is still to be ended."""

    deleted: int
    to_follow: int


class CollectionList(Shape):
    """All collections of the tenant."""

    collections: list[CollectionResponse]


class ProgressResponse(Shape):
    """True counts; `share` is from 0 to 1, `stages` has done and total of each.

    `done` and `total` count in the parts that were begun; `parts_done` of `parts` are finished. Counts are
    those of the phase (from 1); `share` is that of all phases, later ones estimated, and never falls.
    """

    done: int
    total: int
    unit: str
    share: float
    stages: dict[str, tuple[int, int]]
    parts_done: int
    parts: int
    phase: int = 1

    @classmethod
    def of(cls, progress: RunStanding | RunProgress) -> "ProgressResponse":
        """The progress as it is shown."""
        return cls(**cls.as_dict(progress))

    @staticmethod
    def as_dict(progress: RunStanding | RunProgress) -> dict[str, Any]:
        """Its fields."""
        rolled = progress.rolled
        return {
            "done": rolled.done,
            "total": rolled.total,
            "unit": progress.unit,
            "share": rolled.share,
            "stages": dict(progress.stages),
            "parts_done": rolled.parts_done,
            "parts": rolled.parts,
            "phase": progress.run.phase + 1,
        }


class Cost(Shape):
    """What the latest run has cost and saved, in US dollars.

    `paid` is null when no price is known for any of its calls; `unpriced_calls` says how many have none.
    """

    paid: float | None
    saved: float
    tokens: int
    paid_calls: int
    reused_calls: int
    unpriced_calls: int

    @classmethod
    def of(cls, spent: Spent) -> "Cost":
        """The cost as it is shown."""
        return cls(**cls.as_dict(spent))

    @staticmethod
    def as_dict(spent: Spent) -> dict[str, Any]:
        """Its fields."""
        return {
            "paid": None if spent.unpriced else dollars(spent.paid),
            "saved": dollars(spent.saved),
            "tokens": spent.tokens,
            "paid_calls": spent.paid_calls,
            "reused_calls": spent.reused_calls,
            "unpriced_calls": spent.unpriced_calls,
        }


class LinkedDocumentResponse(Shape):
    """A document that contains another, or lies in it; `name` is its name in the archive or message."""

    id: str
    title: str
    name: str
    collection: str
    index_status: str


class Members(Shape):
    """The documents that contain this one, and those inside it: files of an archive, attachments."""

    parents: list[LinkedDocumentResponse]
    children: list[LinkedDocumentResponse]

    @classmethod
    def of(cls, family: Family) -> "Members":
        """The documents around a document as they are shown."""
        return cls(**dataclasses.asdict(family))


class FailureResponse(Shape):
    """Why a run failed."""

    code: str
    message: str

    @classmethod
    def of(cls, run: RunRecord) -> "FailureResponse | None":
        """The error of a failed run; None for any other."""
        if run.status is not Status.FAILED:
            return None
        return cls(code=run.error_code or "work_failed", message=run.error_message or "")


class Wait(Shape):
    """What live work waits for, in a word and in a sentence; `until` is when it is looked at again."""

    reason: str
    sentence: str
    until: datetime | None

    @staticmethod
    def as_dict(waiting: Waiting | None) -> "dict[str, Any] | None":
        """Its fields; None for work that waits for nothing."""
        if waiting is None:
            return None
        return {"reason": waiting.reason, "sentence": waiting.sentence, "until": moment(waiting.until)}


class GapResponse(Shape):
    """Pages whose text could not be read, as ranges like "4-9, 12", and why; `count` is their number.

    `reason`: `no_text_layer` (a scan, and OCR is not installed or is off), `low_confidence` and
    `nothing_recognised` (by OCR), `ocr_failed`, `damaged`. `sentence` says it in words.
    """

    pages: str
    reason: str
    count: int
    sentence: str

    @staticmethod
    def as_dicts(gaps: Iterable[Gap]) -> list[dict[str, Any]]:
        """The fields of each."""
        return [{**gap.as_json(), "sentence": gap_sentences.sentence(gap)} for gap in gaps]


class DocumentResponse(Shape):
    """A document and how its indexing stands. `chunks`, `pages` and `gaps` are of the published generation.

    `language` is the code of its language, null if it could not be told. `page_qualities` counts the pages by
    quality: `text`, `ocr`, `empty`. `external_id` is what the system that it comes from calls it, or null.

    A document with `gaps` is searchable, except for the pages named there. `metadata` is what people and keys
    have set, `properties` what the file of the published generation says about itself.
    """

    id: str
    collection: str
    title: str
    name: str
    external_id: str | None
    source: str
    url: str | None
    format: str | None
    language: str | None
    size: int
    digest: str
    options: dict[str, Any]
    metadata: dict[str, Any]
    labels: list[str]
    properties: dict[str, Any]
    index_status: str
    index_generation: int
    published_generation: int
    ready: bool
    run_id: str | None
    progress: ProgressResponse | None
    waiting: Wait | None
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    seconds: float | None
    chunks: int | None
    pages: int | None
    gaps: list[GapResponse]
    page_qualities: dict[str, int]
    cost: Cost | None
    error: FailureResponse | None
    created_at: datetime | None
    updated_at: datetime | None

    @classmethod
    def of(cls, view: DocumentView) -> "DocumentResponse":
        """The document as it is shown."""
        return cls(**document_fields(view))


def document_fields(view: DocumentView) -> dict[str, Any]:
    """The fields of `DocumentResponse`, for pages of them: validating each field would only cost time."""
    document, standing = view.document, view.standing
    run = standing.run if standing is not None else None
    took = run.finished_at - run.started_at if run and run.finished_at and run.started_at else None
    return {
        "id": document.id,
        "collection": document.collection,
        "title": document.title,
        "name": document.name,
        "external_id": document.external_id,
        "source": document.source,
        "url": document.url,
        "format": document.format,
        "language": document.language,
        "size": document.size,
        "digest": document.digest if document.has_content else "",
        "options": dict(document.options),
        "metadata": dict(document.metadata),
        "labels": list(document.labels),
        "properties": dict(document.properties),
        "index_status": view.word,
        "index_generation": document.generation,
        "published_generation": document.published_generation if document.visible else 0,
        "ready": document.visible,
        "run_id": document.run_id,
        "progress": ProgressResponse.as_dict(standing) if standing is not None else None,
        "waiting": Wait.as_dict(view.waiting),
        "queued_at": moment(run.queued_at) if run is not None else None,
        "started_at": moment(run.started_at) if run is not None else None,
        "finished_at": moment(run.finished_at) if run is not None else None,
        "seconds": None if took is None else round(max(0.0, took), 3),
        "chunks": document.chunks,
        "pages": document.pages,
        "gaps": GapResponse.as_dicts(document.gaps),
        "page_qualities": dict(document.page_qualities),
        "cost": Cost.as_dict(standing.spent) if standing is not None else None,
        "error": FailureResponse.of(run) if run is not None else None,
        "created_at": moment(document.created_at),
        "updated_at": moment(document.updated_at),
    }


class DocumentList(Shape):
    """A page of documents in the requested order; `next` is the cursor of the next page, if any."""

    documents: list[DocumentResponse]
    next: str | None

    @staticmethod
    def written(views: Sequence[DocumentView], follows: str | None) -> bytes:
        """The page as it goes over the wire."""
        return pydantic_core.to_json(
            {"documents": [document_fields(each) for each in views], "next": follows}
        )


PasswordField = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=200,
        description="Opens a protected PDF. Kept for indexing it again, and never shown.",
        json_schema_extra={"format": "password", "writeOnly": True},
    ),
]


class NewDocument(Shape):
    """A new document from either a text or a URL."""

    text: str | None = None
    url: Annotated[str, Field(max_length=8000)] | None = None
    title: Annotated[str, Field(max_length=500)] = ""
    options: dict[str, Any] | None = None
    metadata: MetadataField = None
    labels: LabelsField = None
    password: PasswordField = None
    external_id: ExternalIdField = None
    priority: Priority = 5
    lane: LaneName = "interactive"
    max_cost: MaxCost = None


class NewContent(Shape):
    """New text of a document."""

    text: str
    priority: Priority = 5
    lane: LaneName = "interactive"
    max_cost: MaxCost = None


class DocumentChange(Shape):
    """What is to change of a document; an option that is null is the collection's again.

    `metadata` and `labels` replace those of the document at once; nothing is indexed again for them. With a
    `password`, a document that could not be opened is indexed again. 409 if the `external_id` is taken.
    """

    title: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    options: dict[str, Any] | None = None
    metadata: MetadataField = None
    labels: LabelsField = None
    password: PasswordField = None
    external_id: ExternalIdField = None
    priority: Priority = 5
    lane: LaneName = "interactive"
    max_cost: MaxCost = None


class IndexBody(Shape):
    """How to ask for a document once more.

    `retry` asks by the options that hold now; nothing happens if that was done with success. `force` makes a
    new generation even then. `replace` also ends a run that is under way.
    """

    mode: Literal["retry", "replace", "force"] = "retry"
    priority: Priority = 5
    lane: LaneName = "interactive"
    max_cost: MaxCost = None


class RefreshRequest(Shape):
    """How to fetch a document from its URL again."""

    max_cost: MaxCost = None


class RunBrief(Shape):
    """The run that a request concerns."""

    id: str
    generation: int
    status: str


class UploadResponse(Shape):
    """What became of a request: the document, its run, and the disposition."""

    document: DocumentResponse
    run: RunBrief | None
    disposition: Disposition


class Active(Shape):
    """The run that stands against a request."""

    run_id: str | None
    status: str
    generation: int
    progress: ProgressResponse | None

    @classmethod
    def of(cls, view: DocumentView) -> "Active":
        """What is under way on a document."""
        standing = view.standing
        return cls(
            run_id=view.document.run_id,
            status=shown(subjects.INDEX, standing.run.status) if standing is not None else view.word,
            generation=view.document.generation,
            progress=ProgressResponse.of(standing) if standing is not None else None,
        )


class Cancelled(Shape):
    """The document after its run was ended."""

    document: DocumentResponse
    cancelled: bool
