"""The gateway over HTTP, in front of the application: no framework between a client and the ledger.

A short body is read first, so that a request makes one visit to a thread; of a long one nothing is read
before it is known who sends it. While a call is under way its client is watched: one that hangs up is no
longer a reader, and the call goes on.

An answer counts as delivered once all of it was taken by the system's send buffer with the client still
connected. Whether the client has read it cannot be known.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api import access
from holdfast.api.limits import MOST_PLAIN, PASSAGE
from holdfast.api.rate_limits import SLOT, RateLimitedError, Turnstile
from holdfast.core.errors import HoldfastError
from holdfast.gateway import refusals, requests, responses
from holdfast.gateway.counting import AnsweredRequest
from holdfast.gateway.flights import Flight
from holdfast.gateway.gateway import Gateway, GatewayCaller, OpenedRequest
from holdfast.gateway.refusals import RefusedError
from holdfast.gateway.requests import PREFIX, GatewayRequest
from holdfast.llm_requests.http_messages import CHARGE_HEADER, HttpAnswer
from holdfast.service.access import Access, Identity
from holdfast.service.access import Scope as KeyScope
from holdfast.service.error_table import row_of

MOST_BODY = 32 * 1024 * 1024
# Visits read and write the database; calls to providers have threads of their own.
THREADS = 8
# How a request is counted whose client hung up before there was an answer.
CLIENT_LEFT = refusals.refusal(499, code="client_left", message="the client hung up", anthropic=False)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Route:
    """What the metrics call these requests."""

    path: str


@dataclass(slots=True)
class _Exchange:
    """One request: who asks, what for, and when it began."""

    request: GatewayRequest
    began: float
    caller: GatewayCaller | None = None
    opened: OpenedRequest | None = None


class GatewayRoute:
    """Serves the paths of the gateway; passes all others on."""

    def __init__(self, app: ASGIApp, gateway: Gateway, keys: Access, turnstile: Turnstile) -> None:
        self._app = app
        self._gateway = gateway
        self._keys = keys
        self._turnstile = turnstile
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="holdfast-gateway-visit")

    def close(self) -> None:
        """No thread waits for visits any more."""
        self._pool.shutdown(wait=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to the gateway, or pass it on."""
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        try:
            request = requests.read(scope["method"], scope["path"], headers)
        except RefusedError as refused:
            scope["route"] = _Route(f"{PREFIX}other")
            await _send_whole(send, refused.answer)
            return
        scope["route"] = _Route(f"{PREFIX}v1/{request.endpoint}")
        exchange = _Exchange(request, time.monotonic())
        try:
            opened = await self._opened(scope, receive, exchange)
        except RefusedError as refused:
            self._note(exchange, refused.answer, responses.Charged())
            await _send_whole(send, refused.answer)
            return
        if opened is None:
            return  # the client has left before its request was complete
        if opened.flight is None:
            answer = opened.answer or HttpAnswer(500, {}, b"")
            self._note(exchange, answer, opened.charged)
            await _send_whole(send, answer)
            return
        await self._follow(exchange, opened.flight, receive, send, joined=opened.joined)

    async def _opened(self, scope: Scope, receive: Receive, exchange: _Exchange) -> OpenedRequest | None:
        """The answer or the flight; None if the client is gone. Raises RefusedError."""
        passage = scope[PASSAGE]
        passage.limit = MOST_BODY
        try:
            if passage.left and not 0 < passage.said <= MOST_PLAIN:
                await self._visit(lambda: self._enter(scope, exchange))
            body = await _body(receive)
            return None if body is None else await self._visit(lambda: self._open(scope, exchange, body))
        except HTTPException as error:
            code = "too_large" if error.status_code == 413 else "too_slow"
            refused = exchange.request.refusal(error.status_code, code=code, message=str(error.detail))
            raise RefusedError(refused) from error

    async def _visit(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def _enter(self, scope: Scope, exchange: _Exchange) -> GatewayCaller:
        """Who asks; RefusedError for nobody who may."""
        if exchange.caller is not None:
            return exchange.caller
        try:
            identity = access.gateway_caller(Request(scope), self._keys)
            scope[SLOT] = self._turnstile.enter(identity)
            exchange.caller = _checked(identity)
        except RateLimitedError as error:
            refused = exchange.request.refusal(
                429, code="rate_limited", message=error.message, retry_after=error.retry_after, may_retry=True
            )
            raise RefusedError(refused) from error
        except HoldfastError as error:
            status = row_of(error).status
            again = {"retry_after": 5.0, "may_retry": True} if status == 503 else {}
            refused = exchange.request.refusal(status, code=error.code, message=error.message, **again)  # type: ignore[arg-type]
            raise RefusedError(refused) from error
        return exchange.caller

    def _open(self, scope: Scope, exchange: _Exchange, body: bytes) -> OpenedRequest:
        caller = self._enter(scope, exchange)
        exchange.opened = self._gateway.open(caller, exchange.request, body)
        return exchange.opened

    async def _follow(
        self, exchange: _Exchange, flight: Flight, receive: Receive, send: Send, *, joined: bool
    ) -> None:
        """The client gets what has come and then the rest, for as long as it is there."""
        delivery = _Delivery(flight, receive, send, joined=joined)
        delivered = False
        try:
            delivered = await delivery.run()
        finally:
            answer = flight.answer
            if answer is not None:
                charged = flight.charged.joined() if joined else flight.charged
                self._note(exchange, answer, charged)
            # Shielded: a server that ends cancels this, and the call must be released all the same.
            await asyncio.shield(
                self._visit(lambda: self._gateway.flights.leave(flight, delivered=delivered))
            )

    def _note(self, exchange: _Exchange, answer: HttpAnswer, charged: responses.Charged) -> None:
        caller, opened = exchange.caller, exchange.opened
        if caller is None:
            return  # nobody's request
        self._gateway.counting.note(
            AnsweredRequest(
                tenant=caller.tenant,
                key_id=caller.key_id,
                scope=exchange.request.scope or "",
                provider="" if opened is None else opened.provider,
                endpoint=exchange.request.endpoint,
                model="" if opened is None else opened.model[:200],
                status=answer.status,
                code=responses.code_of(answer),
                charge=charged.charge,
                seconds=time.monotonic() - exchange.began,
                reused_calls=charged.reused_calls,
                saved=charged.saved,
                order_id=charged.order_id or None,
            )
        )


class _Delivery:
    """One flight on its way to one client."""

    def __init__(self, flight: Flight, receive: Receive, send: Send, *, joined: bool) -> None:
        self._flight = flight
        self._receive = receive
        self._send = send
        self._joined = joined
        self._news = asyncio.Event()
        self._gone = False

    async def run(self) -> bool:
        """True if the client has got the whole answer, and it was a good one."""
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(self._news.set)

        self._flight.listen(self, wake)
        watching = asyncio.ensure_future(self._watch())
        try:
            return await self._delivered()
        finally:
            self._flight.ignore(self)
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._news.set()

    async def _delivered(self) -> bool:
        position, begun = 0, False
        while True:
            self._news.clear()
            parts = self._flight.after(position)
            if self._gone:
                return False
            if parts.head is not None and not begun:
                begun = True
                await self._send(_start(self._told(parts.head)))
            for chunk in parts.chunks if begun else ():
                position += 1
                await self._send(_piece(chunk))
            if parts.answer is not None and not self._flight.chunks[position:]:
                return await self._end(parts.answer, begun=begun)
            if parts.answer is None:
                await self._news.wait()

    async def _end(self, answer: HttpAnswer, *, begun: bool) -> bool:
        good = answer.status < 400
        if not begun:
            answer = self._told(answer)
            await self._send(_start(answer, len(answer.body)))
            await self._send(_piece(answer.body))
        elif not good:
            await self._send(_piece(refusals.error_event(answer)))
        # Sent once the system has taken all that came before; a client that left until then has been noticed.
        await self._send(_piece(b""))
        await asyncio.sleep(0)
        delivered = good and not self._gone
        # The server says of every client that it is gone once its response is complete.
        await self._send(END)
        return delivered

    def _told(self, answer: HttpAnswer) -> HttpAnswer:
        """The answer as this client gets it: who joined has not paid."""
        if not self._joined or answer.headers.get(CHARGE_HEADER) != "paid":
            return answer
        return HttpAnswer(answer.status, {**answer.headers, CHARGE_HEADER: "waited"}, answer.body)


def _checked(identity: Identity) -> GatewayCaller:
    """The caller, if the key may spend money on anything."""
    identity.require(KeyScope.WRITE)
    access.refuse_restricted(identity)
    return GatewayCaller(identity.tenant, identity.key_id)


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None if the client left before its end."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def _start(answer: HttpAnswer, length: int | None = None) -> Message:
    headers = [
        (name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in answer.headers.items()
    ]
    if length is not None:
        headers.append((b"content-length", b"%d" % length))
    return {"type": "http.response.start", "status": answer.status, "headers": headers}


END: Message = {"type": "http.response.body", "body": b"", "more_body": False}


def _piece(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}


async def _send_whole(send: Send, answer: HttpAnswer) -> None:
    await send(_start(answer, len(answer.body)))
    await send({**END, "body": answer.body})


async def nothing_else(scope: Scope, receive: Receive, send: Send) -> None:
    """What a gateway with a port of its own answers to any other path: that it lives, or where it is."""
    del receive
    if scope["path"] == "/healthz":
        await _send_whole(send, HttpAnswer(200, {"content-type": "application/json"}, b'{"status":"ok"}'))
        return
    message = f"there is nothing at this URL; the gateway is at {PREFIX}v1"
    await _send_whole(send, refusals.refusal(404, code="unknown_endpoint", message=message, anthropic=False))
