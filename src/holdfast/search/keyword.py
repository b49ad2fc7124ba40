"""The keyword leg: a collection's chunks ranked by BM25.

If the statistics have postings, every chunk with a term is scored. In a collection too large for that the
database's full-text index finds chunks by their terms but cannot rank them, so candidates are fetched and
scored here. Their number stays bounded however common the words are: the rarest terms are searched one by
one, as many as fit the budget; of the common ones a chunk must have several, enough for the expected number
to fit.

What this can miss, only in such a large collection: for a single common word, chunks beyond the bound that
have it more often; and chunks with fewer of the common words than required. Neither would rank high.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from holdfast.extras import LazyModule
from holdfast.search import bm25, postings, term_counts
from holdfast.search.bm25 import Term
from holdfast.search.postings import PostingBlock
from holdfast.search.statistics import Statistics
from holdfast.store.base.database import Tx
from holdfast.store.search import search_reads as stored
from holdfast.vectors.base import Ranked

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

MOST_TERMS = 24  # of a query, by weight
MOST_COMMON = 7  # common terms that are combined
EXPECTED = 500  # candidates aimed at
MOST = 1000  # candidates fetched at most by one statement
MANY = 20  # times `depth`: blocks with more scored chunks are cut down one by one
DIGITS = 6  # scores that differ by less are equal
TRUSTING = 0.25  # exponent of the matched share; 1 would distrust the words of every long query


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The query's terms that the collection has, by descending weight, and the weight of all its terms.

    `frequencies` has the number of chunks for every term.
    """

    known: tuple[Term, ...]
    weight: float
    frequencies: Mapping[str, int]


def terms_of(query: Sequence[str], statistics: Statistics) -> QueryTerms:
    """The terms of the query, at most `MOST_TERMS` of them."""
    repeated = Counter(query)
    names = list(repeated)
    frequencies = dict(zip(names, statistics.frequencies(names), strict=True))
    weighted = [
        Term(name, frequency, bm25.weight(frequency, statistics.chunks, repeated[name]))
        for name, frequency in frequencies.items()
    ]
    weighted.sort(key=lambda term: (-term.weight, term.term))
    known = [term for term in weighted if term.frequency > 0][:MOST_TERMS]
    return QueryTerms(tuple(known), sum(term.weight for term in weighted[:MOST_TERMS]), frequencies)


def rank(
    tx: Tx,
    tenant: str,
    collection: str,
    terms: QueryTerms,
    statistics: Statistics,
    *,
    heads: Sequence[int] | None,
    depth: int,
) -> list[Ranked]:
    """The best `depth` chunks by BM25, best first, ties by id; only of `heads` if given.

    A chunk's trust grows with the share of the query's weight that it matches: a single common word of a long
    query says little.
    """
    if not terms.known or heads == []:
        return []
    if statistics.has_postings:
        among = None if heads is None else np.array(heads, dtype=np.int64)
        worth = [term.weight for term in terms.known]
        numbers = term_counts.numbers_of(term.term for term in terms.known)
        parts = [_scored(one, worth, numbers, statistics.average, among, depth) for one in statistics.blocks]
        scored = parts[0] if len(parts) == 1 else Scored(*map(np.concatenate, zip(*parts, strict=True)))
    else:
        candidates = _candidates(tx, tenant, collection, terms.known, statistics.chunks, heads, depth)
        scores = bm25.scores([one.words for one in candidates], terms.known, statistics.average)
        scored = Scored(np.array([one.chunk_id for one in candidates], dtype=np.int64), *scores)
    best = _best(scored, depth)
    trust = np.minimum(1.0, best.matched / terms.weight) ** TRUSTING
    return list(map(Ranked, best.ids.tolist(), best.scores.tolist(), trust.tolist()))


class Scored(NamedTuple):
    """Chunks, their scores, and the weight of the terms that each has."""

    ids: postings.Ids
    scores: postings.Floats
    matched: postings.Floats


def _scored(
    block: PostingBlock,
    worth: Sequence[float],
    numbers: term_counts.Numbers,
    average: float,
    among: postings.Ids | None,
    depth: int,
) -> Scored:
    """The chunks of one block that have a score, only the best if there are many; of `among` if given."""
    weighted = [(weight, *block.of(number)) for weight, number in zip(worth, numbers, strict=True)]
    total, matched = bm25.posted(weighted, block.lengths, average)
    if among is not None:
        total[~np.isin(block.heads, among)] = 0.0
    (rows,) = total.nonzero()
    scored = Scored(block.ids[rows], total[rows], matched[rows])
    return _best(scored, depth) if len(rows) > MANY * depth else scored


def _best(scored: Scored, depth: int) -> Scored:
    """The best `depth` with a positive score, best first, ties by id."""
    scores = np.round(scored.scores, DIGITS)
    least = np.partition(scores, len(scores) - depth)[len(scores) - depth] if len(scores) > depth else 0.0
    rows = np.flatnonzero((scores >= least) & (scores > 0))
    order = rows[np.lexsort((scored.ids[rows], -scores[rows]))[:depth]]
    return Scored(scored.ids[order], scores[order], scored.matched[order])


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
    candidates: dict[int, stored.Candidate] = {}

    def ask(alternatives: stored.Wanted) -> int:
        rows = stored.candidates(tx, tenant, collection, alternatives, heads=heads, most=MOST)
        candidates.update((row.chunk_id, row) for row in rows)
        return len(rows)

    if rare:
        # Separately: combined with common words they could be cut off with them.
        ask([(term,) for term in rare])
    if not common:
        return list(candidates.values())
    number = ask(list(combinations(common, least)))
    if number == MOST and least < len(common):
        # More than expected, and cut: chunks with more of the words may be among those left out.
        ask(list(combinations(common, least + 1)))
    while len(candidates) < depth and least > 1:
        least -= 1
        ask(list(combinations(common, least)))
    return list(candidates.values())


def choose(terms: Sequence[Term], chunks: int) -> tuple[list[str], list[str], int]:
    """Terms to search one by one; common terms to combine; and how many of these a chunk must have."""
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
    """The probability that a chunk has at least 0, 1, 2, … of the terms, if they are independent."""
    exactly = [1.0]
    for share in shares:
        exactly = [
            math.fsum((before * (1 - share), after * share))
            for before, after in zip([*exactly, 0.0], [0.0, *exactly], strict=True)
        ]
    return [math.fsum(exactly[n:]) for n in range(len(exactly))]
