"""Tables in PDFs are read as rows, each value next to the name of its column."""

import pytest

from holdfast.documents.parse.records import Role
from tests.documents import pdf_layouts, pdfs, scores
from tests.documents.prose import Prose

LEFTS = [72, 172, 272, 372]
CITIES = [
    ["City", "Country", "People", "Area"],
    ["Oslo", "Norway", "709,037", "454"],
    ["Bergen", "Norway", "291,940", "465"],
    ["Rome", "Italy", "2,748,109", "1,285"],
    ["Sao Paulo", "Brazil", "11,451,245", "1,521"],
    ["Lagos", "Nigeria", "", "1,171"],
]


def rows_of(pages):
    return [block.text for page in pages for block in page.blocks if block.role is Role.ROW]


def random_table(seed, columns):
    draw = Prose(seed).random

    def word():
        return draw.choice("BCDFGKLM") + draw.choice("aeiou") + draw.choice(["n", "ra", "lto", "rning"])

    names = [f"{word()} {letter}" for letter in "abcdefg"[:columns]]
    body = [
        [f"{word()} of {word()}", word(), *(f"{draw.randint(1, 99999):,}" for _ in range(columns - 2))]
        for _ in range(draw.randint(3, 15))
    ]
    return [names, *body]


@pytest.mark.parametrize("ruled", [True, False], ids=["ruled", "unruled"])
@pytest.mark.parametrize("right", [(), (2, 3)], ids=["left", "right"])
def test_cells_stand_under_their_header(read, ruled, right):
    """With or without lines, numbers to the left or to the right, and with an empty cell."""
    sheet = pdf_layouts.table(CITIES, LEFTS, ruled=ruled, right=right)
    _outline, pages = read(pdfs.make([sheet]))
    assert scores.under_header(CITIES, rows_of(pages)) == 1.0
    assert rows_of(pages)[0] == "City: Oslo; Country: Norway; People: 709,037; Area: 454"


def test_many_tables_of_all_sizes_are_read_under_their_headers(read):
    """Of all cells of forty tables, ruled and not, at least 0.95 stand next to their column's name."""
    shares = []
    for seed in range(40):
        rows = random_table(seed, 3 + seed % 3)
        lefts = [60 + 100 * column for column in range(len(rows[0]))]
        sheet = pdf_layouts.table(rows, lefts, ruled=seed % 2 == 0, right=range(2, len(lefts)), leading=14)
        shares.append(scores.under_header(rows, rows_of(read(pdfs.make([sheet]))[1])))
    assert sum(shares) / len(shares) >= 0.95


@pytest.mark.parametrize("ruled", [True, False], ids=["ruled", "unruled"])
def test_text_above_and_below_a_table_stays_above_and_below(read, ruled):
    """The rows stand where the table is, and prose around it is as it was."""
    above, below = Prose(1).paragraph(), Prose(2).paragraph()
    sheet = pdf_layouts.table(CITIES, LEFTS, ruled=ruled, top=560)
    lines = [
        *pdf_layouts.paragraphs([above], top=720),
        *sheet.lines,
        *pdf_layouts.paragraphs([below], top=430),
    ]
    blocks = read(pdfs.make([pdfs.Sheet(lines, sheet.rules)]))[1][0].blocks
    assert (blocks[0].text, blocks[-1].text) == (above, below)
    assert [block.role for block in blocks[1:-1]] == [Role.ROW] * 5


def test_cells_of_several_lines_are_one_cell(read):
    """Lines between two rules belong to one row, in whatever order they were drawn."""
    sheet = pdf_layouts.table([["Name", "Duty"], ["Ada", ""], ["Bob", ""]], [72, 172], leading=40, width=200)
    lines = [*sheet.lines, (10, 172, 562, "keeps the ledger"), (10, 172, 550, "and the keys")]
    lines += [(10, 172, 522, "carries orders"), (10, 172, 510, "to the harbour")]
    pages = read(pdfs.make([pdfs.Sheet(lines, sheet.rules)]))[1]
    assert rows_of(pages) == [
        "Name: Ada; Duty: keeps the ledger and the keys",
        "Name: Bob; Duty: carries orders to the harbour",
    ]


def test_a_table_with_lines_below_its_header_alone_has_a_row_for_each_line(read):
    """Upright lines and one below the header: what is between them is not one row."""
    sheet = pdf_layouts.table(CITIES[:5], LEFTS)
    level = [rule for rule in sheet.rules if rule[1] == rule[3]]
    rules = (level[0], level[1], level[-1], *(rule for rule in sheet.rules if rule[0] == rule[2]))
    pages = read(pdfs.make([pdfs.Sheet(sheet.lines, rules)]))[1]
    assert scores.under_header(CITIES[:5], rows_of(pages)) == 1.0


