"""Sockets that know whether a request began, ask before it begins, end on time and lead where they may.

An HTTP client's own view is not enough where a request costs money. It cannot say whether the first byte was
written, it has no place for a last question just before that byte, and its timeouts are per operation: a
server that drips a byte a second is never cut. All three are properties of the socket, so `httpcore` is given
sockets of ours, and each request an `Attempt` that they find through a context variable (`httpcore` runs the
whole of a request in the thread that asked for it).
Documents are fetched and webhooks posted by the same sockets.

The remaining window: a process frozen between the reading of the clock and the `send` system call, a few
microseconds later, writes its first buffer, the headers, when it thaws. The body goes out in a second write
under a new deadline check.
"""

from __future__ import annotations

import contextvars
import select
import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import httpcore

from holdfast import faults
from holdfast.clock import boot_time

_SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class WithheldError(Exception):
    """The request was given up before its first byte."""


class LateError(WithheldError):
    """Its time was over before that byte."""


class ForbiddenAddressError(WithheldError):
    """Every address of the name is one that must not be connected to."""


@dataclass(slots=True)
class Attempt:
    """What one request is allowed, and how far it came."""

    gate: Callable[[], bool]
    send_by: float
    deadline: float
    begun: bool = False
    # An answer that is there when the deadline has passed is read all the same: it was paid for.
    reads_late: bool = True

    def until_first_byte(self) -> float:
        """Return the seconds left for getting ready; raises when there are none."""
        left = min(self.send_by, self.deadline) - boot_time()
        if left <= 0:
            raise LateError("late")
        return left

    def until_deadline(self) -> float:
        """Return the seconds left of the whole exchange, 0 when it is over."""
        return max(0.0, self.deadline - boot_time())


current: contextvars.ContextVar[Attempt] = contextvars.ContextVar("holdfast_attempt")


class Stream(httpcore.NetworkStream):
    """A socket that enforces the attempt of whichever request is using it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._encrypted = isinstance(sock, ssl.SSLSocket)
        self._used = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 (the attempt knows)
        """Return what has come, waiting for it until the deadline.

        Past the deadline the socket is read without waiting: an answer that arrived while this process was
        frozen was paid for and is kept; one that still drips is cut at its next missing byte.
        """
        attempt = current.get()
        left = attempt.until_deadline()
        if not (left or attempt.reads_late):
            raise httpcore.ReadTimeout("deadline")
        try:
            self._sock.settimeout(left)
            return self._sock.recv(max_bytes)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError) as exc:
            raise httpcore.ReadTimeout("deadline") from exc
        except OSError as exc:
            raise httpcore.ReadError(str(exc)) from exc

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 (the attempt knows)
        """Write all of the buffer; the first bytes of a request pass the gate and the clock."""
        attempt = current.get()
        rest = memoryview(buffer)
        while rest:
            write = self._write_some if attempt.begun else self._write_first
            rest = rest[write(attempt, rest) :]

    def _write_first(self, attempt: Attempt, buffer: memoryview) -> int:
        """Write the first bytes of a request, or raise with none written."""
        if not attempt.gate():
            raise WithheldError("gate")
        faults.point("send.first_byte")
        if self._stale():
            raise WithheldError("connection closed by the server")
        self._sock.settimeout(attempt.until_deadline())
        attempt.until_first_byte()
        attempt.begun = True
        try:
            sent = self._sock.send(buffer)
        except OSError as exc:
            # A failed send() on a plain socket queued nothing. Under TLS part of a record may have left.
            if not self._encrypted:
                attempt.begun = False
                raise WithheldError("connection lost before the first byte") from exc
            raise httpcore.WriteError(str(exc)) from exc
        self._used = True
        faults.point("send.begun")
        return sent

    def _write_some(self, attempt: Attempt, buffer: memoryview) -> int:
        """Write some more of a begun request; a request overtaken by its deadline is left incomplete."""
        left = attempt.until_deadline()
        if left <= 0:
            raise httpcore.WriteTimeout("deadline")
        try:
            self._sock.settimeout(left)
            return self._sock.send(buffer)
        except TimeoutError as exc:
            raise httpcore.WriteTimeout("deadline") from exc
        except OSError as exc:
            raise httpcore.WriteError(str(exc)) from exc

    def _stale(self) -> bool:
        """Say whether the server has spoken or hung up before being asked.

        A fresh TLS connection is exempt: its session tickets arrive unasked.
        """
        return (self._used or not self._encrypted) and self._readable()

    def _readable(self) -> bool:
        if self._sock.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 (the attempt knows)
    ) -> httpcore.NetworkStream:
        """Return this connection encrypted, its server's name verified as the context says."""
        try:
            self._sock.settimeout(current.get().until_first_byte())
            return Stream(ssl_context.wrap_socket(self._sock, server_hostname=server_hostname))
        except (OSError, ValueError) as exc:
            self.close()
            raise WithheldError(f"tls: {exc}") from exc
        except WithheldError:
            self.close()
            raise

    def get_extra_info(self, info: str) -> Any:
        """Return what `httpcore` asks of a stream: its socket, and whether it can be read at once."""
        if info == "is_readable":
            return self._readable()
        if info == "ssl_object":
            return self._sock if self._encrypted else None
        return self._sock if info == "socket" else None


class Backend(httpcore.NetworkBackend):
    """Opens connections within what is left of the attempt, over all of a name's addresses that are allowed.

    The name is resolved once, and the connection is made to the very address that passed: a name server that
    answers differently the second time is not asked a second time.
    """

    def __init__(self, is_allowed: Callable[[str], bool] | None = None) -> None:
        self._is_allowed = is_allowed

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 (the attempt knows)
        local_address: str | None = None,  # noqa: ARG002 (not offered)
        socket_options: Iterable[_SocketOption] | None = None,  # noqa: ARG002 (not offered)
    ) -> httpcore.NetworkStream:
        """Return a connection to the first address that accepts one."""
        attempt = current.get()
        attempt.until_first_byte()
        try:
            # getaddrinfo cannot be interrupted; a slow resolver is noticed after it, with nothing sent.
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as exc:
            raise WithheldError(f"the name {host} has no address ({exc})") from exc
        if self._is_allowed is not None:
            entries = [entry for entry in entries if self._is_allowed(str(entry[4][0]))]
            if not entries:
                # Which address it is stays here: the answers of a name server inside are nobody's business.
                raise ForbiddenAddressError(f"{host} is not on the public internet")
        problem = "no address"
        for tried, (family, kind, proto, _, address) in enumerate(entries):
            limit = attempt.until_first_byte() / (len(entries) - tried)
            try:
                return Stream(_connect(family, kind, proto, address, limit))
            except OSError as exc:
                problem = str(exc)
        raise WithheldError(f"connect: {problem}")


def _connect(family: int, kind: int, proto: int, address: tuple[Any, ...], limit: float) -> socket.socket:
    sock = socket.socket(family, kind, proto)
    try:
        sock.settimeout(limit)
        sock.connect(address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (
        BaseException
    ):  # also an interrupt: whatever ends this, the socket is closed, and nothing is hidden
        sock.close()
        raise
    return sock
