"""Tables of a PDF page as rows of cells: in ruled grids, or where the gaps of lines stand in columns.

What looks like a table but is not: columns of prose, an index or a list in columns, lines with numbers in the
margin, lists whose marks stand apart from their text, and a few words beside each other. These stay as they
are.
"""

import itertools
import re
import statistics
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from holdfast.documents.parse import pdf_characters, tables
from holdfast.documents.parse.pdf_characters import Segment
from holdfast.documents.parse.pdf_rules import RuledGrid

MOST_SEGMENTS = 4_000
_FEWEST_ROWS = 3
# Cells with more text than this, on average, are a layout of prose.
_LONGEST_CELL = 300
# So many lines are hardly numbered but by a program that numbers all of them.
_NUMBERED_LINES = 10
_MARK = re.compile(r"(?:[•‣◦▪●\u2013*-]|\(?[0-9ivxa-z]{1,3}[.)]|\d{1,2}(?:\.\d{1,2}){1,3}\.?)")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DIGIT = re.compile(r"\d")
# Pages in an index: they name no column.
_PAGES = re.compile(r"\d+(?:[,;] \d+)+")


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its rows as text, and the segments that it was made of."""

    rows: tuple[str, ...]
    members: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """Cells, and what is needed to tell a row from the second line of one."""

    cells: tuple[str, ...]
    top: float
    bottom: float
    is_whole: bool = True

    @property
    def filled(self) -> int:
        return sum(map(bool, self.cells))


def ruled(grid: RuledGrid, segments: Sequence[Segment]) -> Table | None:
    """The table in a grid; None if it has too few cells with text, or cells that are pages of prose."""
    box = grid.box
    members = [each for each in segments if box.holds(each.left, each.bottom, each.right, each.top)]
    lines: list[dict[int, list[list[Segment]]]] = [{} for _ in grid.ys[1:]]
    first_column = cache(grid.first_column)
    for segment in members:
        for word in pdf_characters.words_of(segment):
            row, column = grid.cell((word.left + word.right) / 2, (word.bottom + word.top) / 2)
            cell = lines[row].setdefault(first_column(row, column), [])
            if cell and pdf_characters.on_one_line(cell[-1][-1], word):
                cell[-1].append(word)
            else:
                cell.append([word])
    width = len(grid.xs) - 1
    rows = [row for cells in lines for row in _split(cells, width, few=len(lines) <= 3)]
    rows = [row for row in rows if any(row)]
    filled = [cell for row in rows for cell in row if cell]
    if len(rows) < 2 or sum(sum(map(bool, row)) >= 2 for row in rows) < 2:
        return None
    if statistics.fmean(map(len, filled)) > _LONGEST_CELL:
        return None
    return Table(tuple(_texts(rows)), tuple(members))


def _split(cells: dict[int, list[list[Segment]]], width: int, *, few: bool) -> Iterator[tuple[str, ...]]:
    """The rows between two level lines: one, or one for each line of text if all columns have as many."""
    counts = {len(lines) for lines in cells.values()}
    count = counts.pop() if len(counts) == 1 else 1
    if few and count >= 3 and 2 * len(cells) > width:
        for number in range(count):
            yield tuple(
                pdf_characters.joined(cells[at][number]) if at in cells else "" for at in range(width)
            )
        return
    yield tuple(
        " ".join(pdf_characters.joined(line) for line in cells.get(column, ())) for column in range(width)
    )


def unruled(segments: Sequence[Segment]) -> list[Table]:
    """The tables among segments that no grid holds, from top to bottom."""
    if len(segments) > MOST_SEGMENTS:
        return []
    drawn = {id(segment): at for at, segment in enumerate(segments)}
    return list(_tables(segments, drawn))


def _tables(segments: Sequence[Segment], drawn: Mapping[int, int]) -> Iterator[Table]:
    for run in _runs(_lines(segments)):
        yield from _aligned(run, drawn)


def _lines(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Segments that stand on one line, from top to bottom and from left to right."""
    lines: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda each: -(each.top + each.bottom)):
        if lines and pdf_characters.on_one_line(lines[-1][0], segment):
            lines[-1].append(segment)
        else:
            lines.append([segment])
    return [sorted(line, key=lambda each: each.left) for line in lines]


def _runs(lines: Sequence[list[Segment]]) -> Iterator[list[list[Segment]]]:
    """Lines with gaps that follow each other; a line without one may stand between two of them."""
    run: list[list[Segment]] = []
    single: list[list[Segment]] = []
    for line in lines:
        before = single[-1] if single else run[-1] if run else None
        if before is not None and before[0].bottom - line[0].top > 2.5 * line[0].height:
            yield from _enough(run)
            run, single = [], []
        if len(line) > 1:
            run += [*single, line]
            single = []
        elif run:
            single.append(line)
            if len(single) > 2:
                yield from _enough(run)
                run, single = [], []
    yield from _enough(run)


