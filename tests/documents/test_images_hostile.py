"""Images made to hurt: refused by their header, or damaged pages that say so."""

import struct
import zlib

import pytest

from holdfast.core.errors import WorkError
from holdfast.documents.parse.records import GapReason
from tests.documents import scans


def png_of(wide, high):
    """A PNG that claims to be so large and has hardly any data."""

    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", wide, high, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", head)
        + part(b"IDAT", zlib.compress(b"\0" * 999))
        + part(b"IEND", b"")
    )


def tiff_cycle():
    """A TIFF whose second page is its first."""
    data = bytearray(scans.encoded(scans.picture(["one"], dpi=30), "TIFF"))
    (start,) = struct.unpack_from("<I", data, 4)
    (entries,) = struct.unpack_from("<H", data, start)
    struct.pack_into("<I", data, start + 2 + 12 * entries, start)
    return bytes(data)


def test_a_pixel_bomb_is_refused_before_it_is_decoded(failing):
    """Four thousand million pixels in a few bytes."""
    assert failing(png_of(65_000, 65_000)).code == "too_large"


@pytest.mark.parametrize(
    "data",
    [
        scans.encoded(scans.picture(["one"]), "JPEG")[:900],
        b"\x89PNG\r\n\x1a\n" + b"x" * 99,
        b"II*\0" + b"\xff" * 60,
    ],
)
def test_a_damaged_image_is_told(read, data):
    """Truncated or nonsense after the first bytes: a code, or a page that says it is damaged."""
    assert outcome(read, data) in {"broken_file", GapReason.DAMAGED, GapReason.NO_TEXT_LAYER}


def test_a_tiff_that_goes_in_circles_ends(read):
    """Its pages are counted once, or it is refused."""
    assert outcome(read, tiff_cycle()) in {"broken_file", "too_many_pages", GapReason.NO_TEXT_LAYER}


def outcome(read, data):
    """The code of the error, or what the first page says."""
    try:
        return read(data)[1][0].gap
    except WorkError as error:
        return error.code
