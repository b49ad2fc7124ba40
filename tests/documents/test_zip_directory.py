"""The directory of an archive is measured before it is loaded."""

import io
import struct
import tracemalloc
import zipfile

import pytest

from holdfast.core.errors import BadRequestError, WorkError
from holdfast.documents import bundles, zip_directory
from holdfast.documents.parse import archive
from tests.documents import files

MEMBER = struct.Struct("<4s6H3L5H2L")
MANY = 150_000


def crowded(members, *, declared=None, zip64=False):
    """A ZIP of nothing but a directory, which says that it has so many members."""
    entry = MEMBER.pack(b"PK\x01\x02", 20, 20, 0, 0, 0, 33, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0)
    directory = b"".join(entry + b"%06d" % number for number in range(members))
    count = members if declared is None else declared
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    if not zip64:
        few = min(count, 0xFFFF)
        end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, few, few, len(directory), 0, 0)
        return directory + end
    large = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(directory), 0)
    return directory + large + struct.pack("<4sLQL", b"PK\x06\x07", 0, len(directory), 1) + end


def peak(call):
    """The most memory that a call holds at a time, and the error that it ends with."""
    tracemalloc.start()
    try:
        with pytest.raises((WorkError, BadRequestError)) as caught:
            call()
        return tracemalloc.get_traced_memory()[1], caught.value.code
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("declared", [None, 3])
def test_a_document_of_a_million_members_is_refused_unread(keep, zip64, declared):
    """Neither its true number of members nor a false one makes this process load them."""
    path = keep(crowded(MANY, declared=declared, zip64=zip64))
    memory, code = peak(lambda: archive.names(path))
    assert (memory < 16 * 1024 * 1024, code) == (True, "archive_bomb")


@pytest.mark.parametrize("declared", [None, 3])
def test_a_bundle_of_a_million_members_is_refused_unread(declared):
    """The API opens bundles itself, so that it is the API whose memory would be taken."""
    data = io.BytesIO(crowded(MANY, declared=declared, zip64=True))
    memory, code = peak(lambda: bundles.opened(data, 1 << 30))
    assert (memory < 16 * 1024 * 1024, code) == (True, "bad_bundle")


@pytest.mark.parametrize("comment", [b"", b"PK\x05\x06 is how an end record begins", b"x" * 65_535])
def test_an_archive_is_measured_as_it_is(comment):
    """With a comment or without, the members are those that `zipfile` finds."""
    out = io.BytesIO(files.word())
    with zipfile.ZipFile(out, "a") as created:
        created.comment = comment
        names = created.namelist()
    if comment.startswith(b"PK"):
        with pytest.raises(zipfile.BadZipFile):
            zipfile.ZipFile(out)
    else:
        assert zip_directory.measure(out, 1 << 20).members == len(names)


def test_a_file_without_an_end_record_is_no_archive():
    """Also one that ends in the middle of it, or is empty."""
    for data in (b"", b"PK", files.word()[:-10]):
        with pytest.raises(zipfile.BadZipFile):
            zip_directory.measure(io.BytesIO(data), 1 << 20)
