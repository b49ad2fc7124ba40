"""Shapes of chunks and of their edits."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from holdfast.api.schemas_documents import LaneName, MaxCost, Priority, Shape, moment
from holdfast.service.edits import EditState, EditView
from holdfast.service.records import ListedChunk

LONGEST_TEXT = 1_000_000


class ChunkResponse(Shape):
    """A piece of text of the published generation.

    `id` names it as long as the document has its text, in later generations too. `edited`: a person replaced
    its text; `original_text` is then what the document says. One that is not `enabled` is found by no search
    and no job; only keys that may change the document see it. `headings` are those above it, outermost first.
    `fields` are what the steps of a flow made of it; empty without one.
    """

    id: str
    slice: int
    position: int
    page: int | None
    text: str
    headings: list[str]
    enabled: bool
    edited: bool
    original_text: str | None
    fields: dict[str, Any]

    @classmethod
    def of(cls, chunk: ListedChunk) -> "ChunkResponse":
        """A chunk for the wire."""
        return cls(
            id=chunk.id,
            slice=chunk.slice,
            position=chunk.position,
            page=chunk.page,
            text=chunk.text,
            headings=chunk.headings,
            enabled=chunk.enabled,
            edited=chunk.is_edited,
            original_text=chunk.original if chunk.is_edited else None,
            fields=chunk.fields,
        )


class Chunks(Shape):
    """A page of the chunks of one generation, in the order of the document."""

    generation: int
    chunks: list[ChunkResponse]
    next: str | None


class ChunkChangeBody(Shape):
    """What is to change of a chunk. `text` replaces its text, null is the original text again.

    `enabled` false switches it off: it is found by no search and no job. What is not named stays as it is.
    """

    enabled: bool | None = None
    text: Annotated[str, Field(max_length=LONGEST_TEXT)] | None = None
    priority: Priority = 5
    lane: LaneName = "interactive"
    max_cost: MaxCost = None


class EditPlace(Shape):
    """Where the published generation has an edit."""

    slice: int
    position: int
    page: int | None


class EditResponse(Shape):
    """An edit of a chunk, by whom and when. `chunk` names it in a request to change it.

    `state`: `applied`; `pending` while the generation with it is not published; `not_applied` if the document
    has the text no more: the edit is kept, and applied when the text is there again. `text` is null if only
    `enabled` was changed.
    """

    chunk: str
    state: EditState
    message: str
    enabled: bool
    text: str | None
    original_text: str
    page: int | None
    places: list[EditPlace]
    edited_by: str
    edited_at: datetime | None

    @classmethod
    def of(cls, view: EditView) -> "EditResponse":
        """An edit for the wire."""
        edit = view.edit
        return cls(
            chunk=view.id,
            state=view.state,
            message=view.sentence,
            enabled=edit.enabled,
            text=edit.text,
            original_text=edit.original,
            page=edit.page,
            places=[EditPlace(slice=at.slice, position=at.position, page=at.page) for at in view.places],
            edited_by=edit.actor,
            edited_at=moment(edit.updated_at),
        )


class EditList(Shape):
    """The edits of a document, in its order; those that are not applied last."""

    edits: list[EditResponse]
