"""Parts of a PDF that are not in its running text: footnotes, and what was filled into a form."""

from holdfast.documents.parse.records import Role
from tests.documents import pdf_layouts, pdfs
from tests.documents.prose import Prose


def test_footnotes_come_after_the_text_of_their_page(read):
    """In columns, a note at the foot of the left one would cut the sentence that goes on at the right."""
    left = [(10, 72, 700 - 12 * n, f"words number {n} of the left column") for n in range(8)]
    right = [(10, 320, 700 - 12 * n, f"words number {n} of the right side") for n in range(8)]
    right[0] = (10, 320, 700, "goes on to the right without a break")
    note = [(7, 72, 590, "1 A note about lighthouses"), (7, 72, 581, "on two lines of its own")]
    across = [line for pair in zip(left, right, strict=True) for line in pair]
    blocks = read(pdfs.make([[*across, *note]]))[1][0].blocks
    assert [block.text for block in blocks[1:]] == ["1 A note about lighthouses on two lines of its own"]
    assert "left column goes on to the right" in blocks[0].text


def test_values_of_a_form_are_read_with_their_names(read):
    """What somebody typed is searchable next to the name of its field; an empty field is nothing."""
    fields = (("Full name", "Ada Lovelace", 72, 500), ("City", "", 72, 480), ("Größe", "1,70 m", 72, 460))
    page = pdfs.Sheet(pdf_layouts.paragraphs([Prose(1).sentence()]), fields=fields)
    blocks = read(pdfs.make([page]))[1][0].blocks
    assert [block.text for block in blocks if block.role is Role.ROW] == [
        "Full name: Ada Lovelace",
        "Größe: 1,70 m",
    ]


def test_a_form_without_any_other_text_can_be_read(read):
    """A page that is a picture with fields on it has the values of the fields."""
    page = pdfs.Sheet([], fields=(("Name", "Grace Hopper", 72, 500),))
    assert [block.text for block in read(pdfs.make([page]))[1][0].blocks] == ["Name: Grace Hopper"]


def test_ligatures_are_letters(read):
    """Somebody who searches for `office` types six letters."""
    assert read(pdfs.make(["The oﬃce of ﬁne ﬂour"]))[1][0].blocks[0].text == "The office of fine flour"
