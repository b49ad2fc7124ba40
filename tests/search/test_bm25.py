"""BM25 by its formula, and the choice of candidates by what it must bound."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search import bm25, keyword
from holdfast.search.bm25 import Term

TERMS = st.sampled_from([f"t{n}" for n in range(12)])


def by_the_book(words, terms, average, k1, b):
    score = 0.0
    for term in terms:
        occurs = words.split().count(term.term)
        score += term.weight * occurs * (k1 + 1) / (occurs + k1 * (1 - b + b * len(words.split()) / average))
    return score


@given(
    st.lists(st.lists(TERMS, min_size=1, max_size=20).map(" ".join), min_size=1, max_size=6),
    st.sets(TERMS, min_size=1),
)
def test_scores_follow_the_formula(chunks, wanted):
    """Few terms and many are counted in two ways; both agree with the book."""
    terms = [Term(name, 2, 1.0 + at) for at, name in enumerate(sorted(wanted))]
    scores, matched = bm25.scores(chunks, terms, 7.0, k1=1.2, b=0.75)
    for chunk, score, weight in zip(chunks, scores, matched, strict=True):
        assert math.isclose(score, by_the_book(chunk, terms, 7.0, 1.2, 0.75))
        assert math.isclose(weight, sum(term.weight for term in terms if term.term in chunk.split()))


def test_a_rare_term_weighs_more_than_a_common_one_and_none_weighs_nothing():
    """Even a term that every chunk has is worth a little; repeating it helps less each time."""
    weights = [bm25.weight(frequency, 1000) for frequency in (1, 10, 100, 999, 1000, 2000)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0
    assert bm25.weight(1, 10) < bm25.weight(1, 10, 2) < bm25.weight(1, 10, 1000) < 2 * bm25.weight(1, 10)


def test_nothing_to_score_is_no_error():
    """No chunks, or no terms."""
    assert bm25.scores([], [Term("a", 1, 1.0)], 5.0)[0].tolist() == []
    assert bm25.scores(["a"], [], 5.0)[0].tolist() == [0.0]


@pytest.mark.parametrize(
    ("frequencies", "rare", "common", "least"),
    [
        ([10, 20], 2, 0, 0),
        ([900, 10], 1, 1, 1),
        ([50_000], 0, 1, 1),
        ([20_000, 30_000], 0, 2, 2),
        ([4_000, 4_000, 4_000], 0, 3, 2),
        ([30_000] * 7, 0, 7, 6),
        ([3, 40_000, 60_000], 1, 2, 2),
    ],
)
def test_rare_terms_are_taken_alone_and_common_ones_together(frequencies, rare, common, least):
    """As many together as keep the expected number of candidates within its bound."""
    terms = [Term(f"t{n}", count, 1.0) for n, count in enumerate(frequencies)]
    alone, together, needed = keyword.choose(terms, 100_000)
    assert (len(alone), len(together)) == (rare, common)
    assert needed == least
    assert sum(term.frequency for term in terms if term.term in alone) <= keyword.EXPECTED
    assert math.comb(len(together), needed) <= 35


def test_the_expected_share_is_that_of_independent_terms():
    """Compared with adding up every case."""
    shares = [0.1, 0.5, 0.9, 0.3]
    result = keyword._at_least(shares)
    for least in range(5):
        total = 0.0
        for size in range(least, 5):
            for chosen in combinations(range(4), size):
                total += float(np.prod([p if n in chosen else 1 - p for n, p in enumerate(shares)]))
        assert math.isclose(result[least], total)
