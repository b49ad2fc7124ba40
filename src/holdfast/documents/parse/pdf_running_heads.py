"""Running heads and feet of a PDF, recognised by what repeats on the pages around.

A head with a page number would change every later page when one is inserted. A line at the edge of a page is
a running head if two more pages nearby have it at the same height: the same text, or the same apart from
numbers, one of which counts with the pages. Only pages close by are compared, so that a page reads the same
in whatever slice it is read, and an edit far away changes nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.documents.parse.pdf_characters import Line

# Pages compared to each side; at the ends of a document as many on the other side instead.
NEARBY = 3
_REPEATS = 2
_ROWS = 3
_MOST_LINES = 6
# The part of a page, at its top and at its bottom, in which a running head may stand.
_EDGE = 0.15
_TALLEST = 1.15
_NUMBER = re.compile(r"\d{1,9}")
_ROMAN = re.compile(r"[ivxlc]{1,9}")
_Near = Callable[[Sequence[Line]], bool]
_ROMANS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """A line at the edge of a page: its text with the numbers masked, the numbers, and its height."""

    line: Line
    mask: str
    numbers: tuple[int, ...]
    level: float


def nearby(number: int, pages: int) -> range:
    """The pages with which page `number` is compared, itself included."""
    first = max(1, min(number - NEARBY, pages - 2 * NEARBY))
    return range(first, min(pages, max(number + NEARBY, 2 * NEARBY + 1)) + 1)


def edge_lines(lines: Sequence[Line], low: float, high: float) -> list[list[EdgeLine]]:
    """The rows at the edges of a page between `low` and `high`, each edge from outside inwards.

    A row is left out, with all that follow it, if it stands close to the text or is as tall as a heading.
    """
    rows = _rows(lines)
    if len(rows) < 2:
        return []
    edge = _EDGE * (high - low)
    body = sorted(line.height for line in lines)[len(lines) // 2]
    edges = []
    for order, is_near in ((rows, _above(high - edge)), (rows[::-1], _below(low + edge))):
        taken = 0
        for at in range(min(_ROWS, len(order) - 1)):
            if len(order[at]) > _MOST_LINES or not is_near(order[at]):
                break
            if any(line.height > _TALLEST * body for line in order[at]):
                break
            if _gap(order[at], order[at + 1]) >= 0.5 * body:
                taken = at + 1
        edges += [[_masked(line) for line in row] for row in order[:taken]]
    return edges


def _above(height: float) -> _Near:
    return lambda row: min(line.bottom for line in row) >= height


def _below(height: float) -> _Near:
    return lambda row: max(line.top for line in row) <= height


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that share a height, from top to bottom."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: -line.bottom):
        if rows and rows[-1][0].bottom - line.bottom <= 0.5 * line.height:
            rows[-1].append(line)
        else:
            rows.append([line])
    return rows


def _gap(one: Sequence[Line], two: Sequence[Line]) -> float:
    """The distance between two rows, whichever is above."""
    low, high = min(line.bottom for line in one), max(line.top for line in one)
    return max(low - max(line.top for line in two), min(line.bottom for line in two) - high)


def _masked(line: Line) -> EdgeLine:
    text = " ".join(line.text.split())
    if _ROMAN.fullmatch(text.lower()):
        return EdgeLine(line, "#", (_roman(text.lower()),), line.bottom)
    return EdgeLine(line, _NUMBER.sub("#", text), tuple(map(int, _NUMBER.findall(text))), line.bottom)


def _roman(text: str) -> int:
    values = [_ROMANS[letter] for letter in text]
    following = [*values[1:], 0]
    return sum(-one if one < two else one for one, two in zip(values, following, strict=True))


def running_lines(edges: Mapping[int, Sequence[Sequence[EdgeLine]]], number: int, pages: int) -> list[Line]:
    """The lines of page `number` that are running heads and feet."""
    others = [page for page in nearby(number, pages) if page != number]
    return [
        each.line
        for row in edges[number]
        for each in row
        if sum(_repeats(each, number, edges.get(page, ()), page) for page in others) >= _REPEATS
    ]


def _repeats(each: EdgeLine, number: int, rows: Sequence[Sequence[EdgeLine]], page: int) -> bool:
    """True if `each` of page `number` stands among the rows of another page, with its numbers counted on.

    The words beside a page number may differ, as they do where one chapter follows the other.
    """
    return any(
        abs(each.level - other.level) <= 4
        and (
            _counts(each, other, page - number)
            if each.mask == other.mask
            else _counts_outside(each, other, page - number)
        )
        for other in _flat(rows)
    )


def _flat(rows: Sequence[Sequence[EdgeLine]]) -> Iterator[EdgeLine]:
    for row in rows:
        yield from row


def _counts(each: EdgeLine, other: EdgeLine, distance: int) -> bool:
    pairs = list(zip(each.numbers, other.numbers, strict=True))
    return all(one == two for one, two in pairs) or any(two - one == distance for one, two in pairs)


def _counts_outside(each: EdgeLine, other: EdgeLine, distance: int) -> bool:
    """True if the number with which both begin, or with which both end, counts with the pages."""
    return any(
        getattr(each.mask, side)("#")
        and getattr(other.mask, side)("#")
        and other.numbers[at] - each.numbers[at] == distance
        for side, at in (("startswith", 0), ("endswith", -1))
    )
