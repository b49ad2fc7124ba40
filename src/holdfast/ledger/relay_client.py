"""Talking to the relay of this host over its Unix socket.

A relay has a socket of its own, named after its id, in a folder that only its user may enter. Its successor
has another one, so that both can be reached while the older one drains. A connection carries one order at a
time and is kept for the next one; a forked child opens its own.
"""

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.clock import boot_time
from holdfast.ledger import relay_talk
from holdfast.ledger.relay_talk import NotCarried, Reply, Unheard

SUFFIX = ".sock"
# The longest path that the kernel takes for a socket.
MOST_PATH = 107
# After a look that showed no relay, the folder is not looked at again for so many seconds.
LOOK_EVERY = 0.5
MOST_IDLE = 16
_CREDENTIALS = struct.Struct("3i")


class TalkError(Exception):
    """The other side hung up, is not who it should be, or does not speak the protocol."""


def peer_user(connection: socket.socket) -> int:
    """The user of the process at the other end."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _pid, user, _group = _CREDENTIALS.unpack(raw)
    return int(user)


def is_trusted(connection: socket.socket) -> bool:
    """True if the process at the other end belongs to this user, or to root."""
    return peer_user(connection) in {os.geteuid(), 0}


class MessageLines:
    """Messages over a socket, one a line."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._buffer = bytearray()

    def say(self, text: bytes) -> None:
        """Send a message; TalkError if the other side is gone."""
        try:
            self.socket.sendall(text)
        except OSError as error:
            raise TalkError(str(error)) from error

    def hear(self, timeout: float | None) -> dict[str, Any] | None:
        """The next message; None if none came in time. TalkError if the other side is gone or rambles."""
        until = None if timeout is None else boot_time() + timeout
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > relay_talk.MAX_LINE:
                raise TalkError("a line without an end")
            left = None if until is None else until - boot_time()
            if left is not None and left <= 0:
                return None
            try:
                self.socket.settimeout(left)
                piece = self.socket.recv(65_536)
            except TimeoutError:
                return None
            except OSError as error:
                raise TalkError(str(error)) from error
            if not piece:
                raise TalkError("the other side has hung up")
            self._buffer += piece
        text = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            return relay_talk.parsed(text)
        except (ValueError, RecursionError) as error:
            raise TalkError("not a message") from error

    def has_news(self) -> bool:
        """True if the other side has said something or hung up."""
        if self._buffer:
            return True
        try:
            self.socket.settimeout(0.0)
            self.socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, TimeoutError):
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self.socket.close()


@dataclass(frozen=True, slots=True)
class _Connection:
    lines: MessageLines
    path: Path


class _Silence:
    """What a worker does while it hears nothing of its order."""

    def __init__(self, check: Callable[[], None], is_over: Callable[[], bool]) -> None:
        self._check = check
        self._is_over = is_over
        self._look_at = boot_time() + relay_talk.LOOK_EVERY

    def has_ended(self, *, is_marked: bool) -> bool:
        """True if the ledger says that the marked order has ended. Raises if the worker must stop waiting."""
        self._check()
        if not is_marked or boot_time() < self._look_at:
            return False
        self._look_at = boot_time() + relay_talk.LOOK_EVERY
        return self._is_over()


