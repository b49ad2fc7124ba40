"""`/v1/chat/completions` for OpenAI clients: `model: "collection:NAME"` answers from that collection.

The last message of the user is the question; what was said before is part of the prompt. The answer has its
citations as `[1]`, and beside the usual fields `holdfast`, with the sources, the checked sentences and the
cost. Errors have OpenAI's shape. A refusal is an ordinary completion that says why there is no answer.
"""

import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pydantic
from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import ConfigDict, Field
from starlette.exceptions import HTTPException

from holdfast.api import answer_streams, answers, errors, parameters, routing
from holdfast.api.access import Reader, filtered
from holdfast.api.answer_streams import AnswerEvent
from holdfast.api.parameters import Services
from holdfast.api.rate_limits import RateLimitedError
from holdfast.api.schemas_answers import AnswerResponse
from holdfast.core.errors import BadRequestError, HoldfastError, NotFoundError
from holdfast.service import answers as records
from holdfast.service.access import Identity
from holdfast.service.answers import (
    MOST_QUESTION,
    MOST_TOKENS,
    USUAL_TOKENS,
    AnswerPiece,
    AskRequest,
    CitedAnswer,
)
from holdfast.service.error_table import row_of

MODEL_PREFIX = "collection:"
MOST_MESSAGES = 200
TYPES = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    429: "rate_limit_error",
}
FINISHED = {"cut_off": "length"}


class ChatPart(pydantic.BaseModel):
    """A part of a message; only text is read."""

    model_config = ConfigDict(extra="ignore")

    type: str
    text: str = ""


class ChatMessage(pydantic.BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[ChatPart] | None = None

    @property
    def said(self) -> str:
        """Its text."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content or () if part.type == "text")


class ChatBody(pydantic.BaseModel):
    """A request of an OpenAI client; parameters of sampling are accepted and have no effect."""

    model_config = ConfigDict(extra="ignore")

    model: Annotated[str, Field(max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES)]
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None


class ChatRoute(routing.Route):
    """A route whose errors have OpenAI's shape."""

    def get_route_handler(self) -> Any:
        """The handler of the route, with its errors rewritten."""
        handle = super().get_route_handler()

        async def with_their_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except HoldfastError as error:
                response = problem(row_of(error).status, error.code, error.message)
                if isinstance(error, RateLimitedError):
                    response.headers["Retry-After"] = str(error.retry_after)
                return response
            except RequestValidationError as error:
                ours = json.loads(bytes((await errors.on_validation(request, error)).body))["error"]
                return problem(400, ours["code"], ours["message"])
            except HTTPException as error:
                return problem(error.status_code, "bad_request", str(error.detail))

        return with_their_errors


ERRORS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "An error in the shape of OpenAI.",
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {"error": {"type": "object", "required": ["message", "type", "code"]}},
                }
            }
        },
    }
}
ANSWERED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A completion, or with `stream` its chunks.",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/event-stream": {
                "schema": {"type": "object", "required": ["data"], "properties": {"data": {"type": "string"}}}
            },
        },
    }
}
LISTED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The models.", "content": {"application/json": {"schema": {"type": "object"}}}}
}

router = APIRouter(route_class=ChatRoute, tags=["ask"], responses=ERRORS)


def problem(status: int, code: str, message: str) -> JSONResponse:
    """An error as OpenAI's clients expect it; they retry none that costs again."""
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    response = JSONResponse(_error(code, message, kind), status)
    if status != 429:
        # A client that retries by itself only adds load: most of these errors last, and the codes say which.
        response.headers["x-should-retry"] = "false"
    return response


