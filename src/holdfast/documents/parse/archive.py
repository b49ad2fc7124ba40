"""Archives are measured before they are opened.

The sizes are those that the archive's directory declares. A member that turns out larger is cut off by
`zipfile` at the declared size and fails its checksum; a parser that ignores the directory hits the memory
limit of the child.
"""

import contextlib
import zipfile
import zlib
from collections.abc import Iterator

from holdfast.core.errors import WorkError
from holdfast.documents import zip_directory
from holdfast.documents.parse.records import MIB, ParseLimits
from holdfast.documents.parse.source import Readable

# Real documents reach 1:60 for repetitive sheets; deflate itself ends at 1:1032.
MOST_EXPANSION = 200
SMALL = 16 * MIB
MOST_MEMBERS = 20_000
MOST_DIRECTORY = 8 * MIB


def check(path: Readable, limits: ParseLimits) -> None:
    """Raise WorkError if the archive would expand beyond the limits. Unpacks nothing."""
    with opened(path) as archive:
        members = archive.infolist()
    if any(member.flag_bits & 1 for member in members):
        raise WorkError(
            "the document is encrypted; remove its password and upload it again", code="encrypted"
        )
    expanded = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if expanded > limits.expanded or (
        expanded > SMALL and expanded > MOST_EXPANSION * max(1, min(packed, path.stat().st_size))
    ):
        raise WorkError(
            f"the file would expand from {path.stat().st_size:,} to {expanded:,} bytes in {len(members):,}"
            " members, which exceeds the limit; split it into smaller files",
            code="archive_bomb",
        )


def names(path: Readable) -> frozenset[str]:
    """The names of an archive's members."""
    with opened(path) as archive:
        return frozenset(archive.namelist())


def first_bytes(path: Readable, member: str) -> bytes:
    """The first bytes of a member; empty if there is none of that name."""
    with opened(path) as archive:
        try:
            with archive.open(member) as file:
                return file.read(256)
        except KeyError:
            return b""


def member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """The bytes of a member; `broken_file` if it is missing or damaged, `too_large` beyond the limit."""
    try:
        with archive.open(name) as file:
            data = file.read(limit + 1)
    except (KeyError, zlib.error, RuntimeError) as error:
        raise WorkError(
            f"the file lacks {name[:100]!r} or has it damaged; upload it again", code="broken_file"
        ) from error
    if len(data) > limit:
        raise WorkError(
            f"{name[:100]!r} is larger than the limit of {limit:,} bytes; split it", code="too_large"
        )
    return data


@contextlib.contextmanager
def opened(path: Readable) -> Iterator[zipfile.ZipFile]:
    """The archive, opened after its directory was checked to be small enough."""
    try:
        with path.open("rb") as file:
            directory = zip_directory.measure(file, MOST_DIRECTORY)
            if directory.members > MOST_MEMBERS or directory.size > MOST_DIRECTORY:
                raise WorkError(
                    f"the file has {directory.members:,} members, listed in {directory.size:,} bytes, which"
                    " exceeds the limit; split it into smaller files",
                    code="archive_bomb",
                )
            with zipfile.ZipFile(file) as archive:
                yield archive
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise WorkError(
            f"the file is a damaged archive ({error}); upload it again", code="broken_file"
        ) from error
