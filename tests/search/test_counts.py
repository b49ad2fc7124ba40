"""Counts of terms: packed, unpacked and added up without loss."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search import counts

TERMS = st.sampled_from([f"t{n}" for n in range(25)])
CHUNKS = st.lists(st.lists(TERMS, max_size=12).map(" ".join), max_size=6)


def true_counts(slices):
    return Counter(term for chunks in slices for words in chunks for term in set(words.split()))


@given(st.lists(CHUNKS, max_size=8))
def test_a_sum_knows_in_how_many_chunks_each_term_occurs(slices):
    """Looked through or sorted, the answer is that of counting."""
    expected = true_counts(slices)
    wanted = [f"t{n}" for n in range(27)]
    numbers = counts.numbers_of(wanted)
    summed = counts.Sum([counts.encode(chunks)[2] for chunks in slices])
    looked = summed.frequencies(numbers)
    summed.sort()
    assert looked == summed.frequencies(numbers) == [expected[term] for term in wanted]


@given(CHUNKS)
def test_the_number_and_length_of_the_chunks_come_along(chunks):
    """A chunk without terms is a chunk all the same."""
    number, length, _ = counts.encode([*chunks, None, ""])
    assert number == len(chunks) + 2
    assert length == sum(len(words.split()) for words in chunks)


def test_many_questions_are_answered_from_the_sorted_form():
    """The change of form is not to be seen in the answers."""
    summed = counts.Sum([counts.encode(["a b", "b c", "b"])[2]] * 3)
    for _ in range(40):
        assert summed.frequencies(counts.numbers_of(["a", "b", "d"])) == [3, 9, 0]
    assert summed._raw is None
    assert counts.Sum([]).frequencies(counts.numbers_of(["a"] * 100)) == [0] * 100


def test_a_term_in_more_chunks_than_two_bytes_hold_is_capped():
    """A slice of that size does not exist; it must not fail if one did."""
    _, _, packed = counts.encode(["a"] * 70_000)
    assert counts.Sum([packed]).frequencies(counts.numbers_of(["a"])) == [0xFFFF]


def test_counts_of_an_unknown_format_are_refused_with_what_to_do():
    """They came from another release."""
    with pytest.raises(ValueError, match="index the document again"):
        counts.decode(b"\x07" + counts.encode(["a"])[2][1:])
