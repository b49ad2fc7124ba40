"""Term statistics of one collection, as BM25 needs them.

Each slice of a published document has one row of `word_counts`, written when the slice was finished: which of
its chunks have each term. A reader combines them: number of chunks, their length, and the postings of each
term. The result is cached and stamped with the collection's `publish_seq`; at another stamp only documents
that were added, removed or changed are updated, inside the snapshot of the query.

A collection of more than `MOST_POSTINGS` (about half a million chunks) keeps only the sums, and the
database's full-text index finds the chunks. Removed chunks then still count until they are an eighth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.languages import ENGLISH_RULES
from holdfast.extras import LazyModule
from holdfast.search import postings, term_counts
from holdfast.search.postings import PostingBlock
from holdfast.search.term_counts import SliceTerms, encode
from holdfast.store.base.database import Tx
from holdfast.store.search import search_reads as stored
from holdfast.store.search.snapshot_cache import SnapshotCache

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

__all__ = ["Statistics", "StatisticsCache", "encode"]

BUDGET = 256 << 20
MOST_POSTINGS = 40_000_000
# Blocks smaller than these sizes are merged when there are more than MOST_SMALL of them.
TIERS = (2048, 16384)
MOST_SMALL = 8


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of the documents visible at one `publish_seq`. Immutable.

    A block has chunks of one language: a query's words are looked up in it in the form of that language.
    """

    publish_seq: int
    heads: Mapping[int, int]
    blocks: tuple[PostingBlock, ...]
    chunks: int
    length: int
    has_postings: bool
    averages: Mapping[int, float] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """About how much memory this takes."""
        return sum(one.nbytes for one in self.blocks) + 100 * len(self.heads)

    @property
    def average(self) -> float:
        """The mean length of a chunk, in terms; never zero."""
        return _average(self.chunks, self.length)

    @property
    def languages(self) -> Sequence[int]:
        """The numbers of the languages by whose rules its chunks were analysed; there is always one."""
        return list(self.averages) or [ENGLISH_RULES]

    def average_in(self, language: int) -> float:
        """The mean length of a chunk in this language, in terms; never zero."""
        return self.averages.get(language, self.average)

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        """In how many chunks each term occurs."""
        numbers = term_counts.numbers_of(terms)
        total = np.zeros(len(numbers), dtype=np.int64)
        for one in self.blocks:
            total += one.frequencies(numbers)
        frequencies: list[int] = total.tolist()
        return frequencies


class StatisticsCache:
    """The statistics of recently searched collections, about `budget` bytes of them."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._cache: SnapshotCache[Statistics] = SnapshotCache(budget)

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        return self._cache.nbytes

    def is_at(self, tenant: str, collection: str, publish_seq: int) -> bool:
        """True if the collection's postings are cached at this stamp, so that no query is needed."""
        cached = self._cache.known((tenant, collection), publish_seq)
        return cached is not None and cached.has_postings

    def at(self, tx: Tx, tenant: str, collection: str, view: stored.CollectionSnapshot) -> Statistics:
        """The statistics of exactly this snapshot."""
        return self._cache.at((tenant, collection), view.publish_seq, partial(_bring, tx, view))


def _bring(tx: Tx, view: stored.CollectionSnapshot, old: Statistics | None) -> Statistics:
    """Statistics of the snapshot of `tx`; only what `old` lacks is loaded."""
    if old is not None and not old.has_postings and _is_worn(old, view):
        old = None
    gone, fresh = view.since(old.heads if old is not None else {})
    blocks = _without(old.blocks if old is not None else (), gone)
    has_postings = old is None or old.has_postings
    if fresh:
        blocks += [come if has_postings else come.bare() for come in _loaded(tx, fresh)]
    return _statistics(view, _tidied(blocks), has_postings=has_postings)


def _is_worn(old: Statistics, view: stored.CollectionSnapshot) -> bool:
    """True if too many of the counted chunks are gone."""
    gone, _ = view.since(old.heads)
    blocks = _without(old.blocks, gone)
    return 8 * sum(map(len, blocks)) < 7 * sum(len(one.ids) for one in blocks)


def _without(blocks: Iterable[PostingBlock], gone: Sequence[int]) -> list[PostingBlock]:
    if not gone:
        return list(blocks)
    heads = np.array(gone, dtype=np.int64)
    return [one.without(heads) for one in blocks]


def _tidied(blocks: Sequence[PostingBlock]) -> list[PostingBlock]:
    """The same in fewer blocks if many are small; blocks with more than half masked are compacted."""
    result = [one if 2 * len(one) > len(one.ids) else postings.merged([one]) for one in blocks if len(one)]
    for size in TIERS:
        by_language: dict[int, list[PostingBlock]] = {}
        for one in result:
            if len(one.ids) < size:
                by_language.setdefault(one.language, []).append(one)
        for language, small in by_language.items():
            if len(small) > MOST_SMALL:
                others = [one for one in result if len(one.ids) >= size or one.language != language]
                result = [*others, postings.merged(small)]
    return result


def _statistics(
    view: stored.CollectionSnapshot, blocks: Sequence[PostingBlock], *, has_postings: bool
) -> Statistics:
    has_postings = has_postings and sum(one.postings for one in blocks) <= MOST_POSTINGS
    if not has_postings:
        blocks = [one.bare() for one in blocks]
    sums: dict[int, tuple[int, int]] = {}
    for one in blocks:
        chunks, length = sums.get(one.language, (0, 0))
        sums[one.language] = chunks + len(one), length + one.length
    return Statistics(
        view.publish_seq,
        view.heads,
        tuple(blocks),
        sum(chunks for chunks, _ in sums.values()),
        sum(length for _, length in sums.values()),
        has_postings,
        {language: _average(*sums[language]) for language in sorted(sums)},
    )


def _average(chunks: int, length: int) -> float:
    return max(1.0, length / chunks) if chunks else 1.0


def _loaded(tx: Tx, fresh: Sequence[int]) -> list[PostingBlock]:
    """The chunks of these documents, from their counts, or from their words if the counts do not match.

    One block for each language; documents without counts are taken for English.
    """
    there = stored.counted(tx, fresh)
    whole: dict[int, list[SliceTerms]] = {}
    for head, one in there.items():
        slices = [terms for packed in one.terms if (terms := term_counts.decode(packed)) is not None]
        if sum(len(terms.lengths) for terms in slices) == len(one.ids):
            whole[head] = slices
    words_by_head: dict[int, list[str | None]] = {head: [] for head in there if head not in whole}
    for chunk in stored.words_of(tx, list(words_by_head)):
        words_by_head[chunk.head_id].append(chunk.words)
    for head, words in words_by_head.items():
        if (decoded := term_counts.decode(encode(words)[2])) is not None:
            whole[head] = [decoded]
    by_language: dict[int, _Loaded] = {}
    for head, slices in whole.items():
        at = 0
        for terms in slices:
            loaded = by_language.setdefault(terms.language, _Loaded([], [], []))
            ids = there[head].ids[at : at + len(terms.lengths)]
            loaded.ids.extend(ids)
            loaded.heads.extend([head] * len(ids))
            loaded.slices.append(terms)
            at += len(ids)
    return [postings.block(*each, language) for language, each in by_language.items()]


class _Loaded(NamedTuple):
    """What a block is made of."""

    ids: list[int]
    heads: list[int]
    slices: list[SliceTerms]
