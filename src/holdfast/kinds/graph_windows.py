"""Windows: consecutive chunks of a document that are read for entities together, about 1,024 tokens each.

Where a window begins is decided by the first words of the chunks around, so that an edit changes the window
that it is in, and seldom the next one. A window cut by counting chunks would move with every inserted
paragraph, to the end of the document. Pure functions: no clock, no chance, no database.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

from holdfast.documents.chunk import estimate_tokens
from holdfast.documents.text_units import DECIDING

TOKENS = 1024
# A cut ranks highest among the boundaries so many tokens before and after it.
REACH = TOKENS * 3 // 8
MOST = TOKENS * 3 // 2
LEAST = TOKENS // 2
BREAK = "\n\n"

Rank = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Window:
    """The chunks `first` to `last` of a document, by their place in the list, as one text."""

    first: int
    last: int
    text: str


def windows(texts: Sequence[str]) -> list[Window]:
    """The windows of a document's chunks, in order; every chunk is in exactly one."""
    if not texts:
        return []
    sizes = [estimate_tokens(text) for text in texts]
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    ranks = [_rank(text) for text in texts]
    edges = [0, *_cuts(starts, ranks), len(texts)]
    ranges = [part for first, end in pairwise(edges) for part in _divided(starts, ranks, first, end)]
    return [Window(first, end - 1, BREAK.join(texts[first:end])) for first, end in ranges]


def _rank(text: str) -> Rank:
    """What decides whether a window begins with this text: its first words, and among equals all of it."""
    whole = text.encode("utf-8", "surrogatepass")
    first = text[:DECIDING].encode("utf-8", "surrogatepass")
    return blake2b(first, digest_size=8).digest(), blake2b(whole, digest_size=8).digest()


def _cuts(starts: Sequence[int], ranks: Sequence[Rank]) -> Iterator[int]:
    """The chunks that begin a window because none within the reach ranks higher."""
    number = len(ranks)
    for at in range(1, number):
        if starts[at] < LEAST or starts[number] - starts[at] < LEAST:
            continue
        if _is_highest(starts, ranks, at):
            yield at


def _is_highest(starts: Sequence[int], ranks: Sequence[Rank], at: int) -> bool:
    other = at - 1
    while other > 0 and starts[at] - starts[other] <= REACH:
        if ranks[other] >= ranks[at]:
            return False
        other -= 1
    other = at + 1
    while other < len(ranks) and starts[other] - starts[at] <= REACH:
        if ranks[other] > ranks[at]:
            return False
        other += 1
    return True


def _divided(starts: Sequence[int], ranks: Sequence[Rank], first: int, end: int) -> Iterator[tuple[int, int]]:
    """Parts of at most `MOST` tokens, or of one chunk: each ends at the best boundary it can end at."""
    while starts[end] - starts[first] > MOST and end - first > 1:
        best = first + 1
        at = first + 1
        while at < end and starts[at] - starts[first] <= MOST:
            fits = starts[at] - starts[first] >= LEAST and starts[end] - starts[at] >= LEAST
            is_late = starts[best] - starts[first] < LEAST
            if fits and (is_late or ranks[at] > ranks[best]):
                best = at
            at += 1
        yield first, best
        first = best
    yield first, end
