"""Postings: which chunks have a term, in immutable blocks. Two indexes share the blocks in which they agree.

New chunks get a block of their own, removed ones are masked in their old block, as with the vectors
(`vectors.matrix`). A block starts unsorted, slice by slice: for a few look-ups a scan is faster than sorting.
More look-ups are worth a sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from holdfast.core.languages import ENGLISH_RULES
from holdfast.extras import LazyModule
from holdfast.search.term_counts import Numbers, SliceTerms, Whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

WORTH_A_SORT = 48  # look-ups
_LOOKED = 200  # cached terms per block
_AT_ONCE = 1 << 20  # postings that are ordered together, to keep the copies small

Ids: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Mask: TypeAlias = "NDArray[np.bool_]"


class Posting(NamedTuple):
    """The rows of a block that have a term, and how often each has it."""

    rows: Whole
    times: Whole


class Entries(NamedTuple):
    """Entries of terms: entry i has the postings from `ends[i - 1]` to `ends[i]`; if sorted, one per term.

    A bare one has only the number of its postings.
    """

    numbers: Numbers
    ends: Whole
    rows: Whole
    times: Whole
    is_sorted: bool

    @property
    def is_bare(self) -> bool:
        """True if it has only the number of postings."""
        return not len(self.rows) and len(self.numbers) > 0

    def of(self, number: np.uint32) -> Posting:
        """The postings of a term."""
        entries = self._at(number)
        begins, ends = self._stretch(entries)
        if len(entries) == 1:
            here = slice(begins[0], ends[0])
            return Posting(self.rows[here], self.times[here])
        positions = _ranges(begins, ends)
        return Posting(self.rows[positions], self.times[positions])

    def frequency(self, number: np.uint32) -> int:
        """How many postings a term has."""
        begins, ends = self._stretch(self._at(number))
        return int((ends - begins).sum())

    def sorted(self) -> Entries:
        """The same entries with the postings of each term adjacent."""
        # Number and position in one key: sorting 64-bit integers is several times faster than an argsort.
        keys = self.numbers.astype(np.uint64) << np.uint64(32)
        keys |= np.arange(len(keys), dtype=np.uint64)
        keys.sort()
        order = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
        numbers = (keys >> np.uint64(32)).astype(np.uint32)
        begins, ends = self._stretch(order)
        reached = np.cumsum(ends - begins)
        rows, times = np.empty_like(self.rows), np.empty_like(self.times)
        first, done = (len(order) if self.is_bare else 0), 0
        while first < len(order):
            last = max(first + 1, int(np.searchsorted(reached, done + _AT_ONCE, side="right")))
            positions = _ranges(begins[first:last], ends[first:last])
            rows[done : done + len(positions)] = self.rows[positions]
            times[done : done + len(positions)] = self.times[positions]
            first, done = last, done + len(positions)
        is_last = np.ones(len(numbers), dtype=bool)
        is_last[:-1] = numbers[1:] != numbers[:-1]
        return Entries(
            numbers[is_last], reached[is_last].astype(self.ends.dtype), rows, times, is_sorted=True
        )

    def _at(self, number: np.uint32) -> Ids:
        if not self.is_sorted:
            return np.flatnonzero(self.numbers == number)
        at = int(np.searchsorted(self.numbers, number))
        return np.array([at] if at < len(self.numbers) and self.numbers[at] == number else [], dtype=np.int64)

    def _stretch(self, entries: Ids) -> tuple[Ids, Ids]:
        begins = np.where(entries > 0, self.ends[entries - 1], 0) if len(entries) else entries
        return begins.astype(np.int64), self.ends[entries].astype(np.int64)


def _ranges(begins: Ids, ends: Ids) -> Ids:
    """The concatenated ranges from each beginning up to its end."""
    sizes = ends - begins
    reached = np.cumsum(sizes)
    positions: Ids = np.repeat(begins - (reached - sizes), sizes)
    positions += np.arange(len(positions))
    return positions


@dataclass(slots=True)
class PostingBlock:
    """Chunks of one language: id, head and length of each, which are still alive (None: all), their terms."""

    ids: Ids
    heads: Ids
    lengths: NDArray[np.uint16]
    alive: Mask | None = None
    entries: Entries = field(kw_only=True)
    language: int = field(default=ENGLISH_RULES, kw_only=True)
    _look_ups: int = 0
    _cached: dict[np.uint32, Posting] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """The memory of its arrays."""
        arrays = (self.ids, self.heads, self.lengths, *self.entries[:4])
        return sum(each.nbytes for each in arrays)

    def __len__(self) -> int:
        return len(self.ids) if self.alive is None else int(np.count_nonzero(self.alive))

    @property
    def length(self) -> int:
        """The number of terms in its live chunks."""
        lengths = self.lengths if self.alive is None else self.lengths[self.alive]
        return int(lengths.sum(dtype=np.int64))

    def without(self, heads: Ids) -> PostingBlock:
        """The same block with the chunks of these heads masked."""
        gone = np.isin(self.heads, heads)
        if not gone.any():
            return self
        alive = ~gone if self.alive is None else self.alive & ~gone
        return PostingBlock(
            self.ids,
            self.heads,
            self.lengths,
            alive,
            self._look_ups,
            entries=self.entries,
            language=self.language,
        )

    def of(self, number: np.uint32) -> Posting:
        """The live chunks that have this term. A bare block has none."""
        if (posting := self._cached.get(number)) is None:
            entries = self._ready(1)
            posting = entries.of(number)
            if self.alive is not None:
                counts = self.alive[posting.rows]
                posting = Posting(posting.rows[counts], posting.times[counts])
            if not entries.is_sorted or self.alive is None:
                # Needed twice: for frequencies, then for chunks. In a sorted block it is just an array slice.
                if len(self._cached) >= _LOOKED:
                    self._cached.clear()
                self._cached[number] = posting
        return posting

    def frequencies(self, numbers: Numbers) -> Ids:
        """How many chunks have each of these terms; a bare block includes masked chunks."""
        if self.entries.is_bare:
            entries = self._ready(len(numbers))
            return np.array([entries.frequency(each) for each in numbers], dtype=np.int64)
        return np.array([len(self.of(each).rows) for each in numbers], dtype=np.int64)

    def _ready(self, look_ups: int) -> Entries:
        """The terms, sorted if that is worth it by now. Two threads may both sort them."""
        self._look_ups += look_ups
        if self._look_ups > WORTH_A_SORT and not self.entries.is_sorted:
            self.entries = self.entries.sorted()
            self._cached = {}
        return self.entries

    def bare(self) -> PostingBlock:
        """The same block without its postings: how many chunks have a term, not which."""
        nothing = np.empty(0, np.uint8)
        entries = self.entries.sorted() if not self.entries.is_sorted else self.entries
        return PostingBlock(
            self.ids,
            self.heads,
            self.lengths,
            self.alive,
            entries=entries._replace(rows=nothing, times=nothing),
            language=self.language,
        )

    @property
    def postings(self) -> int:
        """The number of its postings."""
        return len(self.entries.rows)


def block(
    ids: Sequence[int],
    heads: Sequence[int],
    slices: Sequence[SliceTerms],
    language: int = ENGLISH_RULES,
) -> PostingBlock:
    """A block of these chunks, all of one language, in the order of the slices."""
    entries = _combined([len(one.lengths) for one in slices], [one[1:5] for one in slices])
    lengths = _joined([one.lengths for one in slices], np.uint16)
    return PostingBlock(
        np.array(ids, dtype=np.int64),
        np.array(heads, dtype=np.int64),
        lengths,
        entries=entries,
        language=language,
    )


def merged(blocks: Sequence[PostingBlock]) -> PostingBlock:
    """One block of the live chunks of several of one language."""
    compacted = [_compact(one) for one in blocks]
    parts = [
        (one.entries.numbers, np.diff(one.entries.ends, prepend=0), one.entries.rows, one.entries.times)
        for one in compacted
    ]
    return PostingBlock(
        np.concatenate([one.ids for one in compacted]),
        np.concatenate([one.heads for one in compacted]),
        np.concatenate([one.lengths for one in compacted]),
        entries=_combined([len(one.ids) for one in compacted], parts),
        language=blocks[0].language,
    )


def _combined(sizes: Sequence[int], parts: Sequence[tuple[NDArray[Any], ...]]) -> Entries:
    """The terms of several parts of these sizes (numbers, counts, rows, times), each with rows from 0."""
    numbers, counts, rows, times = ([part[at] for part in parts] for at in range(4))
    # Without parts, as when every document was imported without chunks, there is no first row either.
    first = np.cumsum([0, *sizes])[:-1].astype(np.uint32)
    placed = _joined(rows, np.uint32)
    placed += np.repeat(first, np.array([len(each) for each in rows], dtype=np.int64))
    return Entries(
        _joined(numbers, np.uint32),
        np.cumsum(_joined(counts, np.uint32), dtype=np.uint32),
        placed,
        _joined(times, np.uint8),
        is_sorted=False,
    )


def _compact(one: PostingBlock) -> PostingBlock:
    """The block without masked chunks, and without terms that no live chunk has."""
    if one.alive is None:
        return one
    alive, entries = one.alive, one.entries
    if not entries.is_bare:
        stays = alive[entries.rows]
        renumbered = (np.cumsum(alive) - 1).astype(np.uint32)
        reached = np.append(0, np.cumsum(stays))[entries.ends]
        has = np.diff(reached, prepend=0) > 0
        entries = Entries(
            entries.numbers[has],
            reached[has],
            renumbered[entries.rows[stays]],
            entries.times[stays],
            is_sorted=entries.is_sorted,
        )
    return PostingBlock(
        one.ids[alive], one.heads[alive], one.lengths[alive], entries=entries, language=one.language
    )


def _joined(parts: Sequence[NDArray[Any]], least: type) -> NDArray[Any]:
    """One array, of type `least` or a wider one if a part needs it."""
    return np.concatenate([np.empty(0, least), *parts])
