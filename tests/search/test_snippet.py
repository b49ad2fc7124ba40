"""The stretch of text that is shown."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.search import snippet, tokenizer

FILLER = "Nothing of interest is said in this sentence at all. " * 12


def marked(cut):
    return [cut.text[start:end] for start, end in cut.marks]


def test_the_words_of_the_query_are_shown_with_what_stands_around_them():
    """The window goes where the words are, and begins with a sentence."""
    text = FILLER + "Workers renew their leases. " + FILLER
    cut = snippet.cut(text, {"leas": 2.0, "worker": 1.0})
    assert marked(cut) == ["Workers", "leases"]
    assert cut.text.startswith(("Nothing", "Workers"))
    assert text[cut.start : cut.start + len(cut.text)] == cut.text


def test_different_words_together_beat_one_word_repeated():
    """The best stretch says most of what was asked."""
    text = "tin tin tin tin. " + FILLER + "copper and tin. " + FILLER
    cut = snippet.cut(text, {"tin": 1.0, "copper": 1.0})
    assert marked(cut) == ["copper", "tin"]


def test_without_a_match_the_beginning_is_shown():
    """A hit of the vector leg alone."""
    cut = snippet.cut(FILLER, {})
    assert (cut.start, cut.marks) == (0, ())
    assert FILLER.startswith(cut.text)
    assert 200 < len(cut.text) <= snippet.WIDTH


def test_no_word_is_torn_at_the_edges():
    """Unless it is longer than any word."""
    cut = snippet.cut(FILLER + "copper " + FILLER, {"copper": 1.0})
    assert set(cut.text.replace(".", "").split()) <= set(FILLER.replace(".", "").split()) | {"copper"}
    assert len(snippet.cut("x" * 1000, {}).text) == snippet.WIDTH


def test_marks_fit_other_scripts_and_letters_that_change_their_length():
    """Offsets are those of the text as it was written."""
    cut = snippet.cut("Die Straße nach İzmir: 日本語の検索", {"strass": 1.0, "izmir": 1.0, "検索": 1.0})
    assert marked(cut) == ["Straße", "İzmir", "検索"]


@given(st.text(max_size=600), st.integers(5, 300))
def test_a_snippet_is_always_a_piece_of_its_text_with_marks_inside(text, width):
    """Whatever the text, and whichever of its terms are asked for."""
    weights = dict.fromkeys(tokenizer.analyse(text)[::2], 1.0)
    cut = snippet.cut(text, weights, width)
    assert text[cut.start : cut.start + len(cut.text)] == cut.text
    ends = [0, *(position for mark in cut.marks for position in mark), len(cut.text)]
    assert ends == sorted(ends)
    assert all(start < end for start, end in cut.marks)