def _enough(run: list[list[Segment]]) -> Iterator[list[list[Segment]]]:
    if sum(len(line) > 1 for line in run) >= _FEWEST_ROWS:
        yield run


def _aligned(run: Sequence[list[Segment]], drawn: Mapping[int, int]) -> Iterator[Table]:
    """The tables that lines with gaps form, where their gaps stand above each other: one, or side by side.

    `drawn` has the place of each segment, by its identity, in the order in which they were drawn.
    """
    most = statistics.mode(len(line) for line in run if len(line) > 1)
    full = [line for line in run if len(line) >= max(2, 0.6 * most)]
    edges = _gutters(full)
    if not edges:
        return
    begin, end = run.index(full[0]), len(run) - run[::-1].index(full[-1])
    rows = list(_rows(run[begin:end], edges))
    cells = [row.cells for row in rows if row.is_whole]
    splits = [edge for edge in edges if _is_drawn_apart(run, drawn, edge)]
    if splits and (len(splits) < len(edges) or _are_columns_of_text(cells)):
        for side in _sides(run, splits):
            yield from _tables(side, drawn)
        return
    # A line below the last full one may be the second line of its cells.
    while end < len(run) and (extra := _row(run[end], edges)).is_whole and not extra.cells[0]:
        rows.append(extra)
        cells.append(extra.cells)
        end += 1
    if _is_table(cells, [line for line in full if len(line) > 1], edges):
        members = [segment for line in run[begin:end] for segment in line]
        yield Table(tuple(_texts(_merged(rows))), tuple(members))


