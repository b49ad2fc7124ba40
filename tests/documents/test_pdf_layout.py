"""PDF pages are read as people read them: column by column, and only what is on the visible page."""

import json

import pytest

from tests.documents import pdf_layouts, pdfs, plain_pdfs, scores
from tests.documents.prose import Prose

ARABIC_LETTERS = "ابتثجحخدذرزسشصضطظعغفقكلمنهوي"


def known_words(seed, number, letters="abcdefghijklmnopqrst"):
    """Words of which hardly one occurs twice, so that an order can be told."""
    draw = Prose(seed).random
    return ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(number)]


@pytest.mark.parametrize("name", plain_pdfs.files())
def test_a_plain_page_keeps_its_text_byte_for_byte(parser, keep, name):
    """One column without running heads, footnotes or cropping is read as it always was."""
    recorded = json.loads(plain_pdfs.RECORDED.read_text())
    assert plain_pdfs.read(parser, keep(plain_pdfs.files()[name])) == recorded[name]


@pytest.mark.parametrize("across", [True, False], ids=["drawn across", "drawn down"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_columns_are_read_one_after_the_other(read, number, across):
    """However they were drawn: by line across, or column by column."""
    words = known_words(number, 400)
    lines = pdf_layouts.columns(" ".join(words), number, across=across)
    _outline, pages = read(pdfs.make([lines, lines]))
    assert scores.recall(words * 2, scores.words_of(pages)) == 1.0
    assert scores.order(words * 2, scores.words_of(pages)) >= 0.98


@pytest.mark.parametrize("number", [2, 3])
def test_a_title_and_a_note_across_all_columns_stay_above_and_below(read, number):
    """A page is cut where something crosses its columns, and each part is read by itself."""
    above, below, words = known_words(7, 12), known_words(8, 24), known_words(9, 300)
    page = [
        (16, 72, 750, " ".join(above[:6])),
        (10, 90, 728, " ".join(above[6:])),
        *pdf_layouts.columns(" ".join(words[:150]), number, top=700),
        (9, 80, 440, " ".join(below[:14])),
        *pdf_layouts.columns(" ".join(words[150:]), number, top=420),
        (9, 80, 160, " ".join(below[14:])),
    ]
    expected = [*above, *words[:150], *below[:14], *words[150:], *below[14:]]
    _outline, pages = read(pdfs.make([page]))
    assert scores.order(expected, scores.words_of(pages)) >= 0.95


def test_columns_in_arabic_are_read_from_the_right(read):
    """The first column of a script from right to left is the right one."""
    words = known_words(11, 200, ARABIC_LETTERS)
    lines = pdf_layouts.columns(" ".join(words), 2, right_to_left=True)
    backwards = [(size, x, y, text[::-1]) for size, x, y, text in lines]
    _outline, pages = read(pdfs.make([backwards]))
    assert scores.order(words, scores.words_of(pages)) >= 0.9


def test_columns_in_chinese_are_read_one_after_the_other(read):
    """Scripts without spaces have columns too; their order is told by letters."""
    draw = Prose(12).random
    text = "".join(chr(draw.randint(0x4E00, 0x9000)) for _ in range(600))
    lines = [
        (9, 72 + 240 * (at // 20), 700 - 12 * (at % 20), text[15 * at : 15 * at + 15]) for at in range(40)
    ]
    _outline, pages = read(pdfs.make([sorted(lines, key=lambda line: -line[2])]))
    assert scores.order(text, "".join(scores.words_of(pages))) >= 0.9


def test_a_sentence_cut_by_the_end_of_a_column_is_one_paragraph(read):
    """A word that the column's end hyphenated is whole again."""
    left = [(10, 72, 700 - 12 * n, f"words number {n} of the left column") for n in range(8)]
    right = [(10, 320, 700 - 12 * n, f"words number {n} of the right side") for n in range(8)]
    left[-1] = (10, 72, 616, "the left column ends in a docu-")
    right[0] = (10, 320, 700, "ment and goes on to the right")
    across = [line for pair in zip(left, right, strict=True) for line in pair]
    blocks = read(pdfs.make([across]))[1][0].blocks
    assert [block.text.count("document and goes on") for block in blocks] == [1]


@pytest.mark.parametrize("size", [(595, 842), (1190, 842)], ids=["A4", "A3 across"])
def test_a_page_whose_size_is_inherited_is_read_whole(read, size):
    """XeTeX writes the size of its pages once, for all of them; nothing on them lies outside."""
    words = known_words(14, 300)
    page = [
        (10, 40 + column * (size[0] - 80) / 2, size[1] - 30 - 14 * row, " ".join(words[at : at + 3]))
        for at in range(0, 300, 3)
        for column, row in [divmod(at // 3, 50)]
    ]
    _outline, pages = read(pdfs.make([page], inherited=size))
    assert scores.recall(words, scores.words_of(pages)) == 1.0
    assert scores.order(words, scores.words_of(pages)) >= 0.98


def test_text_outside_the_visible_page_is_not_read(read):
    """A print-proof line beside the CropBox is for the printer; the text inside stays as it is."""
    texts = Prose(13).paragraphs(3)
    proof = (8, 72, 780, "PROOF 17 cyan magenta yellow")
    whole = read(pdfs.make([pdf_layouts.paragraphs(texts)]))[1]
    cropped = pdfs.Sheet([proof, *pdf_layouts.paragraphs(texts)], crop=(36, 36, 576, 756))
    assert read(pdfs.make([cropped]))[1] == whole
