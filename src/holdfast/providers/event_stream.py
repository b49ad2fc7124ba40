"""Server-sent events, read as they arrive, and the chat completion that a stream of them carries.

A stream is foreign input: a line is at most `MOST_LINE` bytes, each byte is looked at once, and what cannot
be read raises `StreamError`. The pieces that a listener hears while the stream arrives are those that are
recorded, and a later reader gets the same pieces.

A stream that ends without a finish reason or `[DONE]` has broken off: its outcome is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdfast.core.text import plain

MEDIA_TYPE = "text/event-stream"
MOST_LINE = 1 << 20
DONE = "[DONE]"


class StreamError(Exception):
    """What arrived is no stream of a chat completion, or one that says that it failed."""


class EventReader:
    """Splits bytes into the data of events; other fields and comments are skipped."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._size = 0
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The data of the events that are complete with this chunk."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._take(piece)
            line = b"".join(self._line).removesuffix(b"\r")
            self._line, self._size = [], 0
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                data, self._data = b"\n".join(self._data), []
                yield data.decode("utf-8", "replace")
        if rest:
            self._take(rest)

    def _take(self, piece: bytes) -> None:
        self._line.append(piece)
        self._size += len(piece)
        if self._size > MOST_LINE:
            raise StreamError(f"a line of more than {MOST_LINE:,} bytes")


class ChatStream:
    """A streamed chat completion: the pieces of its text, why it ended, and what it used."""

    def __init__(self) -> None:
        self._events = EventReader()
        self.pieces: list[str] = []
        self.finish_reason: str | None = None
        self.usage: dict[str, Any] = {}
        self._is_done = False

    @property
    def text(self) -> str:
        """All of the text so far."""
        return "".join(self.pieces)

    @property
    def is_complete(self) -> bool:
        """True once the server has said that this is all."""
        return self._is_done or self.finish_reason is not None

    def feed(self, chunk: bytes) -> list[str]:
        """The pieces of text that arrived with this chunk; StreamError for what cannot be read."""
        arrived = [piece for data in self._events.feed(chunk) if (piece := self._event(data))]
        self.pieces += arrived
        return arrived

    def _event(self, data: str) -> str:
        if data.strip() == DONE:
            self._is_done = True
            return ""
        try:
            event = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise StreamError("an event that is not JSON") from error
        if not isinstance(event, dict):
            raise StreamError("an event that is not an object")
        if event.get("error"):
            raise StreamError("the server reported an error in the middle of its answer")
        if isinstance(event.get("usage"), dict):
            self.usage = event["usage"]
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]
        delta = choice.get("delta")
        piece = delta.get("content") if isinstance(delta, dict) else None
        return plain(piece) if isinstance(piece, str) else ""


def cut(text: str, lengths: object) -> list[str]:
    """The text in the pieces in which it once arrived; in one if that is not known."""
    if not isinstance(lengths, list) or not all(type(each) is int and each > 0 for each in lengths):
        return [text] if text else []
    pieces, at = [], 0
    for length in lengths:
        pieces.append(text[at : at + length])
        at += length
    return [piece for piece in (*pieces, text[at:]) if piece]
