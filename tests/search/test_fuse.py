"""Two rankings made one."""

import random

from holdfast.search.fusion import COSINES, WEIGHTS, ZERO_AT, LegScore, fuse
from holdfast.vectors.base import Ranked


def ranking(*ids, trust=1.0):
    return [Ranked(number, 10.0 - position, trust) for position, number in enumerate(ids)]


def order(legs, k=10):
    return [one.chunk_id for one in fuse(legs, k)]


def test_what_both_legs_like_comes_before_what_one_loves():
    """Agreement outweighs a first place."""
    assert order({"keyword": ranking(1, 5, 6), "vector": ranking(2, 5, 7)})[0] == 5


def test_one_leg_alone_keeps_its_order():
    """Nothing is added by fusing with nothing."""
    assert order({"vector": ranking(4, 2, 9)}) == [4, 2, 9]
    assert order({"keyword": [], "vector": ranking(4, 2)}) == [4, 2]
    assert order({}) == []


def test_a_match_that_is_hardly_trusted_does_not_push_others_down():
    """One common word of a long query says little."""
    assert order({"keyword": ranking(1, trust=0.1), "vector": ranking(2, 3)})[0] == 2
    assert order({"keyword": ranking(1, trust=1.0), "vector": ranking(2, 3)})[0] == 1


def test_every_hit_says_which_legs_found_it_and_where():
    """Rank from one, and the leg's own score."""
    best = fuse({"keyword": ranking(3, 8), "vector": ranking(8)}, 1)[0]
    assert best.chunk_id == 8
    assert best.parts == (LegScore("keyword", 2, 9.0), LegScore("vector", 1, 10.0))


def test_equals_come_in_the_order_of_legs_and_ids():
    """The same query gives the same list."""
    legs = {"keyword": [Ranked(9, 1.0, 0.3)], "vector": [Ranked(2, 1.0, 0.7)]}
    assert order(legs) == [9, 2]
    assert order({"vector": [Ranked(5, 0.5), Ranked(3, 0.5)]}) == [3, 5]


def test_how_far_a_hit_is_ahead_counts():
    """A first place by a hair does not outweigh one by far."""
    legs = {"keyword": [Ranked(1, 9.0), Ranked(2, 8.9)], "vector": [Ranked(2, 0.8), Ranked(1, 0.2)]}
    assert order(legs) == [2, 1]
    legs = {
        "keyword": [Ranked(1, 9.0), Ranked(2, 3.0)],
        "vector": [Ranked(2, 0.8), Ranked(1, 0.79), Ranked(3, 0)],
    }
    assert order(legs)[0] == 1


def test_the_order_does_not_depend_on_how_many_are_asked_for():
    """What lies beyond the fixed depth of the vector leg adds nothing, and takes nothing."""
    near = [Ranked(number, 1.0 - number / 1000) for number in range(200)]
    words = [Ranked(150, 4.0), Ranked(50, 3.9)]
    few, many = ({"keyword": words, "vector": near[:depth]} for depth in (100, 200))
    assert order(few, 20) == order(many, 20)
    assert min(one.score for one in fuse(many, 200)) >= 0


def plainly(legs, k):
    """What `fuse` promises, each score worked out and every chunk put in order."""
    scores, first = {}, {}
    for leg, ranking in legs.items():
        least = ranking[min(ZERO_AT, len(ranking)) - 1].score if ranking and leg in COSINES else 0.0
        for one in ranking:
            span = ranking[0].score - least
            share = max(0.0, (one.score - least) / span) if span > 0 else 1.0
            scores[one.chunk_id] = scores.get(one.chunk_id, 0.0) + WEIGHTS[leg] * one.trust * share
            first.setdefault(one.chunk_id, list(legs).index(leg))
    best = sorted(scores, key=lambda number: (-round(scores[number], 9), first[number], number))
    return [(number, scores[number]) for number in best[:k]]


def test_the_order_is_that_of_all_chunks_whatever_is_asked_for():
    """Scores that are equal, nearly equal and apart; few and many hits."""
    numbers = random.Random(11)
    for step in range(200):
        steps = numbers.choice([2, 5, 1000])
        legs = {}
        for leg in WEIGHTS:
            ids = numbers.sample(range(150), numbers.choice([0, 1, 20, 120]))
            scores = sorted((numbers.randrange(steps) / steps for _ in ids), reverse=True)
            near = [score + numbers.choice([0.0, 1e-10, 1e-9]) for score in scores]
            legs[leg] = [Ranked(*one, numbers.choice([1.0, 0.5])) for one in zip(ids, near, strict=True)]
        k = numbers.choice([1, 5, 10, 400])
        assert [(one.chunk_id, one.score) for one in fuse(legs, k)] == plainly(legs, k), step
