"""BM25 (Robertson and Spärck Jones), from a collection's own counts: the same on every database."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.extras import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")


# Tuned slightly on the judged test collection, whose quality is flat around the usual values.
K1 = 1.4
B = 0.75
FEW_TERMS = 10  # up to which counting them one by one is faster than looking at every word


@dataclass(frozen=True, slots=True)
class Term:
    """A query term: the number of chunks that have it, and its weight."""

    term: str
    frequency: int
    weight: float


def weight(frequency: int, chunks: int, repeated: int = 1) -> float:
    """The weight of a term that `frequency` of `chunks` have and the query repeats `repeated` times."""
    rarity = math.log1p((max(chunks, frequency) - frequency + 0.5) / (frequency + 0.5))
    return rarity * 2.0 * repeated / (repeated + 1.0)


def scores(
    words: Sequence[str], terms: Sequence[Term], average: float, *, k1: float = K1, b: float = B
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The score of each chunk, and the total weight of its matching terms; zero if none matches.

    A chunk is passed as its terms, separated by single spaces.
    """
    total, matched = np.zeros(len(words)), np.zeros(len(words))
    if not words or not terms:
        return total, matched
    lengths = np.array([one.count(" ") + 1 for one in words], dtype=np.float64)
    slack = k1 * (1.0 - b + b * lengths / average)
    for term, occurs in zip(terms, _occurrences(words, [term.term for term in terms]), strict=True):
        total += term.weight * occurs * (k1 + 1.0) / (occurs + slack)
        matched += term.weight * (occurs > 0)
    return total, matched


def posted(
    postings: Iterable[tuple[float, NDArray[Any], NDArray[Any]]],
    lengths: NDArray[np.uint16],
    average: float,
    *,
    k1: float = K1,
    b: float = B,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """As `scores`, from postings: for each term its weight, the chunks that have it, and how often."""
    total, matched = np.zeros(len(lengths)), np.zeros(len(lengths))
    slack = k1 * (1.0 - b + b * lengths / average)
    for worth, rows, times in postings:
        occurs = times.astype(np.float64)
        total[rows] += worth * occurs * (k1 + 1.0) / (occurs + slack[rows])
        matched[rows] += worth
    return total, matched


def _occurrences(words: Sequence[str], terms: Sequence[str]) -> NDArray[np.float64]:
    """How often each term (row) occurs in each chunk (column)."""
    if len(terms) <= FEW_TERMS:
        spaced = [f" {one} " for one in words]
        return np.array([_occurrences_of(term, spaced) for term in terms], dtype=np.float64)
    offsets = {term: at * len(words) for at, term in enumerate(terms)}
    cells: list[int] = []
    for column, one in enumerate(words):
        cells += [offsets[word] + column for word in one.split(" ") if word in offsets]
    counts = np.bincount(np.array(cells, dtype=np.int64), minlength=len(terms) * len(words))
    return counts.reshape(len(terms), len(words)).astype(np.float64)


def _occurrences_of(term: str, spaced: Sequence[str]) -> list[int]:
    alone, twice = f" {term} ", f" {term} {term} "
    counts = [one.count(alone) for one in spaced]
    for at, one in enumerate(spaced):
        # `count` sees only one of two adjacent terms, because they share the space between them.
        if counts[at] and twice in one:
            counts[at] = one.split(" ").count(term)
    return counts
