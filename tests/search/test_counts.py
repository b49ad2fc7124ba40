"""The terms of a slice: packed and unpacked without loss."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search import term_counts

TERMS = st.sampled_from([f"t{n}" for n in range(25)])
CHUNKS = st.lists(st.lists(TERMS, max_size=12).map(" ".join), max_size=6)


def unpacked(packed):
    """Each term's number with the chunks that have it, and how often."""
    terms = term_counts.decode(packed)
    ends = np.cumsum(terms.counts)
    begins = ends - terms.counts
    return {
        int(number): dict(zip(terms.rows[a:b].tolist(), terms.times[a:b].tolist(), strict=True))
        for number, a, b in zip(terms.numbers, begins, ends, strict=True)
    }


@given(CHUNKS)
def test_what_was_packed_comes_back(chunks):
    """Which chunks have a term and how often, and how long each chunk is."""
    expected = {}
    for row, words in enumerate(chunks):
        for term, times in Counter(words.split()).items():
            expected.setdefault(int(term_counts.numbers_of([term])[0]), {})[row] = times
    packed = term_counts.encode(chunks)[2]
    assert unpacked(packed) == expected
    assert term_counts.decode(packed).lengths.tolist() == [len(words.split()) for words in chunks]


@given(CHUNKS)
def test_the_number_and_length_of_the_chunks_come_along(chunks):
    """A chunk without terms is a chunk all the same."""
    number, length, packed = term_counts.encode([*chunks, None, ""])
    assert number == len(chunks) + 2 == len(term_counts.decode(packed).lengths)
    assert length == sum(len(words.split()) for words in chunks)


@pytest.mark.parametrize("chunks", [["a"] * 300, ["a"] * 70_000, ["a " * 299 + "a", "b"]])
def test_many_chunks_and_many_times_are_kept_in_wider_numbers(chunks):
    """A slice of tens of thousands of chunks, a chunk of one word hundreds of times."""
    occurrences = unpacked(term_counts.encode(chunks)[2])[int(term_counts.numbers_of(["a"])[0])]
    assert occurrences == {row: words.split().count("a") for row, words in enumerate(chunks) if "a" in words}


@pytest.mark.parametrize("packed", [b"", b"\x01", b"\x01" + bytes(40)])
def test_a_package_of_another_release_is_none(packed):
    """It is made anew from the chunks."""
    assert term_counts.decode(packed) is None
