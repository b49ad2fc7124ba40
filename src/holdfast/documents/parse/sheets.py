"""Workbooks and delimited text: rows, each with the names of its columns.

Rows are numbered through all sheets of a workbook, including empty ones, so that a slice is two numbers.
Reading only goes forward: `Rows` continues where the last slice of the same file ended, so that a worker that
takes slices in ascending order reads a file once.
"""

import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import python_calamine as calamine

from holdfast.core.errors import WorkError
from holdfast.core.text import plain
from holdfast.documents.parse import encodings, sheet_charts, sniff, tables
from holdfast.documents.parse.records import (
    WORKBOOKS,
    Format,
    Outline,
    Page,
    ParseLimits,
    Role,
    TextBlock,
    Unit,
    UnitRange,
)
from holdfast.documents.parse.source import Readable

MOST_FIELD = 1024 * 1024


@dataclass(slots=True)
class _Sheet:
    """One sheet being read: `rows` goes forward, `at` counts the rows taken so far."""

    name: str | None
    height: int
    header: list[str] | None
    skip: int
    rows: Iterator[Sequence[tables.Cell]]
    at: int = 0
    charts: tuple[str, ...] = ()


class Rows:
    """The sheets of one file, opened once and read forward."""

    def __init__(self, path: Readable, document_format: Format, limits: ParseLimits) -> None:
        self._sheets = (
            _workbook(path, document_format, limits)
            if document_format in WORKBOOKS
            else _delimited(path, document_format, limits)
        )
        self._format = document_format
        self._next = 1
        if not any(sheet.height for sheet in self._sheets):
            raise WorkError("the file has no filled cells", code="no_text")

    def outline(self) -> Outline:
        """The rows of each sheet and of all together."""
        heights = tuple(sheet.height for sheet in self._sheets)
        return Outline(self._format, Unit.ROW, sum(heights), None, heights)

    def ahead(self, units: UnitRange) -> bool:
        """True if the slice has not been passed yet."""
        return units.first >= self._next

    def read(self, units: UnitRange) -> list[Page]:
        """One page for each sheet in the slice, which must be `ahead`."""
        pages: list[Page] = []
        before = 0
        for number, sheet in enumerate(self._sheets, start=1):
            first = max(units.first - before, 1)
            last = min(units.last - before, sheet.height)
            before += sheet.height
            if first <= last:
                blocks = _blocks(sheet, first, last)
                if last == sheet.height:
                    blocks += tuple(TextBlock(Role.PARAGRAPH, plain(title)) for title in sheet.charts)
                pages.append(Page(number, blocks, sheet.name))
        self._next = units.last + 1
        return pages


def corner(
    path: Readable, document_format: Format, limits: ParseLimits, most: int
) -> tuple[str | None, list[list[str]]]:
    """The name of the first sheet that is not empty, and its first `most` rows.

    Of delimited text only these rows are read.
    """
    if document_format not in WORKBOOKS:
        encoding, separator = encodings.of_file(path), _delimiter(path, document_format)
        csv.field_size_limit(MOST_FIELD)
        rows: Iterator[Sequence[tables.Cell]] = _records(path, encoding, separator)
        name = None
    else:
        sheet = next((each for each in _workbook(path, document_format, limits) if each.height), None)
        name, rows = (sheet.name, sheet.rows) if sheet is not None else (None, iter(()))
    taken = [[tables.spelled(cell) for cell in row] for row in itertools.islice(rows, most)]
    if not any(cell for row in taken for cell in row):
        raise WorkError("the file has no filled cells", code="no_text")
    return name, taken


def _blocks(sheet: _Sheet, first: int, last: int) -> tuple[TextBlock, ...]:
    taken = itertools.islice(sheet.rows, first - 1 - sheet.at, last - sheet.at)
    sheet.at = last
    rows = [[tables.spelled(cell) for cell in row] for row in taken]
    names: list[str] | None = None
    if sheet.header is not None:
        with_header = first <= sheet.skip
        rows = rows[1:] if with_header else rows
        names = tables.names_for(sheet.header, rows)
        if with_header and names != sheet.header:
            return (*_rows(None, [sheet.header]), *_rows(names, rows))
    return _rows(names, rows)


def _rows(names: list[str] | None, rows: Sequence[Sequence[str]]) -> tuple[TextBlock, ...]:
    texts = (tables.row_text(names, row) for row in rows)
    return tuple(TextBlock(Role.ROW, plain(text)) for text in texts if text)


