"""Every format becomes pages of blocks, whatever the file is called."""

import datetime as dt

import pytest

from holdfast.documents.parse.records import Format, Role, TextBlock, Unit
from tests.documents import files, pdfs

PAGE = b"""<!doctype html><html><head><title> The  page </title><style>p {}</style></head><body>
<nav>menu</nav><h1>Head<em>ing</em></h1><p>One<br>two</p>bare <b>bold</b>
<ul><li>first</li><li><p>second</p></li></ul>
<pre>  if x:
    y</pre><table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>
<script>evil()</script><p hidden>unseen</p></body></html>"""


def blocks(pages):
    return [block for page in pages for block in page.blocks]


def texts(pages):
    return [block.text for block in blocks(pages)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (pdfs.make(["Hello"]), Format.PDF),
        (files.word(), Format.DOCX),
        (files.slides(), Format.PPTX),
        (files.workbook({"A": [["x", "y"], [1, 2]]}), Format.XLSX),
        (files.open_workbook([["x", "y"], ["1", "2"]]), Format.ODS),
        (files.old_workbook([["x", "y"], ["words", 2.0]]), Format.XLS),
        (b"a\tb\tc\n1\t2\t3\n4\t5\t6\n", Format.TSV),
        (b"a;b;c\n1;2;3\n4;5;6\n", Format.CSV),
        (PAGE, Format.HTML),
        (b"# Title\n\n- a point\n- another\n", Format.MARKDOWN),
        (b"Just words, one, two, three.\n\nAnd more.", Format.TEXT),
    ],
    ids=lambda value: value.value if isinstance(value, Format) else "",
)
@pytest.mark.parametrize("name", ["", "report.bin", "wrong.pdf", "wrong.docx"])
def test_the_content_tells_the_format(read, data, expected, name):
    """A name that says nothing, or something wrong, changes nothing."""
    outline, pages = read(data, name)
    assert outline.format is expected
    assert blocks(pages)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.md", Format.MARKDOWN), ("a.txt", Format.TEXT), ("a.csv", Format.CSV), ("a.html", Format.TEXT)],
)
def test_the_name_decides_between_formats_of_plain_text(read, name, expected):
    """Words that could be any of them are what the name says, but no HTML without a tag."""
    assert read(b"plain words, nothing else", name)[0].format is expected


def test_a_pdf_keeps_headings_and_paragraphs(read):
    """Tall lines are headings, gaps part paragraphs, and a word broken at the end of a line is made whole."""
    page = [(24, 72, 740, "The Title"), (11, 72, 700, "A broken para-"), (11, 72, 686, "graph goes on")]
    page += [(11, 72, 672, "to its end."), (11, 72, 640, "Another one."), (16, 72, 600, "Part one")]
    outline, pages = read(pdfs.make([page, "Second page"], title="Größe"))
    assert (outline.unit, outline.units, outline.title) == (Unit.PAGE, 2, "Größe")
    assert blocks(pages[:1]) == [
        TextBlock(Role.HEADING, "The Title", 1),
        TextBlock(Role.PARAGRAPH, "A broken paragraph goes on to its end."),
        TextBlock(Role.PARAGRAPH, "Another one."),
        TextBlock(Role.HEADING, "Part one", 2),
    ]
    assert [page.number for page in pages] == [1, 2]


def test_a_pdf_keeps_every_script(read):
    """Chinese lines are joined without a space, Hebrew comes in reading order, no letter is lost."""
    lines = [(11, 72, 700, "中文没有空格"), (11, 72, 686, "第二行。"), (11, 72, 600, files.HEBREW[::-1])]
    _outline, pages = read(pdfs.make([[*lines, (11, 72, 500, "astral \U0001f600 \U00020000")]]))
    assert texts(pages) == ["中文没有空格第二行。", files.HEBREW, "astral \U0001f600 \U00020000"]


