"""The ruled lines of a PDF page, and the grids that they form.

A grid needs lines that cross: at least two columns and two rows. Frames, underlines and the boxes of a form
that share no columns are no grids. The number of objects, lines and pairs that are looked at is bounded.
"""

import ctypes
import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]
from pypdfium2 import raw

from holdfast.documents.parse.pdf_characters import Box

MOST_OBJECTS = 20_000
MOST_RULES = 4_000
MOST_MERGED = 400
_MOST_POINTS = 512
_MOST_COLUMNS = 40
_DEEPEST = 3
_THIN = 3.0
_SHORTEST = 6.0
_NEAR = 3.0
FEWEST_RULES = 5
# The least share of a grid's height or width that a line between its columns or rows spans.
_SPAN = 0.5
_Matrix = tuple[float, float, float, float, float, float]
_IDENTITY: _Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Rule:
    """A ruled line: `at` is its y if it is level, else its x; it runs from `start` to `end`."""

    is_level: bool
    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class RuledGrid:
    """The lines of a table: `xs` from left to right, `ys` from top to bottom, and all upright rules.

    `depths` are the `ys` turned over, so that they rise.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    depths: tuple[float, ...]
    upright: tuple[Rule, ...]

    @property
    def box(self) -> Box:
        """The outer edges."""
        return Box(self.xs[0], self.ys[-1], self.xs[-1], self.ys[0])

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """Row and column of the cell at a point of this grid."""
        column = min(max(bisect_right(self.xs, x), 1), len(self.xs) - 1)
        return min(max(bisect_right(self.depths, -y), 1), len(self.ys) - 1) - 1, column - 1

    def first_column(self, row: int, column: int) -> int:
        """The first column of the cell that covers this one: it goes back to the next upright line."""
        middle = (self.ys[row] + self.ys[row + 1]) / 2
        while column and not self._is_ruled(self.xs[column], middle):
            column -= 1
        return column

    def _is_ruled(self, x: float, y: float) -> bool:
        return any(abs(rule.at - x) <= _NEAR and rule.start <= y <= rule.end for rule in self.upright)


def rules_of(page: pdfium.PdfPage) -> list[Rule]:
    """The ruled lines of a page; none if it has more than can be looked at."""
    rules: list[Rule] = []
    for item, matrix in _paths(page):
        rules += _rules(item, matrix)
        if len(rules) > MOST_RULES:
            return []
    return rules


def _paths(page: pdfium.PdfPage) -> Iterator[tuple[Any, _Matrix]]:
    """The paths of a page, those inside of form objects included."""
    budget = MOST_OBJECTS
    waiting: list[tuple[Any, _Matrix, int]] = []
    handle, object_of, kind_of = page.raw, raw.FPDFPage_GetObject, raw.FPDFPageObj_GetType
    for number in range(min(budget, raw.FPDFPage_CountObjects(handle))):
        item = object_of(handle, number)
        kind = kind_of(item)
        if kind == raw.FPDF_PAGEOBJ_TEXT:
            continue
        if kind == raw.FPDF_PAGEOBJ_PATH:
            yield item, _IDENTITY
        elif kind == raw.FPDF_PAGEOBJ_FORM:
            waiting.append((item, _IDENTITY, 0))
    while waiting:
        form, outer, depth = waiting.pop()
        matrix = _times(_matrix(form), outer)
        count = min(budget, max(0, raw.FPDFFormObj_CountObjects(form)))
        budget -= count
        for number in range(count):
            item = raw.FPDFFormObj_GetObject(form, number)
            kind = raw.FPDFPageObj_GetType(item)
            if kind == raw.FPDF_PAGEOBJ_PATH:
                yield item, matrix
            elif kind == raw.FPDF_PAGEOBJ_FORM and depth < _DEEPEST:
                waiting.append((item, matrix, depth + 1))


def _matrix(item: Any) -> _Matrix:
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(item, ctypes.byref(matrix)):
        return _IDENTITY
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _times(one: _Matrix, two: _Matrix) -> _Matrix:
    a, b, c, d, e, f = one
    g, h, i, j, k, m = two
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m


def _rules(item: Any, outer: _Matrix) -> Iterator[Rule]:
    """The level and upright lines of a path; a thin rectangle is one line, any other has four."""
    points = _points(item, _times(_matrix(item), outer))
    if len(points) < 2:
        return
    xs, ys = [x for x, _y, _pen in points], [y for _x, y, _pen in points]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    if high <= _THIN or wide <= _THIN:
        if max(wide, high) >= _SHORTEST:
            yield _rule(min(xs), min(ys), max(xs), max(ys))
        return
    for (x, y, _pen), (end_x, end_y, draws) in itertools.pairwise(points):
        is_straight = abs(end_x - x) <= 1 or abs(end_y - y) <= 1
        if draws and is_straight and max(abs(end_x - x), abs(end_y - y)) >= _SHORTEST:
            yield _rule(min(x, end_x), min(y, end_y), max(x, end_x), max(y, end_y))


def _rule(left: float, low: float, right: float, high: float) -> Rule:
    if right - left >= high - low:
        return Rule(True, (low + high) / 2, left, right)
    return Rule(False, (left + right) / 2, low, high)


def _points(item: Any, matrix: _Matrix) -> list[tuple[float, float, bool]]:
    """The corners of a path and whether a straight line leads to each; a closed one ends where it began."""
    count = raw.FPDFPath_CountSegments(item)
    if not 2 <= count <= _MOST_POINTS:
        return []
    a, b, c, d, e, f = matrix
    x, y = ctypes.c_float(), ctypes.c_float()
    points: list[tuple[float, float, bool]] = []
    first = (0.0, 0.0)
    for number in range(count):
        segment = raw.FPDFPath_GetPathSegment(item, number)
        raw.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
        kind = raw.FPDFPathSegment_GetType(segment)
        at = (a * x.value + c * y.value + e, b * x.value + d * y.value + f)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            first = at
        points.append((*at, kind == raw.FPDF_SEGMENT_LINETO))
        if raw.FPDFPathSegment_GetClose(segment):
            points.append((*first, True))
    return points


def grids(rules: Sequence[Rule]) -> list[RuledGrid]:
    """The grids among the ruled lines of a page, from top to bottom."""
    merged = _merged(rules)
    if not FEWEST_RULES <= len(merged) <= MOST_MERGED:
        return []
    groups = [grid for group in _crossing(merged) if (grid := _grid(group)) is not None]
    return sorted(groups, key=lambda grid: -grid.ys[0])


def _merged(rules: Sequence[Rule]) -> list[Rule]:
    """Lines that continue or cover each other, as one."""
    merged: list[Rule] = []
    for rule in sorted(rules, key=lambda each: (each.is_level, round(each.at / 2), each.start)):
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.is_level == rule.is_level
            and abs(last.at - rule.at) <= 2
            and rule.start <= last.end + _NEAR
        ):
            merged[-1] = Rule(last.is_level, last.at, last.start, max(last.end, rule.end))
        else:
            merged.append(rule)
    return merged


def _crossing(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Lines in groups that hang together by crossing or touching."""
    level = [rule for rule in rules if rule.is_level]
    waiting = [rule for rule in rules if not rule.is_level]
    groups: list[list[Rule]] = []
    while waiting:
        group, edge = [], [waiting.pop()]
        while edge:
            rule = edge.pop()
            group.append(rule)
            others = waiting if rule.is_level else level
            edge += [other for other in others if _touch(rule, other)]
            others[:] = [other for other in others if not _touch(rule, other)]
        groups.append(group)
    return groups


