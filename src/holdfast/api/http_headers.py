"""Limits on the head of a request: how long it may take, how large it may be, and its syntax.

The server itself only closes connections that are idle after a response. A client that sends nothing, or a
byte now and then, could stay for ever, and enough of them would use up all file descriptors; no key is
needed for that. The server's parser also accepts a head of any length, and answers a malformed one in a
format of its own.
"""

import asyncio
import sys

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from holdfast.api import errors

# Bytes of a request's first line and headers together.
MOST_HEAD = 64 * 1024
# The headers that offer another protocol, and what `Connection` says of them.
OFFER = frozenset({b"upgrade", b"http2-settings"})


LATE = errors.spoken(
    b"408 Request Timeout",
    errors.problem(code="too_slow", message="the request headers did not arrive in time; send them at once"),
)
WRONG = errors.spoken(
    b"400 Bad Request",
    errors.problem(code="bad_request", message="this is not a valid HTTP request"),
)
LONG = errors.spoken(
    b"431 Request Header Fields Too Large",
    errors.problem(
        code="head_too_large",
        message=f"the request headers are larger than {MOST_HEAD:,} bytes; send fewer or shorter headers",
    ),
)


class HeaderDeadline(HttpToolsProtocol):
    """One connection. Its next request has all of its head within `seconds`, or is answered with 408; a
    connection that says nothing is closed without a word.
    """

    seconds = 30.0
    _timer: asyncio.TimerHandle | None = None
    _begun = False
    _head = 0
    _hosts = 0
    _coming = 0
    _data = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Go on, and see whether a request has begun, or its head is still coming."""
        self._data = data
        super().data_received(data)
        cycle: RequestResponseCycle | None = (
            self.cycle
        )  # none before the first request, whatever its type says
        if cycle is not None and not cycle.response_complete:
            self._rest()
        elif not self.transport.is_closing():
            self._begun = True
            self._coming += len(data)  # one header alone may never come to its end
            if self._coming > MOST_HEAD:
                self._head = self._coming
                self.send_400_response("")
                return
            if self._timer is None:
                self._wait()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._head = self._hosts = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A piece of the first line."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header. Two `Host` headers are refused: a proxy may have used the other one."""
        self._count(len(name) + len(value))
        self._hosts += name.lower() == b"host"
        if self._hosts > 1:
            raise ValueError("there are two Host headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole. Where another protocol is offered, it comes once more, without the offer."""
        if not self._hosts and self.parser.get_http_version() == "1.1":
            raise ValueError("there is no Host header")
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Another protocol was offered, as some clients do with each request; the request is taken as it is.

        The parser leaves what follows such a head to the other protocol, also the request's own body. So it
        is given the head again without the offer, and then what follows.
        """
        offer = sys.exception()
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT" or not isinstance(offer, httptools.HttpParserUpgrade):
            self.send_400_response("")
            return
        head = [method + b" " + self.url + b" HTTP/" + version]
        head += [
            name + b": " + _without_offer(name, value) for name, value in self.headers if name not in OFFER
        ]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the server itself does
        self.data_received(b"\r\n".join([*head, b"", self._data[offer.args[0] :]]))

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the parent's signature
        """What came is no request, or too long for one."""
        self._rest()
        self.transport.write(LONG if self._head > MOST_HEAD else WRONG)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody waits any more."""
        self._rest()
        super().connection_lost(exc)

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > MOST_HEAD:
            raise ValueError("the request headers are too large")

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self._late)

    def _rest(self) -> None:
        self._begun = False
        self._coming = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            if self._begun:
                self.transport.write(LATE)
            self.transport.close()


def _without_offer(name: bytes, value: bytes) -> bytes:
    """The value of a header; of `Connection` without the word that goes with an offer."""
    if name != b"connection":
        return value
    words = (word.strip() for word in value.split(b","))
    return b", ".join(word for word in words if word.lower() not in OFFER)


def within(seconds: float) -> type[HeaderDeadline]:
    """Such connections, with so much time for a head."""
    return type("Prompt", (HeaderDeadline,), {"seconds": seconds})