def test_a_printed_page_number_is_not_text(read):
    """At the foot of a page only; a page put in before would otherwise change them all."""
    page = [(11, 72, 700, "In 1999 there were"), (11, 72, 686, "42"), (9, 300, 30, "- 7 -")]
    other = [(11, 72, 700, "More words"), (9, 300, 30, "Page 8 of 9")]
    _outline, pages = read(pdfs.make([page, other, [(9, 300, 30, "9")]]))
    assert texts(pages) == ["In 1999 there were 42", "More words", "9"]


def test_a_raised_number_does_not_make_a_paragraph(read):
    """Nor does a large initial make a heading: one character says nothing about its line."""
    note = [(11, 72, 700, "A line that is followed"), (6, 72, 690, "1"), (11, 76, 686, " by one with a note")]
    initial = [(20, 72, 500, "T"), (11, 82, 500, "he words after an initial are as tall as others")]
    body = [(11, 72, 480 - 14 * line, "This is the text of the page, line by line.") for line in range(5)]
    _outline, pages = read(pdfs.make([note, [*note, *initial, *body]]))
    assert [block.role for block in blocks(pages)] == [Role.PARAGRAPH] * 3


def test_a_pdf_with_an_empty_user_password_can_be_read(read):
    """A PDF that only forbids printing opens for everybody, and so for us."""
    assert texts(read(pdfs.make(["hello owner"], password=""))[1]) == ["hello owner"]


def test_a_docx_keeps_headings_lists_tables_and_scripts(read):
    """Headings by style, a part for each page break, a row with the names of its columns."""
    parts = (("Intro", [files.HEBREW, files.CHINESE]), ("More", [files.ARABIC]))
    table = [["Name", "City"], ["Ada", "London"]]
    outline, pages = read(files.word(title="Report", parts=parts, table=table))
    assert (outline.unit, outline.units, outline.title) == (Unit.PART, 2, "Report")
    assert blocks(pages[:1])[0] == TextBlock(Role.HEADING, "Intro", 1)
    assert texts(pages) == [
        "Intro", files.HEBREW, files.CHINESE, "More", files.ARABIC, "Name: Ada; City: London",
    ]  # fmt: skip


def test_a_docx_shows_the_text_as_if_all_changes_were_accepted(read):
    """Inserted text and text in form fields count; deleted text does not."""
    assert texts(read(files.word_with_changes())[1]) == ["Kept inserted", "In a form field"]


def test_slides_bear_their_titles(read):
    """Each slide is a page labelled with its title; bullets are list items, notes come last."""
    outline, pages = read(files.slides(pages=(("One", ["a", "b"], "say it"), ("Two", [files.JAPANESE], ""))))
    assert (outline.unit, outline.units, outline.title) == (Unit.SLIDE, 2, "One")
    assert [page.label for page in pages] == ["One", "Two"]
    assert [(b.role, b.text) for b in pages[0].blocks] == [
        (Role.HEADING, "One"), (Role.LIST, "a"), (Role.LIST, "b"), (Role.PARAGRAPH, "say it"),
    ]  # fmt: skip


def test_rows_carry_the_names_of_their_columns(read):
    """A row under a header reads as a sentence, without one it keeps its values; empty rows are left out."""
    people = [
        ["Name", "Born", "Score"],
        ["Ada", 1815, 3.5],
        [],
        ["Bo", dt.date(2020, 1, 2), True],
        ["Cy", 7, ""],
    ]
    outline, pages = read(files.workbook({"People": people, "Empty": [], "Numbers": [[1, 2], [3, 4]]}))
    assert (outline.unit, outline.parts) == (Unit.ROW, (5, 0, 2))
    assert [(page.number, page.label) for page in pages] == [(1, "People"), (3, "Numbers")]
    assert texts(pages) == [
        "Name: Ada; Born: 1815; Score: 3.5", "Name: Bo; Born: 2020-01-02; Score: true", "Name: Cy; Born: 7",
        "1 | 2", "3 | 4",
    ]  # fmt: skip


