"""The terms of one slice, packed: which of its chunks have each term, and how often.

A term is stored as its CRC-32: four bytes instead of a word, so that ten thousand documents are combined as
arrays of numbers. Among 200,000 distinct terms about five pairs collide; a search for one word of such a pair
then also finds chunks with the other.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from holdfast.core.languages import ENGLISH_RULES
from holdfast.extras import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")


# Format, bytes per row, bytes per count, language, chunks, terms, postings. Releases before languages were
# told apart wrote 0 for the language, which stands for their rules, and do not read it.
_HEADER = struct.Struct("<BBBBIII")
_FORMAT = 2
_LONGEST = 0xFFFF
WIDTH = 4  # bytes of a term's number
_REMEMBERED = 500_000

Numbers: TypeAlias = "NDArray[np.uint32]"
Whole: TypeAlias = "NDArray[np.unsignedinteger]"


class _Codes(dict[str, int]):
    """A cache from terms to their numbers: slices mostly share their words."""

    def __missing__(self, term: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        number = self[term] = zlib.crc32(term.encode())
        return number


_codes = _Codes()


def numbers_of(terms: Iterable[str]) -> Numbers:
    """The numbers of these terms."""
    return np.array([_codes[term] for term in terms], dtype=np.uint32)


def listed(terms: Iterable[str]) -> bytes:
    """The same, concatenated for `pack`. (NumPy takes three times as long for a few.)"""
    return array("I", map(_codes.__getitem__, terms)).tobytes()


class SliceTerms(NamedTuple):
    """The lengths of a slice's chunks, its terms, and a posting for each term and chunk that has it.

    `counts` is the number of postings per term; they are in the order of the terms, as the row of the chunk
    and the number of occurrences. `language` is the number of the language whose rules made the terms.
    """

    lengths: Whole
    numbers: Numbers
    counts: Whole
    rows: Whole
    times: Whole
    language: int = ENGLISH_RULES


def encode(chunks: Iterable[str | None], language: int = ENGLISH_RULES) -> tuple[int, int, bytes]:
    """As `pack`, from the chunks' `words`."""
    return pack([listed(words.split(" ") if words else ()) for words in chunks], language)


def pack(chunks: Sequence[bytes], language: int = ENGLISH_RULES) -> tuple[int, int, bytes]:
    """Number of chunks, length in terms, and the packed postings of one slice, from its chunks' numbers."""
    lengths = np.array([len(numbers) // WIDTH for numbers in chunks], dtype=np.int64)
    keys = np.frombuffer(b"".join(chunks), dtype=np.uint32).astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.repeat(np.arange(len(chunks), dtype=np.uint64), lengths)
    keys.sort()
    edges = _edges(keys)
    pairs, times = keys[edges[:-1]], edges[1:] - edges[:-1]
    named = (pairs >> np.uint64(32)).astype(np.uint32)
    edges = _edges(named)
    numbers, counts = named[edges[:-1]], edges[1:] - edges[:-1]
    wide, often = _form(len(chunks)), _form(int(times.max()) if len(times) else 0)
    parts = (
        _HEADER.pack(_FORMAT, int(wide[2]), int(often[2]), language, len(chunks), len(numbers), len(pairs)),
        np.minimum(lengths, _LONGEST).astype("<u2").tobytes(),
        numbers.astype("<u4").tobytes(),
        counts.astype(wide).tobytes(),
        (pairs & np.uint64(0xFFFFFFFF)).astype(wide).tobytes(),
        times.astype(often).tobytes(),
    )
    return len(chunks), len(keys), b"".join(parts)


def _edges(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """The index of each number's first occurrence, and the end; the input is sorted."""
    is_edge = np.ones(len(numbers) + 1, dtype=bool)
    np.not_equal(numbers[1:], numbers[:-1], out=is_edge[1:-1])
    return np.flatnonzero(is_edge)


def _form(most: int) -> str:
    """The smallest type that holds this number."""
    return "<u1" if most <= 0xFF else "<u2" if most <= 0xFFFF else "<u4"


def decode(terms: bytes) -> SliceTerms | None:
    """The postings of one slice; None for another release's format, to be rebuilt from the chunks."""
    if len(terms) < _HEADER.size or terms[0] != _FORMAT:
        return None
    _, wide, often, language, chunks, numbers, postings = _HEADER.unpack_from(terms)
    arrays, at = [], _HEADER.size
    for form, count in (
        ("<u2", chunks),
        ("<u4", numbers),
        (f"<u{wide}", numbers),
        (f"<u{wide}", postings),
        (f"<u{often}", postings),
    ):
        arrays.append(np.frombuffer(terms, dtype=form, count=count, offset=at))
        at += arrays[-1].nbytes
    lengths, named, counts, rows, times = arrays
    return SliceTerms(lengths, named, counts, rows, times, language)
