"""Errors of the gateway itself, in the shape of the provider whose interface was asked."""

import json
import math
from http import HTTPStatus

from holdfast.llm_requests.http_messages import CHARGE_HEADER, HttpAnswer

OPENAI_TYPES = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    429: "rate_limit_error",
}
ANTHROPIC_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
QUOTA = "insufficient_quota"


def refusal(
    status: int,
    *,
    code: str,
    message: str,
    anthropic: bool,
    retry_after: float | None = None,
    may_retry: bool = False,
) -> HttpAnswer:
    """A response of ours. Client libraries do not try again by themselves unless `may_retry` says so."""
    if code == QUOTA and anthropic:
        status = HTTPStatus.PAYMENT_REQUIRED
    body = error_body(status, code=code, message=message, anthropic=anthropic)
    headers = {"content-type": "application/json", CHARGE_HEADER: "none"}
    if retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(retry_after)))
    if not may_retry:
        headers["x-should-retry"] = "false"
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    return HttpAnswer(status, headers, json.dumps(body).encode())


def error_body(status: int, *, code: str, message: str, anthropic: bool) -> dict[str, object]:
    """The body of an error."""
    said = f"holdfast: {message}"
    if anthropic:
        kind = ANTHROPIC_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": said, "code": code}}
    kind = OPENAI_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    kind = QUOTA if code == QUOTA else kind
    return {"error": {"message": said, "type": kind, "param": None, "code": code}}


def error_event(answer: HttpAnswer) -> bytes:
    """An error in the middle of a stream, as client libraries of both providers recognise it."""
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        body = error_body(answer.status, code="no_response", message="the answer broke off", anthropic=False)
    text = json.dumps(body if isinstance(body, dict) else {"error": {"message": str(body)[:300]}})
    return f"event: error\ndata: {text}\n\n".encode()


class RefusedError(Exception):
    """The request ends with this response."""

    def __init__(self, answer: HttpAnswer) -> None:
        super().__init__(answer.status)
        self.answer = answer
