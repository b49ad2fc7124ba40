"""PDF pages made to be slow are read in bounded time: beyond a cap, in PDFium's own order."""

import time

import pytest

from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import Format, ParseLimits, UnitRange
from tests.documents import pdfs

HEAVY = {
    "200,000 characters": pdfs.Sheet([(1, 10, 790 - 0.4 * at, "abcd " * 20) for at in range(2000)]),
    "40,000 characters in columns": pdfs.Sheet(
        [(2, 20 + 200 * (at % 3), 780 - at // 3, "three words at least here") for at in range(1500)]
    ),
    "one character on each line": pdfs.Sheet(
        [(4, 10 + at % 70 * 8, 780 - at // 70 * 5, "x") for at in range(9000)]
    ),
    "50,000 paths": pdfs.Sheet(
        [(10, 72, 700, "A word")], tuple((at % 600, 0, at % 600, 700 + at % 80) for at in range(50_000))
    ),
    "a grid of 380 lines": pdfs.Sheet(
        [(3, 20 + at % 38 * 15, 780 - at // 38 * 2, "cell") for at in range(9000)],
        (
            *((10, 20 + 2 * at, 600, 20 + 2 * at) for at in range(340)),
            *((10 + 15 * at, 20, 10 + 15 * at, 700) for at in range(40)),
        ),
    ),
}


@pytest.mark.parametrize("name", HEAVY)
def test_a_heavy_page_is_read_in_seconds(keep, name):
    """Characters, segments, lines and cells are counted before anything is compared with anything."""
    path = keep(pdfs.make([HEAVY[name]]))
    parser = Parser(ParseLimits(seconds=60, memory=512 * 1024 * 1024))
    started = time.monotonic()
    pages = parser.read(path, Format.PDF, UnitRange(1, 1))
    assert pages[0].blocks
    assert time.monotonic() - started < 30  # comparing all with all would take minutes
    parser.close()
