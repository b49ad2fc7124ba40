"""What became of a document: its runs, its journal, its first page, and why."""

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response

from holdfast.api import parameters, routing, schemas_history
from holdfast.api.access import PathDocument, Reader, filtered
from holdfast.api.errors import BESIDE
from holdfast.api.parameters import Services
from holdfast.api.schemas_documents import Cost
from holdfast.core import subjects
from holdfast.core.errors import NotFoundError
from holdfast.core.states import shown
from holdfast.service.records import BEGINNING, Event, Position, TaskDetail
from holdfast.web.slow_requests import Pool

MOST_LINES = 3000

router = routing.router("history")


@router.get("/documents/{document_id}/runs")
def document_runs(services: Services, document: PathDocument) -> schemas_history.Runs:
    """List the runs of a document, the newest first."""
    return schemas_history.Runs(
        runs=[schemas_history.RunView.of(each) for each in services.history.runs(document)]
    )


def page_of(
    events: tuple[Event, ...], after: Position, end: Position | None = None
) -> schemas_history.Events:
    """A page of the journal for the wire; `end` is where to go on, if that is not after its last entry."""
    last = end or (events[-1].position if events else after)
    return schemas_history.Events(
        events=[schemas_history.EventResponse.of(each) for each in events], next=cursor_of(last)
    )


def cursor_of(position: Position) -> str:
    """A place in the journal for the wire."""
    return f"{position.xid}.{position.id}"


@router.get("/documents/{document_id}/events")
def document_events(
    services: Services,
    document: PathDocument,
    limit: parameters.Limit = 100,
    cursor: parameters.Cursor = None,
) -> schemas_history.Events:
    """Read the journal of a document, the oldest entry first."""
    after = parameters.position(services.journal, cursor) or BEGINNING
    return page_of(services.journal.of_document(document, after=after, limit=limit), after)


@router.get(
    "/documents/{document_id}/thumbnail",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "The first page."}, **BESIDE},
)
@routing.waits(Pool.THUMBNAILS)
def document_thumbnail(
    services: Services,
    document: PathDocument,
    generation: Annotated[
        int | None,
        Query(ge=1, le=2**62, description="The published generation: its thumbnail can be cached forever."),
    ] = None,
) -> Response:
    """Show the first page of the published generation, as a small picture.

    It is drawn when somebody first asks for it. A document that cannot be drawn is shown as a plain sheet;
    one that is not published, or was imported without its content, has no picture.
    """
    picture = services.thumbnails.of(document)
    if picture is None:
        raise NotFoundError("the document has no thumbnail", code="no_thumbnail")
    lasting = generation is not None and generation == document.published_generation
    return Response(
        picture,
        media_type="image/png",
        headers={"Cache-Control": "private, max-age=604800" if lasting else "no-store"},
    )


@router.get("/documents/{document_id}/why")
def why_document(
    services: Services,
    document: PathDocument,
    action: Annotated[int | None, Query(ge=1, le=2**62, description="Of this action's run.")] = None,
) -> schemas_history.Why:
    """Tell the story of a document: each generation, who asked, who worked, what was refused and paid.

    With `action` it is the story of what that action did with it.
    """
    story = services.history.story(document, action=action)
    advice = services.history.advice(document, story)
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
        document_id=document.id,
        sentence=advice.sentence,
        next_step=advice.step,
        advice=advice.todo,
        index_status=shown(head.kind, head.status) if head else shown(subjects.INDEX, document.status),
        index_generation=head.generation if head else document.generation,
        published_generation=head.published_generation if head and head.visible else 0,
        generations=chapters,
        journal=[
            schemas_history.EventResponse.noted(each, document) for each in (story.journal if story else ())
        ],
    )


def _slice(detail: TaskDetail) -> schemas_history.SliceResponse:
    task = detail.task
    return schemas_history.SliceResponse(
        ordinal=task.ordinal,
        state=task.state,
        epoch=task.epoch,
        attempts=task.attempts,
        owner=task.owner,
        waiting_for=task.waiting_for,
        done=detail.done,
        total=detail.total,
        unit=detail.unit,
        cost=Cost.of(detail.spent),
    )


@router.get("/runs/{run_id}/log")
@filtered
def run_log(run_id: parameters.Id, services: Services, caller: Reader) -> schemas_history.Log:
    """Read what a run says of itself: its progress, its cost and its latest lines."""
    run = services.views.run(caller.tenant, run_id, lines=MOST_LINES)
    if not services.documents.shows(caller.tenant, run.run.subject, only=caller.only):
        raise NotFoundError(f"there is no run {run_id!r}", code="unknown_run")
    return schemas_history.Log.of(run)
