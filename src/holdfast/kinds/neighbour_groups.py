"""Groups of neighbouring texts at boundaries that the texts themselves decide, as chunks are cut.

Every boundary between two neighbours has a rank: how far apart they are in meaning, and among equals a hash
of both. It is a cut where no boundary within the reach ranks higher. So whether there is a cut depends on the
texts around it alone, and an edit changes the groups around it, wherever in a document it is. Groups that are
too large are divided at their best inner boundary. Pure functions: no clock, no chance, no database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.extras import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

# Cosines are compared rounded: their last digits depend on the processor.
DIGITS = 4

Rank = tuple[float, bytes]


@dataclass(frozen=True, slots=True)
class GroupRules:
    """How groups are cut: `most` members each, no fewer than `least`, cuts being best within `reach`."""

    most: int = 12

    @property
    def least(self) -> int:
        """The fewest members of a group, where there are so many texts at all."""
        return min(3, self.most // 2)

    @property
    def reach(self) -> int:
        """How many boundaries on either side must rank lower than a cut."""
        return max(1, self.most // 4)


def digest(text: str) -> str:
    """What stands for a text where texts are compared and ordered."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def groups(digests: Sequence[str], vectors: NDArray[np.float32], rules: GroupRules) -> list[range]:
    """The groups, in order, each as the range of its members; every text is in exactly one.

    `vectors` has a row of length one for each text, or of zeros where there is none.
    """
    number = len(digests)
    if number < 2 * rules.least:
        return [range(number)] if number else []
    ranks = boundary_ranks(digests, vectors)
    cuts = [at + 1 for at in range(number - 1) if _is_cut(ranks, at, number, rules)]
    edges = [0, *cuts, number]
    return [part for start, end in pairwise(edges) for part in _divided(ranks, start, end, rules)]


def boundary_ranks(digests: Sequence[str], vectors: NDArray[np.float32]) -> list[Rank]:
    """The rank of the boundary after each text but the last."""
    cosines = np.einsum("ij,ij->i", vectors[:-1], vectors[1:]).tolist()
    return [
        (round(1.0 - cosine, DIGITS), hashlib.blake2b(f"{left}{right}".encode(), digest_size=8).digest())
        for cosine, left, right in zip(cosines, digests, digests[1:], strict=False)
    ]


def _is_cut(ranks: Sequence[Rank], at: int, number: int, rules: GroupRules) -> bool:
    """True if the boundary after text `at` ranks highest around, and leaves enough texts on either side."""
    if at + 1 < rules.least or number - at - 1 < rules.least:
        return False
    around = range(max(0, at - rules.reach), min(len(ranks), at + rules.reach + 1))
    # Of equal ranks (the same two texts again) the first is the highest.
    return all((ranks[other], -other) <= (ranks[at], -at) for other in around)


def _divided(ranks: Sequence[Rank], start: int, end: int, rules: GroupRules) -> Iterator[range]:
    """Parts of at most so many texts, cut at the highest rank; of equal ranks at the one in the middle.

    A document that says the same thousands of times has equal ranks only: halves, not a piece off the front.
    """
    open_parts = [(start, end)]
    while open_parts:
        first, last = open_parts.pop()
        if last - first <= rules.most:
            yield range(first, last)
            continue
        inner = range(first + rules.least - 1, last - rules.least)
        middle = (first + last) / 2
        best = max((ranks[at], -abs(at + 1 - middle), -at) for at in inner)
        cut = 1 - best[2]
        open_parts += [(cut, last), (first, cut)]
