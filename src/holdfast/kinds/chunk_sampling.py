"""Which chunks are asked about when not all are wanted: spread over documents, and within each of them.

Any beginning of the order is spread: taking the first ten of it, or the first hundred, is fair to every
document. The order depends on nothing but the counts, so that asking again picks the same.
"""

from collections.abc import Iterator, Sequence
from itertools import islice


def spread(count: int) -> list[int]:
    """The numbers below `count`, each beginning of the list spread over all of them: 0, the middle, …"""
    width = max(1, (count - 1).bit_length())
    return sorted(range(count), key=lambda number: int(f"{number:0{width}b}"[::-1], 2))


def order(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(document, chunk) by their numbers: one chunk of each document, then a second of each, and so on."""
    documents = [each for each in spread(len(counts)) if counts[each]]
    chunks: dict[int, list[int]] = {}
    round_ = 0
    while documents:
        for each in documents:
            yield each, chunks.setdefault(each, spread(counts[each]))[round_]
        round_ += 1
        documents = [each for each in documents if counts[each] > round_]


def pick(counts: Sequence[int], first: int, more: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The `first` chunks of the order and `more` in reserve, each sorted by document and place."""
    picked = list(islice(order(counts), first + more))
    return sorted(picked[:first]), sorted(picked[first:])
