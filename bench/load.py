"""Requests at a fixed rate over connections that stay open: what is late is still sent, and counts."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

LISTEN = b"GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent, and which answers are right."""

    name: str
    method: str
    path: str
    body: bytes = b""
    right: tuple[int, ...] = (200,)

    def encoded(self) -> bytes:
        """The bytes on the wire."""
        kind = b"Content-Type: application/json\r\n" if self.body else b""
        head = f"{self.method} {self.path} HTTP/1.1\r\nHost: localhost\r\n"
        size = f"Content-Length: {len(self.body)}\r\n"
        return (head + size).encode() + kind + b"\r\n" + self.body


@dataclass(slots=True)
class Heard:
    """What came of the requests, by their names. Seconds count from when a request was due."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    accepted: list[str] = field(default_factory=list)

    def note(self, request: Request, status: int, seconds: float, body: bytes) -> None:
        """One answer."""
        self.seconds.setdefault(request.name, []).append(seconds)
        if status not in request.right:
            name = f"{request.name}: {status} {body[:120]!r}"
            self.wrong[name] = self.wrong.get(name, 0) + 1
        elif status == 202:
            self.accepted.append(json.loads(body)["document"]["id"])


class _Line:
    """One connection that is used again, and opened again when it was closed."""

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, sent: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place)
        reader, writer = self._streams
        try:
            writer.write(sent)
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split(b" ", 2)[1])
            length = 0
            for line in head.split(b"\r\n")[1:]:
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            return status, await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError) as error:
            writer.close()
            self._streams = None
            return 0, str(error).encode()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def send(
    place: tuple[str, int], rate: float, seconds: float, make: Callable[[int], Request], lines: int = 32
) -> Heard:
    """Everything that was to be sent in this time was sent and answered, or has failed."""
    heard = Heard()
    due: asyncio.Queue[tuple[float, Request] | None] = asyncio.Queue()

    async def serve() -> None:
        line = _Line(*place)
        while (job := await due.get()) is not None:
            at, request = job
            status, body = await line.ask(request.encoded())
            heard.note(request, status, time.monotonic() - at, body)
        line.close()

    servers = [asyncio.create_task(serve()) for _ in range(lines)]
    began = time.monotonic()
    for number in range(int(rate * seconds)):
        at = began + number / rate
        if (wait := at - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        due.put_nowait((at, make(number)))
    for _ in servers:
        due.put_nowait(None)
    await asyncio.gather(*servers)
    return heard


async def listen(place: tuple[str, int], number: int, seconds: float) -> int:
    """So many listeners were connected for so long; answers how many were let in."""

    async def one() -> bool:
        reader, writer = await asyncio.open_connection(*place)
        writer.write(LISTEN)
        head = await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(seconds)
        writer.close()
        return b" 200 " in head.split(b"\r\n", 1)[0]

    let_in: Sequence[bool] = await asyncio.gather(*(one() for _ in range(number)))
    return sum(let_in)
