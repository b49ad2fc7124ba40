"""The keyword leg: which chunks to look at, and their order by BM25.

The full-text index finds chunks by their terms but cannot rank them, so every candidate is fetched and scored
here. That must stay bounded however common the words are: the rarest terms are taken alone, as many as fit
the budget; of the common ones a chunk must have several, so many that the expected number fits.

What this can miss: with a single common word, chunks beyond the bound that have it more often; and chunks
that have only fewer of the common words than asked for. Neither would rank high among many others.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from holdfast.search import bm25
from holdfast.search.bm25 import Term
from holdfast.search.statistics import Statistics
from holdfast.store import search as stored
from holdfast.store.database import Tx
from holdfast.vectors.base import Ranked

MOST_TERMS = 32  # of a query, those worth most
MOST_COMMON = 7  # terms of which several are asked for together
EXPECTED = 1000  # candidates aimed at
MOST = 2000  # candidates fetched at most by one statement
SMALL = 1000  # chunks that are looked at without the full-text index


def terms_of(query: Sequence[str], statistics: Statistics) -> list[Term]:
    """The terms of the query that the collection has, the most valuable first, at most `MOST_TERMS`."""
    repeated = Counter(query)
    names = list(repeated)
    found = [
        Term(name, frequency, bm25.weight(frequency, statistics.chunks, repeated[name]))
        for name, frequency in zip(names, statistics.frequencies(names), strict=True)
        if frequency > 0
    ]
    return sorted(found, key=lambda term: (-term.weight, term.term))[:MOST_TERMS]


def rank(
    tx: Tx,
    tenant: str,
    collection: str,
    terms: Sequence[Term],
    statistics: Statistics,
    *,
    heads: Sequence[int] | None,
    depth: int,
) -> list[Ranked]:
    """The best `depth` chunks by BM25, best first, equals by their id; of `heads` alone where given."""
    if not terms or heads == []:
        return []
    size = statistics.chunks if heads is None else statistics.chunks_of(heads)
    if size <= SMALL:
        found = stored.members(tx, tenant, collection, heads)
    else:
        found = _candidates(tx, tenant, collection, terms, statistics.chunks, heads, depth)
    scores = bm25.scores([one.words for one in found], terms, statistics.average)
    ranked = [
        Ranked(one.chunk_id, round(score, 6))
        for one, score in zip(found, scores.tolist(), strict=True)
        if score > 0
    ]
    return sorted(ranked, key=lambda one: (-one.score, one.chunk_id))[:depth]


def _candidates(
    tx: Tx,
    tenant: str,
    collection: str,
    terms: Sequence[Term],
    chunks: int,
    heads: Sequence[int] | None,
    depth: int,
) -> list[stored.Candidate]:
    rare, common, least = choose(terms, chunks)
    found: dict[int, stored.Candidate] = {}

    def ask(least: int) -> int:
        wanted = [(term,) for term in rare] + list(combinations(common, least) if common else ())
        rows = stored.candidates(tx, tenant, collection, wanted, heads=heads, most=MOST)
        found.update((row.chunk_id, row) for row in rows)
        return len(rows)

    number = ask(least)
    if number == MOST and least < len(common):
        # More than expected, and cut: those that have more of the words may be among the ones left out.
        ask(least + 1)
    while len(found) < depth and least > 1:
        least -= 1
        ask(least)
    return list(found.values())


def choose(terms: Sequence[Term], chunks: int) -> tuple[list[str], list[str], int]:
    """Terms to look for alone; common terms to look for together; and how many of these at least."""
    by_rarity = sorted(terms, key=lambda term: (term.frequency, term.term))
    room, rare = EXPECTED, []
    for term in by_rarity:
        if term.frequency > room:
            break
        rare.append(term.term)
        room -= term.frequency
    common = by_rarity[len(rare) : len(rare) + MOST_COMMON]
    shares = [min(1.0, term.frequency / max(1, chunks)) for term in common]
    expected = _at_least(shares)
    least = next((n for n in range(1, len(common)) if expected[n] * chunks <= max(room, 100)), len(common))
    return rare, [term.term for term in common], least


def _at_least(shares: Sequence[float]) -> list[float]:
    """The chance that a chunk has at least 0, 1, 2, … of the terms, if each comes independently."""
    exactly = [1.0]
    for share in shares:
        exactly = [
            math.fsum((before * (1 - share), after * share))
            for before, after in zip([*exactly, 0.0], [0.0, *exactly], strict=True)
        ]
    return [math.fsum(exactly[n:]) for n in range(len(exactly))]
