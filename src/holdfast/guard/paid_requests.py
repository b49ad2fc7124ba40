"""Requests of client libraries, paid for through the ledger: what `guard.transport` does, without httpx.

A response of the provider goes back as it is, also an error, so that the exceptions of the client library
stay its own. What only the ledger knows (no budget, an order that waits for a person) becomes a response in
the shape of the provider's errors that says not to try again; within a run it is a signal instead.
"""

import contextlib
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.core.errors import (
    HoldfastError,
    MustWaitError,
    ProviderRefusedError,
    StoreUnavailableError,
    WorkError,
)
from holdfast.guard import embeddings, payers
from holdfast.guard.request_scopes import RequestScopes
from holdfast.guard.signals import InDoubt
from holdfast.ledger.pay import Call
from holdfast.llm_requests import recorded_responses, wire_keys
from holdfast.llm_requests.http_messages import (
    CHARGE_HEADER,
    HttpAnswer,
    HttpRequest,
    TransportFailure,
    refusal,
)
from holdfast.llm_requests.wire_keys import SdkRequest
from holdfast.llm_requests.wire_provider import Begin, Hear, WireProvider
from holdfast.providers import wire
from holdfast.providers.base import Profile

if TYPE_CHECKING:
    from holdfast.guard.guard import Guard

# A client library waits 600 s for a byte by default: longer than any good answer takes to begin.
MOST_IDLE = 120.0
MOST_STREAM = 600.0
KEY_RETENTION = 86_400.0
MOST_INPUTS = 100_000
MOST_TOKENS = 1_000_000_000
MOST_CONNECTIONS = 256
_TIMED_OUT = "deadline passed"


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """How requests are sent; see `Guard.transport`."""

    provider: str | None = None
    honours_keys: bool = False
    ssl_context: ssl.SSLContext | None = None


class PaidRequests:
    """The way of requests through the ledger."""

    def __init__(self, guard: "Guard", options: TransportOptions) -> None:
        self._guard = guard
        self._options = options
        self._scopes = RequestScopes()
        self._wire = wire.Wire(max_connections=MOST_CONNECTIONS, ssl_context=options.ssl_context)
        self._lock = threading.Lock()
        self._under_way = 0
        self._is_closed = False

    def close(self) -> None:
        """The connections are closed once no answer is under way: what is paid for is read to its end."""
        with self._lock:
            self._is_closed = True
            idle = not self._under_way
        if idle:
            self._wire.close()

    @contextlib.contextmanager
    def _answering(self) -> Iterator[None]:
        with self._lock:
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                over = self._is_closed and not self._under_way
            if over:
                self._wire.close()

    def read(self, request: HttpRequest) -> SdkRequest:
        """What the request is; BadRequestError if its body is not what its content type says."""
        return wire_keys.read(request, self._options.provider)

    def answer(
        self, request: HttpRequest, paid: SdkRequest, *, begin: Begin | None = None, hear: Hear | None = None
    ) -> HttpAnswer:
        """The response to the request, paid for once; TransportFailure if there is none.

        `begin` and `hear` get a streamed answer that is being paid for while it arrives.
        """
        try:
            with self._answering():
                return self._paid(paid, request, begin, hear)
        except _NoAnswer as answered:
            return answered.response
        except StoreUnavailableError as error:
            raise TransportFailure("ConnectError", f"holdfast: {error.message}") from error
        except HoldfastError as error:
            return refusal(400, error.code, error.message)

    def _paid(
        self, paid: SdkRequest, request: HttpRequest, begin: Begin | None, hear: Hear | None
    ) -> HttpAnswer:
        idle = min(request.read_timeout or MOST_IDLE, MOST_IDLE)
        profile = self._profile(paid, idle)

        def pay(provider: WireProvider, calls: Sequence[Call]) -> tuple[bytes, ...]:
            return self._results(paid, provider, calls, profile.deadline)

        with self._scope(paid) as scope:
            texts = embeddings.inputs(paid)
            if texts is not None:
                splitting = embeddings.EmbeddingsProvider(
                    profile, self._wire, request, idle=idle, fields=paid.fields
                )
                results = pay(splitting, embeddings.calls(paid, texts, scope))
                return embeddings.answer(paid, results, "paid" if splitting.has_answered else "reused")
            provider = WireProvider(profile, self._wire, request, idle=idle, begin=begin, hear=hear)
            call = Call(paid.provider, paid.endpoint, paid.model, paid.text, {**paid.params, **scope})
            (record,) = pay(provider, [call])
            if hear is not None and provider.held_back:
                hear(provider.held_back)
            if provider.reply is None or not provider.has_answered:
                return recorded_responses.replayed(record, "reused")
            return _charged(provider.reply)

    def _scope(self, paid: SdkRequest) -> AbstractContextManager[Mapping[str, object]]:
        return self._scopes.of(paid, self._guard.runtime().engine.host)

    def _profile(self, paid: SdkRequest, idle: float) -> Profile:
        keyed = self._options.honours_keys
        return Profile(
            name=paid.provider,
            honours_keys=keyed,
            key_retention=KEY_RETENTION if keyed else 0.0,
            max_inputs=MOST_INPUTS if embeddings.inputs(paid) is not None else 1,
            max_tokens=MOST_TOKENS,
            deadline=MOST_STREAM if paid.streams else idle,
        )

    def _results(
        self, paid: SdkRequest, provider: WireProvider, calls: Sequence[Call], patience: float
    ) -> tuple[bytes, ...]:
        """The results of the calls; _NoAnswer or TransportFailure if the request has none to give."""
        try:
            return payers.pay(self._guard, provider, calls, patience=patience)
        except (ProviderRefusedError, WorkError) as error:
            raise _as_it_came(provider, error) from error
        except InDoubt as error:
            raise _NoAnswer(paid, 409, "in_doubt", error.message) from error
        except MustWaitError as error:
            if error.reason == "budget":
                raise _NoAnswer(paid, 429, "insufficient_quota", error.message) from error
            raise TransportFailure("ReadTimeout", f"holdfast: {error.message}") from error


class _NoAnswer(Exception):  # noqa: N818 - a response that ends the request, and no answer to it
    """The request ends with this response, and its call was not answered."""

    def __init__(self, paid: SdkRequest | None, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.response = refusal(status, code, message, anthropic=paid is not None and paid.is_anthropic)

    @classmethod
    def of(cls, reply: wire.HttpReply) -> "_NoAnswer":
        """The provider's own response."""
        ended = cls(None, reply.status, "", "")
        ended.response = recorded_responses.passed_on(reply.status, reply.headers, reply.body)
        return ended


def _as_it_came(provider: WireProvider, error: HoldfastError) -> Exception:
    """What the client library gets for a request without an answer: the response, or its own error."""
    if provider.reply is not None:
        return _NoAnswer.of(provider.reply)
    if not provider.failure:
        return error
    if isinstance(error, ProviderRefusedError):
        return TransportFailure("ConnectError", provider.failure)
    kind = "ReadTimeout" if provider.failure == _TIMED_OUT else "ReadError"
    return TransportFailure(kind, provider.failure)


def _charged(reply: wire.HttpReply) -> HttpAnswer:
    answer = recorded_responses.passed_on(reply.status, reply.headers, reply.body)
    return replace(answer, headers={**answer.headers, CHARGE_HEADER: "paid"})