def _touch(one: Rule, two: Rule) -> bool:
    return one.start - _NEAR <= two.at <= one.end + _NEAR and two.start - _NEAR <= one.at <= two.end + _NEAR


def _grid(group: Sequence[Rule]) -> RuledGrid | None:
    level = [rule for rule in group if rule.is_level]
    upright = [rule for rule in group if not rule.is_level]
    if len(level) < 2 or not upright:
        return None
    left, right = min(rule.start for rule in level), max(rule.end for rule in level)
    low, high = min(rule.start for rule in upright), max(rule.end for rule in upright)
    xs = _positions(upright, _SPAN * (high - low), left, right)
    ys = _positions(level, _SPAN * (right - left), low, high)
    if len(xs) < 3 or len(ys) < 3 or len(xs) > _MOST_COLUMNS:
        return None
    ys.reverse()
    return RuledGrid(tuple(xs), tuple(ys), tuple(-y for y in ys), tuple(upright))


def _positions(rules: Sequence[Rule], least: float, first: float, last: float) -> list[float]:
    """Where lines of at least this length are, in order, with the outer edges."""
    lengths: dict[float, float] = {}
    for rule in sorted(rules, key=lambda each: each.at):
        near = next((at for at in reversed(lengths) if rule.at - at <= _NEAR), rule.at)
        lengths[near] = lengths.get(near, 0.0) + rule.end - rule.start
    positions = [at for at, length in lengths.items() if length >= least]
    if not positions or positions[0] - first > _NEAR:
        positions.insert(0, first)
    if last - positions[-1] > _NEAR:
        positions.append(last)
    return positions
