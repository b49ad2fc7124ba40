"""Fuses several rankings: each leg's scores are scaled to 0..1, weighted and summed.

Fusing by rank alone, as is often done, throws away how far one hit is ahead of the next. A sum of scaled
scores keeps it and needs as little tuning (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid
Retrieval", 2023).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.vectors.base import Ranked

WEIGHTS: Mapping[str, float] = {"keyword": 0.7, "vector": 0.3, "title": 0.3}
# Cosines have no meaningful zero: the score at this rank, or the last one, is used. A fixed rank, so that the
# order does not depend on the number of hits requested.
COSINES = frozenset({"vector"})
ZERO_AT = 100
RANKED_FROM = 60  # as is usual: the second of a ranking is nearly as good as the first


_TIE = 1e-8  # more than rounding to nine digits can move a score


@dataclass(frozen=True, slots=True)
class LegScore:
    """A hit in one leg: its rank there, from 1, and the leg's own score."""

    leg: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Fused:
    """A chunk with its fused score and the legs it came from."""

    chunk_id: int
    score: float
    parts: tuple[LegScore, ...]


def fuse(
    legs: Mapping[str, Sequence[Ranked]], k: int, *, weights: Mapping[str, float] = WEIGHTS
) -> list[Fused]:
    """The best `k` chunks over all legs, best first; ties in the order of the legs, then by id.

    A hit adds its leg's weight, times its share of the leg's best score, times the leg's trust in it.
    """
    scores: dict[int, float] = {}
    first: dict[int, int] = {}
    for leg_index, (leg, ranking) in enumerate(legs.items()):
        if not ranking:
            continue
        least = ranking[min(ZERO_AT, len(ranking)) - 1].score if leg in COSINES else 0.0
        span = ranking[0].score - least
        weight = weights[leg]
        for chunk_id, score, trust in ranking:
            share = (score - least) / span if span > 0 else 1.0
            adds = weight * trust * share if share > 0.0 else 0.0
            if chunk_id in scores:
                scores[chunk_id] += adds
            else:
                scores[chunk_id], first[chunk_id] = adds, leg_index
    best = _best(scores, first, k)
    parts = _parts(legs, best)
    return [Fused(chunk_id, scores[chunk_id], tuple(parts[chunk_id])) for chunk_id in best]


def merged(rankings: Sequence[tuple[object, Mapping[str, Sequence[Ranked]]]]) -> dict[str, list[Ranked]]:
    """The legs of several collections as one, each with the model of its vectors.

    Scores of words are compared as they are. So are cosines of one model; those of different models say
    nothing about each other, and each is replaced by its rank.
    """
    alike = len({model for model, legs in rankings if any(legs.get(leg) for leg in COSINES)}) < 2
    joined: dict[str, list[Ranked]] = {}
    for _, legs in rankings:
        for leg, ranking in legs.items():
            by_rank = leg in COSINES and not alike
            joined.setdefault(leg, []).extend(_ranks(ranking) if by_rank else ranking)
    for ranking in joined.values():
        ranking.sort(key=lambda one: (-one.score, one.chunk_id))
    return joined


def _ranks(ranking: Sequence[Ranked]) -> Iterator[Ranked]:
    """The ranking with scores that only depend on the rank (Cormack, Clarke and Büttcher, 2009)."""
    for rank, one in enumerate(ranking, start=1):
        yield Ranked(one.chunk_id, (RANKED_FROM + 1) / (RANKED_FROM + rank), one.trust)


def _best(scores: Mapping[int, float], first: Mapping[int, int], k: int) -> list[int]:
    """The chunks with the best scores. Sorting only possible winners halves the work."""
    least = sorted(scores.values(), reverse=True)[k - 1] - _TIE if 0 < k < len(scores) else None
    order = [
        (-round(score, 9), first[chunk_id], chunk_id)
        for chunk_id, score in scores.items()
        if least is None or score >= least
    ]
    order.sort()
    return [chunk_id for _, _, chunk_id in order[:k]]


def _parts(legs: Mapping[str, Sequence[Ranked]], best: Sequence[int]) -> dict[int, list[LegScore]]:
    parts: dict[int, list[LegScore]] = {chunk_id: [] for chunk_id in best}
    for leg, ranking in legs.items():
        for rank, (chunk_id, score, _) in enumerate(ranking, start=1):
            if chunk_id in parts:
                parts[chunk_id].append(LegScore(leg, rank, score))
    return parts
