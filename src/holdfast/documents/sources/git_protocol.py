"""What a Git server says over HTTP, in the protocol that every server speaks: lines with their length.

A line is four hexadecimal digits, its length with them, and its bytes; the length 0 ends a list. The walks
below take time linear in the bytes and hold one line at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from holdfast.documents.sources.source import SourceError
from holdfast.documents.sources.xml_events import ByteStream

MOST_REFS = 1_000_000
_HEX = frozenset(b"0123456789abcdefABCDEF")
_ID = 40
_PACK, _PROGRESS, _ERROR = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Advertisement:
    """What a server offers: the chosen reference, if it exists, and what the server can do."""

    head: str | None
    capabilities: frozenset[str]


def packet(text: str) -> bytes:
    """A line as it is sent."""
    data = text.encode()
    return b"%04x%s" % (len(data) + 4, data)


def request(head: str, capabilities: frozenset[str]) -> bytes:
    """What asks for a pack of one commit and its files, without its history where the server can do that."""
    useful = ("ofs-delta", "side-band-64k", "no-progress")
    words = " ".join([*(word for word in useful if word in capabilities), "agent=holdfast"])
    depth = packet("deepen 1\n") if "shallow" in capabilities else b""
    return packet(f"want {head} {words}\n") + depth + b"0000" + packet("done\n")


def advertisement(content: ByteStream, branch: str, what: str) -> Advertisement:
    """What a server offers, and its reference of a branch or tag; an empty name is the default branch."""
    lines = _lines(content, what)
    if (next(lines, b"") or b"").rstrip(b"\n") != b"# service=git-upload-pack":
        raise _not_git(what)
    names = [f"refs/heads/{branch}", f"refs/tags/{branch}", branch] if branch else ["HEAD"]
    heads: dict[str, str] = {}
    words: bytes = b""
    for number, line in enumerate(line for line in lines if line is not None):
        if number > MOST_REFS:
            raise SourceError("bad_source", f"{what} has more than {MOST_REFS:,} branches and tags")
        reference, separator, following = line.rstrip(b"\n").partition(b"\0")
        words = following if separator else words
        name = reference[_ID + 1 :].decode("utf-8", "replace")
        if name in names and set(reference[:_ID]) <= _HEX:
            heads[name] = reference[:_ID].decode("ascii")
    head = next((heads[name] for name in names if name in heads), None)
    return Advertisement(head, frozenset(words.decode("ascii", "replace").split()))


def unpack(content: ByteStream, into: BinaryIO, what: str) -> None:
    """Write the pack of a response to `into`; SourceError if the server reports one, or ends too soon."""
    is_banded = False
    for line in _lines(content, what, raw_after=b"PACK"):
        if line is None:
            continue
        if line[:4] == b"ERR ":
            raise _refused(line[4:], what)
        if line[:4] == b"PACK":
            into.write(line)
            is_banded = True
        elif line[:1] and line[0] == _PACK:
            into.write(memoryview(line)[1:])
            is_banded = True
        elif line[:1] and line[0] == _ERROR:
            raise _refused(line[1:], what)
        elif line[:1] and line[0] != _PROGRESS and is_banded:
            raise _not_git(what)
    if not is_banded:
        raise SourceError("bad_source", f"{what} sent no files")


def _lines(content: ByteStream, what: str, raw_after: bytes = b"") -> Iterator[bytes | None]:
    """The lines; None for the end of a list. After `raw_after` no lines follow, but the bytes of a pack."""
    while head := _read(content, 4):
        if head == raw_after:
            yield head
            while part := content.read(64 * 1024):
                yield b"\x01" + part
            return
        if len(head) < 4 or not set(head) <= _HEX:
            raise _not_git(what)
        size = int(head, 16)
        if size == 0:
            yield None
            continue
        if size < 4:
            raise _not_git(what)
        line = _read(content, size - 4)
        if len(line) < size - 4:
            raise SourceError("unreachable", f"{what} closed the connection in the middle")
        yield line


def _read(content: ByteStream, size: int) -> bytes:
    data = content.read(size)
    while len(data) < size and (part := content.read(size - len(data))):
        data += part
    return data


def _not_git(what: str) -> SourceError:
    return SourceError("bad_source", f"{what} does not speak Git's protocol; use the URL of `git clone`")


def _refused(message: bytes, what: str) -> SourceError:
    words = " ".join(message.decode("utf-8", "replace").split())[:200]
    return SourceError("bad_source", f"{what} refused to send its files: {words}")
