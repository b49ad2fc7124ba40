"""What sources and their items look like on the wire. Secret options are taken, and never shown."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from holdfast.api.schemas_documents import Shape, moment
from holdfast.core.records import RequestResult
from holdfast.service.sources import ItemRecord, Origin, SourceRecord, with_secret_names

ItemStateName = Literal["current", "failed", "gone"]
SourceName = Annotated[str, Field(max_length=500)]
Metadata = Annotated[dict[str, Any], Field(description="Metadata of every new document of the source.")]
Labels = Annotated[list[str], Field(description="Labels of every new document of the source.")]
Interval = Annotated[
    float | None,
    Field(
        ge=60, le=366 * 86_400, description="Seconds from one look to the next; null: only when requested."
    ),
]


class NewSource(Shape):
    """A source to be added: its type and the options of that type. Its first look is requested at once.

    With `prune`, documents whose item is gone from the source are deleted; never after a look that failed,
    was cut short, or found the source empty. Documents that a person uploaded as well stay.
    """

    type: Annotated[str, Field(min_length=1, max_length=40)]
    options: Annotated[dict[str, Any], Field(default_factory=dict)]
    name: SourceName = ""
    refresh_every: Interval = None
    prune: bool = False
    metadata: Metadata | None = None
    labels: Labels | None = None


class SourceChange(Shape):
    """What is to be changed; what is not named stays as it is.

    `options` replace all of its options; a secret one that is not among them stays as it is.
    """

    options: dict[str, Any] | None = None
    name: SourceName | None = None
    refresh_every: Interval = None
    prune: bool | None = None
    metadata: Metadata | None = None
    labels: Labels | None = None


class LookError(Shape):
    """Why the last look, or an item, failed."""

    code: str
    message: str


class LookTally(Shape):
    """What the last look counted, each item once."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    gone: int = 0
    failed: int = 0


class CollectionSource(Shape):
    """A source, its last look and its next one.

    `status` is `looking` while a look is queued or running, `failed` if the last one failed, `never` before
    the first one has ended, else `ok`. Of a secret option it is shown that it is set.
    """

    id: str
    collection: str
    type: str
    name: str
    options: dict[str, Any]
    refresh_every: float | None
    prune: bool
    metadata: dict[str, Any]
    labels: list[str]
    status: Literal["never", "looking", "ok", "failed"]
    run_id: str | None
    last_look: datetime | None
    next_look: datetime | None
    counts: LookTally
    error: LookError | None
    created_at: datetime | None

    @classmethod
    def of(cls, source: SourceRecord) -> "CollectionSource":
        """The source as it is shown."""
        error = source.error
        return cls(
            id=source.id,
            collection=source.collection,
            type=source.type,
            name=source.name,
            options=with_secret_names(source),
            refresh_every=source.refresh_every,
            prune=source.prune,
            metadata=dict(source.metadata),
            labels=list(source.labels),
            status=source.status,
            run_id=source.run_id,
            last_look=moment(source.looked_at),
            next_look=moment(source.next_at),
            counts=LookTally(**source.counts),
            error=None if error is None else LookError(code=error[0], message=error[1]),
            created_at=moment(source.created_at),
        )


class SourceList(Shape):
    """The sources of a collection, the oldest first."""

    sources: list[CollectionSource]


class LookRequested(Shape):
    """What became of the request for a look. A second one while a look is under way is its `duplicate`."""

    source: CollectionSource
    disposition: str
    run_id: str | None

    @classmethod
    def of(cls, source: SourceRecord, answer: RequestResult) -> "LookRequested":
        """The request as it is answered."""
        return cls(
            source=CollectionSource.of(source), disposition=answer.disposition.value, run_id=answer.run_id
        )


class RemovedSource(Shape):
    """The source is gone; `documents` says what becomes of its documents, and a run sees to it."""

    id: str
    documents: Literal["keep", "delete"]
    run_id: str | None


class SourceItemResponse(Shape):
    """An item of a source as the last look saw it, and the document that was made of it."""

    external_id: str
    name: str
    url: str | None
    state: ItemStateName
    document_id: str | None
    error: LookError | None
    changed_at: datetime | None

    @classmethod
    def of(cls, item: ItemRecord) -> "SourceItemResponse":
        """The item as it is shown."""
        error = None
        if item.error_code is not None:
            error = LookError(code=item.error_code, message=item.error_message or "")
        return cls(
            external_id=item.external_id,
            name=item.name,
            url=item.url,
            state=item.state.value,
            document_id=item.document,
            error=error,
            changed_at=moment(item.changed_at),
        )


class SourceItemList(Shape):
    """A page of items, by external id; `next` is the cursor of the next page, if any."""

    items: list[SourceItemResponse]
    next: str | None


class OriginResponse(Shape):
    """Where a document came from: an item of a source, which is None while that is being removed."""

    external_id: str
    state: ItemStateName
    url: str | None
    source_id: str | None
    source_name: str
    source_type: str

    @classmethod
    def of(cls, origin: Origin) -> "OriginResponse":
        """The origin as it is shown."""
        return cls(
            external_id=origin.external_id,
            state=origin.state.value,
            url=origin.url,
            source_id=origin.source_id,
            source_name=origin.source_name,
            source_type=origin.source_type,
        )


class OriginList(Shape):
    """Where a document came from; empty for one that was only uploaded."""

    origins: list[OriginResponse]
