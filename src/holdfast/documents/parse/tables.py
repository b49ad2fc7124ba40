"""Rows of cells as text that embeds well: each value next to its column name.

Names are repeated in every row, so one header cell of 100 KB above 3,000 rows would give 300 MB. Names are
therefore shortened, each to `LONGEST_NAME` and all of them together to `NAMES_SHARE` times the text of the
cells (or `MOST_NAMES`, if that is more). Cells are not, and a shortened header appears once in full, as a row
of its own.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence

LONGEST_NAME = 120
MOST_NAMES = 1024 * 1024
NAMES_SHARE = 8

Cell = str | float | bool | dt.date | dt.time | dt.timedelta | None


def spelled(cell: Cell) -> str:
    """One cell as text: integers without a point, dates as ISO 8601, runs of spaces as one space."""
    if isinstance(cell, str):
        return " ".join(cell.split())
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    if isinstance(cell, dt.datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat()
    return str(cell)


def looks_like_header(row: Sequence[str]) -> bool:
    """True if a first row names columns: at least two, all words, all different."""
    names = [cell for cell in row if cell]
    return (
        len(names) >= 2
        and len(set(names)) == len(names)
        and not any(_is_number(name) or len(name) > 80 for name in names)
    )


def names_for(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The column names as repeated in these rows: the header, shortened where necessary.

    Depends only on the header and the rows, so that the same rows always have the same text.
    """
    names = [_shortened(name, LONGEST_NAME) for name in header]
    sizes = [len(name) for name in names]
    filled = repeated = written = 0
    for row in rows:
        for size, cell in zip(sizes, row, strict=False):
            if cell:
                filled, repeated, written = filled + 1, repeated + size, written + len(cell)
    most = max(MOST_NAMES, NAMES_SHARE * written)
    return names if repeated <= most else [_shortened(name, most // filled) for name in names]


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1].rstrip()}…"


def row_text(header: Sequence[str] | None, row: Sequence[str]) -> str:
    """`Name: Ada; Born: 1815` under a header, `Ada | 1815` without one; empty cells are left out."""
    if header is None:
        return " | ".join(cell for cell in row if cell)
    named = zip(header, row, strict=False)
    parts = [f"{name}: {cell}" if name else cell for name, cell in named if cell]
    return "; ".join([*parts, *(cell for cell in row[len(header) :] if cell)])


def row_texts(rows: Iterable[Sequence[Cell]], *, headed: bool | None = None) -> Iterator[str]:
    """The texts of a small table, with its header in each row; `headed` None means: detect it.

    A header with no rows under it is text like any other.
    """
    table = [[spelled(cell) for cell in row] for row in rows]
    if headed is None:
        headed = len(table) > 1 and looks_like_header(table[0])
    if not headed or len(table) < 2:
        yield from filter(None, (row_text(None, row) for row in table))
        return
    names = names_for(table[0], table[1:])
    if names != table[0]:
        yield row_text(None, table[0])
    yield from filter(None, (row_text(names, row) for row in table[1:]))


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "").replace("%", "").strip("$€£¥ "))
    except ValueError:
        return False
    return True
