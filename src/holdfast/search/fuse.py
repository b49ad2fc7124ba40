"""Several rankings made one: each leg's scores on a scale from 0 to 1, weighed and added up.

Fusing by rank alone, as is often done, throws away how far one hit is ahead of the next. A sum of scaled
scores keeps it and needs as little tuning (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid
Retrieval", 2023).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.vectors.base import Ranked

WEIGHTS: Mapping[str, float] = {"keyword": 0.7, "vector": 0.3, "title": 0.3}
# Cosines have no zero that means anything: theirs is the hit at this rank, or the last one. A fixed rank, so
# that the order does not depend on how many hits were asked for.
COSINES = frozenset({"vector"})
ZERO_AT = 100


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
    legs: Mapping[str, Sequence[Ranked]], k: int, *, weights: Mapping[str, float] = WEIGHTS
) -> list[Fused]:
    """The best `k` chunks over all legs, best first; equals in the order of the legs, then by their id.

    A hit adds its leg's weight, times its share of the leg's best score, times the leg's trust in it.
    """
    parts: dict[int, list[Part]] = {}
    scores: dict[int, float] = {}
    for leg, ranking in legs.items():
        if not ranking:
            continue
        least = ranking[min(ZERO_AT, len(ranking)) - 1].score if leg in COSINES else 0.0
        span = ranking[0].score - least
        for rank, one in enumerate(ranking, start=1):
            parts.setdefault(one.chunk_id, []).append(Part(leg, rank, one.score))
            share = max(0.0, (one.score - least) / span) if span > 0 else 1.0
            adds = weights[leg] * one.trust * share
            scores[one.chunk_id] = scores.get(one.chunk_id, 0.0) + adds
    names = list(legs)
    first = {chunk_id: names.index(found[0].leg) for chunk_id, found in parts.items()}
    best = sorted(scores, key=lambda chunk_id: (-round(scores[chunk_id], 9), first[chunk_id], chunk_id))
    return [Fused(chunk_id, scores[chunk_id], tuple(parts[chunk_id])) for chunk_id in best[:k]]
