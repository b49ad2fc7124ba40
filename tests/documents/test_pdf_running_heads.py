"""Running heads, feet and page numbers of a PDF are not read; headings and repeated sentences are."""

import pytest

from holdfast.documents.parse.records import Format, UnitRange
from tests.documents import pdf_layouts, pdfs
from tests.documents.prose import Prose


def texts(pages):
    return [[block.text for block in page.blocks] for page in pages]


def story(pages):
    prose = Prose(3)
    return [prose.paragraphs(3) for _ in range(pages)]


@pytest.mark.parametrize(
    ("head", "foot"),
    [
        ("The Ledger of 2024", ""),
        ("The Ledger, page {page}", "Confidential"),
        ("", "Page {page} of 9"),
        ("{page}  A. Lovelace", "- {page} -"),
    ],
)
def test_what_repeats_at_the_edges_is_not_read(read, head, foot):
    """The same words at the same height, or words whose number counts with the pages."""
    body = story(9)
    plain = read(pdfs.make(pdf_layouts.book(body)))[1]
    assert texts(read(pdfs.make(pdf_layouts.book(body, head=head, foot=foot, first=15)))[1]) == texts(plain)


def test_heads_of_left_and_right_pages_are_both_left_out(read):
    """A book has its title on the left and the chapter on the right; numbers stand outside."""
    body = story(8)
    left = pdf_layouts.book(body, head="{page}  The Book of Ledgers")
    right = pdf_layouts.book(body, head="Chapter 2: Of Calls  {page}")
    pages = [(right, left)[number % 2][number] for number in range(8)]
    assert texts(read(pdfs.make(pages))[1]) == texts(read(pdfs.make(pdf_layouts.book(body)))[1])


def test_roman_numbers_count_too(read):
    """The pages in front of a book are numbered by letters."""
    body, numbers = story(4), ["iii", "iv", "v", "vi"]
    pages = [
        [*page, (8, 300, 40, number)] for page, number in zip(pdf_layouts.book(body), numbers, strict=True)
    ]
    assert texts(read(pdfs.make(pages))[1]) == texts(read(pdfs.make(pdf_layouts.book(body)))[1])


@pytest.mark.parametrize("size", [10, 18])
def test_headings_that_differ_by_a_number_are_read(read, size):
    """`Chapter 1`, `Chapter 3`, `Chapter 7` are not page numbers, and what is set tall is a heading."""
    numbers = [1, 2, 3, 4, 5] if size > 10 else [1, 3, 7, 8, 20]
    pages = [
        [(size, 72, 750, f"Chapter {number}"), *page]
        for number, page in zip(numbers, pdf_layouts.book(story(5)), strict=True)
    ]
    first = [page.blocks[0].text for page in read(pdfs.make(pages))[1]]
    assert first == [f"Chapter {number}" for number in numbers]


def test_a_page_with_nothing_else_keeps_its_line(read):
    """A title on each of three slides is all that they have."""
    assert texts(read(pdfs.make(["Slide 1", "Slide 2", "Slide 3"]))[1]) == [
        ["Slide 1"],
        ["Slide 2"],
        ["Slide 3"],
    ]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_page_reads_the_same_in_every_slice(parser, keep, size):
    """However a document is cut, its pages are compared with the same neighbours."""
    path = keep(pdfs.make(pdf_layouts.book(story(11), head="Head {page}", foot="Foot of {page}")))
    whole = parser.read(path, Format.PDF, UnitRange(1, 11))
    starts = reversed(range(1, 12, size))
    parts = [parser.read(path, Format.PDF, UnitRange(start, min(11, start + size - 1))) for start in starts]
    assert [page for part in reversed(parts) for page in part] == whole
