"""Where a text is cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import BadRequestError
from holdfast.documents import chunk
from holdfast.documents.chunk import ChunkOptions, ChunkText
from holdfast.documents.parse import texts
from holdfast.documents.parse.records import Page, Role, TextBlock
from tests.documents.prose import Prose

TEXT = st.text(
    alphabet=st.sampled_from("ab. \n!?,\u3002\u4e2d\u6587\u05e9\u0301\U0001f600\u200d#-"), max_size=600
)


def paragraphs(*values, number=1):
    return Page(number, tuple(TextBlock(Role.PARAGRAPH, value) for value in values))


def squeezed(text):
    return "".join(text.split())


@given(st.lists(TEXT, max_size=8), st.integers(16, 64))
def test_no_letter_is_lost_and_none_is_said_twice(values, size):
    """The chunks of a page, put together, are the page."""
    pieces = chunk.cut([paragraphs(*values)], ChunkOptions(size))
    assert squeezed("".join(piece.text for piece in pieces)) == squeezed("".join(values))
    assert all(piece.text.strip() for piece in pieces)


@given(st.lists(TEXT, max_size=8), st.integers(16, 64), st.integers(0, 8))
def test_no_chunk_is_larger_than_asked_for(values, size, overlap):
    """Whatever the text is made of, with its overlap, by the estimate of tokens."""
    for piece in chunk.cut([paragraphs(*values)], ChunkOptions(size, overlap)):
        assert chunk.estimate_tokens(piece.text) <= size


def test_chunks_are_not_scraps():
    """In prose a chunk has at least a seventh of the size, and more than half of it on average."""
    page = paragraphs(*Prose(1).paragraphs(400))
    sizes = [chunk.estimate_tokens(piece.text) for piece in chunk.cut([page], ChunkOptions(256))]
    assert min(sizes) > 256 // 7
    assert sum(sizes) / len(sizes) > 256 / 2


def test_no_chunk_crosses_a_page():
    """Two pages that would fit into one chunk are two, each with its number."""
    pages = [paragraphs("one", number=3), paragraphs("two", number=4)]
    assert chunk.cut(pages, ChunkOptions()) == [ChunkText("one", 3, ()), ChunkText("two", 4, ())]


def test_a_heading_is_the_best_place_for_a_cut():
    """Sections of a good size are chunks, each beginning with its heading."""
    prose = Prose(2)
    page = texts.markdown_pages(
        "\n\n".join(f"# Section {n}\n\n{(prose.paragraph() * 4)[:480]}" for n in range(20))
    )
    pieces = chunk.cut(page, ChunkOptions(160))
    assert [piece.text.split("\n")[0] for piece in pieces] == [f"Section {n}" for n in range(20)]


def test_a_heading_is_never_left_behind():
    """No chunk ends with a heading whose text is in the next one."""
    prose = Prose(3)
    lines = [f"## Heading {n}\n\n{prose.paragraph()}" for n in range(200)]
    for piece in chunk.cut(texts.markdown_pages("\n\n".join(lines)), ChunkOptions(128)):
        assert not piece.text.rsplit("\n", 1)[-1].startswith("Heading ")


def test_a_heading_after_a_scrap_is_not_left_behind_either():
    """Where a cut before the heading would leave too little, there is none after it."""
    blocks = [
        TextBlock(Role.PARAGRAPH, "A scrap of text."),
        TextBlock(Role.HEADING, "A heading of some length", 2),
    ]
    blocks.append(TextBlock(Role.PARAGRAPH, " ".join(Prose(9).paragraphs(3))))
    first = chunk.cut([Page(1, tuple(blocks))], ChunkOptions(64))[0]
    assert not first.text.endswith("A heading of some length")


def test_a_chunk_knows_the_headings_above_it():
    """Deeper headings end with their section; a page goes on under the headings of the one before."""
    blocks = [
        TextBlock(Role.HEADING, "Book", 1), TextBlock(Role.HEADING, "Deep", 3),
        TextBlock(Role.PARAGRAPH, "a" * 60),
        TextBlock(Role.HEADING, "Chapter", 2), TextBlock(Role.PARAGRAPH, "b" * 60),
    ]  # fmt: skip
    pages = [Page(1, tuple(blocks)), paragraphs("c", number=2)]
    items = [(piece.text[-1], piece.headings) for piece in chunk.cut(pages, ChunkOptions(20))]
    assert ("a", ("Book", "Deep")) in items
    assert items[-2:] == [("b", ("Book", "Chapter")), ("c", ("Book", "Chapter"))]


def test_the_headings_above_are_not_in_the_text():
    """A renamed heading changes the chunk that begins with it and no other of its section."""
    body = "\n\n".join(Prose(4).paragraphs(60))
    one, two = (
        {p.text for p in chunk.cut(texts.markdown_pages(f"# {name}\n\n{body}"), ChunkOptions())}
        for name in ("Old", "New")
    )
    assert len(two - one) == 1


def test_sentences_are_not_cut():
    """In a paragraph too long for one chunk, each chunk ends where a sentence does."""
    (page,) = texts.plain_pages(" ".join(Prose(5).paragraphs(100)))
    assert all(piece.text.endswith(".") for piece in chunk.cut([page], ChunkOptions()))


def test_text_without_spaces_is_cut_at_its_stops():
    """Chinese has no spaces, and its sentences are sentences all the same."""
    pieces = chunk.cut([paragraphs(Prose(6).chinese(20_000))], ChunkOptions())
    assert len(pieces) > 70
    assert sum(piece.text.endswith("。") for piece in pieces) >= 0.98 * len(pieces)


def test_marks_stay_with_their_letters():
    """A run without any boundary is cut in steps, but not between a letter and its accent."""
    pieces = chunk.cut([paragraphs("e\u0301" * 3000)], ChunkOptions(64))
    assert len(pieces) > 1
    assert all(piece.text.startswith("e") for piece in pieces)


def test_rows_of_a_table_stand_under_each_other():
    """Rows and list items are one line each; paragraphs are parted by a blank line."""
    blocks = [TextBlock(Role.ROW, "a: 1"), TextBlock(Role.ROW, "a: 2"), TextBlock(Role.PARAGRAPH, "end")]
    assert chunk.cut([Page(1, tuple(blocks))], ChunkOptions())[0].text == "a: 1\na: 2\n\nend"


def test_a_delimiter_always_ends_a_chunk():
    """What it parts is never put together again, however small, and it is not in the text."""
    pages = [paragraphs("one ## two", "still two##", "three")]
    pieces = chunk.cut(pages, ChunkOptions(delimiter="##"))
    assert [piece.text for piece in pieces] == ["one", " two\n\nstill two", "three"]


def test_overlap_repeats_the_last_words():
    """Each chunk but the first of a page begins with the end of the one before."""
    page = paragraphs(*Prose(7).paragraphs(40))
    pieces = chunk.cut([page], ChunkOptions(200, overlap=40))
    for before, after in itertools.pairwise(pieces):
        shared = max(n for n in range(len(after.text)) if before.text.endswith(after.text[:n]))
        assert 10 < chunk.estimate_tokens(after.text[:shared]) <= 40


@pytest.mark.parametrize("options", [(8, 0), (256, 129), (256, -1), (10**6, 0)])
def test_options_that_cannot_be_kept_are_refused(options):
    """A chunk of eight tokens, or one that is mostly overlap, is a mistake."""
    with pytest.raises(BadRequestError) as caught:
        ChunkOptions(*options)
    assert caught.value.code == "bad_chunk_options"


def test_a_known_text_is_always_cut_the_same_way():
    """Other cuts would make everybody pay again: these may change only with the chunker's VERSION."""
    page = paragraphs(*Prose(8).paragraphs(12))
    items = [chunk.estimate_tokens(piece.text) for piece in chunk.cut([page], ChunkOptions(128))]
    assert (chunk.VERSION, items) == (2, KNOWN)


KNOWN = [69, 47, 97, 43, 114, 81, 104, 37, 100, 58, 109, 126, 60, 78, 54]
