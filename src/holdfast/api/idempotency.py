"""`Idempotency-Key`: a repeated request gets the same response again, and is not carried out again.

Only final responses are stored. A 2xx is final: the request was carried out and must not be repeated. A
refusal has changed nothing, so it is safe to try again, and most refusals are temporary: a budget is raised
(402), the work in the way ends (409), what was missing is created (404), a key gets a scope (403), a server
answers again (400 `url_failed`), disk space is freed. A client that retries for a day must not keep
receiving what was true for a moment. A malformed request is not stored either (400, 413): its sender may
correct it under the same key. One refusal is final and stored: 412, because a past generation never returns.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import pydantic
from fastapi import Header, Request
from fastapi.responses import JSONResponse, Response

from holdfast.api import access, errors
from holdfast.bootstrap import AppServices
from holdfast.core.errors import BadRequestError, ConflictError, HoldfastError
from holdfast.service.error_table import row_of
from holdfast.service.records import Hold, StoredResponse

MOST_KEY = 255
FINAL_REFUSALS = frozenset({412})

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description=(
            "The same key with the same request gives the same response for 24 hours. A temporary "
            "refusal is not stored: the request is processed when it is sent again."
        ),
        json_schema_extra={"minLength": 1, "maxLength": MOST_KEY, "pattern": "^[ -~]+$"},
    ),
]


@dataclass(frozen=True, slots=True)
class RouteReply:
    """What a route answers."""

    status: int
    body: pydantic.BaseModel

    def stored(self) -> StoredResponse:
        """The answer as it is sent, and kept."""
        omit = isinstance(self.body, errors.Problem)
        return StoredResponse(self.status, self.body.model_dump_json(exclude_none=omit))


def fingerprint(request: Request, *parts: str) -> str:
    """What tells two requests apart: method, path, and what their bodies mean."""
    # Of two keys, one with a filter must not get the stored response of the other.
    restriction = access.identified(request).restriction
    own = [restriction] if restriction else []
    text = json.dumps([request.method, request.url.path, *parts, *own])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def answer_once(
    services: AppServices,
    tenant: str,
    key: str | None,
    request_fingerprint: Callable[[], str],
    do: Callable[[], RouteReply],
) -> Response:
    """The answer of `do`, or the one that was given under `key` before.

    Only a final answer is stored, as the module says.
    """
    if key is None:
        return _response(_done(do))
    if not 1 <= len(key) <= MOST_KEY or not (key.isascii() and key.isprintable()):
        message = f"an Idempotency-Key has 1 to {MOST_KEY} printable ASCII characters"
        raise BadRequestError(message, code="bad_idempotency_key")
    keys, settled = services.idempotency, False
    token = keys.token()
    held = keys.begin(tenant, key, request_fingerprint(), token)
    if isinstance(held, StoredResponse):
        return _response(held, again=True)
    if held is Hold.CONFLICT:
        message = "this Idempotency-Key was used for another request; use a new one"
        raise ConflictError(message, code="idempotency_conflict")
    if held is Hold.OTHERS:
        message = "a request with this Idempotency-Key is in progress; retry in a moment"
        raise ConflictError(message, code="idempotency_busy")
    try:
        response = _done(do)
        if _is_final(response):
            keys.settle(tenant, key, token, response)
            settled = True
        return _response(response)
    finally:
        if not settled:
            keys.let_go(tenant, key, token)


def _is_final(answer: StoredResponse) -> bool:
    return 200 <= answer.status < 300 or answer.status in FINAL_REFUSALS


def _done(do: Callable[[], RouteReply]) -> StoredResponse:
    try:
        return do().stored()
    except HoldfastError as error:
        return RouteReply(
            row_of(error).status, errors.problem(code=error.code, message=error.message)
        ).stored()


def _response(stored: StoredResponse, *, again: bool = False) -> Response:
    headers = {"Idempotency-Replayed": "true"} if again else {}
    headers |= {"Retry-After": "5"} if stored.status == 503 else {}
    return Response(stored.body, stored.status, headers, JSONResponse.media_type)
