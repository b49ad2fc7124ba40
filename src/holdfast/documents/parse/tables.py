"""Rows of cells as sentences that embed well: each value next to the name of its column."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence

Cell = str | float | bool | dt.date | dt.time | dt.timedelta | None


def spelled(cell: Cell) -> str:
    """One cell as text: whole numbers without a point, dates as ISO 8601, space runs as one space."""
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
    """True when a first row names columns: at least two, all of them words, all different."""
    names = [cell for cell in row if cell]
    return (
        len(names) >= 2
        and len(set(names)) == len(names)
        and not any(_is_number(name) or len(name) > 80 for name in names)
    )


def row_text(header: Sequence[str] | None, row: Sequence[str]) -> str:
    """`Name: Ada; Born: 1815` under a header, `Ada | 1815` without one; empty cells are left out."""
    if header is None:
        return " | ".join(cell for cell in row if cell)
    named = zip(header, row, strict=False)
    parts = [f"{name}: {cell}" if name else cell for name, cell in named if cell]
    return "; ".join([*parts, *(cell for cell in row[len(header) :] if cell)])


def row_texts(rows: Iterable[Sequence[Cell]], *, headed: bool | None = None) -> Iterator[str]:
    """The texts of a small table, its header folded into each row; None means: see whether it has one.

    A header with no rows under it is text like any other.
    """
    table = [[spelled(cell) for cell in row] for row in rows]
    if headed is None:
        headed = len(table) > 1 and looks_like_header(table[0])
    header = table[0] if headed and len(table) > 1 else None
    for row in table[1:] if header is not None else table:
        text = row_text(header, row)
        if text:
            yield text


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "").replace("%", "").strip("$€£¥ "))
    except ValueError:
        return False
    return True
