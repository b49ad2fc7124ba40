"""A TCP proxy that can be cut, turned into a black hole, and healed.

Cut: connections end with RST or FIN. Black hole: connections stay, bytes vanish, nothing is said; new
connections are taken and hear nothing. Healed: what was in the black hole is reset, for its stream is
broken for good; new connections pass.

Not covered: the kernel still acknowledges what the black hole swallows, so a client's TCP keepalive does not
notice it; `heal` is the moment at which it would have.
"""

import asyncio
import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar

from holdfast.chaos.expectations import expect

T = TypeVar("T")
PATIENCE = 10.0
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 seconds: close() sends RST
_BEARER = re.compile(rb"authorization: bearer (\S+)", re.IGNORECASE)


class Proxy:
    """Listens on a port of its own and passes on to `target`. `bearers` tells who spoke from which port."""

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.bearers: dict[int, str] = {}
        self.swallowed = 0
        self.passes = True
        self.pairs: set[_Pair] = set()
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Near(_Pair(self, self._loop)), "127.0.0.1", 0)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()

    def cut(self, *, reset: bool = True) -> int:
        """Every connection is over, by RST or by FIN; answers how many were. New ones pass."""
        return self._in_loop(lambda: _end(self.pairs, reset=reset))

    def black_hole(self) -> None:
        """From now on bytes vanish, in both directions, on all connections."""

        def begin() -> None:
            self.passes = False
            for pair in self.pairs:
                pair.holed = True

        self._in_loop(begin)

    def heal(self) -> None:
        """What was in the black hole is reset; new connections pass."""

        def end() -> int:
            self.passes = True
            return _end({pair for pair in self.pairs if pair.holed}, reset=True)

        self._in_loop(end)

    def close(self) -> None:
        """Nothing is left of it."""

        def end() -> None:
            self._server.close()
            _end(self.pairs, reset=True)
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            # Two turns later the transports have been closed.
            self._loop.call_later(0.05, self._loop.stop)

        self._in_loop(end)
        self._thread.join(PATIENCE)
        self._loop.close()

    def _in_loop(self, change: Callable[[], T]) -> T:
        answers: list[T] = []
        done = threading.Event()

        def carry_out() -> None:
            answers.append(change())
            done.set()

        self._loop.call_soon_threadsafe(carry_out)
        expect(done.wait(PATIENCE), "the proxy hangs")
        return answers[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Pair:
    """A connection: the client's side, the server's, and what waits until both are there."""

    def __init__(self, proxy: Proxy, loop: asyncio.AbstractEventLoop) -> None:
        self.proxy, self.loop = proxy, loop
        self.near: Any = None
        self.far: Any = None
        self.waiting: list[bytes] = []
        self.holed = not proxy.passes
        self.reaching: asyncio.Task[Any] | None = None

    async def reach(self) -> None:
        try:
            await self.loop.create_connection(lambda: _Far(self), *self.proxy.target)
        except OSError:
            self.end(reset=True)

    def heard(self, data: bytes, other: Any) -> None:
        if self.holed:
            self.proxy.swallowed += len(data)
        elif other is None:
            self.waiting.append(data)
        else:
            other.write(data)

    def end(self, *, reset: bool) -> None:
        self.proxy.pairs.discard(self)
        for transport in (self.near, self.far):
            if transport is None:
                continue
            if reset:
                with contextlib.suppress(OSError):  # closed by the other side already
                    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                transport.abort()
            else:
                transport.close()


class _Near(asyncio.Protocol):
    def __init__(self, pair: _Pair) -> None:
        self._pair = pair

    def connection_made(self, transport: Any) -> None:
        pair = self._pair
        pair.near = transport
        pair.proxy.pairs.add(pair)
        if not pair.holed:
            pair.reaching = pair.loop.create_task(pair.reach())

    def data_received(self, data: bytes) -> None:
        pair = self._pair
        pair.heard(data, pair.far)
        if pair.far is not None and (bearer := _BEARER.search(data)):
            pair.proxy.bearers[pair.far.get_extra_info("sockname")[1]] = bearer[1].decode()

    def connection_lost(self, _: Exception | None) -> None:
        if not self._pair.holed:
            self._pair.end(reset=False)


class _Far(asyncio.Protocol):
    def __init__(self, pair: _Pair) -> None:
        self._pair = pair

    def connection_made(self, transport: Any) -> None:
        pair = self._pair
        pair.far = transport
        if pair.near.is_closing():
            pair.end(reset=True)
            return
        for data in pair.waiting:
            if bearer := _BEARER.search(data):
                pair.proxy.bearers[transport.get_extra_info("sockname")[1]] = bearer[1].decode()
            transport.write(data)
        pair.waiting.clear()

    def data_received(self, data: bytes) -> None:
        self._pair.heard(data, self._pair.near)

    def connection_lost(self, _: Exception | None) -> None:
        if not self._pair.holed:
            self._pair.end(reset=False)


def _end(pairs: set[_Pair], *, reset: bool) -> int:
    ended = list(pairs)
    for pair in ended:
        pair.end(reset=reset)
    return len(ended)