def _workbook(path: Readable, document_format: Format, limits: ParseLimits) -> list[_Sheet]:
    """The visible sheets; formulas have the values that were last computed."""
    try:
        book = calamine.CalamineWorkbook.from_filelike(path.open("rb"))
    except calamine.PasswordError as error:
        raise WorkError(
            "the workbook is encrypted; remove its password and upload it again", code="encrypted"
        ) from error
    sheets: list[_Sheet] = []
    cells = 0
    charts = sheet_charts.titles(path) if document_format is Format.XLSX else {}
    for about in book.sheets_metadata:
        if about.typ != calamine.SheetTypeEnum.WorkSheet:
            continue
        if about.visible != calamine.SheetVisibleEnum.Visible:
            continue
        sheet = book.get_sheet_by_name(about.name)
        cells += sheet.height * sheet.width
        _allow(cells, limits)
        first = [tables.spelled(cell) for cell in next(_filled_area(sheet), [])] if sheet.height else []
        merged = _merged(sheet)
        rows = _filled(_filled_area(sheet), merged) if merged else _filled_area(sheet)
        each = _sheet(about.name, sheet.height, first, rows)
        each.charts = charts.get(about.name, ())
        sheets.append(each)
    return sheets


def _filled_area(sheet: calamine.CalamineSheet) -> Iterator[Sequence[tables.Cell]]:
    """The rows from the first that is filled; calamine yields the empty ones above it, uncounted."""
    return itertools.islice(sheet.iter_rows(), (sheet.start or (0, 0))[0], None)


def _merged(sheet: calamine.CalamineSheet) -> dict[int, list[tuple[int, int]]]:
    """The cells that are merged over several rows: by their column, their first and last row.

    Rows and columns are counted from the first cell that is filled.
    """
    start = sheet.start or (0, 0)
    merged: dict[int, list[tuple[int, int]]] = {}
    for (top, left), (bottom, _right) in sheet.merged_cell_ranges or ():
        if bottom > top:
            merged.setdefault(left - start[1], []).append((top - start[0], bottom - start[0]))
    return merged


def _filled(
    rows: Iterator[Sequence[tables.Cell]], merged: dict[int, list[tuple[int, int]]]
) -> Iterator[Sequence[tables.Cell]]:
    """The rows, each with the text of the cells that are merged down into it."""
    spans = {column: iter(sorted(each)) for column, each in merged.items() if column >= 0}
    current: dict[int, tuple[int, int]] = {column: next(each) for column, each in spans.items()}
    texts: dict[int, tables.Cell] = {}
    for number, row in enumerate(rows):
        cells = list(row)
        for column, (first, last) in list(current.items()):
            if number == first and column < len(cells):
                texts[column] = cells[column]
            elif first < number <= last and column < len(cells) and cells[column] in {None, ""}:
                cells[column] = texts.get(column)
            if number >= last:
                following = next(spans[column], None)
                current.pop(column) if following is None else current.update({column: following})
        yield cells


def _delimited(path: Readable, document_format: Format, limits: ParseLimits) -> list[_Sheet]:
    """The one sheet of a delimited text. It is read twice, to count and to read, and never held."""
    encoding = encodings.of_file(path)
    separator = _delimiter(path, document_format)
    csv.field_size_limit(MOST_FIELD)
    height = cells = 0
    first: list[str] = []
    try:
        for row in _records(path, encoding, separator):
            height += 1
            cells += len(row)
            _allow(cells, limits)
            first = [tables.spelled(cell) for cell in row] if height == 1 else first
    except csv.Error as error:
        raise WorkError(
            f"row {height + 1} of the table cannot be read: {error}", code="broken_file"
        ) from error
    return [_sheet(None, height, first, _records(path, encoding, separator))]


def _records(path: Readable, encoding: str, separator: str) -> Iterator[list[str]]:
    with io.TextIOWrapper(path.open("rb"), encoding=encoding, errors="replace", newline="") as file:
        for row in csv.reader(file, delimiter=separator):
            if any(row):
                yield row


def _delimiter(path: Readable, document_format: Format) -> str:
    return "\t" if document_format is Format.TSV else _separator(sniff.read_head(path))


def _separator(head: bytes) -> str:
    """The separator of delimited text: the regular one, or else the most frequent in the first line."""
    text = encodings.decode_head(head)
    return sniff.regular_separator(text) or max(",;\t|", key=text.partition("\n")[0].count)


def _sheet(name: str | None, height: int, first: list[str], rows: Iterator[Sequence[tables.Cell]]) -> _Sheet:
    header = first if height > 1 and tables.looks_like_header(first) else None
    return _Sheet(name, height, header, 1 if header else 0, rows)


def _allow(cells: int, limits: ParseLimits) -> None:
    if cells > limits.cells:
        raise WorkError(
            f"the tables have more than {limits.cells:,} cells; split the file into smaller ones",
            code="too_large",
        )
