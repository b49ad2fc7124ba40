"""One POST, sent at most once; the outcome is a status, or whether sending had begun.

* Before the first byte: `NotSent`. DNS, connection, TLS, a full pool, the gate and the clock all fail here.
  A kept-alive connection that the server has closed is readable: the pool then takes another one, and the
  socket checks again just before the first byte.
* After it: `Unknown`, unless a status arrives. There is nothing in between: a connection that breaks after
  one byte may have delivered all of them.

No retries, no redirects, no proxies, no environment, no HTTP/2 (a connection carries one request at a time).
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import httpcore

from holdfast.providers import answer_room, sockets
from holdfast.providers.base import NotSent, Unknown

KEEPALIVE = 5.0  # seconds; shorter than servers' own, so that a closing connection is rarely reused
MAX_ANSWER = 64 * 1024 * 1024
TOO_LARGE = "response too large"
_MAX_ERROR = 64 * 1024


class BodyError(Exception):
    """A body that is read while it is sent could not be read to its end."""


_FAILURES = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    BodyError,
)


class _TooLargeError(Exception):
    """The response body exceeds the limit."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A response, with headers in lower case; the body of an error may be truncated."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class Wire:
    """A pool of connections to one service, shared by threads."""

    def __init__(
        self,
        *,
        max_connections: int = 64,
        max_answer: int = MAX_ANSWER,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._max_connections = max_connections
        self._max_answer = max_answer
        self._ssl_context = ssl_context or httpcore.default_ssl_context()
        self._pool = self._open()
        self._pid = os.getpid()

    def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes | Iterator[bytes],
        gate: Callable[[], bool],
        *,
        send_by: float,
        deadline: float,
        hear: Callable[[bytes], None] | None = None,
        begin: Callable[[int, Mapping[str, str]], None] | None = None,
    ) -> HttpReply | NotSent | Unknown:
        """Send one POST at most once; return the response, or whether sending had begun.

        `begin` gets the status and the headers of a 2xx, `hear` its body in pieces, as they arrive. A body
        that comes in parts has its length in the headers.
        """
        attempt = sockets.Attempt(gate, send_by, deadline)
        token = sockets.current.set(attempt)
        try:
            return self._exchange(url, headers, body, attempt, hear, begin)
        except sockets.WithheldError as exc:
            return NotSent(str(exc))
        except _FAILURES as exc:
            return _failed(exc, attempt, None)
        finally:
            sockets.current.reset(token)

    def _exchange(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes | Iterator[bytes],
        attempt: sockets.Attempt,
        hear: Callable[[bytes], None] | None,
        begin: Callable[[int, Mapping[str, str]], None] | None,
    ) -> HttpReply | NotSent | Unknown:
        timeout = {"pool": attempt.until_first_byte()}
        with self._own_pool().stream(
            "POST", url, headers=list(headers.items()), content=body, extensions={"timeout": timeout}
        ) as response:
            status = response.status
            named = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in response.headers}
            good = 200 <= status < 300
            if good and begin is not None:
                begin(status, named)
            chunks = _limited(response.iter_stream(), self._max_answer if good else _MAX_ERROR)
            chunks = _heard(chunks, hear) if good and hear is not None else chunks
            room = answer_room.current.get() if good else None
            answer = bytearray()
            try:
                if room is not None:
                    return HttpReply(status, named, room.collected(chunks))
                for chunk in chunks:
                    answer += chunk
            except (*_FAILURES, _TooLargeError, OSError) as exc:  # OSError: no room for it on disk
                if good:
                    return _failed(exc, attempt, status)
                # The status alone decides about money; the text of an error is only for people.
            return HttpReply(status, named, bytes(answer))

    def _open(self) -> httpcore.ConnectionPool:
        return httpcore.ConnectionPool(
            ssl_context=self._ssl_context,
            max_connections=self._max_connections,
            keepalive_expiry=KEEPALIVE,
            retries=0,
            network_backend=sockets.Backend(),
        )

    def _own_pool(self) -> httpcore.ConnectionPool:
        """Return this process's own pool: on an inherited socket two would read each other's responses."""
        if self._pid != os.getpid():
            self._pool, self._pid = self._open(), os.getpid()
        return self._pool

    def close(self) -> None:
        """Close every connection of the pool."""
        self._pool.close()


def _limited(chunks: Iterator[bytes], limit: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise _TooLargeError
        yield chunk


def _heard(chunks: Iterator[bytes], hear: Callable[[bytes], None]) -> Iterator[bytes]:
    for chunk in chunks:
        hear(chunk)
        yield chunk


def _failed(exc: Exception, attempt: sockets.Attempt, status: int | None) -> NotSent | Unknown:
    """Name a failure by its type only: a protocol error's text may quote the headers and the API key."""
    match exc:
        case httpcore.PoolTimeout():
            reason = "no free connection"
        case httpcore.TimeoutException():
            reason = "deadline passed"
        case httpcore.NetworkError():
            reason = "connection lost"
        case httpcore.RemoteProtocolError():
            reason = "connection closed or response malformed"
        case _TooLargeError():
            reason = TOO_LARGE
        case OSError():
            reason = "the response could not be stored on disk"
        case _:
            reason = f"protocol: {type(exc).__name__}"
    return Unknown(reason, status) if attempt.begun else NotSent(reason)
