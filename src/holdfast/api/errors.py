"""One shape for every error over HTTP; `service.error_table` says which has which status."""

import logging
from typing import Any, NamedTuple

import pydantic
from anyio import to_thread
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from holdfast.api.rate_limits import RateLimitedError
from holdfast.api.schemas_documents import Active
from holdfast.core.errors import HoldfastError
from holdfast.kinds.flows.faults import Fault, FlowError
from holdfast.service.error_table import row_of
from holdfast.web import rendering

log = logging.getLogger(__name__)

MOST_FIELDS = 20


class Field(pydantic.BaseModel):
    """A part of a request that is wrong."""

    field: str
    problem: str


class FaultShape(pydantic.BaseModel):
    """One thing that is wrong in the file of a flow; line and column count from 1."""

    line: int
    column: int
    message: str
    suggestion: str | None = None

    @classmethod
    def of(cls, fault: Fault) -> "FaultShape":
        """A fault for the wire."""
        return cls(line=fault.line, column=fault.column, message=fault.message, suggestion=fault.suggestion)


class ErrorBody(pydantic.BaseModel):
    """A code for programs and a sentence for people; more where there is more to tell."""

    code: str
    message: str
    fields: list[Field] | None = None
    active: Active | None = None
    document_id: str | None = None
    faults: list[FaultShape] | None = None


class Problem(pydantic.BaseModel):
    """What every error looks like."""

    error: ErrorBody


RESPONSES: dict[int | str, dict[str, Any]] = {"default": {"model": Problem, "description": "An error."}}
"""For every route: its errors have this shape."""

BESIDE: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "An error.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
"""The same, for a route that answers something other than JSON."""


class RefusalText(NamedTuple):
    """What a refusal of the framework is called, and said; without a message, what it says itself."""

    code: str
    message: str = ""


BY_STATUS = {
    404: RefusalText(code="not_found", message="there is nothing at this URL; see /api/v1/openapi.json"),
    405: RefusalText(code="method_not_allowed", message="this URL does not support this method"),
    408: RefusalText(code="too_slow"),
    413: RefusalText(code="too_large"),
    429: RefusalText(code="too_many_listeners"),
}


def problem(*, code: str, message: str, **more: Any) -> Problem:
    """The body of an error. It is shown to strangers: messages are ours, or have been looked at."""
    return Problem(error=ErrorBody(code=code, message=message, **more))


def answer(status: int, body: Problem) -> JSONResponse:
    """The response of an error."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    headers |= {"Retry-After": "5"} if status == 503 else {}
    return JSONResponse(body.model_dump(mode="json", exclude_none=True), status, headers)


def spoken(status: bytes, body: Problem, *headers: bytes) -> bytes:
    """The same as it goes over the line, where no framework says it; the connection ends with it."""
    said = body.model_dump_json(exclude_none=True).encode()
    head = (b"content-type: application/json", b"content-length: %d" % len(said), b"connection: close")
    return b"\r\n".join((b"HTTP/1.1 " + status, *head, *headers, b"", said))


async def on_holdfast(_request: Request, error: Exception) -> JSONResponse:
    """An error of ours."""
    if not isinstance(error, HoldfastError):
        raise error
    status = row_of(error).status
    if status >= 500:
        log.warning("%s: %s", error.code, error.message)
    faults = [FaultShape.of(each) for each in error.faults] if isinstance(error, FlowError) else None
    response = answer(status, problem(code=error.code, message=error.message, faults=faults))
    if isinstance(error, RateLimitedError):
        response.headers["Retry-After"] = str(error.retry_after)
    return response


async def on_validation(_request: Request, error: Exception) -> JSONResponse:
    """A request of the wrong form. What was sent is not repeated: it may be a secret, or very long."""
    if not isinstance(error, RequestValidationError):
        raise error
    fields = [
        Field(field=".".join(str(part) for part in one["loc"])[:200], problem=str(one["msg"])[:200])
        for one in error.errors()[:MOST_FIELDS]
    ]
    problems = "; ".join(f"{one.field}: {one.problem}" for one in fields[:3]) or "it cannot be read"
    message = f"the request is not valid: {problems}"
    return answer(400, problem(code="bad_request", message=message, fields=fields))


async def on_http(request: Request, error: Exception) -> Response:
    """What the framework refuses: unknown paths and methods, bodies that cannot be read or are too large.

    A browser that requests an unknown path gets an HTML page.
    """
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code in {404, 405} and rendering.is_for_people(request):
        return await to_thread.run_sync(rendering.unknown, request)
    word = BY_STATUS.get(error.status_code, RefusalText(code="bad_request"))
    body = problem(code=word.code, message=word.message or str(error.detail))
    response = answer(error.status_code, body)
    response.headers.update(dict(error.headers or {}))
    return response


async def on_gone(_request: Request, _error: Exception) -> JSONResponse:
    """The client went away in the middle of its request; nobody reads this."""
    return answer(400, problem(code="bad_request", message="the request was cut off"))


async def on_surprise(_request: Request, _error: Exception) -> JSONResponse:
    """A defect of ours; the log has the details, the client gets none."""
    message = "an internal error occurred; see the log of the API"
    return answer(500, problem(code="internal", message=message))


HANDLERS: dict[int | type[Exception], Any] = {
    HoldfastError: on_holdfast,
    RequestValidationError: on_validation,
    HTTPException: on_http,
    ClientDisconnect: on_gone,
    Exception: on_surprise,
}
