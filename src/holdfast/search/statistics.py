"""The words of one collection: what BM25 needs to know, of that collection alone.

Each slice of a published document has one row of `word_counts`, written when the slice was finished: which of
its chunks have each term. A reader puts them together: number of chunks, their length, for each term the
chunks that have it. That is kept in memory and stamped with the collection's `publish_seq`; at another stamp
only the documents that came, went or changed are added and taken off, inside the snapshot of the query.

A collection of more than `MOST_POSTINGS` (about half a million chunks) keeps the sums alone, and the
full-text index of the database finds the chunks. What is gone then still counts until an eighth of it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

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
# Blocks of fewer chunks are put together when there are more than so many of them.
TIERS = (2048, 16384)
MOST_SMALL = 8


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is said in the documents that one `publish_seq` shows. Never changed once made."""

    publish_seq: int
    heads: Mapping[int, int]
    blocks: tuple[PostingBlock, ...]
    chunks: int
    length: int
    has_postings: bool

    @property
    def nbytes(self) -> int:
        """About how much memory this takes now."""
        return sum(one.nbytes for one in self.blocks) + 100 * len(self.heads)

    @property
    def average(self) -> float:
        """The mean length of a chunk, in terms; never zero."""
        return max(1.0, self.length / self.chunks) if self.chunks else 1.0

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        """In how many chunks each term occurs."""
        wanted = term_counts.numbers_of(terms)
        total = np.zeros(len(wanted), dtype=np.int64)
        for one in self.blocks:
            total += one.frequencies(wanted)
        found: list[int] = total.tolist()
        return found


class StatisticsCache:
    """The statistics of the collections that were asked for last, about `budget` bytes of them."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._kept: SnapshotCache[Statistics] = SnapshotCache(budget)

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        return self._kept.nbytes

    def is_at(self, tenant: str, collection: str, publish_seq: int) -> bool:
        """True when the words of the collection are in memory at this stamp: no database has to be asked."""
        found = self._kept.known((tenant, collection), publish_seq)
        return found is not None and found.has_postings

    def at(self, tx: Tx, tenant: str, collection: str, view: stored.CollectionSnapshot) -> Statistics:
        """The statistics of exactly what this snapshot shows."""
        return self._kept.at((tenant, collection), view.publish_seq, partial(_bring, tx, view))


def _bring(tx: Tx, view: stored.CollectionSnapshot, old: Statistics | None) -> Statistics:
    """What the snapshot of `tx` shows; only what `old` does not know is loaded."""
    if old is not None and not old.has_postings and _is_worn(old, view):
        old = None
    gone, fresh = view.since(old.heads if old is not None else {})
    blocks = _without(old.blocks if old is not None else (), gone)
    has_postings = old is None or old.has_postings
    if fresh:
        come = _loaded(tx, fresh)
        blocks.append(come if has_postings else come.bare())
    return _made(view, _tidied(blocks), has_postings=has_postings)


def _is_worn(old: Statistics, view: stored.CollectionSnapshot) -> bool:
    """True when too much of what the sums still count is gone."""
    gone, _ = view.since(old.heads)
    blocks = _without(old.blocks, gone)
    return 8 * sum(map(len, blocks)) < 7 * sum(len(one.ids) for one in blocks)


def _without(blocks: Iterable[PostingBlock], gone: Sequence[int]) -> list[PostingBlock]:
    if not gone:
        return list(blocks)
    heads = np.array(gone, dtype=np.int64)
    return [one.without(heads) for one in blocks]


def _tidied(blocks: Sequence[PostingBlock]) -> list[PostingBlock]:
    """The same in fewer blocks, when many are small; without those of which more than half is gone."""
    found = [one if 2 * len(one) > len(one.ids) else postings.merged([one]) for one in blocks if len(one)]
    for size in TIERS:
        small = [one for one in found if len(one.ids) < size]
        if len(small) > MOST_SMALL:
            found = [one for one in found if len(one.ids) >= size] + [postings.merged(small)]
    return found


def _made(
    view: stored.CollectionSnapshot, blocks: Sequence[PostingBlock], *, has_postings: bool
) -> Statistics:
    has_postings = has_postings and sum(one.postings for one in blocks) <= MOST_POSTINGS
    if not has_postings:
        blocks = [one.bare() for one in blocks]
    return Statistics(
        view.publish_seq,
        view.heads,
        tuple(blocks),
        sum(map(len, blocks)),
        sum(one.length for one in blocks),
        has_postings,
    )


def _loaded(tx: Tx, fresh: Sequence[int]) -> PostingBlock:
    """The chunks of these documents, from their counts; from their words where the counts do not fit them."""
    there = stored.counted(tx, fresh)
    whole: dict[int, list[SliceTerms]] = {}
    for head, one in there.items():
        found = [made for terms in one.terms if (made := term_counts.decode(terms)) is not None]
        if sum(len(made.lengths) for made in found) == len(one.ids):
            whole[head] = found
    said: dict[int, list[str | None]] = {head: [] for head in there if head not in whole}
    for chunk in stored.words_of(tx, list(said)):
        said[chunk.head_id].append(chunk.words)
    for head, words in said.items():
        if (made := term_counts.decode(encode(words)[2])) is not None:
            whole[head] = [made]
    return postings.block(
        [chunk_id for head in whole for chunk_id in there[head].ids],
        [head for head in whole for _ in there[head].ids],
        [one for found in whole.values() for one in found],
    )
