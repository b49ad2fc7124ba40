"""Files inside files: the members of a ZIP and the attachments of a message, which become documents.

Names are only names: nothing is ever written under one. An archive whose names point outside it was made to
harm somebody, and is refused all the same. Runs in the child.
"""

import io
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from holdfast.core.errors import WorkError
from holdfast.documents.parse import archive, texts
from holdfast.documents.parse.records import Format, ParseLimits
from holdfast.documents.parse.source import Readable

# More files than this are one archive too many for one transaction.
MOST_MEMBERS = 1000
MOST_NAME = 200
_HIDDEN = (".", "__MACOSX")


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside a file: its name, and its size as far as it is known before it is read."""

    name: str
    size: int


class Container:
    """The files inside one file, read forward in steps."""

    def __init__(self, members: Sequence[tuple[Member, Callable[[], IO[bytes]]]]) -> None:
        if len(members) > MOST_MEMBERS:
            raise WorkError(
                f"the file contains {len(members):,} files; the limit is {MOST_MEMBERS:,}; split it",
                code="too_large",
            )
        self._members = members
        self._open: tuple[int, int, IO[bytes]] | None = None

    @property
    def members(self) -> list[Member]:
        """All of them, in order."""
        return [member for member, _open in self._members]

    def read(self, number: int, at: int, size: int) -> bytes:
        """The next bytes of a member from position `at`; fewer than `size` at its end."""
        current = self._open
        if current is None or current[:2] != (number, at):
            stream = self._members[number][1]()
            ahead = at
            while ahead > 0 and (skipped := len(stream.read(min(ahead, 1 << 20)))):
                ahead -= skipped
        else:
            stream = current[2]
        data = stream.read(size)
        self._open = (number, at + len(data), stream)
        return data


def opened(path: Readable, document_format: Format, limits: ParseLimits) -> Container:
    """The files inside a ZIP or a message."""
    if document_format is Format.ZIP:
        archive.check(path, limits)
        return Container(_of_zip(path))
    if document_format is Format.EML:
        from holdfast.documents.parse import mail  # noqa: PLC0415 (loads lexbor)

        message = mail.parsed_eml(texts.content(path, limits.text_bytes))
        return Container([_in_memory(name, read) for name, read in mail.attachments(message)])
    from holdfast.documents.parse import mail  # noqa: PLC0415 (as above)

    return Container([_in_memory(name, read) for name, read in mail.msg_attachments(path)])


def _in_memory(name: str, read: Callable[[], bytes]) -> tuple[Member, Callable[[], IO[bytes]]]:
    return Member(plain_name(name), 0), lambda: io.BytesIO(read())


def _of_zip(path: Readable) -> list[tuple[Member, Callable[[], IO[bytes]]]]:
    book = zipfile.ZipFile(path.open("rb"))
    members = []
    for entry in book.infolist():
        _check_name(entry.orig_filename)
        parts = entry.filename.split("/")
        is_link = stat.S_ISLNK(entry.external_attr >> 16)
        if (
            entry.is_dir()
            or is_link
            or not entry.file_size
            or any(part.startswith(_HIDDEN) for part in parts)
        ):
            continue
        members.append((Member(plain_name(entry.filename), entry.file_size), _opener(book, entry)))
    return members


def _opener(book: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: book.open(entry)


def _check_name(name: str) -> None:
    """Return if the name stays inside the archive: `unsafe_archive` for `..`, absolute ones and the like."""
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or name[:1] in {"/", "\\"} or name[1:2] == ":" or "\0" in name:
        raise WorkError(
            f"the archive has a file named {name[:80]!r}, which points outside it; do not trust it",
            code="unsafe_archive",
        )


def plain_name(name: str) -> str:
    """A name without control characters, shortened from its beginning; never empty."""
    plain = "".join(each for each in name if unicodedata.category(each) not in {"Cc", "Cf", "Cs"})
    return plain.strip()[-MOST_NAME:] or "attachment"


def to_wire(members: Sequence[Member]) -> list[Any]:
    """Members as JSON."""
    return [[member.name, member.size] for member in members]


def from_wire(message: list[Any]) -> list[Member]:
    """The members in a message; TypeError or ValueError if invalid."""
    return [Member(str(name), int(size)) for name, size in message]
