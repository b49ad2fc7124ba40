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
from itertools import chain, combinations
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
    names = list(dict.fromkeys(query))
    return _weighted(query, dict(zip(names, statistics.frequencies(names), strict=True)), statistics)


def terms_by_language(queries: Mapping[int, Sequence[str]], statistics: Statistics) -> dict[int, QueryTerms]:
    """The same for each language, whose documents have the query's words in a form of their own.

    A form counts wherever it occurs: a name that documents of several languages have is rarer in none.
    """
    names = list(dict.fromkeys(chain.from_iterable(queries.values())))
    frequencies = dict(zip(names, statistics.frequencies(names), strict=True))
    return {language: _weighted(query, frequencies, statistics) for language, query in queries.items()}


def _weighted(query: Sequence[str], known_in: Mapping[str, int], statistics: Statistics) -> QueryTerms:
    repeated = Counter(query)
    frequencies = {name: known_in[name] for name in repeated}
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
    terms: Mapping[int, QueryTerms],
    statistics: Statistics,
    *,
    heads: Sequence[int] | None,
    depth: int,
) -> list[Ranked]:
    """The best `depth` chunks by BM25, best first, ties by id; only of `heads` if given.

    `terms` are those of each language: a chunk is compared with those of its own.

    A chunk's trust grows with the share of the query's weight that it matches: a single common word of a long
    query says little.
    """
    known = {language: each for language, each in terms.items() if each.known}
    if not known or heads == []:
        return []
    if statistics.has_postings:
        among = None if heads is None else np.array(heads, dtype=np.int64)
        looked_up = {
            language: LookUp(
                [term.weight for term in each.known],
                term_counts.numbers_of(term.term for term in each.known),
                each.weight,
                statistics.average_in(language),
            )
            for language, each in known.items()
        }
        parts = [
            _scored(one, looked_up[one.language], among, depth)
            for one in statistics.blocks
            if one.language in looked_up
        ]
    else:
        parts = [
            _of_candidates(tx, (tenant, collection), language, each, statistics, heads, depth)
            for language, each in known.items()
        ]
        parts = [_best_of_each(parts)] if len(parts) > 1 else parts
    if not parts:
        return []
    scored = parts[0] if len(parts) == 1 else Scored(*map(np.concatenate, zip(*parts, strict=True)))
    best = _best(scored, depth)
    trust = np.minimum(1.0, best.share) ** TRUSTING
    return list(map(Ranked, best.ids.tolist(), best.scores.tolist(), trust.tolist()))


def _of_candidates(
    tx: Tx,
    name: tuple[str, str],
    language: int,
    terms: QueryTerms,
    statistics: Statistics,
    heads: Sequence[int] | None,
    depth: int,
) -> Scored:
    candidates = _candidates(tx, *name, terms.known, statistics.chunks, heads, depth)
    words = [one.words for one in candidates]
    scores, matched = bm25.scores(words, terms.known, statistics.average_in(language))
    ids = np.array([one.chunk_id for one in candidates], dtype=np.int64)
    return Scored(ids, scores, matched / terms.weight)


def _best_of_each(parts: Sequence[Scored]) -> Scored:
    """Each chunk once, by its best score: candidates do not say their language, so all forms were tried."""
    joined = Scored(*map(np.concatenate, zip(*parts, strict=True)))
    order = np.lexsort((-joined.scores, joined.ids))
    ids = joined.ids[order]
    is_first = np.ones(len(ids), dtype=bool)
    is_first[1:] = ids[1:] != ids[:-1]
    rows = order[is_first]
    return Scored(joined.ids[rows], joined.scores[rows], joined.share[rows])


class Scored(NamedTuple):
    """Chunks, their scores, and the share of the query's weight that each has."""

    ids: postings.Ids
    scores: postings.Floats
    share: postings.Floats


class LookUp(NamedTuple):
    """The terms of a query in one language: weights, numbers, the weight of all, a chunk's mean length."""

    worth: Sequence[float]
    numbers: term_counts.Numbers
    weight: float
    average: float


def _scored(block: PostingBlock, terms: LookUp, among: postings.Ids | None, depth: int) -> Scored:
    """The chunks of one block that have a score, only the best if there are many; of `among` if given."""
    weighted = [
        (weight, *block.of(number)) for weight, number in zip(terms.worth, terms.numbers, strict=True)
    ]
    total, matched = bm25.posted(weighted, block.lengths, terms.average)
    if among is not None:
        total[~np.isin(block.heads, among)] = 0.0
    (rows,) = total.nonzero()
    scored = Scored(block.ids[rows], total[rows], matched[rows] / terms.weight)
    return _best(scored, depth) if len(rows) > MANY * depth else scored


def _best(scored: Scored, depth: int) -> Scored:
    """The best `depth` with a positive score, best first, ties by id."""
    scores = np.round(scored.scores, DIGITS)
    least = np.partition(scores, len(scores) - depth)[len(scores) - depth] if len(scores) > depth else 0.0
    rows = np.flatnonzero((scores >= least) & (scores > 0))
    order = rows[np.lexsort((scored.ids[rows], -scores[rows]))[:depth]]
    return Scored(scored.ids[order], scores[order], scored.share[order])


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