def test_delimited_text_may_quote_its_separator_and_its_line_breaks(read):
    """A quoted cell is one cell, whatever stands in it."""
    _outline, pages = read(b'Name;City\nAda;London\nBo;"Oslo;\nNorway"\n', "x.csv")
    assert texts(pages) == ["Name: Ada; City: London", "Name: Bo; City: Oslo; Norway"]


def test_html_gives_what_a_reader_sees(read):
    """Headings, lists, code and tables are kept; menus, scripts, styles and hidden text are not."""
    outline, pages = read(PAGE)
    assert outline.title == "The page"
    assert [(block.role, block.text) for block in blocks(pages)] == [
        (Role.HEADING, "Heading"), (Role.PARAGRAPH, "One two"), (Role.PARAGRAPH, "bare bold"),
        (Role.LIST, "first"), (Role.LIST, "second"), (Role.CODE, "  if x:\n    y"), (Role.ROW, "A: 1; B: 2"),
    ]  # fmt: skip


def test_markdown_keeps_its_structure(read):
    """Both styles of heading, items, fences in which nothing is a heading, tables, front matter."""
    text = "---\ntitle: Front\n---\n# One\n\na\nb\n\nTwo\n---\n\n- x\n- y\n  z\n\n```\n# no\n```\n\n"
    text += "| A | B |\n|--|--|\n| 1 | 2 |\n"
    outline, pages = read(text.encode(), "a.md")
    assert outline.title == "Front"
    assert [(block.role, block.level, block.text) for block in blocks(pages)] == [
        (Role.HEADING, 1, "One"), (Role.PARAGRAPH, 0, "a\nb"), (Role.HEADING, 2, "Two"),
        (Role.LIST, 0, "- x"), (Role.LIST, 0, "- y\n  z"), (Role.CODE, 0, "```\n# no\n```"),
        (Role.ROW, 0, "A: 1; B: 2"),
    ]  # fmt: skip


def test_a_form_feed_begins_a_page_of_plain_text(read):
    """Printed text keeps the pages it was printed on."""
    outline, pages = read(b"one\n\ntwo\n\fthree\n")
    assert outline.units == 2
    assert [[block.text for block in page.blocks] for page in pages] == [["one", "two"], ["three"]]


LONG = "h" * 100_000


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.md", lambda rows: f"| {LONG} | b |\n|---|---|\n" + "".join(f"| {n} | x |\n" for n in rows)),
        (
            "a.html",
            lambda rows: (
                f"<html><table><tr><th>{LONG}<th>b" + "".join(f"<tr><td>{n}<td>x" for n in rows) + "</table>"
            ),
        ),
    ],
)
def test_a_header_of_any_length_does_not_blow_up_its_table(read, name, make):
    """It stands once in full and shortened in the rows, of which none loses a cell."""
    _outline, pages = read(make(range(3000)).encode(), name)
    texts = [block.text for block in pages[0].blocks if block.role is Role.ROW]
    assert LONG in texts[0]
    assert [text.partition("…: ")[2] for text in texts[1:]] == [f"{n}; b: x" for n in range(3000)]
    assert sum(map(len, texts)) < 10 * len(LONG)


def test_names_of_columns_never_outweigh_the_cells_by_much(read):
    """A sheet of marks under long names keeps every mark; its names are shortened once they are too much."""
    names = [f"{'question ' * 8}{n}"[-78:] for n in range(200)]
    rows = ["\t".join(names), *("\t".join("x" for _ in names) for _ in range(2000))]
    _outline, pages = read("\n".join(rows).encode(), "a.tsv")
    header, first, *rest = [block.text for block in pages[0].blocks]
    assert header == " | ".join(names)
    assert first.count(": x") == 200
    assert sum(map(len, rest)) < 20 * 2 * len("\n".join(rows))
