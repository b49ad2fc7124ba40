"""Footnotes of a PDF page, put after its text: in columns they would cut a sentence in two."""

import re
from collections.abc import Sequence

from holdfast.documents.parse.pdf_characters import Line
from holdfast.documents.parse.pdf_layout import PagePart

# The height of a footnote's letters, as a share of the text's.
_SMALL = 0.92
_MARK = re.compile(r"(?:\d{1,3}|[*†‡§¶]{1,3})[.)]?\s?[^\W\d]")


def last(parts: tuple[PagePart, ...], height: float) -> tuple[PagePart, ...]:
    """The parts with all footnotes at the end; as they are if that is where they stand already.

    `height` is that of the text. A footnote begins with a mark, is set smaller, and stands below all text of
    its part, up to the end of the part.
    """
    moved: list[PagePart] = []
    notes: list[Line] = []
    for part in parts:
        start = _start(part.lines, height)
        notes += part.lines[start:]
        if part.lines[:start] or part.rows:
            moved.append(PagePart(part.lines[:start], part.rows))
    if not notes or not moved or parts[-1].lines[-len(notes) :] == tuple(notes):
        return parts
    return (*moved, PagePart(tuple(notes)))


def _start(lines: Sequence[Line], height: float) -> int:
    """Where the footnotes of a part begin; its end if it has none."""
    start = len(lines)
    while start and lines[start - 1].height <= _SMALL * height:
        start -= 1
    while start < len(lines) and not _MARK.match(lines[start].text):
        start += 1
    floor = min((line.bottom for line in lines[:start]), default=float("inf"))
    return start if all(line.top <= floor + 2 for line in lines[start:]) else len(lines)
