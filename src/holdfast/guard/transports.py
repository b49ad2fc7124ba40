"""`guard.transport(httpx2)` and `guard.transport(httpx)`: one object that is a transport of that flavour.

It is both a synchronous and an asynchronous transport. Requests that cost nothing by the call (GET, files,
fine-tuning and the like) pass through a plain transport of the same flavour.
"""

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any, ClassVar

from holdfast.core.errors import BadRequestError
from holdfast.guard import streams, threads
from holdfast.guard.paid_requests import PaidRequests
from holdfast.llm_requests import wire_keys
from holdfast.llm_requests.http_messages import HttpAnswer, HttpRequest, TransportFailure

FLAVOURS = ("httpx2", "httpx")


def transport(module: Any, requests: PaidRequests) -> Any:
    """A transport of this flavour; BadRequestError for anything but the modules httpx2 and httpx."""
    if not isinstance(module, ModuleType) or module.__name__ not in FLAVOURS:
        named = getattr(module, "__name__", None) or type(module).__name__
        message = f"guard.transport takes the module httpx2 or httpx, not {named}; import it and pass it"
        raise BadRequestError(message, code="bad_flavour")
    return _flavour(module)(requests)


@cache
def _flavour(module: Any) -> Callable[[PaidRequests], Any]:
    """The class of transports of this flavour."""
    own = {"module": module}
    pieces = type("Pieces", (_Pieces, module.SyncByteStream), own)
    awaited = type("AsyncPieces", (_AsyncPieces, module.AsyncByteStream), own)
    bases = (_GuardTransport, module.BaseTransport, module.AsyncBaseTransport)
    return type("GuardTransport", bases, {**own, "pieces": pieces, "async_pieces": awaited})


class _Pieces:
    """The body of a streamed response."""

    module: ClassVar[Any]

    def __init__(self, request: Any, pieces: streams.Pieces) -> None:
        self._request = request
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        with _own_errors(self.module, self._request):
            yield from self._pieces

    def close(self) -> None:
        """The reader leaves."""
        self._pieces.close()


class _AsyncPieces:
    """The body of a streamed response, read in a loop."""

    module: ClassVar[Any]

    def __init__(self, request: Any, pieces: streams.AsyncPieces) -> None:
        self._request = request
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _own_errors(self.module, self._request):
            async for piece in self._pieces:
                yield piece

    async def aclose(self) -> None:
        """The reader leaves."""
        self._pieces.close()


class _GuardTransport:
    """Requests are paid for once; see `Guard.transport`."""

    module: ClassVar[Any]
    pieces: ClassVar[Any]
    async_pieces: ClassVar[Any]

    def __init__(self, requests: PaidRequests) -> None:
        self._requests = requests
        self._plain: Any = None
        self._plain_async: Any = None

    def handle_request(self, request: Any) -> Any:
        """The response to a request of a synchronous client."""
        if (advice := _wrong_flavour(self.module, request)) is not None:
            return advice
        if not _is_paid(request):
            self._plain = self._plain or self.module.HTTPTransport()
            return self._plain.handle_request(request)
        request.read()
        neutral = _neutral(request)
        with _own_errors(self.module, request):
            paid = self._requests.read(neutral)
            if not paid.streams:
                return self._response(request, self._requests.answer(neutral, paid))
            answer, pieces = streams.answered(
                lambda **listening: self._requests.answer(neutral, paid, **listening)
            )
            body = None if pieces is None else self.pieces(request, pieces)
            return self._response(request, answer, body)

    async def handle_async_request(self, request: Any) -> Any:
        """The response to a request of an asynchronous client."""
        if (advice := _wrong_flavour(self.module, request)) is not None:
            return advice
        if not _is_paid(request):
            self._plain_async = self._plain_async or self.module.AsyncHTTPTransport()
            return await self._plain_async.handle_async_request(request)
        await request.aread()
        neutral = _neutral(request)
        with _own_errors(self.module, request):
            paid = self._requests.read(neutral)
            if not paid.streams:
                answer = await threads.in_thread(lambda: self._requests.answer(neutral, paid))
                return self._response(request, answer)
            answer, pieces = await streams.answered_async(
                lambda **listening: self._requests.answer(neutral, paid, **listening)
            )
            body = None if pieces is None else self.async_pieces(request, pieces)
            return self._response(request, answer, body)

    def _response(self, request: Any, answer: HttpAnswer, pieces: Any = None) -> Any:
        body = {"content": answer.body} if pieces is None else {"stream": pieces}
        return self.module.Response(answer.status, headers=dict(answer.headers), request=request, **body)

    def close(self) -> None:
        """Idle connections are closed."""
        self._requests.close()
        if self._plain is not None:
            self._plain.close()

    async def aclose(self) -> None:
        """Idle connections are closed."""
        self._requests.close()
        if self._plain_async is not None:
            await self._plain_async.aclose()


def _is_paid(request: Any) -> bool:
    return wire_keys.is_paid(request.method, request.url.path, request.headers.get("content-type", ""))


def _neutral(request: Any) -> HttpRequest:
    timeout = request.extensions.get("timeout") or {}
    return HttpRequest(
        str(request.url), tuple(request.headers.multi_items()), request.content, timeout.get("read")
    )


@contextmanager
def _own_errors(module: Any, request: Any) -> Iterator[None]:
    """What has no response is raised as an error of the client's own library."""
    try:
        yield
    except TransportFailure as failure:
        raise getattr(module, failure.kind)(failure.message, request=request) from failure
    except BadRequestError as error:
        raise module.LocalProtocolError(f"holdfast: {error.message}", request=request) from error


def _wrong_flavour(module: Any, request: Any) -> Any:
    """One line of advice, as a response that no client library retries; None if all is well."""
    if isinstance(request, module.Request):
        return None
    name = type(request).__module__.partition(".")[0]
    own = sys.modules[name]
    message = f"holdfast: this is a client of {name}; give it guard.transport({name})"
    error = {"error": {"message": message, "type": "wrong_flavour", "code": "wrong_flavour"}}
    headers = {"content-type": "application/json", "x-should-retry": "false"}
    return own.Response(400, headers=headers, content=json.dumps(error).encode(), request=request)
