"""The size of a ZIP's directory, measured before it is loaded.

`zipfile` loads the whole directory when it opens an archive, half a kilobyte for each member: a file of 70 MB
with 1.5 million empty members takes 0.9 GB. The end record, the last bytes of the archive, says how large the
directory is, and that is verified: members are counted by their signatures without being stored.
"""

import os
import struct
import zipfile
from dataclasses import dataclass
from typing import IO

_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE = b"PK\x05\x06"
_LOCATOR = struct.Struct("<4sLQL")
_LOCATOR_SIGNATURE = b"PK\x06\x07"
_END_64 = struct.Struct("<4sQ2H2L4Q")
_END_64_SIGNATURE = b"PK\x06\x06"
_MEMBER_SIGNATURE = b"PK\x01\x02"
_LONGEST_COMMENT = 65_535
_STEP = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Directory:
    """The number of members of an archive, counted or declared, and the bytes that list them."""

    members: int
    size: int


def measure(file: IO[bytes], most_size: int) -> Directory:
    """The size of the directory; members of one larger than `most_size` are not counted.

    Raises BadZipFile for a file without an end record. If records contradict each other the largest number
    counts, because a reader may believe any of them.
    """
    length = file.seek(0, os.SEEK_END)
    start, end = _end_record(file, length)
    records = [(end[4], end[5], start), *_zip64_records(file, start)]
    members = max(record[0] for record in records)
    size = max(record[1] for record in records)
    if size <= most_size:
        members = max(members, *(_count(file, at - listed, listed) for _members, listed, at in records))
    file.seek(0)
    return Directory(members, size)


def _end_record(file: IO[bytes], length: int) -> tuple[int, tuple[int, ...]]:
    """Position and contents of the end record, found as `zipfile` finds it."""
    first = max(0, length - _END.size - _LONGEST_COMMENT)
    tail = _read(file, first, length - first)
    at = len(tail) - _END.size
    if at < 0 or not (tail.startswith(_END_SIGNATURE, at) and tail.endswith(b"\0\0")):
        at = tail.rfind(_END_SIGNATURE)
    if at < 0 or len(tail) - at < _END.size:
        raise zipfile.BadZipFile("it has no directory")
    return first + at, _END.unpack_from(tail, at)


def _zip64_records(file: IO[bytes], end: int) -> list[tuple[int, int, int]]:
    """Members, size and position of each additional record of a large archive."""
    position = end - _LOCATOR.size
    raw = _read(file, position, _LOCATOR.size)
    if len(raw) < _LOCATOR.size or not raw.startswith(_LOCATOR_SIGNATURE):
        return []
    records = []
    for at in {position - _END_64.size, _LOCATOR.unpack(raw)[2]}:
        record = _read(file, at, _END_64.size)
        if len(record) == _END_64.size and record.startswith(_END_64_SIGNATURE):
            fields = _END_64.unpack(record)
            records.append((fields[7], fields[8], at))
    return records


def _count(file: IO[bytes], start: int, size: int) -> int:
    """The number of member signatures in this part of a file."""
    count, tail = 0, b""
    while size > 0 and (part := _read(file, max(0, start), min(_STEP, size))):
        start, size = max(0, start) + len(part), size - len(part)
        part = tail + part
        count += part.count(_MEMBER_SIGNATURE)
        tail = part[-(len(_MEMBER_SIGNATURE) - 1) :]
    return count


def _read(file: IO[bytes], at: int, size: int) -> bytes:
    if at < 0 or at > 1 << 62:
        return b""
    file.seek(at)
    return file.read(size)
