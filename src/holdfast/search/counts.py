"""The terms of one slice, packed; and the sum of many such packages.

A term is counted under its CRC-32: four bytes instead of a word, so that ten thousand documents are added up
as arrays of numbers. Two terms that share a number share a count; among 200,000 distinct terms about five
pairs do, and what follows is a slightly wrong weight.
"""

import struct
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

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
    number = length = 0
    counts: Counter[str] = Counter()
    for words in chunks:
        number += 1
        if words:
            terms = words.split(" ")
            length += len(terms)
            counts.update(set(terms))
    codes = _codes
    once = array("I", [codes[term] for term, count in counts.items() if count == 1])
    several = [(codes[term], min(count, _MOST)) for term, count in counts.items() if count > 1]
    numbers = array("I", [code for code, _ in several])
    how_often = array("H", [count for _, count in several])
    if sys.byteorder == "big":
        for part in (once, numbers, how_often):
            part.byteswap()
    head = _HEADER.pack(_FORMAT, len(once), len(several))
    return number, length, b"".join((head, once.tobytes(), numbers.tobytes(), how_often.tobytes()))


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
        self._once: Numbers = np.concatenate([nothing, *(once for once, _, _ in parts)])
        self._several: Numbers = np.concatenate([nothing, *(several for _, several, _ in parts)])
        self._counts = np.concatenate([nothing.astype(np.uint16), *(counts for _, _, counts in parts)])
        self._sorted: tuple[Numbers, Counts] | None = None
        self._asked = 0

    @property
    def nbytes(self) -> int:
        """The memory it takes now."""
        if (made := self._sorted) is not None:
            return made[0].nbytes + made[1].nbytes
        return self._once.nbytes + self._several.nbytes + self._counts.nbytes

    def frequencies(self, wanted: Numbers) -> list[int]:
        """In how many chunks each of these terms occurs."""
        self._asked += len(wanted)
        if self._sorted is None and self._asked > self.WORTH_A_SORT:
            self._sort()
        if (made := self._sorted) is None:
            return [self._look(number) for number in wanted]
        numbers, counts = made
        if not len(numbers):
            return [0] * len(wanted)
        at = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        found: list[int] = np.where(numbers[at] == wanted, counts[at], 0).tolist()
        return found

    def _look(self, number: np.uint32) -> int:
        several = self._counts[self._several == number]
        return int(np.count_nonzero(self._once == number)) + int(several.sum(dtype=np.int64))

    def _sort(self) -> None:
        """Two threads may do it at once; they find the same, and one assignment makes it known."""
        once, once_counts = _added_up(np.sort(self._once), None)
        packed = np.sort((self._several.astype(np.uint64) << np.uint64(16)) | self._counts)
        several, several_counts = _added_up(
            (packed >> np.uint64(16)).astype(np.uint32), (packed & np.uint64(_MOST)).astype(np.int64)
        )
        numbers = np.concatenate((once, several))
        order = np.argsort(numbers, kind="stable")
        counts = np.concatenate((once_counts, several_counts))[order]
        self._sorted = _added_up(numbers[order], counts)


def _added_up(numbers: Numbers, counts: Counts | None) -> tuple[Numbers, Counts]:
    """Each number once, with the sum of its counts (or how often it stands there); `numbers` is sorted."""
    if not len(numbers):
        return numbers, np.empty(0, np.int64)
    starts = np.flatnonzero(np.concatenate((np.array([True]), numbers[1:] != numbers[:-1])))
    if counts is None:
        return numbers[starts], np.diff(starts, append=len(numbers))
    return numbers[starts], np.add.reduceat(counts, starts)
