"""A document is cut into slices, and the slices together are the document."""

import pytest

from holdfast.documents.parse import records
from holdfast.documents.parse.records import Format, Outline, Page, Role, TextBlock, Unit, UnitRange
from tests.documents import files, pdfs


def sheet(*heights):
    return Outline(Format.XLSX, Unit.ROW, sum(heights), None, heights)


@pytest.mark.parametrize(
    ("outline", "expected"),
    [
        (Outline(Format.PDF, Unit.PAGE, 12), [(1, 12)]),
        (Outline(Format.PDF, Unit.PAGE, 25), [(1, 12), (13, 24), (25, 25)]),
        (Outline(Format.PPTX, Unit.SLIDE, 100), [(1, 100)]),
        (Outline(Format.TEXT, Unit.PART, 1), [(1, 1)]),
        (sheet(3000), [(1, 3000)]),
        (sheet(3001), [(1, 3000), (3001, 3001)]),
        (sheet(1000, 1500, 0, 800), [(1, 2500), (2501, 3300)]),
        (sheet(10, 7000, 20, 30), [(1, 10), (11, 3010), (3011, 6010), (6011, 7010), (7011, 7060)]),
    ],
)
def test_a_document_is_cut_by_its_units(outline, expected):
    """PDFs by twelve pages, sheets by three thousand rows with small ones together, all else whole."""
    assert records.slices(outline, pages=12, rows=3000) == tuple(UnitRange(*pair) for pair in expected)


def test_slices_of_a_pdf_are_its_pages(parser, keep):
    """Every page comes once, under its own number, whichever slice it is read in."""
    path = keep(pdfs.make([f"This is page {number}" for number in range(1, 8)]))
    outline = parser.outline(path)
    pages = [p for part in records.slices(outline, pages=3) for p in parser.read(path, Format.PDF, part)]
    assert [(page.number, page.blocks[0].text) for page in pages] == [
        (number, f"This is page {number}") for number in range(1, 8)
    ]


@pytest.mark.parametrize("kind", [Format.XLSX, Format.CSV])
def test_slices_of_a_sheet_have_every_row_once_with_its_header(parser, keep, kind):
    """100,000 cells in slices, in order and then backwards: the same rows, each with its columns' names."""
    rows = [["id", "name", "kind", "size", "note"]] + [[n, f"n{n}", n % 7, n / 2, "x"] for n in range(20_000)]
    data = (
        files.workbook({"Big": rows})
        if kind is Format.XLSX
        else "\n".join(",".join(map(str, row)) for row in rows).encode()
    )
    path = keep(data)
    outline = parser.outline(path, "a.csv")
    assert (outline.format, outline.units) == (kind, 20_001)
    parts = records.slices(outline, rows=6000)
    forward = [parser.read(path, kind, part) for part in parts]
    backward = [parser.read(path, kind, part) for part in reversed(parts)]
    assert forward == backward[::-1]
    items = [block.text for pages in forward for page in pages for block in page.blocks]
    assert len(items) == 20_000
    assert all(text.startswith(f"id: {number}; name: n{number}; ") for number, text in enumerate(items))


def test_a_slice_may_span_sheets(parser, keep):
    """Small sheets read together are still pages of their own."""
    path = keep(files.workbook({"A": [["x", "y"], [1, 2]], "B": [["z", "w"], [3, 4]]}))
    pages = parser.read(path, Format.XLSX, UnitRange(2, 4))
    assert [(page.label, [block.text for block in page.blocks]) for page in pages] == [
        ("A", ["x: 1; y: 2"]),
        ("B", ["z: 3; w: 4"]),
    ]


def test_a_file_that_was_replaced_is_read_anew(parser, keep):
    """What the child remembers is the file, not its name."""
    for word in ("first", "second"):
        path = keep(f"<html><body><p>{word} version</p></body></html>".encode())
        assert parser.read(path, Format.HTML, UnitRange(1, 1))[0].blocks[0].text == f"{word} version"


PAGES = [Page(1, (TextBlock(Role.HEADING, "T", 1), TextBlock(Role.PARAGRAPH, "text")), "label")]


@pytest.mark.parametrize(
    "other",
    [
        [Page(2, PAGES[0].blocks, "label")],
        [Page(1, PAGES[0].blocks, "other")],
        [Page(1, PAGES[0].blocks[:1], "label")],
        [Page(1, (TextBlock(Role.HEADING, "T", 2), PAGES[0].blocks[1]), "label")],
        [Page(1, (PAGES[0].blocks[0], TextBlock(Role.LIST, "text")), "label")],
        [*PAGES, Page(2, ())],
    ],
    ids=["number", "label", "blocks", "level", "role", "pages"],
)
def test_everything_on_a_page_counts_in_its_digest(other):
    """A slice is taken over from an earlier generation only if nothing about it changed."""
    assert records.digest(other, Format.PDF) != records.digest(PAGES, Format.PDF)


def test_the_parser_counts_in_the_digest():
    """The same pages from another parser are another slice; the same again are the same."""
    assert records.digest(PAGES, Format.HTML) != records.digest(PAGES, Format.PDF)
    assert records.digest(list(PAGES), Format.PDF) == records.digest(PAGES, Format.PDF)


def test_every_format_has_a_parser_version():
    """A format without one could never be told to be parsed anew."""
    assert set(records.PARSER_VERSIONS) == set(Format)
