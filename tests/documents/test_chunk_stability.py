"""An edit changes the chunks around it, and no others: what did not change is not paid again."""

import pytest

from holdfast.documents import chunk
from holdfast.documents.chunk import ChunkOptions
from holdfast.documents.parse import texts
from holdfast.documents.parse.records import Page, Role, TextBlock
from tests.documents.prose import Prose

EDITS = {
    "insert": lambda parts, at, new: [*parts[:at], new, *parts[at:]],
    "change": lambda parts, at, new: [*parts[:at], new, *parts[at + 1 :]],
    "delete": lambda parts, at, new: [*parts[:at], *parts[at + 1 :]],
    "word": lambda parts, at, new: [*parts[:at], _other_word(parts[at]), *parts[at + 1 :]],
}


def _other_word(paragraph):
    words = paragraph.split()
    words[len(words) // 2] = "altogether"
    return " ".join(words)


def markdown(parts):
    """About 200 pages of Markdown: a heading before every eighth paragraph."""
    lines = [f"## Part {hash_of(part)}\n\n{part}" if is_start(part) else part for part in parts]
    return texts.markdown_pages("\n\n".join(lines))


def is_start(part):
    return sum(part.encode()) % 8 == 0


def hash_of(part):
    return sum(part.encode()) % 1000


def pages_of(parts):
    """Pages that end where the author ended them, about eight paragraphs each."""
    result, held = [], []
    for part in parts:
        held.append(TextBlock(Role.PARAGRAPH, part))
        if is_start(part):
            result.append(Page(len(result) + 1, tuple(held)))
            held = []
    return [*result, Page(len(result) + 1, tuple(held))]


def long_text(parts):
    return texts.plain_pages("\n\n".join(parts))


def one_paragraph(parts):
    return texts.plain_pages(" ".join(parts))


def rows(parts):
    """A sheet: every sentence a row."""
    sentences = [sentence for part in parts for sentence in part.split(". ")]
    return [Page(1, tuple(TextBlock(Role.ROW, f"id: {s[:20]}; text: {s}") for s in sentences))]


def holds(text, edit, around):
    """True when a chunk holds a part of what the edit put in, or what it stands between."""
    if edit == "word":
        return "altogether" in text
    return any(sentence in text for sentence in around)


def changed(build, before, after, options):
    """The chunks of `after` that are not among those of `before`, and how many there are in all."""
    known = {piece.text for piece in chunk.cut(build(before), options)}
    pieces = chunk.cut(build(after), options)
    return [piece for piece in pieces if piece.text not in known], len(pieces)


@pytest.mark.g5
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("build", [markdown, pages_of, long_text, one_paragraph, rows])
def test_an_early_edit_of_a_long_document_changes_few_chunks(build, edit):
    """One paragraph of a thousand, near the start: at most 1.5 times the chunks that hold its place."""
    counts, touched = [], 0
    for seed in range(8):
        prose = Prose(seed)
        parts, new = prose.paragraphs(1000), prose.paragraph()
        result, total = changed(build, parts, EDITS[edit](parts, 3 + seed, new), ChunkOptions())
        assert total > 300
        counts.append(len(result))
        around = [parts[2 + seed].split(". ")[-1], *new.split(". "), parts[3 + seed].split(". ")[0]]
        touched += 1 if edit == "delete" else sum(holds(piece.text, edit, around) for piece in result)
    assert max(counts) <= 5
    assert sum(counts) <= 1.5 * touched


@pytest.mark.g5
@pytest.mark.parametrize("build", [markdown, pages_of, long_text, one_paragraph])
def test_many_edits_change_little_more_than_the_chunks_that_hold_them(build):
    """A word in every fortieth paragraph: at most 1.5 times the chunks that hold a changed word."""
    prose = Prose(99)
    parts = prose.paragraphs(1000)
    edited = [_other_word(part) if number % 40 == 0 else part for number, part in enumerate(parts)]
    result, _total = changed(build, parts, edited, ChunkOptions())
    touched = sum("altogether" in piece.text for piece in result)
    assert touched >= 20
    assert len(result) <= 1.5 * touched


@pytest.mark.g5
@pytest.mark.parametrize("build", [long_text, one_paragraph])
def test_a_letter_changed_for_another_moves_no_cut_at_all(build):
    """Past the first words of a sentence: exactly the chunks that hold it are new."""
    parts = [" ".join(part.split(". ")) for part in Prose(98).paragraphs(1000)]
    edited = [part[:100] + "X" + part[101:] if n % 10 == 0 else part for n, part in enumerate(parts)]
    result, _total = changed(build, [f"{p}." for p in parts], [f"{p}." for p in edited], ChunkOptions())
    assert len(result) >= 80
    assert all("X" in piece.text for piece in result)


@pytest.mark.g5
def test_no_edit_is_felt_far_away():
    """At each of 150 places of one endless paragraph: five chunks at the most, however the cuts fall."""
    prose = Prose(12)
    parts = prose.paragraphs(150)
    known = {piece.text for piece in chunk.cut(one_paragraph(parts), ChunkOptions(64))}
    for at in range(150):
        after = one_paragraph([*parts[:at], "Now this.", *parts[at:]])
        assert sum(piece.text not in known for piece in chunk.cut(after, ChunkOptions(64))) <= 5


@pytest.mark.g5
@pytest.mark.parametrize("size", [64, 256, 1024])
def test_a_page_put_in_front_changes_no_other_page(size):
    """Pages are cut by themselves: the old ones are all known, only their numbers are new."""
    prose = Prose(7)
    pages = [Page(n, tuple(TextBlock(Role.PARAGRAPH, p) for p in prose.paragraphs(9))) for n in range(1, 60)]
    moved = [Page(page.number + 1, page.blocks) for page in pages]
    front = Page(1, (TextBlock(Role.PARAGRAPH, "A new page."),))
    known = {piece.text for piece in chunk.cut(pages, ChunkOptions(size))}
    items = [
        piece.text for piece in chunk.cut([front, *moved], ChunkOptions(size)) if piece.text not in known
    ]
    assert items == ["A new page."]


@pytest.mark.g5
def test_an_edit_far_away_cannot_move_a_cut():
    """Cuts farther from an edit than a chunk to each side are exactly where they were."""
    prose = Prose(11)
    parts = prose.paragraphs(600)
    after = EDITS["insert"](parts, 300, prose.paragraph())
    one, two = ([p.text for p in chunk.cut(one_paragraph(v), ChunkOptions())] for v in (parts, after))
    same_head = next(n for n, (x, y) in enumerate(zip(one, two, strict=False)) if x != y)
    same_tail = next(n for n, (x, y) in enumerate(zip(one[::-1], two[::-1], strict=False)) if x != y)
    assert len(two) - same_head - same_tail <= 4


def test_repeated_lines_are_cut_into_equal_chunks():
    """A log of one line a hundred thousand times is a handful of different chunks."""
    page = texts.plain_pages("\n\n".join(["the same line again and again"] * 20_000))
    pieces = [piece.text for piece in chunk.cut(page, ChunkOptions())]
    assert len(pieces) > 400
    assert len(set(pieces)) <= 4
