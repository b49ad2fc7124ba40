"""Where a passage stands on a page: boxes over the characters or words that it is made of.

A chunk is not the text of its page letter by letter: lines are joined, hyphens and running heads are gone. So
letters and digits alone are compared, and a passage that is not there in one piece is looked for in parts.
"""

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# The letters and digits of a part that is looked for on its own.
PART = 24
MOST_LETTERS = 20_000


@dataclass(frozen=True, slots=True)
class PixelBox:
    """Part of a page, in pixels from its upper left."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Glyph:
    """A character or a word of a page, and where it stands."""

    text: str
    box: PixelBox


def boxes(passage: str, glyphs: Sequence[Glyph]) -> list[PixelBox]:
    """The boxes of the passage, one for each stretch of a line; none if it is not there."""
    letters: list[str] = []
    owners: list[int] = []
    for number, glyph in enumerate(glyphs):
        for letter in _letters(glyph.text):
            letters.append(letter)
            owners.append(number)
    page = "".join(letters)
    marked = {owners[at] for start, end in _spans(_letters(passage), page) for at in range(start, end)}
    return list(_lines([glyphs[number].box for number in sorted(marked)]))


def _letters(text: str) -> str:
    """Letters and digits, one for one: a letter whose small form is two stays as it is."""
    return "".join(
        small if len(small := letter.lower()) == 1 else letter
        for letter in text[:MOST_LETTERS]
        if letter.isalnum()
    )


def _spans(passage: str, page: str) -> Iterator[tuple[int, int]]:
    """Where the passage, or parts of it in their order, are found."""
    if not passage:
        return
    start = page.find(passage)
    if start >= 0:
        yield start, start + len(passage)
        return
    known: dict[str, list[int]] = {}
    for at in range(len(page) - PART + 1):
        known.setdefault(page[at : at + PART], []).append(at)
    after = 0
    for at in [*range(0, len(passage) - PART + 1, PART), max(0, len(passage) - PART)]:
        places = known.get(passage[at : at + PART])
        if places:
            number = bisect.bisect_left(places, after)
            start = places[number if number < len(places) else 0]
            yield start, start + PART
            after = start + PART


def _lines(parts: Sequence[PixelBox]) -> Iterator[PixelBox]:
    """Neighbouring boxes of one line as one box."""
    line: PixelBox | None = None
    for box in parts:
        if line is not None and _follows(line, box):
            line = PixelBox(
                min(line.left, box.left),
                min(line.top, box.top),
                max(line.right, box.right),
                max(line.bottom, box.bottom),
            )
        else:
            if line is not None:
                yield line
            line = box
    if line is not None:
        yield line


def _follows(line: PixelBox, box: PixelBox) -> bool:
    """True if a box stands right after a line, or, on a page on its side, right below it."""
    height = max(1.0, line.bottom - line.top)
    middle = (box.top + box.bottom) / 2
    return line.top <= middle <= line.bottom and -height <= box.left - line.right <= 2 * height
