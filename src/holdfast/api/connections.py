"""Open connections: how many a process accepts, and how long it keeps an unread response.

A client that sends a request and never reads the response would hold memory and a file descriptor for ever;
so would one that subscribes to events and does not read them. If a client reads nothing for a while, its
connection is closed. A slow client keeps its connection: the kernel's send buffer is kept small, so that
anything the client reads is noticed here soon.

Connections above the limit get a response instead of waiting: 503 with `Retry-After`, except for `/healthz`,
and are closed within seconds. A few connections are reserved for that; beyond these, the same response is
sent without reading the request. Connections that were already open are not affected.
"""

import asyncio
import resource
import socket
import struct
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api import errors

FULL = "holdfast.full"
"""Set in the state of the requests that came over a connection above the limit."""
ALWAYS = "/healthz"
# Connections above the limit that still get an answer to their own request, and the seconds they have for it.
BESIDE = 32
HURRY = 5.0
# Bytes not sent yet that the system keeps of an answer; the rest waits here, where it is seen.
UNSENT = 128 * 1024
# With this a closed connection keeps nothing in the system either: it is reset.
RESET = struct.pack("ii", 1, 0)

SAID = errors.problem(
    code="too_many_connections",
    message="too many connections are open; retry later",
)
BUSY = errors.spoken(b"503 Service Unavailable", SAID, b"retry-after: 5")


def most(requested: int) -> int:
    """How many connections can be kept: as many as wanted, if the system lets this process open so many.

    A quarter of its descriptors is left for the database, the documents and everything else.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return requested
    return max(1, min(requested, allowed * 3 // 4 - BESIDE))


class Bounded(asyncio.Protocol):
    """What is put before the protocol of the server: one connection, among `limit` others.

    It needs of that protocol what all of uvicorn's have: the set of all connections, and the state that is
    given to each request. Both are one object: no name of its own may be one of the protocol's (`heads`).
    """

    limit = 4000
    pause = 30.0
    connections: set[Any]
    app_state: dict[str, Any]
    _line: asyncio.Transport | None = None
    _untaken: asyncio.TimerHandle | None = None
    _hurry: asyncio.TimerHandle | None = None
    _waiting = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be told of the first byte that is not taken; see whether there is room."""
        super().connection_made(transport)
        if not isinstance(transport, asyncio.Transport):
            return
        self._line = transport
        transport.set_write_buffer_limits(high=0)
        line = transport.get_extra_info("socket")
        if line is not None and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
        above = len(self.connections) - self.limit
        if above > BESIDE:
            transport.write(BUSY)
            transport.close()
        elif above > 0:
            self.app_state = {**self.app_state, FULL: True}
            self._hurry = asyncio.get_running_loop().call_later(HURRY, self._cut)

    def pause_writing(self) -> None:
        """Something was not taken at once."""
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        """All was taken."""
        self._all_taken()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """There is nothing left to take."""
        self._all_taken()
        if self._hurry is not None:
            self._hurry.cancel()
        super().connection_lost(exc)

    def _look_later(self) -> None:
        if self._line is not None and self._untaken is None:
            self._waiting = self._line.get_write_buffer_size()
            self._untaken = asyncio.get_running_loop().call_later(self.pause, self._look)

    def _look(self) -> None:
        self._untaken = None
        if self._line is None:
            return
        if self._line.get_write_buffer_size() >= self._waiting:
            self._cut()
        else:
            self._look_later()

    def _all_taken(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()
            self._untaken = None

    def _cut(self) -> None:
        """Nothing is sent any more, and nothing kept to be sent."""
        if self._line is None:
            return
        line = self._line.get_extra_info("socket")
        if line is not None:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._line.abort()


def bounded(http: type[asyncio.Protocol], pause: float, limit: int) -> type[asyncio.Protocol]:
    """Connections of this protocol, so many, with so much time to take something of an answer."""
    return type("Bounded", (Bounded, http), {"pause": pause, "limit": limit})


class Room:
    """Answers requests of connections above the limit, and lets all others pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if FULL not in scope.get("state", ()):
            await self._app(scope, receive, send)
            return

        async def last(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        refused = errors.answer(503, SAID)
        await (self._app if scope["path"] == ALWAYS else refused)(scope, receive, last)
