"""What parent and child say to each other: frames of a length and JSON. Nothing in them can run.

The child parses hostile files, so its answers are believed no further than their shape.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, BinaryIO

from holdfast.documents.parse.records import Block, Format, Outline, Page, Role, Unit

_LENGTH = struct.Struct(">Q")
HEADER = _LENGTH.size


def frame(message: dict[str, Any]) -> bytes:
    """The bytes of a message: eight of length, then JSON. Lone surrogates travel escaped."""
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    return _LENGTH.pack(len(body)) + body


def length(header: bytes) -> int:
    """The length of the body that follows."""
    return int(_LENGTH.unpack(header)[0])


def receive(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message of a stream that is read without a deadline; None at its end."""
    header = stream.read(HEADER)
    if len(header) < HEADER:
        return None
    message: dict[str, Any] = json.loads(stream.read(length(header)))
    return message


def outline_to(outline: Outline) -> dict[str, Any]:
    """An outline as JSON."""
    return asdict(outline)


def outline_from(message: dict[str, Any]) -> Outline:
    """The outline in a message; KeyError, TypeError or ValueError when it is not one."""
    title = message["title"]
    return Outline(
        Format(message["format"]),
        Unit(message["unit"]),
        int(message["units"]),
        None if title is None else str(title),
        tuple(int(part) for part in message["parts"]),
    )


def pages_to(pages: Sequence[Page]) -> list[Any]:
    """Pages as JSON: number, label, and a flat list of role, level, text, role, level, text."""
    return [
        [page.number, page.label, [value for b in page.blocks for value in (b.role.value, b.level, b.text)]]
        for page in pages
    ]


_ROLES = {role.value: role for role in Role}


def pages_from(message: list[Any]) -> list[Page]:
    """The pages in a message; KeyError, TypeError or ValueError when they are none."""
    found: list[Page] = []
    for number, label, flat in message:
        blocks = zip(flat[0::3], flat[1::3], flat[2::3], strict=True)
        found.append(
            Page(
                int(number),
                tuple(Block(_ROLES[role], str(text), int(level)) for role, level, text in blocks),
                None if label is None else str(label),
            )
        )
    return found
