"""How much of a known text was read, and how much of it in the right order."""

import bisect
from collections import Counter


def words_of(pages):
    """All words of parsed pages, in the order in which they were read."""
    return [word for page in pages for block in page.blocks for word in block.text.split()]


def recall(expected, words):
    """The share of the expected words that were read."""
    counts = Counter(expected)
    return sum((counts & Counter(words)).values()) / len(expected)


def order(expected, words):
    """The share of the expected words that stand in the right order: the longest common subsequence."""
    positions = {}
    for at, word in enumerate(words):
        positions.setdefault(word, []).append(at)
    ends = []
    for word in expected:
        for at in reversed(positions.get(word, ())):
            length = bisect.bisect_left(ends, at)
            ends[length : length + 1] = [at]
    return len(ends) / len(expected)


def under_header(rows, texts):
    """The share of a table's cells that were read next to the name of their column, row by row."""
    header, *body = rows
    cells = right = 0
    lines = iter(texts)
    for row in body:
        line = next(lines, "")
        parts = line.split("; ")
        for name, cell in zip(header, row, strict=True):
            cells += bool(cell)
            right += bool(cell) and f"{name}: {cell}" in parts
    return right / cells
