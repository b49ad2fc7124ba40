"""What became of a document: its runs, its journal, its chunks, its first page, and why."""

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response

from holdfast import bootstrap
from holdfast.api import parts, routing, schemas_history
from holdfast.api.access import ItsDocument, Reader
from holdfast.api.errors import BESIDE, ConflictError
from holdfast.api.parts import PartsOf
from holdfast.api.schemas_documents import Cost
from holdfast.core import subjects
from holdfast.core.errors import NotFoundError
from holdfast.core.states import shown
from holdfast.service import explanations
from holdfast.store.follow_ups import follow_up_retries
from holdfast.store.views import events, reads
from holdfast.store.views.events import Event, Position
from holdfast.store.views.reads import TaskDetail
from holdfast.web.slow_requests import Pool

MOST_LINES = 3000

router = routing.router("history")


@router.get("/documents/{document_id}/runs")
def document_runs(its: PartsOf, found: ItsDocument) -> schemas_history.Runs:
    """List the runs of a document, the newest first."""
    runs = reads.runs_of(its.runtime.db, found.head_id) if found.head_id is not None else ()
    return schemas_history.Runs(runs=[schemas_history.RunView.of(each) for each in runs])


def page_of(found: tuple[Event, ...], after: Position, end: Position | None = None) -> schemas_history.Events:
    """A page of the journal for the wire; `end` is where to go on, if that is not after its last entry."""
    last = end or (found[-1].position if found else after)
    return schemas_history.Events(
        events=[schemas_history.EventResponse.of(each) for each in found], next=cursor_of(last)
    )


def cursor_of(position: Position) -> str:
    """A place in the journal for the wire."""
    return f"{position.xid}.{position.id}"


@router.get("/documents/{document_id}/events")
def document_events(
    its: PartsOf, found: ItsDocument, limit: parts.Limit = 100, cursor: parts.Cursor = None
) -> schemas_history.Events:
    """Read the journal of a document, the oldest entry first."""
    after = parts.position(its.runtime.db, cursor) or events.BEGINNING
    if found.head_id is None:
        return page_of((), after)
    return page_of(events.of_head(its.runtime.db, found.head_id, after=after, limit=limit), after)


@router.get("/documents/{document_id}/chunks")
def document_chunks(
    its: PartsOf, found: ItsDocument, limit: parts.Limit = 100, cursor: parts.Cursor = None
) -> schemas_history.Chunks:
    """Read the text of the published generation, piece by piece."""
    known = parts.numbers(cursor, 3)
    after = (known[1], known[2]) if known is not None else (-1, -1)
    page = None
    if found.head_id is not None:
        page = reads.visible_chunks(its.runtime.db, found.head_id, after=after, limit=limit)
    generation = page.generation if page is not None else 0
    if known is not None and known[0] != generation:
        message = f"generation {generation} has been published since; start again without a cursor"
        raise ConflictError(message, code="stale_cursor")
    pieces = [
        schemas_history.ChunkResponse(
            slice=each.slice, position=each.chunk.position, page=each.chunk.page, text=each.chunk.text
        )
        for each in (page.chunks if page is not None else ())
    ]
    more = len(pieces) == limit
    last = f"{generation}.{pieces[-1].slice}.{pieces[-1].position}" if more else None
    return schemas_history.Chunks(generation=generation, chunks=pieces, next=last)


@router.get(
    "/documents/{document_id}/thumbnail",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "The first page."}, **BESIDE},
)
@routing.waits(Pool.THUMBNAILS)
def document_thumbnail(
    its: PartsOf,
    found: ItsDocument,
    generation: Annotated[
        int | None, Query(ge=1, le=2**62, description="The published one: its picture may be kept for good.")
    ] = None,
) -> Response:
    """Show the first page of the published generation, as a small picture.

    It is drawn when somebody first asks for it. A document that cannot be drawn is shown as a plain sheet;
    one that is not published, or was imported without its content, has no picture.
    """
    picture = bootstrap.thumbnails(its.runtime).of(found)
    if picture is None:
        raise NotFoundError("the document has no thumbnail", code="no_thumbnail")
    lasting = generation is not None and generation == found.published_generation
    return Response(
        picture,
        media_type="image/png",
        headers={"Cache-Control": "private, max-age=604800" if lasting else "no-store"},
    )


@router.get("/documents/{document_id}/why")
def why_document(
    its: PartsOf,
    found: ItsDocument,
    action: Annotated[int | None, Query(ge=1, le=2**62, description="Of what this action did.")] = None,
) -> schemas_history.Why:
    """Tell the story of a document: each generation, who asked, who worked, what was refused and paid.

    With `action` it is the story of what that action did with it.
    """
    head_id = found.head_id
    if action is not None:
        subject = follow_up_retries.subject_of(subjects.of_document(found.id), action)
        head_id = follow_up_retries.head_of(its.runtime.db, found.tenant, subject)
        if head_id is None:
            raise NotFoundError(f"action {action} did nothing with this document", code="unknown_action")
    story = reads.story(its.runtime.db, head_id) if head_id is not None else None
    advice = explanations.about(its.runtime.db, found, story)
    chapters = [
        schemas_history.GenerationResponse(
            run=schemas_history.RunView.of(each),
            tasks=[_slice(task) for task in story.tasks.get(each.run.id, ())],
        )
        for each in (story.runs if story is not None else ())
        if story is not None
    ]
    head = story.head if story is not None else None
    return schemas_history.Why(
        document_id=found.id,
        sentence=advice.sentence,
        next_step=advice.step,
        advice=advice.todo,
        index_status=shown(head.kind, head.status) if head else shown(subjects.INDEX, found.status),
        index_generation=head.generation if head else found.generation,
        published_generation=head.published_generation if head and head.visible else 0,
        generations=chapters,
        journal=[
            schemas_history.EventResponse.noted(each, found) for each in (story.journal if story else ())
        ],
    )


def _slice(found: TaskDetail) -> schemas_history.SliceResponse:
    task = found.task
    return schemas_history.SliceResponse(
        ordinal=task.ordinal,
        state=task.state,
        epoch=task.epoch,
        attempts=task.attempts,
        owner=task.owner,
        waiting_for=task.waiting_for,
        done=found.done,
        total=found.total,
        unit=found.unit,
        cost=Cost.of(found.spent),
    )


@router.get("/runs/{run_id}/log")
def run_log(run_id: parts.Id, its: PartsOf, caller: Reader) -> schemas_history.Log:
    """Read what a run says of itself: its progress, its cost and its latest lines."""
    return schemas_history.Log.of(its.viewing.run(caller.tenant, run_id, lines=MOST_LINES))
