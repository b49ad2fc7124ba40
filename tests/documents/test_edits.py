"""From a file of real pages to chunks, edited and read again: what did not change is known."""

import pytest

from holdfast.documents import chunk
from holdfast.documents.chunk import ChunkOptions
from holdfast.documents.parse import records
from tests.documents import files, pdf_layouts, pdfs
from tests.documents.prose import Prose

PARTS = 40
PARAGRAPHS = 5


def story():
    prose = Prose(5)
    return [prose.paragraphs(PARAGRAPHS) for _ in range(PARTS)]


def pdf(parts):
    return pdfs.make([_set(paragraphs, number) for number, paragraphs in enumerate(parts, start=1)])


def _set(paragraphs, number):
    """One page: lines of about 90 characters, a gap between paragraphs, the page's number at its foot."""
    page, y = [(18, 72, 740, f"Chapter {paragraphs[0][:12]}")], 700
    for paragraph in paragraphs:
        line = ""
        for word in paragraph.split():
            if len(line) + len(word) > 90:
                page.append((9, 50, y, line))
                line, y = "", y - 11
            line += f"{word} "
        page.append((9, 50, y, line))
        y -= 20
    return [*page, (9, 300, 30, str(number))]


def docx(parts):
    return files.word(parts=[(f"Chapter {paragraphs[0][:12]}", paragraphs) for paragraphs in parts])


def markdown(parts):
    chapters = ("\n\n".join([f"# Chapter {paragraphs[0][:12]}", *paragraphs]) for paragraphs in parts)
    return "\n\n".join(chapters).encode()


def cuts(parser, path, options):
    outline = parser.outline(path, "a.md")
    for part in records.slices(outline, pages=12):
        yield from chunk.cut(parser.read(path, outline.format, part), options)


@pytest.fixture
def new_chunks(parser, keep):
    """`new_chunks(build, before, after)` is what of the second file would have to be paid for."""
    seen = {}

    def found(build, before, after):
        if (old := seen.get(str(before))) is None:
            pieces = cuts(parser, keep(build(before), "before"), ChunkOptions())
            old = seen[str(before)] = {piece.text for piece in pieces}
        pieces = cuts(parser, keep(build(after), "after"), ChunkOptions())
        return [piece.text for piece in pieces if piece.text not in old]

    return found


@pytest.mark.g5
@pytest.mark.parametrize("build", [pdf, docx, markdown])
def test_a_changed_paragraph_costs_the_chunk_it_is_in(new_chunks, build):
    """One word of one paragraph in a long PDF, DOCX or Markdown."""
    before, after = story(), story()
    after[3][2] = after[3][2].replace(" ", " altogether ", 1)
    result = new_chunks(build, before, after)
    assert 1 <= len(result) <= 2
    assert any("altogether" in text for text in result)


@pytest.mark.g5
@pytest.mark.parametrize("build", [pdf, docx, markdown])
def test_a_page_put_in_front_costs_itself(new_chunks, build):
    """Every old page is known, though all their numbers are new."""
    before = story()
    page = Prose(77).paragraphs(PARAGRAPHS)
    result = new_chunks(build, before, [page, *before])
    assert result
    assert all(any(sentence in text for sentence in _sentences(page)) for text in result)


def _sentences(paragraphs):
    """The beginnings of sentences, short enough to stand within one chunk and one line."""
    return [sentence[:20] for paragraph in paragraphs for sentence in paragraph.split(". ")]


@pytest.mark.g5
@pytest.mark.parametrize("build", [pdf, docx, markdown])
def test_nothing_changed_costs_nothing(new_chunks, build):
    """The same words in a new file are the same chunks."""
    assert new_chunks(build, story(), story()) == []


@pytest.mark.g5
@pytest.mark.parametrize("build", [pdf, docx, markdown])
def test_paragraphs_that_only_grow_cost_at_most_half_as_much_again(new_chunks, build):
    """A chunk that becomes too long is cut in two; over many edits that is the exception."""
    paid = changed = 0
    for position in range(1, PARTS, 5):
        before, after = story(), story()
        grown = after[position][position % PARAGRAPHS]
        after[position][position % PARAGRAPHS] = (
            f"{grown} Later account {position} was settled with the anchor keeper."
        )
        result = new_chunks(build, before, after)
        paid += len(result)
        changed += sum(f"account {position} was" in text for text in result)
    assert paid <= 1.5 * changed


def running(parts):
    """A book with a running head and foot: a title, a page number, and how many pages there are."""
    pages = pdf_layouts.book(
        [paragraphs[:3] for paragraphs in parts], head="Of ledgers and lost calls, {page}"
    )
    feet = [f"Version 3 of 2024, page {number} of {len(pages)}" for number in range(1, len(pages) + 1)]
    return pdfs.make([[*page, (8, 200, 36, foot)] for page, foot in zip(pages, feet, strict=True)])


@pytest.mark.g5
@pytest.mark.parametrize("at", [0, 17, 40])
def test_a_page_inserted_among_running_heads_costs_itself(new_chunks, at):
    """Heads with page numbers, and feet with the number of pages, are not part of any chunk."""
    before = story()
    page = Prose(78).paragraphs(PARAGRAPHS)
    result = new_chunks(running, before, [*before[:at], page, *before[at:]])
    assert result
    assert all(any(sentence in text for sentence in _sentences(page)) for text in result)
    assert not any("ledgers and lost" in text or "Version 3" in text for text in result)


def with_tables(parts):
    """Each page is prose above a table of its own, below a running head."""
    pages = pdf_layouts.book([paragraphs[:2] for paragraphs in parts], head="The ledger, page {page}")
    sheets = []
    for lines, paragraphs in zip(pages, parts, strict=True):
        words = paragraphs[-1].split()[:12]
        rows = [["Name", "Kind", "Sum"], *[[words[3 * n], words[3 * n + 1], str(7 * n)] for n in range(4)]]
        table = pdf_layouts.table(rows, [72, 192, 312], top=300, width=110)
        sheets.append(pdfs.Sheet([*lines, *table.lines], table.rules))
    return pdfs.make(sheets)


@pytest.mark.g5
def test_a_page_inserted_among_tables_costs_itself(new_chunks):
    """Rows of the tables around it are as they were."""
    before = story()[:20]
    page = Prose(79).paragraphs(PARAGRAPHS)
    chunks = new_chunks(with_tables, before, [*before[:9], page, *before[9:]])
    assert 1 <= len(chunks) <= 4
    assert any("Name: " in text for text in chunks)
