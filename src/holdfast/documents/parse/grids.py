"""Draws tables and sheets for thumbnails."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from holdfast.documents.parse import typeface
from holdfast.documents.parse.typeface import Style, Typeface

ROWS, COLUMNS, LONGEST = 40, 12, 60
_RULE, _HEAD, _FRAME, _QUIET = (214, 218, 223), (240, 242, 245), (236, 238, 241), (128, 136, 146)
_CELL, _NAME = Style(9), Style(9, bold=True, colour=(24, 29, 36))
_LABEL = Style(8, colour=_QUIET)
_PAD, _TALL = 4, 15
_NARROW, _WIDE = 34, 118
_NUMBER = re.compile(r"[-+(]?[$€£¥]?\d[\d.,' ]{0,30}(?:[eE][-+]?\d{1,4})?[%)]?")


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: the names of its columns, if it has any, and its cells."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def table(texts: Sequence[str]) -> Grid:
    """The table behind rows that `tables.row_text` has written.

    A cell that contains the separators may come out as two: good enough for a picture.
    """
    named = [_named(text[:2000]) for text in texts]
    if not all(named):
        return Grid((), tuple(tuple(text[:2000].split(" | ")) for text in texts))
    names = tuple(dict.fromkeys(name for row in named for name in row))
    return Grid(names, tuple(tuple(row.get(name, "") for name in names) for row in named))


def _named(text: str) -> dict[str, str]:
    """The cells of a row by column name; empty if it is not written that way."""
    cells: dict[str, str] = {}
    last = ""
    for part in text.split("; "):
        name, colon, value = part.partition(": ")
        if colon:
            cells[name] = value
            last = name
        elif last:
            cells[last] += f"; {part}"
        else:
            return {}
    return cells


def draw_table(image: Image.Image, faces: Typeface, grid: Grid, room: tuple[int, int, int, int]) -> int:
    """Draw the table into `room` (left, top, right, bottom), as much as fits; returns the next free y."""
    left, top, right, bottom = room
    draw = ImageDraw.Draw(image)
    lines = [*([grid.names] if grid.names else []), *grid.rows]
    lines = [line[:COLUMNS] for line in lines[: max(0, (bottom - top) // _TALL)]]
    if not lines:
        return bottom
    widths = _shares(_fitting(_widths(faces, lines), right - left), right - left)
    foot = top + _TALL * len(lines)
    if grid.names:
        draw.rectangle((left, top, left + sum(widths), top + _TALL), fill=_HEAD)
    for number, line in enumerate(lines):
        style = _NAME if grid.names and number == 0 else _CELL
        _line(draw, faces, line, widths, (left, top + number * _TALL), style)
    for number in range(len(lines) + 1):
        draw.line((left, top + number * _TALL, left + sum(widths), top + number * _TALL), fill=_RULE)
    across = left
    for width in (0, *widths):
        across += width
        draw.line((across, top, across, foot), fill=_RULE)
    return foot + 8


def draw_sheet(image: Image.Image, rows: Sequence[Sequence[str]], name: str | None) -> None:
    """Draw a sheet that fills the picture: letters above, numbers at the left, its name on a tab below."""
    draw = ImageDraw.Draw(image)
    lines = [[typeface.clean(cell[:LONGEST]) for cell in row[:COLUMNS]] for row in rows[:ROWS]]
    faces = Typeface("".join(cell for line in lines for cell in line) + (name or "")[:LONGEST] + "0123456789")
    gutter = 22
    foot = image.height - (_TALL + 4 if name else 0)
    widths = [max(_NARROW, min(_WIDE, width)) for width in _widths(faces, lines)]
    while gutter + sum(widths) < image.width:
        widths.append(58)
    draw.rectangle((0, 0, image.width, _TALL), fill=_FRAME)
    draw.rectangle((0, 0, gutter, foot), fill=_FRAME)
    across = gutter
    for number, width in enumerate(widths):
        _label(draw, faces, _letters(number), (across + width / 2, _TALL))
        draw.line((across, 0, across, foot), fill=_RULE)
        across += width
    titled = len(lines) > 1 and bool(lines[0]) and not any(_NUMBER.fullmatch(cell) for cell in lines[0])
    for number in range((foot - 1) // _TALL):
        top = _TALL * (number + 1)
        draw.line((0, top, image.width, top), fill=_RULE)
        _label(draw, faces, str(number + 1), (gutter / 2, top + _TALL))
        if number < len(lines):
            style = _NAME if titled and number == 0 else _CELL
            _line(draw, faces, lines[number], widths, (gutter, top), style)
    if name:
        _tab(draw, faces, name, (gutter, foot, image.width, image.height))


def _tab(draw: ImageDraw.ImageDraw, faces: Typeface, name: str, room: tuple[int, int, int, int]) -> None:
    left, top, right, bottom = room
    draw.rectangle((0, top, right, bottom), fill=_FRAME)
    draw.line((0, top, right, top), fill=_RULE)
    words = typeface.clean(name[:LONGEST])
    width = min(right - left - 20, max(30, _measured(faces, words, _NAME) + 4 * _PAD))
    draw.rectangle((left, top, left + width, bottom - 3), fill="white", outline=_RULE)
    _line(draw, faces, [words], [width], (left, top), _NAME)


def _label(draw: ImageDraw.ImageDraw, faces: Typeface, text: str, at: tuple[float, float]) -> None:
    """Draw a small grey text centred at `at`."""
    word = faces.word(text, _LABEL)
    typeface.draw_word(draw, (at[0] - word.width / 2, at[1] - 4), word, _LABEL)


def _letters(number: int) -> str:
    """The name of a column, as spreadsheets count them: A to Z, AA, AB and so on."""
    first, last = divmod(number, 26)
    return (chr(64 + first) if first else "") + chr(65 + last)


def _measured(faces: Typeface, text: str, style: Style) -> int:
    words = [faces.word(word, style, glued=glued) for word, glued in typeface.split(text[:LONGEST])]
    return round(sum(word.width + (0 if word.glued else faces.space(style)) for word in words))


def _widths(faces: Typeface, lines: Sequence[Sequence[str]]) -> list[int]:
    """The preferred width of each column."""
    count = max((len(line) for line in lines), default=0)
    return [
        max((_measured(faces, line[number], _NAME) for line in lines if number < len(line)), default=0)
        + 2 * _PAD
        for number in range(count)
    ]


def _fitting(widths: Sequence[int], room: int) -> list[int]:
    """The first columns that fit at minimum width."""
    columns: list[int] = []
    for width in widths:
        if columns and sum(min(each, _NARROW) for each in columns) + min(width, _NARROW) > room:
            break
        columns.append(width)
    return columns


def _shares(widths: Sequence[int], room: int) -> list[int]:
    """The room divided: narrow columns get their preferred width, the others share the rest."""
    spare = max(0, room - sum(widths)) // max(1, len(widths))
    shares = list(widths)
    for done, number in enumerate(sorted(range(len(widths)), key=lambda each: widths[each])):
        shares[number] = min(widths[number], room // (len(widths) - done))
        room -= shares[number]
    return [share + spare for share in shares]


def _line(
    draw: ImageDraw.ImageDraw,
    faces: Typeface,
    cells: Sequence[str],
    widths: Sequence[int],
    at: tuple[int, int],
    style: Style,
) -> None:
    """Draw one row of cells, each truncated with an ellipsis; numbers are right-aligned."""
    across, top = at
    for cell, width in zip(cells, widths, strict=False):
        text = cell[:LONGEST].strip()
        room = width - 2 * _PAD
        words, used = _fitted(faces, text, style, room)
        right = (_NUMBER.fullmatch(text) is not None and style is not _NAME) or typeface.is_rtl(text)
        if typeface.is_rtl(text):
            words = words[::-1]
        left = across + _PAD + (max(0.0, room - used) if right else 0.0)
        for number, word in enumerate(words):
            left += faces.space(style) if number and not word.glued else 0
            typeface.draw_word(draw, (left, top + _TALL - 4), word, style)
            left += word.width
        across += width


def _fitted(faces: Typeface, text: str, style: Style, room: float) -> tuple[list[typeface.DrawnWord], float]:
    """The words that fit and their length; truncated with an ellipsis if necessary."""
    words = [faces.word(word, style, glued=glued) for word, glued in typeface.split(text)]
    used = _used(words, faces, style)
    if used <= room:
        return words, used
    dots = faces.word("…", style, glued=True)
    while words and _used(words, faces, style) + dots.width > room:
        last = words.pop()
        for most in range(len(last.text) - 1, 0, -1):
            part = faces.word(last.text[:most], style, glued=last.glued)
            if _used([*words, part], faces, style) + dots.width <= room:
                words.append(part)
                break
        else:
            continue
        break
    words.append(dots)
    return words, _used(words, faces, style)


def _used(words: Sequence[typeface.DrawnWord], faces: Typeface, style: Style) -> float:
    gap = faces.space(style)
    return sum(word.width + (gap if number and not word.glued else 0) for number, word in enumerate(words))
