"""Connections on which no request comes: the head of a request has a time, as its body has (see `limits`).

The server itself only closes a connection that is quiet after an answer. One that says nothing at all, or
adds a byte to its head now and then, would stay for ever, and whoever opens enough of them leaves no
descriptor for anybody else; for that nobody has to have a key.
"""

import asyncio
import json

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

SAID = json.dumps(
    {
        "error": {
            "code": "too_slow",
            "message": "the head of the request did not come in time; send it at once",
        }
    }
).encode()
LATE = b"\r\n".join(
    (
        b"HTTP/1.1 408 Request Timeout",
        b"content-type: application/json",
        b"content-length: %d" % len(SAID),
        b"connection: close",
        b"",
        SAID,
    )
)


class Prompt(H11Protocol):
    """One connection. Its next request has all of its head within `seconds`, or is answered with 408; a
    connection that says nothing is closed without a word.
    """

    seconds = 30.0
    _timer: asyncio.TimerHandle | None = None
    _begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Go on, and see whether a request has begun, or its head is still coming."""
        super().data_received(data)
        cycle: RequestResponseCycle | None = (
            self.cycle
        )  # none before the first request, whatever its type says
        if cycle is not None and not cycle.response_complete:
            self._rest()
        elif not self.transport.is_closing():
            self._begun = True
            if self._timer is None:
                self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody waits any more."""
        self._rest()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self._late)

    def _rest(self) -> None:
        self._begun = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            if self._begun:
                self.transport.write(LATE)
            self.transport.close()


def within(seconds: float) -> type[Prompt]:
    """Such connections, with so much time for a head."""
    return type("Prompt", (Prompt,), {"seconds": seconds})
