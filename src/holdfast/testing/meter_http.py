"""The meter's HTTP side: real sockets, one thread per connection, kept alive as providers keep them."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import socket
import struct
import sys
import threading
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.testing.meter_answers import error
from holdfast.testing.meter_book import Book, MeterEntry

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 seconds: close() sends RST
_CONTROL = "/meter"
# Below the version, which may itself be below a prefix: /openai/v1/chat/completions.
_PAID = re.compile(r"(?:/[a-z]{1,20})?/v[12]/(.*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Response:
    """A response. With `cut` the connection is reset instead; `drip` pauses between bytes."""

    status: int
    body: bytes = field(repr=False)
    headers: tuple[tuple[str, str], ...] = ()
    cut: bool = False
    drip: float = 0.0
    replayed: bool = False
    # Of a streamed answer: its events, and after how many of them the connection is cut.
    events: tuple[bytes, ...] = field(default=(), repr=False)
    cut_after: int | None = None

    def encoded(self) -> bytes:
        """Return the complete response as bytes; of a streamed one, its head."""
        if self.events:
            head = ["HTTP/1.1 200 Meter", "Content-Type: text/event-stream", "Transfer-Encoding: chunked"]
            return "\r\n".join(
                [*head, *(f"{name}: {value}" for name, value in self.headers), "", ""]
            ).encode()
        lines = [f"HTTP/1.1 {self.status} Meter", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(self.body)}", *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


class Service(Protocol):
    """What the handler serves: the paid endpoints, and the control endpoints."""

    book: Book

    def serve(
        self, entry: MeterEntry, endpoint: str, key: str, body: bytes, content_type: str = ""
    ) -> Response:
        """Process a paid request and return the response."""

    def control(self, action: str, query: Mapping[str, str], body: Mapping[str, Any]) -> object:
        """Handle `GET /meter/log` and the like; LookupError for an unknown one."""


class MeterServer(http.server.ThreadingHTTPServer):
    """A threading server that can reset a connection, and ends all of them when closed."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], service: Service) -> None:
        self.service = service
        self._changed = threading.Condition()
        self._connections: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the connection, and remember it until it ends."""
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close the connection, by a reset if the handler requested one."""
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()
        if request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(_RESET)) == _RESET:
            request.close()  # the base class calls shutdown() first, which would end it properly
        else:
            super().shutdown_request(request)

    def wait_quiet(self, timeout: float) -> bool:
        """Wait until every connection so far has been read to its end; False on timeout."""
        with socket.create_connection(
            self.socket.getsockname()[:2], timeout
        ) as last:  # accepted after all others
            last.sendall(f"GET {_CONTROL} HTTP/1.0\r\n\r\n".encode())
            last.recv(1)
        with self._changed:
            return self._changed.wait_for(lambda: not self._connections, timeout)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not log clients that disconnect: the book has it."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """End every connection and wait for its thread."""
        with self._changed:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        super().server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: MeterServer
    entry: MeterEntry | None

    def handle_one_request(self) -> None:
        # The first byte counts as an arrival even if no second one follows: it may be charged.
        first: bytes = self.rfile.peek(1)  # type: ignore[attr-defined]
        paid = first and f" {_CONTROL}".encode() not in first[:16]
        client = f"{self.client_address[0]}:{self.client_address[1]}"
        self.entry = self.server.service.book.arrive(client) if paid else None
        super().handle_one_request()

    def do_GET(self) -> None:
        self._control()

    def do_POST(self) -> None:
        if self.entry is None:
            self._control()
        else:
            self._paid(self.entry)

    def _paid(self, entry: MeterEntry) -> None:
        book = self.server.service.book
        try:
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size)
            if len(body) < size:
                raise ConnectionAbortedError
            self._reply(entry, self._served(entry, body))
        except OSError:
            book.end(entry, status=entry.status, cut=True, replayed=entry.replayed)
            self.close_connection = True

    def _served(self, entry: MeterEntry, body: bytes) -> Response:
        paid = _PAID.fullmatch(urllib.parse.urlsplit(self.path).path)
        if paid is None:
            return Response(404, error("not_found", "not found; the meter serves /v1 and /v2"))
        key = self.headers.get("Idempotency-Key") or ""
        endpoint = paid.group(1)
        sent_as = self.headers.get("Content-Type") or ""
        return self.server.service.serve(entry, endpoint, key, body, sent_as)

    def _reply(self, entry: MeterEntry, response: Response) -> None:
        """Write the response, and record it *before* the client can see the last of it."""
        book = self.server.service.book
        if response.cut:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            book.end(entry, status=None, cut=True, replayed=response.replayed)
            self.close_connection = True
            return
        if response.events:
            self._stream(entry, response)
            return
        data = response.encoded()
        while response.drip and len(data) > 1 and not book.is_closed():
            self.wfile.write(data[:1])
            data = data[1:]
            book.idle(response.drip)
        book.end(entry, status=response.status, replayed=response.replayed)
        self.wfile.write(data)

    def _stream(self, entry: MeterEntry, response: Response) -> None:
        """Write the events one by one; the first is out before anything is waited for."""
        book = self.server.service.book
        self.wfile.write(response.encoded())
        for number, event in enumerate(response.events):
            if number == response.cut_after:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                book.end(entry, status=response.status, cut=True, replayed=response.replayed)
                self.close_connection = True
                return
            if number:
                book.pause("during")
                book.idle(response.drip)
            if number == len(response.events) - 1:
                book.end(entry, status=response.status, replayed=response.replayed)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def _control(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        action = f"{self.command} {url.path}"
        try:
            body = json.loads(self.rfile.read(size) or b"{}")
            result = self.server.service.control(action, dict(urllib.parse.parse_qsl(url.query)), body)
            response = Response(200, json.dumps(result).encode())
        except LookupError:
            response = Response(404, error("not_found", f"the meter has no {action}"))
        except ValueError as exc:
            response = Response(400, error("invalid", str(exc)))
        except TimeoutError as exc:
            response = Response(504, error("timeout", str(exc)))
        self.wfile.write(response.encoded())

    def log_message(self, *_: object) -> None:
        """Do not log: the book is the log."""
