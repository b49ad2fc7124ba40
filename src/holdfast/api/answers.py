"""Questions about collections: answers with checked citations, at once or as they are written."""

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from fastapi.responses import JSONResponse, Response, StreamingResponse

from holdfast.api import answer_streams, parameters, routing
from holdfast.api.access import PathCollection, Reader, filtered
from holdfast.api.answer_streams import AnswerEvent
from holdfast.api.errors import ErrorBody
from holdfast.api.parameters import Services
from holdfast.api.schemas_answers import AnswerResponse, AskBody, AskSeveralBody, SourceResponse
from holdfast.api.schemas_documents import nano_dollars
from holdfast.bootstrap import AppServices
from holdfast.core import filters
from holdfast.core.errors import HoldfastError
from holdfast.core.records import TENANT
from holdfast.service import search_pages
from holdfast.service.access import Identity
from holdfast.service.answers import AnswerPiece, AskRequest, CitedAnswer
from holdfast.service.error_table import row_of

router = routing.router("ask")
log = logging.getLogger(__name__)

EVENTS = (
    "With `stream`, events: `sources`, then `delta` for each piece of the text as the model writes it "
    "(unchecked; one that is `at` 0 begins anew), then `sentence` for each checked one, then `done` with the "
    "cost. Or `refused` instead of all but `sources`; or `error`, after which nothing comes."
)
# One event, as it is told apart by those who check responses against the schema.
EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
}
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": EVENT}}, "description": EVENTS}
}
HEADERS = {"X-Accel-Buffering": "no"}
"""A proxy that collects a response before it passes it on would keep the first words back."""


@router.post("/collections/{collection_id}/ask", response_model=AnswerResponse, responses=STREAMED)
@filtered
async def ask(services: Services, caller: Reader, collection: PathCollection, body: AskBody) -> Response:
    """Answer a question from a collection, with citations. May cost money; the same again costs nothing."""
    return await _respond(services, _request(caller, [collection.id], body), stream=body.stream)


@router.post("/ask", response_model=AnswerResponse, responses=STREAMED)
@filtered
async def ask_several(services: Services, caller: Reader, body: AskSeveralBody) -> Response:
    """Answer a question from several collections, as the other route does from one."""
    names = [parameters.valid_id(each) for each in dict.fromkeys(body.collections)]
    return await _respond(services, _request(caller, names, body), stream=body.stream)


def _request(caller: Identity, collections: list[str], body: AskBody) -> AskRequest:
    # What has the form of no id is no document, and nothing that a database should see.
    documents = (
        None if body.documents is None else [each for each in body.documents if TENANT.fullmatch(each)]
    )
    only = None if body.filter is None else filters.parse(body.filter)
    mode, graph = search_pages.modes(body.mode)
    return AskRequest(
        caller.tenant,
        collections,
        body.question,
        body.k,
        documents,
        filters.both(caller.only, only),
        mode,
        body.max_tokens,
        body.fresh,
        nano_dollars(body.max_cost),
        rerank=body.rerank,
        graph=graph,
    )


async def _respond(services: AppServices, request: AskRequest, *, stream: bool) -> Response:
    answering = answer_streams.start(services, request)
    if not stream:
        answer = AnswerResponse.of(await answering.answer())
        return Response(answer.model_dump_json(), media_type=JSONResponse.media_type)
    events = answering.events()
    # What goes wrong before there is anything to show has a status of its own.
    first = await anext(events)
    return StreamingResponse(_frames(first, events), media_type="text/event-stream", headers=HEADERS)


async def _frames(first: AnswerEvent, events: AsyncIterator[AnswerEvent]) -> AsyncIterator[str]:
    for frame in frames(first):
        yield frame
    try:
        async for event in events:
            for frame in frames(event):
                yield frame
    except HoldfastError as error:
        if row_of(error).status >= 500:
            log.warning("%s: %s", error.code, error.message)
        problem = ErrorBody(code=error.code, message=error.message)
        yield _frame("error", problem.model_dump(exclude_none=True))


def frames(event: AnswerEvent) -> list[str]:
    """An event of an answer as it goes over the wire; the end of one is several."""
    match event:
        case AnswerPiece():
            return [_frame("delta", {"text": event.text, "at": event.at})]
        case CitedAnswer():
            return _ended(event)
        case _:
            return [_frame("sources", {"sources": [SourceResponse.of(each).model_dump() for each in event]})]


def _ended(answer: CitedAnswer) -> list[str]:
    whole = AnswerResponse.of(answer)
    if answer.refused:
        return [_frame("refused", whole.model_dump(mode="json", exclude={"sentences", "sources", "answer"}))]
    sentences = [_frame("sentence", each.model_dump(mode="json")) for each in whole.sentences]
    return [*sentences, _frame("done", whole.model_dump(mode="json", exclude={"sentences", "sources"}))]


def _frame(name: str, data: dict[str, Any]) -> str:
    """One event. JSON has no line breaks, so that one line of data is enough."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