class RelayClient:
    """The relays of one folder, as `relay_talk.Relays`. Safe to share between threads."""

    def __init__(self, folder: Path, schema: str) -> None:
        self._folder = folder
        self._schema = schema
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._pid = os.getpid()
        self._nobody_until = 0.0
        self._trouble = ""

    def is_there(self) -> bool:
        """True if a relay accepts connections now."""
        connection = self._connected()
        if connection is None:
            return False
        self._give_back(connection)
        return True

    def carry(
        self,
        order_id: str,
        holder: str,
        *,
        tries: int,
        check: Callable[[], None],
        is_over: Callable[[], bool] = lambda: False,
        hear: Callable[[str], None] | None = None,
    ) -> Reply:
        """See `relay_talk.Relays.carry`."""
        message = relay_talk.line(
            "carry", order=order_id, holder=holder, tries=tries, listens=hear is not None
        )
        refusal: Reply = NotCarried(relay_talk.UNREACHABLE, self._trouble)
        draining: set[Path] = set()
        while (connection := self._connected(draining)) is not None:
            reply: Reply = Unheard()
            try:
                reply = self._talk(connection, message, check, is_over, hear)
            except TalkError:
                return NotCarried(relay_talk.UNREACHABLE, "the relay has hung up")
            finally:
                # Hanging up drops an order that is not marked, also when `check` has raised.
                if isinstance(reply, Unheard) or _is(reply, relay_talk.LATE, relay_talk.DRAINING):
                    connection.lines.close()
                else:
                    self._give_back(connection)
            if not _is(reply, relay_talk.DRAINING):
                return reply
            draining.add(connection.path)
            refusal = reply
        return refusal

    def _talk(
        self,
        connection: _Connection,
        message: bytes,
        check: Callable[[], None],
        is_over: Callable[[], bool],
        hear: Callable[[str], None] | None,
    ) -> Reply:
        lines = connection.lines
        lines.say(message)
        until, is_marked = boot_time() + relay_talk.TAKEN_WITHIN, False
        silence = _Silence(check, is_over)
        while True:
            left = until - boot_time()
            if not is_marked and left <= 0:
                return NotCarried(relay_talk.LATE)
            try:
                heard = lines.hear(relay_talk.CHECK_EVERY if is_marked else min(relay_talk.CHECK_EVERY, left))
                reply = None if heard is None else relay_talk.reply_of(heard)
            except (TalkError, ValueError) as error:
                if is_marked:
                    return Unheard()
                raise TalkError(str(error)) from error
            if reply is not None:
                return reply
            match heard:
                case None if silence.has_ended(is_marked=is_marked):
                    return Unheard()
                case {"say": "taken"}:
                    until = boot_time() + relay_talk.MARKED_WITHIN
                case {"say": "marked"}:
                    is_marked = True
                case {"say": "piece", "text": str(piece)} if hear is not None:
                    hear(piece)

    def _connected(self, without: set[Path] | frozenset[Path] = frozenset()) -> _Connection | None:
        """A connection to a relay, the newest first; None if there is none."""
        with self._lock:
            if self._pid != os.getpid():
                self._idle, self._pid = [], os.getpid()  # the parent's sockets are the parent's
            while self._idle:
                connection = self._idle.pop()
                if connection.path not in without and not connection.lines.has_news():
                    return connection
                connection.lines.close()
        if not without and time.monotonic() < self._nobody_until:
            return None
        for path in self._sockets():
            if path not in without and (opened := self._opened(path)) is not None:
                return opened
        if not without:
            self._nobody_until = time.monotonic() + LOOK_EVERY
        return None

    def _sockets(self) -> list[Path]:
        try:
            with os.scandir(self._folder) as entries:
                named = [(e.stat().st_mtime, e.path) for e in entries if e.name.endswith(SUFFIX)]
        except OSError:
            return []
        return [Path(path) for _, path in sorted(named, reverse=True)]

    def _opened(self, path: Path) -> _Connection | None:
        """A connection to the relay at `path` that speaks the same protocol; None if it does not."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        lines = MessageLines(sock)
        try:
            sock.settimeout(relay_talk.CONNECTED_WITHIN)
            sock.connect(str(path))
            if not is_trusted(sock):
                raise TalkError(f"{path} belongs to another user")
            hello = lines.hear(relay_talk.TAKEN_WITHIN)
            if hello is None or hello.get("say") != "hello":
                raise TalkError(f"the relay at {path} did not say hello")
            if (hello.get("protocol"), hello.get("schema")) != (relay_talk.PROTOCOL, self._schema):
                raise TalkError(f"the relay at {path} is of another release; restart it")
        except (OSError, TalkError) as error:
            self._trouble = str(error)
            lines.close()
            return None
        return _Connection(lines, path)

    def _give_back(self, connection: _Connection) -> None:
        with self._lock:
            if self._pid == os.getpid() and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.lines.close()

    def close(self) -> None:
        """Every idle connection is closed."""
        with self._lock:
            for connection in self._idle:
                connection.lines.close()
            self._idle.clear()


def _is(reply: Reply, *reasons: str) -> bool:
    return isinstance(reply, NotCarried) and reply.reason in reasons
