"""A receiver of webhooks on a real port, which misbehaves on request and remembers all that came."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Act = int | str
"""A status to answer with, or `cut`, `stall`, `endless`, `redirect:URL`, `later:SECONDS`."""


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return self.headers["holdfast-event-id"]


class Receiver:
    """Answers by its script, then as `choose` says: with 200, unless it is given. `look` sees each arrival
    before it is answered.
    """

    def __init__(self) -> None:
        self.came: list[ReceivedRequest] = []
        self.script: list[Act] = []
        self.look: Callable[[ReceivedRequest], None] = lambda came: None
        self.choose: Callable[[ReceivedRequest], Act] = lambda came: 200
        self.released = threading.Event()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.take(self, ReceivedRequest(self.path, headers, body))

            def do_GET(self) -> None:
                raise AssertionError("a redirect was followed")

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_: object) -> None:
                pass  # a client that was killed, or a cut of our own

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def ids(self) -> list[str]:
        """The event ids in the order of their arrival."""
        return [each.id for each in list(self.came)]

    def take(self, handler: BaseHTTPRequestHandler, came: ReceivedRequest) -> None:
        """One arrival: looked at, remembered, answered by the script."""
        self.look(came)
        with self._lock:
            self.came.append(came)
            act = self.script.pop(0) if self.script else self.choose(came)
        handler.close_connection = True
        if isinstance(act, int):
            self._say(handler, act)
        elif act.startswith("redirect:"):
            self._say(handler, 302, Location=act.removeprefix("redirect:"))
        elif act.startswith("later:"):
            self._say(handler, 503, **{"Retry-After": act.removeprefix("later:")})
        elif act == "stall":
            self.released.wait(60)
        elif act == "endless":
            self._pour(handler)
        else:
            handler.connection.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _say(handler: BaseHTTPRequestHandler, status: int, **headers: str) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()

    def _pour(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        with contextlib.suppress(OSError):
            while not self.released.is_set():
                handler.wfile.write(b"x" * 65_536)
