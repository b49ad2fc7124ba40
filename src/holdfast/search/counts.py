"""The terms of one slice, packed; and the sum of many such packages.

A term is counted under its CRC-32: four bytes instead of a word, so that ten thousand documents are added up
as arrays of numbers. Two terms that share a number share a count; among 200,000 distinct terms about five
pairs do, and what follows is a slightly wrong weight.
"""

import struct
import zlib
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_HEADER = struct.Struct("<BII")  # format, how many terms are in one chunk, how many in several
_FORMAT = 1
_MOST = 0xFFFF
_REMEMBERED = 500_000

Numbers = NDArray[np.uint32]
Counts = NDArray[np.int64]


class _Codes(dict[str, int]):
    """Terms to their numbers, remembered: the words of one slice are mostly those of the one before."""

    def __missing__(self, term: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        number = self[term] = zlib.crc32(term.encode())
        return number


_codes = _Codes()


def numbers_of(terms: Iterable[str]) -> Numbers:
    """The numbers under which these terms are counted."""
    return np.array([_codes[term] for term in terms], dtype=np.uint32)


def encode(chunks: Iterable[str | None]) -> tuple[int, int, bytes]:
    """Number of chunks, length in terms, and the packed counts of one slice, from its chunks' `words`."""
    given = list(chunks)
    split = [words.split(" ") for words in given if words]
    # Each term once for each chunk that has it; those of two terms with one number are added up.
    coded = np.array(list(map(_codes.__getitem__, chain.from_iterable(map(set, split)))), dtype=np.uint32)
    numbers, counts = np.unique(coded, return_counts=True)
    several = counts > 1
    parts = (
        _HEADER.pack(_FORMAT, len(numbers) - int(several.sum()), int(several.sum())),
        numbers[~several].astype("<u4").tobytes(),
        numbers[several].astype("<u4").tobytes(),
        np.minimum(counts[several], _MOST).astype("<u2").tobytes(),
    )
    return len(given), sum(map(len, split)), b"".join(parts)


def decode(terms: bytes) -> tuple[Numbers, Numbers, NDArray[np.uint16]]:
    """The terms of one slice: those in one chunk; those in several, and in how many."""
    kind, once, several = _HEADER.unpack_from(terms)
    if kind != _FORMAT:
        message = f"word counts of format {kind}, this release reads {_FORMAT}: index the document again"
        raise ValueError(message)
    numbers = np.frombuffer(terms, dtype="<u4", count=once + several, offset=_HEADER.size)
    counts = np.frombuffer(terms, dtype="<u2", count=several, offset=_HEADER.size + numbers.nbytes)
    return numbers[:once], numbers[once:], counts


class Sum:
    """In how many chunks each term occurs, over many slices.

    The first few questions look through everything, a millisecond each for ten thousand documents: a process
    that asks once is done sooner that way. More questions are worth a sort, and cost nothing afterwards.
    """

    WORTH_A_SORT = 48

    def __init__(self, slices: Sequence[bytes]) -> None:
        parts = [decode(terms) for terms in slices]
        nothing = np.empty(0, np.uint32)
        self._raw: _Raw | None = _Raw(
            np.concatenate([nothing, *(once for once, _, _ in parts)]),
            np.concatenate([nothing, *(several for _, several, _ in parts)]),
            np.concatenate([nothing.astype(np.uint16), *(counts for _, _, counts in parts)]),
        )
        self._sorted: tuple[Numbers, Counts] | None = None
        self._asked = 0

    @property
    def nbytes(self) -> int:
        """The memory it takes now."""
        return sum(part.nbytes for part in (*(self._raw or ()), *(self._sorted or ())))

    def frequencies(self, wanted: Numbers) -> list[int]:
        """In how many chunks each of these terms occurs."""
        self._asked += len(wanted)
        raw = self._raw
        if raw is not None and self._asked <= self.WORTH_A_SORT:
            return [raw.look(number) for number in wanted]
        numbers, counts = self._sorted if self._sorted is not None else self.sort()
        if not len(numbers):
            return [0] * len(wanted)
        at = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        found: list[int] = np.where(numbers[at] == wanted, counts[at], 0).tolist()
        return found

    def sort(self) -> tuple[Numbers, Counts]:
        """The sorted form, which takes the place of the other. Two threads may both make it, and agree."""
        if (raw := self._raw) is not None:
            self._sorted = raw.added_up()
            self._raw = None
        assert self._sorted is not None  # noqa: S101 - it was there before the other form went
        return self._sorted


class _Raw(NamedTuple):
    """The terms of many slices, one after another."""

    once: Numbers
    several: Numbers
    counts: NDArray[np.uint16]

    def look(self, number: np.uint32) -> int:
        several = self.counts[self.several == number]
        return int(np.count_nonzero(self.once == number)) + int(several.sum(dtype=np.int64))

    def added_up(self) -> tuple[Numbers, Counts]:
        once, once_counts = _added_up(np.sort(self.once), None)
        packed = np.sort((self.several.astype(np.uint64) << np.uint64(16)) | self.counts)
        several, several_counts = _added_up(
            (packed >> np.uint64(16)).astype(np.uint32), (packed & np.uint64(_MOST)).astype(np.int64)
        )
        numbers = np.concatenate((once, several))
        order = np.argsort(numbers, kind="stable")
        return _added_up(numbers[order], np.concatenate((once_counts, several_counts))[order])


def _added_up(numbers: Numbers, counts: Counts | None) -> tuple[Numbers, Counts]:
    """Each number once, with the sum of its counts (or how often it stands there); `numbers` is sorted."""
    if not len(numbers):
        return numbers, np.empty(0, np.int64)
    starts = np.flatnonzero(np.concatenate((np.array([True]), numbers[1:] != numbers[:-1])))
    if counts is None:
        return numbers[starts], np.diff(starts, append=len(numbers))
    return numbers[starts], np.add.reduceat(counts, starts)
