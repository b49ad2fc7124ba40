"""A streamed answer between the thread that pays for it and its reader.

The first bytes reach the reader before the provider has finished. A reader that leaves early stops hearing;
the answer is read to its end all the same, so that what was paid for is there for the next one.
"""

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from holdfast.llm_requests.http_messages import CHARGE_HEADER, HOP_BY_HOP, HttpAnswer
from holdfast.llm_requests.wire_provider import Begin, Hear


@dataclass(frozen=True, slots=True)
class _Head:
    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Piece:
    data: bytes


@dataclass(frozen=True, slots=True)
class _End:
    answer: HttpAnswer


@dataclass(frozen=True, slots=True)
class _Failure:
    error: BaseException


Event: TypeAlias = _Head | _Piece | _End | _Failure


class Answering(Protocol):
    """What pays for a request: see `PaidRequests.answer`."""

    def __call__(self, *, begin: Begin, hear: Hear) -> HttpAnswer:
        """The answer, its pieces passed on as they arrive."""


class _Listener:
    """Passes events on until the reader leaves."""

    def __init__(self, put: Callable[[Event], None]) -> None:
        self._put = put
        self._has_left = False

    def leave(self) -> None:
        self._has_left = True

    def pass_on(self, event: Event) -> None:
        if not self._has_left:
            with contextlib.suppress(RuntimeError):  # the loop of the reader is closed
                self._put(event)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.pass_on(_Head(status, headers))

    def hear(self, chunk: bytes) -> None:
        self.pass_on(_Piece(chunk))


def _start(answering: Answering, listener: _Listener) -> None:
    """The answer is paid for in a thread of its own, which outlives a reader that leaves early."""

    def run() -> None:
        try:
            answer = answering(begin=listener.begin, hear=listener.hear)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the reader gets it
            listener.pass_on(_Failure(error))
        else:
            listener.pass_on(_End(answer))

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name="holdfast-stream").start()


def answered(answering: Answering) -> tuple[HttpAnswer, "Pieces | None"]:
    """The answer, as soon as it begins; with its pieces, if they are still to come."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    listener = _Listener(events.put)
    _start(answering, listener)
    first = events.get()
    if isinstance(first, _Head):
        return HttpAnswer(first.status, _headers(first), b""), Pieces(events, listener)
    return _whole(first), None


async def answered_async(answering: Answering) -> tuple[HttpAnswer, "AsyncPieces | None"]:
    """The answer, as soon as it begins; with its pieces, if they are still to come."""
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[Event] = asyncio.Queue()
    listener = _Listener(lambda event: _to(loop, events, event))
    _start(answering, listener)
    first = await events.get()
    if isinstance(first, _Head):
        return HttpAnswer(first.status, _headers(first), b""), AsyncPieces(events, listener)
    return _whole(first), None


def _to(loop: asyncio.AbstractEventLoop, events: "asyncio.Queue[Event]", event: Event) -> None:
    loop.call_soon_threadsafe(events.put_nowait, event)


def _headers(head: _Head) -> dict[str, str]:
    passed = {name: value for name, value in head.headers.items() if name not in HOP_BY_HOP}
    return {**passed, CHARGE_HEADER: "paid"}


def _whole(event: Event) -> HttpAnswer:
    """The answer of an event that is the only one."""
    if isinstance(event, _Failure):
        raise event.error
    if isinstance(event, _End):
        return event.answer
    raise AssertionError(f"a stream does not begin with {event!r}")


def _piece(event: Event) -> bytes | None:
    """The bytes of an event; None for the last one."""
    if isinstance(event, _Failure):
        raise event.error
    return event.data if isinstance(event, _Piece) else None


class Pieces(Iterator[bytes]):
    """The pieces of an answer, for one reader."""

    def __init__(self, events: "queue.SimpleQueue[Event]", listener: _Listener) -> None:
        self._events = events
        self._listener = listener
        self._is_over = False

    def __next__(self) -> bytes:
        if self._is_over:
            raise StopIteration
        piece = _piece(self._events.get())
        if piece is None:
            self._is_over = True
            raise StopIteration
        return piece

    def close(self) -> None:
        """The reader leaves."""
        self._listener.leave()


class AsyncPieces(AsyncIterator[bytes]):
    """The pieces of an answer, for one reader in a loop."""

    def __init__(self, events: "asyncio.Queue[Event]", listener: _Listener) -> None:
        self._events = events
        self._listener = listener
        self._is_over = False

    async def __anext__(self) -> bytes:
        if self._is_over:
            raise StopAsyncIteration
        piece = _piece(await self._events.get())
        if piece is None:
            self._is_over = True
            raise StopAsyncIteration
        return piece

    def close(self) -> None:
        """The reader leaves."""
        self._listener.leave()