def _error(code: str, message: str, kind: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@router.post("/v1/chat/completions", response_class=Response, responses=ANSWERED)
@filtered
async def chat_completions(services: Services, caller: Reader, body: ChatBody) -> Response:
    """Answer the last message of the user from the collection that `model` names."""
    request = _request(caller, body)
    number = services.runtime.engine.host.token()[:24]
    answering = answer_streams.start(services, request)
    if not body.stream:
        return JSONResponse(_completion(await answering.answer(), body, number))
    events = answering.events()
    first = await anext(events)
    chunks = _chunks(first, events, body, number)
    return StreamingResponse(chunks, media_type="text/event-stream", headers=answers.HEADERS)


@router.get("/v1/models", response_class=Response, responses=LISTED)
def models(services: Services, caller: Reader) -> Response:
    """The collections that can be asked, as models."""
    rows = [
        {"id": f"{MODEL_PREFIX}{each.id}", "object": "model", "created": 0, "owned_by": "holdfast"}
        for each in services.collections.all(caller.tenant)
    ]
    return JSONResponse({"object": "list", "data": rows})


def _request(caller: Identity, body: ChatBody) -> AskRequest:
    if not body.model.startswith(MODEL_PREFIX):
        message = f"there is no model {body.model!r:.80}; use `collection:NAME`"
        raise NotFoundError(message, code="model_not_found")
    said = [(each.role, each.said) for each in body.messages if each.said.strip()]
    if not said or said[-1][0] != "user":
        raise BadRequestError("the last message must be a question of the user", code="bad_request")
    limit = body.max_completion_tokens or body.max_tokens or USUAL_TOKENS
    return AskRequest(
        caller.tenant,
        [parameters.valid_id(body.model.removeprefix(MODEL_PREFIX))],
        said[-1][1][:MOST_QUESTION],
        only=caller.only,
        max_tokens=max(16, min(limit, MOST_TOKENS)),
        # Instructions of the client are left out: the answer follows ours, so that it can be checked.
        turns=tuple(each for each in said[:-1] if each[0] in {"user", "assistant"}),
    )


def _text(answer: CitedAnswer) -> str:
    return records.SENTENCES.get(answer.reason or "", "") if answer.refused else answer.answer


def _finish(answer: CitedAnswer) -> str:
    return FINISHED.get(answer.reason or "", "stop")


def _usage(answer: CitedAnswer) -> dict[str, int]:
    """The tokens that were paid for; what the search took is part of the prompt."""
    total, output = answer.cost.tokens, answer.cost.output_tokens
    return {"prompt_tokens": total - output, "completion_tokens": output, "total_tokens": total}


class _SentText:
    """What a client has of an answer: chunks only ever add to it, also if the model begins anew."""

    def __init__(self) -> None:
        self.text = ""
        self._end = 0

    def rest(self, piece: AnswerPiece) -> str:
        """What the client does not have of the piece; HoldfastError if it has something else there."""
        known = self.text[piece.at : piece.at + len(piece.text)]
        if not piece.text.startswith(known):
            raise _begun_anew()
        rest = piece.text[len(known) :]
        self.text += rest
        self._end = piece.at + len(piece.text)
        return rest

    def check(self, answer: CitedAnswer) -> None:
        """Return if the client has no more than the answer; HoldfastError if it has."""
        if self.text and (answer.refused or self._end < len(self.text)):
            raise _begun_anew()


def _begun_anew() -> HoldfastError:
    message = "the answer was interrupted, and began anew with other words; ask again: it is not paid again"
    return HoldfastError(message, code="answer_unavailable")


def _base(body: ChatBody, number: str, what: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": what, "created": int(time.time()), "model": body.model}


def _completion(answer: CitedAnswer, body: ChatBody, number: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": _text(answer), "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer), "logprobs": None}
    whole = AnswerResponse.of(answer).model_dump(mode="json")
    more = {"choices": [choice], "usage": _usage(answer), "holdfast": whole}
    return _base(body, number, "chat.completion") | more


async def _chunks(
    first: AnswerEvent, events: AsyncIterator[AnswerEvent], body: ChatBody, number: str
) -> AsyncIterator[str]:
    """The answer as chunks; the sources are in the first, the cost in the last."""
    base = _base(body, number, "chat.completion.chunk")
    yield _frame(base, {"role": "assistant", "content": ""})
    sent = _SentText()
    try:
        async for event in _all(first, events):
            if isinstance(event, AnswerPiece):
                if rest := sent.rest(event):
                    yield _frame(base, {"content": rest})
            elif isinstance(event, CitedAnswer):
                sent.check(event)
                if not sent.text:
                    yield _frame(base, {"content": _text(event)})
                whole = AnswerResponse.of(event).model_dump(mode="json")
                yield _frame(base | {"holdfast": whole}, {}, _finish(event))
                if (body.stream_options or {}).get("include_usage"):
                    yield f"data: {json.dumps(base | {'choices': [], 'usage': _usage(event)})}\n\n"
    except HoldfastError as error:
        status = row_of(error).status
        kind = TYPES.get(status, "server_error")
        yield f"data: {json.dumps(_error(error.code, error.message, kind))}\n\n"
        return
    yield "data: [DONE]\n\n"


async def _all(first: AnswerEvent, events: AsyncIterator[AnswerEvent]) -> AsyncIterator[AnswerEvent]:
    yield first
    async for event in events:
        yield event


def _frame(base: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return f"data: {json.dumps(base | {'choices': [choice]}, ensure_ascii=False)}\n\n"
