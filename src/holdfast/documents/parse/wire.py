"""The protocol between parent and child: a length and JSON, nothing executable.

The child parses hostile files, so its answers are validated and not trusted.
"""

import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from holdfast.core.languages import LANGUAGES
from holdfast.core.text import plain
from holdfast.documents.chunk import ChunkText
from holdfast.documents.parse import properties, records
from holdfast.documents.parse.reader import Cut
from holdfast.documents.parse.records import (
    Format,
    GapReason,
    Outline,
    OutlineEntry,
    Page,
    PageReading,
    Quality,
    RecognisedPage,
    RecognisedWord,
    Role,
    TextBlock,
    Unit,
)

_LENGTH = struct.Struct(">Q")
HEADER = _LENGTH.size
# The document, and what a paid service said about it.
MOST_FILES = 2


def frame(message: dict[str, Any]) -> bytes:
    """The bytes of a message: eight of length, then JSON. Lone surrogates are escaped."""
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    return _LENGTH.pack(len(body)) + body


def length(header: bytes) -> int:
    """The length of the body that follows."""
    return int(_LENGTH.unpack(header)[0])


def send(channel: socket.socket, message: dict[str, Any], files: Sequence[int]) -> None:
    """Send the message, with open files if there are any. Raises OSError."""
    data = frame(message)
    sent = socket.send_fds(channel, [data], list(files)) if files else 0
    channel.sendall(memoryview(data)[sent:])


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message from a socket, without a deadline, and its files; None at the end."""
    header, files, _flags, _address = socket.recv_fds(channel, HEADER, MOST_FILES)
    for spare in files[MOST_FILES:]:
        os.close(spare)
    while 0 < len(header) < HEADER:
        part = channel.recv(HEADER - len(header))
        header = header + part if part else b""
    if not header:
        return None
    body = bytearray(length(header))
    view, at = memoryview(body), 0
    while at < len(body):
        size = channel.recv_into(view[at:])
        if not size:
            return None
        at += size
    return json.loads(bytes(body)), list(files[:MOST_FILES])


def outline_to(outline: Outline) -> dict[str, Any]:
    """An outline as JSON."""
    return asdict(outline)


def outline_from(message: dict[str, Any]) -> Outline:
    """The outline in a message; KeyError, TypeError or ValueError if invalid."""
    title = message["title"]
    return Outline(
        Format(message["format"]),
        Unit(message["unit"]),
        int(message["units"]),
        None if title is None else str(title),
        tuple(int(part) for part in message["parts"]),
        tuple(int(page) for page in message["scans"]),
        int(message["members"]),
        properties.bounded(message["properties"]),
        _entries_from(message["entries"])[: records.MOST_ENTRIES],
    )


def _entries_from(message: Sequence[Mapping[str, Any]]) -> tuple[OutlineEntry, ...]:
    return tuple(
        OutlineEntry(
            min(100, max(1, int(each["level"]))),
            plain(str(each["title"]))[: records.MOST_ENTRY_TITLE],
            max(1, int(each["page"])),
        )
        for each in message
    )


def pages_to(pages: Sequence[Page]) -> list[Any]:
    """Pages as JSON: number, label, a flat list of role, level, text, role, level, text, and the reading."""
    return [
        [
            *(page.number, page.label),
            [value for b in page.blocks for value in (b.role.value, b.level, b.text)],
            *(page.confidence, page.gap, page.picture, page.section),
        ]
        for page in pages
    ]


_ROLES = {role.value: role for role in Role}


def pages_from(message: list[Any]) -> list[Page]:
    """The pages in a message; KeyError, TypeError or ValueError if invalid."""
    pages: list[Page] = []
    for number, label, flat, confidence, gap, picture, section in message:
        blocks = zip(flat[0::3], flat[1::3], flat[2::3], strict=True)
        pages.append(
            Page(
                int(number),
                tuple(TextBlock(_ROLES[role], str(text), int(level)) for role, level, text in blocks),
                None if label is None else str(label),
                *_reading(confidence, gap, picture),
                tuple(str(each) for each in section),
            )
        )
    return pages


def _reading(confidence: Any, gap: Any, picture: Any) -> tuple[int | None, GapReason | None, str | None]:
    return (
        None if confidence is None else min(100, max(0, int(confidence))),
        None if gap is None else GapReason(gap),
        None if picture is None else str(picture)[:64],
    )


def cut_to(cut: Cut) -> list[Any]:
    """A slice cut into chunks, as JSON; headings, which chunks share, are listed once."""
    readings = [[each.page, each.quality, each.confidence, each.gap, each.picture] for each in cut.readings]
    entries = [asdict(each) for each in cut.headings]
    about = cut.language, cut.page_words
    if cut.pieces is None:
        return [cut.digest, cut.pages, cut.exact, cut.skipped, [], None, readings, entries, *about]
    paths: dict[tuple[str, ...], int] = {}
    flat = [
        value
        for piece in cut.pieces
        for value in (piece.text, piece.page, paths.setdefault(piece.headings, len(paths)))
    ]
    return [cut.digest, cut.pages, cut.exact, cut.skipped, list(paths), flat, readings, entries, *about]


def cut_from(message: list[Any]) -> Cut:
    """The chunks in a message; IndexError, TypeError or ValueError if invalid."""
    digest, pages, exact, skipped, paths, flat, read, entries, spoken, words = message
    readings = tuple(
        PageReading(int(page), Quality(quality), *_reading(confidence, gap, picture))
        for page, quality, confidence, gap, picture in read
    )
    seen = _entries_from(entries)[: records.MOST_SLICE_ENTRIES]
    page_words = tuple((int(page), int(number)) for page, number in words)
    about = (readings, seen, language_from(spoken), page_words)
    if flat is None:
        return Cut(str(digest), int(pages), None, bool(exact), int(skipped), *about)
    headings = [tuple(str(text) for text in path) for path in paths]
    pieces = [
        ChunkText(str(text), int(page), headings[int(path)])
        for text, page, path in zip(flat[0::3], flat[1::3], flat[2::3], strict=True)
    ]
    return Cut(str(digest), int(pages), pieces, bool(exact), int(skipped), *about)


def language_from(message: Any) -> str | None:
    """The language in a message; ValueError for one that there is not."""
    if message is not None and message not in LANGUAGES:
        raise ValueError("not a language")
    return None if message is None else str(message)


def recognised_to(page: RecognisedPage) -> dict[str, Any]:
    """A recognised page as JSON, as it is sent and stored."""
    return {
        "confidence": page.confidence,
        "blank": page.blank,
        "blocks": [value for b in page.blocks for value in (b.role.value, b.level, b.text)],
        "words": [value for w in page.words for value in (w.text, w.left, w.top, w.right, w.bottom)],
    }


def recognised_from(message: Mapping[str, Any]) -> RecognisedPage:
    """The recognised page in a message; KeyError, TypeError or ValueError if invalid."""
    flat, words = message["blocks"], message["words"]
    blocks = zip(flat[0::3], flat[1::3], flat[2::3], strict=True)
    boxes = zip(*(words[start::5] for start in range(5)), strict=True)
    return RecognisedPage(
        min(100, max(0, int(message["confidence"]))),
        tuple(TextBlock(_ROLES[role], str(text), int(level)) for role, level, text in blocks),
        tuple(RecognisedWord(str(text), *(int(edge) for edge in edges)) for text, *edges in boxes),
        blank=bool(message["blank"]),
    )