def test_years_name_columns_above_numbers(read):
    """A financial table has years in its header, which are numbers only by their looks."""
    rows = [
        ["", "2023", "2024"],
        ["Revenue", "1,200", "1,450"],
        ["Costs", "900", "870"],
        ["Profit", "300", "580"],
    ]
    pages = read(pdfs.make([pdf_layouts.table(rows, LEFTS[:3], ruled=False, right=(1, 2))]))[1]
    assert rows_of(pages)[1] == "Costs; 2023: 900; 2024: 870"


def test_a_title_over_all_columns_is_no_header(read):
    """A cell that spans the table stands alone; the names are below it."""
    sheet = pdf_layouts.table([["", "", ""], *[row[:3] for row in CITIES[:4]]], LEFTS[:3])
    rules = [rule for rule in sheet.rules if rule[0] != rule[2] or rule[0] in {67, 357}]
    top = max(rule[1] for rule in sheet.rules)
    inner = [(x, min(rule[1] for rule in sheet.rules), x, top - 18) for x in (167, 267)]
    lines = [(10, 120, 600, "Cities of the world"), *sheet.lines]
    pages = read(pdfs.make([pdfs.Sheet(lines, (*rules, *inner))]))[1]
    assert rows_of(pages)[:2] == ["Cities of the world", "City: Oslo; Country: Norway; People: 709,037"]


def test_words_with_explanations_and_addresses_are_no_tables(read):
    """Two columns of which one is prose, and a few words beside each other, stay paragraphs."""
    lines = [(10, 72, 700 - 12 * at, word) for at, word in enumerate(["Ada", "12 Some Street", "London"])]
    lines += [(10, 400, 700 - 12 * at, word) for at, word in enumerate(["Bob", "A Road", "Leeds"])]
    lines = sorted(lines, key=lambda line: -line[2])
    assert rows_of(read(pdfs.make([lines]))[1]) == []


def index_lines(seed, left):
    """A column of an index: words, dots or a gap, and pages."""
    draw = Prose(seed).random
    for at in range(40):
        word = "".join(draw.choices("abcdefghij", k=draw.randint(3, 9)))
        pages = f"{10 * seed + at}, {100 * seed + at}"
        if at % 3:
            yield 8, left, 720 - 12 * at, f"{word} {'. ' * draw.randint(1, 6)}{pages}"
        else:
            yield from ((8, left, 720 - 12 * at, word), (8, left + 100, 720 - 12 * at, pages))


def test_an_index_in_three_columns_is_read_column_by_column(read):
    """Its lines stand beside each other as cells do, but each column was drawn by itself."""
    lines = [line for at in range(3) for line in index_lines(at + 1, 60 + 170 * at)]
    _outline, pages = read(pdfs.make([lines]))
    expected = " ".join(line[3] for line in lines).split()
    assert scores.order(expected, scores.words_of(pages)) >= 0.98


def test_a_table_in_one_of_two_columns_is_read_beside_the_text_of_the_other(read):
    """The left column has the table, the right one a list; one was drawn after the other."""
    words = [f"w{number}" for number in range(60)]
    left = pdf_layouts.table(CITIES, [60, 130, 190, 250], ruled=False, top=700, size=8).lines
    right = [(8, 330, 700 - 9 * at, " ".join(words[3 * at : 3 * at + 3])) for at in range(20)]
    _outline, pages = read(pdfs.make([[*left, *right]]))
    assert scores.under_header(CITIES, rows_of(pages)) == 1.0
    assert scores.order(words, scores.words_of(pages)) == 1.0


def test_a_table_of_short_cells_is_one_even_if_it_was_drawn_column_by_column(read):
    """Its cells are a word or a number each; the table above it was drawn row by row."""
    above = pdf_layouts.table(CITIES, LEFTS, ruled=False)
    below = pdf_layouts.table(CITIES, LEFTS, ruled=False, top=300)
    lines = [*above.lines, *sorted(below.lines, key=lambda line: (line[1], -line[2]))]
    rows = rows_of(read(pdfs.make([lines]))[1])
    assert [scores.under_header(CITIES, half) for half in (rows[:5], rows[5:])] == [1.0, 1.0]


def test_the_numbers_of_lines_in_the_margins_make_no_table(read):
    """A manuscript for reviewers has its text between the numbers of its lines."""
    prose = Prose(9)
    texts = [prose.sentence()[: prose.random.randint(50, 80)] for _ in range(40)]
    lines = [
        line
        for at, text in enumerate(texts)
        for line in (
            (9, 30, 720 - 13 * at, str(101 + at)),
            (9, 90, 720 - 13 * at, text),
            (9, 560, 720 - 13 * at, str(141 + at)),
        )
    ]
    _outline, pages = read(pdfs.make([lines]))
    assert rows_of(pages) == []
    assert scores.order(" ".join(texts).split(), scores.words_of(pages)) == 1.0
