"""Limits that apply to every request: how much may be sent, and how slowly; and headers of every response.

A route declares its body limit (`routing.takes`). Anything that declares none, and any path that is no
route, has the limit of a small JSON body. A body is counted as it arrives, whatever its `Content-Length`
says, and refused at the limit. After such a refusal, what the client still sends is read and discarded for a
moment: closing at once would reset the connection, and the client would never see the reason.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.rate_limits import SLOT
from holdfast.telemetry import traces

MOST_PLAIN = 64 * 1024
# Boundaries and fields around a file.
AROUND = 64 * 1024
# Bytes a second that a body comes with on the whole: one that drips would hold its place for ever.
LEAST_RATE = 1024
LINGER_SECONDS = 2.0
LINGER_BYTES = 64 * 1024 * 1024

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


PASSAGE = "holdfast.passage"
"""Where a request keeps its `LimitedRequest`, for the route that says how much it takes."""


class BodyKind(StrEnum):
    """What the body of a route is."""

    JSON = "json"
    TEXT = "text"
    CONTENT = "content"
    BUNDLE = "bundle"


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Bytes of a file, of a JSON body that carries a text, of a bundle; seconds of pause in a body."""

    file: int
    text: int
    pause: float
    bundle: int

    def of(self, body: BodyKind, content_type: str = "") -> int:
        """How many bytes such a body may have. Content is a form with a file, or JSON with a text."""
        match body:
            case BodyKind.BUNDLE:
                return self.bundle + AROUND
            case BodyKind.CONTENT if content_type.lower().startswith("multipart/form-data"):
                return self.file + AROUND
            case BodyKind.CONTENT | BodyKind.TEXT:
                return self.text
            case _:
                return MOST_PLAIN


def _nothing() -> None:
    """There is no place to give back: the request was refused before it had one."""


Note = Callable[[str, str, int, float], None]
"""Told the route, the method, the status and the seconds of each request."""


@dataclass(slots=True)
class LimitedRequest:
    """One request on its way through. `left` is true while some of its body may still come, `said` is the
    size that its head tells.
    """

    limits: BodyLimits
    receive: Receive
    send: Send
    left: bool = True
    size: int = 0
    said: int = 0
    status: int = 0
    waited: float = 0.0
    limit: int = MOST_PLAIN

    def take(self, body: BodyKind, content_type: str) -> None:
        """From now on the limit is that of such a body."""
        self.limit = self.limits.of(body, content_type)

    async def read(self) -> Message:
        """The next piece of the body; HTTPException when it is too much, or too slow."""
        if max(self.size, self.said) > self.limit:
            raise self._too_large()
        if not self.left:
            return await self.receive()
        message = await self._next()
        if message["type"] != "http.request":
            self.left = False
            return message
        self.size += len(message.get("body", b""))
        self.left = message.get("more_body", False)
        if self.size > self.limit:
            raise self._too_large()
        return message

    async def _next(self) -> Message:
        """The next piece, if it comes within a pause, and all that came was not waited for too long."""
        began = time.monotonic()
        pause = self.limits.pause
        patience = min(pause, pause + self.size / LEAST_RATE - self.waited)
        try:
            if patience <= 0:
                raise TimeoutError
            message = await asyncio.wait_for(self.receive(), patience)
        except TimeoutError:
            self.left = False
            raise HTTPException(
                408, f"too little came for {pause:g} s; send the body without pauses"
            ) from None
        self.waited += time.monotonic() - began
        return message

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body is larger than the limit of {self.limit:,} bytes")

    async def write(self, message: Message) -> None:
        """The answer goes out, with what every answer carries; its end waits for the rest of the body."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            had = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(one for one in HEADERS if one[0] not in had)]
            if self.left and self.status >= 400:
                message["headers"].append((b"connection", b"close"))
        elif self.left and self.status >= 400 and not message.get("more_body", False):
            await self.send({**message, "more_body": True})
            await self._linger()
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self.send(message)

    async def _linger(self) -> None:
        size = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while self.left and size < LINGER_BYTES:
                    message = await self.receive()
                    size += len(message.get("body", b""))
                    self.left = message["type"] == "http.request" and message.get("more_body", False)


class Gate:
    """The middleware."""

    def __init__(self, app: ASGIApp, limits: BodyLimits, note: Note) -> None:
        self._app = app
        self._limits = limits
        self._note = note
        self.pause = limits.pause

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        names = dict(scope["headers"])
        said = names.get(b"content-length", b"0")
        passage = scope[PASSAGE] = LimitedRequest(self._limits, receive, send)
        passage.left = said != b"0" or b"transfer-encoding" in names
        began = time.monotonic()
        if said.isdigit() and len(said) < 20:
            passage.said = int(said)
        trace = names.get(b"traceparent", b"").decode("latin-1") or None
        span = traces.start("request", trace, {"method": scope["method"]})
        try:
            await self._app(scope, passage.read, passage.write)
        finally:
            scope.get(SLOT, _nothing)()
            route = getattr(scope.get("route"), "path", "")
            self._note(route, scope["method"], passage.status, time.monotonic() - began)
            span.tell(route=route or "other", status=passage.status)
            span.close("" if 0 < passage.status < 500 else "the request failed")
