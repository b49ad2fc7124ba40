"""What a client gets for a request that has no answer.

The provider's own errors go back as they came, so that exceptions of client libraries stay their own. Only
its refusal of *our* key is not passed on: it is no fault of the client's key.
"""

from http import HTTPStatus

from holdfast.bootstrap.upstreams import Upstream
from holdfast.core.errors import (
    HoldfastError,
    MustWaitError,
    ProviderRefusedError,
    StoreUnavailableError,
    WorkError,
)
from holdfast.gateway import responses
from holdfast.gateway.requests import GatewayRequest
from holdfast.llm_requests.http_messages import HttpAnswer
from holdfast.llm_requests.wire_provider import WireProvider

_OUR_KEY = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_TIMED_OUT = "deadline passed"


def answer_to(
    error: HoldfastError, provider: WireProvider | None, request: GatewayRequest, upstream: Upstream
) -> HttpAnswer:
    """The response to a request that ended with this error."""
    if isinstance(error, MustWaitError):
        return _must_wait(error, request)
    if isinstance(error, ProviderRefusedError | WorkError) and provider is not None:
        return _no_answer(error, provider, request, upstream)
    if isinstance(error, StoreUnavailableError):
        message = error.message
        return request.refusal(503, code=error.code, message=message, retry_after=5, may_retry=True)
    return request.refusal(400, code=error.code, message=error.message)


def _must_wait(error: MustWaitError, request: GatewayRequest) -> HttpAnswer:
    match error.reason:
        case "budget":
            return request.refusal(429, code="insufficient_quota", message=error.message)
        case "parked":
            return request.refusal(409, code="in_doubt", message=error.message)
        case "rate":
            return request.refusal(
                429, code="rate_limited", message=error.message, retry_after=error.delay, may_retry=True
            )
    message = f"{error.message}; nothing is lost, try again"
    return request.refusal(
        503, code="wait_over", message=message, retry_after=max(error.delay, 1), may_retry=True
    )


def _no_answer(
    error: HoldfastError, provider: WireProvider, request: GatewayRequest, upstream: Upstream
) -> HttpAnswer:
    reply = provider.reply
    if reply is not None and reply.status in _OUR_KEY:
        message = f"the provider refused the key of [providers.{upstream.name}], not yours; tell the operator"
        return request.refusal(502, code="provider_key", message=message)
    if reply is not None and not 200 <= reply.status < 300:
        return responses.passed_on(reply, upstream.key)
    if isinstance(error, ProviderRefusedError) and provider.failure:
        message = f"the provider cannot be reached ({provider.failure}); nothing was sent"
        return request.refusal(502, code="provider_unreachable", message=message, may_retry=True)
    if provider.failure:
        message = (
            f"no answer from the provider ({provider.failure}); it may have charged: the order is in doubt"
        )
        status = 504 if provider.failure == _TIMED_OUT else 502
        return request.refusal(status, code="no_response", message=message, may_retry=True)
    return request.refusal(
        502 if isinstance(error, WorkError) else 400, code=error.code, message=error.message
    )


def is_void(error: HoldfastError) -> bool:
    """True if the request was not charged and is not in doubt."""
    return isinstance(error, ProviderRefusedError) or (
        isinstance(error, MustWaitError) and error.reason in {"budget", "rate"}
    )
