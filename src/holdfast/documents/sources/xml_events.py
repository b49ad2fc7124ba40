"""Reads the XML of strangers as a stream of events: no tree, no recursion, no entities, a bounded depth.

Time is linear in the bytes and memory bounded whatever they are (`tests/fuzz` measures both). Expat before
2.6 reads a tag that arrives in parts from its beginning again with each part; so a tag, comment or
declaration that is longer than `MOST_TOKEN` is refused. Text has no such bound: it is handed over in parts.
"""

import html.entities
from collections.abc import Iterator
from typing import Protocol
from xml.parsers import expat

from holdfast.documents.sources.source import SourceError

MOST_DEPTH = 200
MOST_TOKEN = 256 * 1024
_STEP = 64 * 1024


class ByteStream(Protocol):
    """What XML is read from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`; none at the end."""


class XmlHandler(Protocol):
    """What is done with the events.

    A name in a namespace is that, a space and the name. The root has the depth 1.
    """

    def start(self, depth: int, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def text(self, text: str) -> None:
        """A part of the text of the innermost element."""

    def end(self, depth: int, name: str) -> None:
        """An element ends."""


def local_name(name: str) -> str:
    """The name without its namespace."""
    return name.rpartition(" ")[2]


class LimitedText:
    """Text that arrives in parts, of which at most so many characters are held."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._parts: list[str] = []
        self.is_cut = False

    def add(self, text: str) -> None:
        """Append what there is room for."""
        part = text[: max(0, self._most - self._size)]
        self.is_cut = self.is_cut or len(part) < len(text)
        if part:
            self._parts.append(part)
            self._size += len(part)

    def __str__(self) -> str:
        return "".join(self._parts)


def read(content: ByteStream, handler: XmlHandler, what: str) -> Iterator[None]:
    """Pass all events to the handler, a few thousand bytes at a time, and yield after each step.

    SourceError `bad_source` if it is not XML, declares entities, or is nested too deeply; `what` names it.
    """
    events = _Events(handler, what)
    try:
        part, is_last = content.read(_STEP).lstrip(), False
        while not is_last:
            following = content.read(_STEP)
            is_last = not following
            events.feed(part, is_last=is_last)
            yield
            part = following
    finally:
        events.close()


class _Events:
    def __init__(self, handler: XmlHandler, what: str) -> None:
        self._handler = handler
        self._what = what
        self._depth = 0
        self._size = 0
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        # Names of HTML (`&nbsp;`) are common in feeds, and are no error for a parser that misses a DTD.
        parser.UseForeignDTD(True)
        parser.SkippedEntityHandler = self._skipped
        parser.EntityDeclHandler = self._declared
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = handler.text

    def feed(self, data: bytes, *, is_last: bool) -> None:
        try:
            self._parser.Parse(data, is_last)
        except (expat.ExpatError, LookupError, ValueError) as error:
            raise self._error(f"is not valid XML ({error})") from error
        self._size += len(data)
        if self._size - self._parser.CurrentByteIndex > MOST_TOKEN:
            raise self._error("has a tag or comment that does not end")

    def close(self) -> None:
        """Drop the parser's references to this object, which would outlive it in a cycle."""
        parser = self._parser
        parser.SkippedEntityHandler = parser.EntityDeclHandler = None
        parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise self._error(f"has elements nested more than {MOST_DEPTH} deep")
        self._handler.start(self._depth, name, attributes)

    def _end(self, name: str) -> None:
        self._handler.end(self._depth, name)
        self._depth -= 1

    def _skipped(self, name: str, _is_parameter: bool) -> None:
        self._handler.text(html.entities.html5.get(f"{name};", ""))

    def _declared(self, name: str, *_about: object) -> None:
        raise self._error(f"declares the entity {name[:40]!r}, which may expand without end")

    def _error(self, problem: str) -> SourceError:
        return SourceError("bad_source", f"{self._what} {problem}")
