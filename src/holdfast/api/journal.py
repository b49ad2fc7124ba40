"""The journal of a tenant, by the page and as a live stream."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Header, HTTPException, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from holdfast.api import parameters, routing, schemas_documents, schemas_history
from holdfast.api.access import Reader
from holdfast.api.document_history import cursor_of, page_of
from holdfast.api.errors import BESIDE
from holdfast.api.event_feed import Feed, FullError
from holdfast.api.parameters import Services
from holdfast.api.rate_limits import SLOT, Turnstile
from holdfast.core.states import shown
from holdfast.service.access import Identity
from holdfast.service.journal import Crew, Happening
from holdfast.service.records import BEGINNING, Event, Position, RunStanding

router = routing.router("events")


class ProgressEvent(schemas_documents.Shape):
    """How far a run is; sent when that changes."""

    run_id: str
    kind: str
    subject: str
    generation: int
    status: str
    progress: schemas_documents.ProgressResponse


class WorkersEvent(schemas_documents.Shape):
    """How many workers are in each state; sent when that changes."""

    states: dict[str, int]


@router.get("/events")
def all_events(
    services: Services,
    caller: Reader,
    collection: Annotated[str | None, Query(description="Only this collection.")] = None,
    limit: parameters.Limit = 100,
    cursor: parameters.Cursor = None,
) -> schemas_history.Events:
    """Read the journal, the oldest entry first; `next` continues where this page ends, also later.

    With `collection` a page looks through 10,000 entries of the tenant at most, and may be short or empty
    before the end: that is reached when `next` is the cursor that was sent.
    """
    journal = services.journal
    after = parameters.position(journal, cursor) or BEGINNING
    if collection is None:
        return page_of(journal.page(caller.tenant, after=after, limit=limit), after)
    services.collections.get(caller.tenant, parameters.valid_id(collection))
    entries, end = journal.page_of_collection(caller.tenant, collection, after=after, limit=limit)
    return page_of(entries, after, end)


@router.get(
    "/events/stream",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
            "description": (
                "Entries of the journal, each with its id and its verb as `event`; and `progress`, without "
                "an id, when the progress of a run changes, or `workers`, when one starts, stops or is lost. "
                "`beat` comes every few seconds while nothing else does; if it stops, reconnect."
            ),
        },
        **BESIDE,
    },
)
async def stream(
    request: Request,
    services: Services,
    caller: Reader,
    last: Annotated[
        str | None, Header(alias="Last-Event-ID", description="Continue after this entry of the journal.")
    ] = None,
    cursor: parameters.Cursor = None,
) -> StreamingResponse:
    """Follow what happens, from now on or from after an entry of the journal."""
    known = await run_in_threadpool(parameters.position, services.journal, last or cursor)
    feed: Feed = request.app.state.feed
    turnstile: Turnstile = request.app.state.turnstile
    request_ended, stream_ended = request.scope[SLOT], turnstile.listen(caller)
    try:
        place_left = feed.take(caller.tenant)
    except FullError:
        stream_ended()
        message = "too many event streams are open; retry later"
        raise HTTPException(429, message, {"Retry-After": "5"}) from None

    def ended() -> None:
        stream_ended()
        place_left()

    request.scope[SLOT] = ended
    request_ended()  # a stream is no request under way: it may stay open for days
    return StreamingResponse(_frames(feed, caller, known), media_type="text/event-stream")


async def _frames(feed: Feed, caller: Identity, after: Position | None) -> AsyncIterator[str]:
    yield ": listening\n\n"
    async for happening in feed.listen(caller, after):
        yield _frame(happening)


def _frame(happening: Happening | None) -> str:
    """One event as it goes over the wire. JSON has no line breaks, so that one line of data is enough."""
    match happening:
        case Event():
            data = schemas_history.EventResponse.of(happening).model_dump_json()
            return f"id: {cursor_of(happening.position)}\nevent: {happening.verb}\ndata: {data}\n\n"
        case RunStanding():
            return f"event: progress\ndata: {_progress(happening).model_dump_json()}\n\n"
        case Crew():
            return f"event: workers\ndata: {WorkersEvent(states=happening.states).model_dump_json()}\n\n"
        case _:
            return "event: beat\ndata: {}\n\n"


def _progress(standing: RunStanding) -> ProgressEvent:
    run = standing.run
    return ProgressEvent(
        run_id=run.id,
        kind=run.kind,
        subject=run.subject,
        generation=run.generation,
        status=shown(run.kind, run.status),
        progress=schemas_documents.ProgressResponse.of(standing),
    )