def _is_drawn_apart(run: Sequence[list[Segment]], drawn: Mapping[int, int], edge: float) -> bool:
    """True if what is left of an edge was drawn before or after what is right of it, and not row by row."""
    sides = [
        (drawn[id(each)], each.left > edge)
        for line in run
        for each in line
        if each.right <= edge or each.left > edge
    ]
    changes = sum(one[1] != two[1] for one, two in itertools.pairwise(sorted(sides)))
    return changes <= max(3, len(run) // 10)


def _sides(run: Sequence[list[Segment]], splits: Sequence[float]) -> list[list[Segment]]:
    """The segments between these edges, in the order in which they stand; none that cross an edge."""
    sides: list[list[Segment]] = [[] for _ in range(len(splits) + 1)]
    for line in run:
        for each in line:
            side = bisect_right(splits, each.left)
            if side == bisect_right(splits, each.right):
                sides[side].append(each)
    return sides


def _are_columns_of_text(cells: Sequence[tuple[str, ...]]) -> bool:
    """True if the cells of two or more columns are of several words, as in an index of three columns."""
    columns = ([cell for cell in column if cell] or [""] for column in zip(*cells, strict=True))
    return sum(statistics.fmean(cell.count(" ") + 1 for cell in column) >= 2 for column in columns) >= 2


def _gutters(lines: Sequence[Sequence[Segment]]) -> list[float]:
    """The middles of the upright strips that no line crosses."""
    spans = sorted((segment.left, segment.right) for line in lines for segment in line)
    least = 0.6 * statistics.median(segment.height for line in lines for segment in line)
    middles, right = [], spans[0][1]
    for left, end in spans:
        if left - right >= least:
            middles.append((left + right) / 2)
        right = max(right, end)
    return middles


def _rows(lines: Sequence[Sequence[Segment]], edges: Sequence[float]) -> Iterator[_Row]:
    for line in lines:
        yield _row(line, edges)


def _row(line: Sequence[Segment], edges: Sequence[float]) -> _Row:
    """The cells of a line; one that crosses the columns is a row of a single cell, and not whole."""
    cells: list[list[str]] = [[] for _ in range(len(edges) + 1)]
    top, bottom = max(each.top for each in line), min(each.bottom for each in line)
    for segment in line:
        for word in pdf_characters.words_of(segment):
            column = bisect_right(edges, (word.left + word.right) / 2)
            if bisect_right(edges, word.left + 1) != bisect_right(edges, word.right - 1):
                return _Row((pdf_characters.joined(line),), top, bottom, is_whole=False)
            cells[column].append(pdf_characters.joined([word]))
    return _Row(tuple(" ".join(words) for words in cells), top, bottom)


def _merged(rows: Sequence[_Row]) -> list[tuple[str, ...]]:
    """The rows, with second lines of cells put together with the first."""
    pitches = [one.top - two.top for one, two in itertools.pairwise(rows)]
    tight = min(pitches, default=0.0)
    has_gaps = max(pitches, default=0.0) > 1.3 * tight
    merged: list[_Row] = []
    for number, row in enumerate(rows):
        last = merged[-1] if merged else None
        is_tight = number > 0 and pitches[number - 1] <= 1.15 * tight
        if last is not None and last.is_whole and row.is_whole and is_tight and _continues(row, has_gaps):
            cells = tuple(f"{one} {two}".strip() for one, two in zip(last.cells, row.cells, strict=True))
            merged[-1] = _Row(cells, last.top, row.bottom)
        else:
            merged.append(row)
    return [row.cells for row in merged]


def _continues(row: _Row, has_gaps: bool) -> bool:
    """True for the second line of a row: rows stand apart, or its first cell and all numbers are missing."""
    if has_gaps:
        return True
    return not row.cells[0] and not any(map(_is_number, row.cells)) and row.filled <= len(row.cells) / 2


def _is_table(
    rows: Sequence[tuple[str, ...]], lines: Sequence[Sequence[Segment]], edges: Sequence[float]
) -> bool:
    columns = list(zip(*rows, strict=True))
    if len(rows) < _FEWEST_ROWS or any(2 * sum(map(bool, column)) < len(rows) for column in columns[1:]):
        return False
    if all(_MARK.fullmatch(cell) for cell in columns[0] if cell):
        columns = columns[1:]
    columns = [column for column in columns if not _numbers_lines(column)]
    prose = sum(_is_prose(column) for column in columns)
    if len(columns) < 2 or prose > 1 or prose == len(columns):
        return False
    if len(columns) > 2:
        return True
    # Two columns are as often a letter's address, or words with their explanation.
    has_numbers = 2 * sum(map(_is_number, columns[1])) >= len(rows)
    short = all(statistics.fmean(map(len, column)) <= 24 for column in columns)
    return has_numbers or (short and len(rows) > _FEWEST_ROWS and len(lines) == len(rows) and bool(edges))


def _is_prose(column: Sequence[str]) -> bool:
    """True if most lines of a column are full of words."""
    lengths = [len(cell) for cell in column if cell]
    full = sum(length >= 0.7 * max(lengths) for length in lengths)
    words = statistics.fmean(cell.count(" ") + 1 + _unspaced(cell) / 3 for cell in column if cell)
    return words >= 4 and full >= 0.6 * len(lengths)


def _numbers_lines(column: Sequence[str]) -> bool:
    """True if a column counts the lines, as the margins of manuscripts do."""
    numbers = [int(cell) for cell in column if cell.isdecimal() and len(cell) <= 9]
    if len(numbers) < _NUMBERED_LINES or len(numbers) < sum(map(bool, column)):
        return False
    return {two - one for one, two in itertools.pairwise(numbers)} == {1}


def _unspaced(cell: str) -> int:
    return 0 if cell.isascii() else sum("\u2e80" <= letter <= "\uffef" for letter in cell)


def _is_number(cell: str) -> bool:
    digits = len(_DIGIT.findall(cell))
    return digits > 0 and 2 * digits >= len(cell.replace(" ", ""))


def _texts(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """The rows with their header; a title above it is text of its own."""
    start = 0
    while start < len(rows) - 2 and sum(map(bool, rows[start])) == 1 < len(rows[start + 1]):
        yield " ".join(filter(None, rows[start]))
        start += 1
    table = rows[start:]
    whole = [row for row in table if len(row) > 1]
    if not whole or len(table[0]) == 1 or not _is_header(whole):
        yield from tables.row_texts(table, headed=False)
        return
    yield from tables.row_texts(whole[:1], headed=False) if len(whole) == 1 else ()
    names = tables.names_for(whole[0], whole[1:])
    if names != list(whole[0]):
        yield tables.row_text(None, whole[0])
    for row in table[1:]:
        text = tables.row_text(names if len(row) > 1 else None, row)
        if text:
            yield text


def _is_header(rows: Sequence[tuple[str, ...]]) -> bool:
    """True if the first row names columns; years do, above numbers that are none."""
    if len(rows) < 2 or any(map(_PAGES.fullmatch, rows[0])):
        return False
    if tables.looks_like_header(rows[0]):
        return True
    names = [
        "year" if _YEAR.fullmatch(name) and not any(_YEAR.fullmatch(row[at]) for row in rows[1:]) else name
        for at, name in enumerate(rows[0])
    ]
    others = [name for name in names if name and name != "year"]
    distinct = len({name for name in rows[0] if name}) == sum(map(bool, rows[0]))
    return names.count("year") >= 1 and distinct and not any(map(_is_number, others))
