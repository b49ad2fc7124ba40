"""The characters of a PDF page with their boxes, and the segments of lines that they form.

Boxes cost one call to PDFium for each character, several times what a plain page costs otherwise. So a page
is looked at by its rectangles first (`is_plain`), one for each piece of text that was drawn, and by
characters only if that shows gaps, or text outside the visible page.
"""

import ctypes
import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pypdfium2 as pdfium  # type: ignore[import-untyped]
from pypdfium2 import raw

from holdfast.core.text import plain

# Beyond these a page is read in PDFium's order: what follows is linear, but not free.
MOST_CHARACTERS = 40_000
MOST_RECTANGLES = 20_000
# A gap of this many heights separates columns and cells; word spaces, even justified, are narrower.
WIDE = 0.9
_FEWEST_GAPS = 3
_BREAKS = "\r\n"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in points; `bottom` is below `top`, as in a PDF."""

    left: float
    bottom: float
    right: float
    top: float

    def holds(self, left: float, bottom: float, right: float, top: float) -> bool:
        """True if the middle of the other rectangle lies in this one."""
        return self.left <= (left + right) / 2 <= self.right and self.bottom <= (bottom + top) / 2 <= self.top


class Character(NamedTuple):
    """A character and its box; that of a space or a line break is empty."""

    letter: str
    left: float
    bottom: float
    right: float
    top: float


_BREAK = Character("\n", 0.0, 0.0, 0.0, 0.0)
_SPACE = Character(" ", 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text and its position, in points.

    PDFium joins two lines if the first ends in a hyphen: `last_bottom` is the bottom of the last one.
    """

    text: str
    left: float
    top: float
    bottom: float
    last_bottom: float

    @property
    def height(self) -> float:
        """The height of its letters."""
        return self.top - self.bottom


@dataclass(frozen=True, slots=True)
class Segment:
    """Characters of one line without a wide gap among them, in PDFium's order."""

    characters: tuple[Character, ...]
    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        """The height of the box."""
        return self.top - self.bottom

    @property
    def text(self) -> str:
        """The text, stripped."""
        return "".join(character.letter for character in self.characters).strip()


def visible_box(page: pdfium.PdfPage) -> Box:
    """The part of a page that a reader sees."""
    left, bottom, right, top = page.get_bbox()
    return Box(min(left, right), min(bottom, top), max(left, right), max(bottom, top))


def is_plain(text: pdfium.PdfTextPage, whole: str, visible: Box) -> bool:
    """True if hardly a line has a wide gap and all text is visible: PDFium's order is then right.

    Also true for a page with too much on it. Fonts without outlines have no rectangles, and say nothing.
    """
    count = text.count_rects()
    if count > MOST_RECTANGLES or text.count_chars() > MOST_CHARACTERS:
        return True
    if 2 * count <= whole.count("\n"):
        return False
    if "  " in whole and sum("  " in line.strip() for line in whole.split("\n")) >= _FEWEST_GAPS:
        return False
    return not _has_gaps(text, count, visible)


def _has_gaps(text: pdfium.PdfTextPage, count: int, visible: Box) -> bool:
    """True if lines with gaps follow each other or are many, or if a rectangle lies outside `visible`."""
    sides = [ctypes.c_double() for _ in range(4)]
    left, top, right, bottom = sides
    pointers = [ctypes.byref(side) for side in sides]
    last_right = last_middle = 0.0
    gaps = streak = gapless = 0
    has_gap = False
    handle, rectangle_of = text.raw, raw.FPDFText_GetRect
    first, last, floor, ceiling = visible.left, visible.right, visible.bottom, visible.top
    for number in range(count):
        rectangle_of(handle, number, *pointers)
        start, end, low, high = left.value, right.value, bottom.value, top.value
        crosses = start < first or end > last or low < floor or high > ceiling
        if crosses and not visible.holds(start, low, end, high):
            return True
        if low < last_middle < high:
            if start - last_right > 1.2 * (high - low):
                has_gap = True
                gaps += 1
        else:  # a new line
            streak, gapless = (streak + 1, 0) if has_gap else (streak if gapless == 0 else 0, gapless + 1)
            if streak >= _FEWEST_GAPS:
                return True
            has_gap = False
        last_right, last_middle = end, (low + high) / 2
    return streak + has_gap >= _FEWEST_GAPS or gaps >= max(_FEWEST_GAPS, 0.1 * count)


def characters_of(text: pdfium.PdfTextPage, visible: Box) -> tuple[list[Character], bool]:
    """The visible characters of a page, in PDFium's order; and whether there are others."""
    box = raw.FS_RECTF()
    low, high = visible.bottom, visible.top
    pointer = ctypes.byref(box)
    characters: list[Character] = []
    cropped = False
    unicode_of, box_of = raw.FPDFText_GetUnicode, raw.FPDFText_GetLooseCharBox
    handle = text.raw
    for index in range(text.count_chars()):
        code = unicode_of(handle, index)
        if not code:
            continue
        letter = chr(code) if code < 0x110000 else "\ufffd"
        if letter.isspace():
            characters.append(_BREAK if letter in _BREAKS else _SPACE)
            continue
        box_of(handle, index, pointer)
        left, bottom, right, top = box.left, box.bottom, box.right, box.top
        if right <= left:
            right = left + 0.01
        if visible.left <= (left + right) / 2 <= visible.right and low <= (bottom + top) / 2 <= high:
            characters.append(Character(letter, left, bottom, right, top))
        else:
            cropped = True
    return characters, cropped


def segments_of(characters: Sequence[Character]) -> list[Segment]:
    """The segments that these characters form, in their order.

    Numbers within text from right to left run from left to right: the gap in front of them closes with
    their last digit, so that such segments are put together again.
    """
    merged: list[Segment] = []
    for segment in _pieces(characters):
        last = merged[-1] if merged else None
        if last is not None and on_one_line(last, segment) and _gap(last, segment) <= WIDE * last.height:
            merged[-1] = _segment([*last.characters, *segment.characters])
        else:
            merged.append(segment)
    return merged


def _pieces(characters: Sequence[Character]) -> Iterator[Segment]:
    start: int | None = None
    last = _BREAK
    for at, each in enumerate(characters):
        if each is _SPACE or each is _BREAK:
            continue
        if start is None:
            start = at
        else:
            _letter, left, bottom, right, top = each
            height = max(last.top - last.bottom, top - bottom)
            shared = min(last.top, top) - max(last.bottom, bottom)
            gap = max(left - last.right, last.left - right)
            if shared < 0.3 * height or gap > WIDE * height:
                yield _segment(characters[start:at])
                start = at
        last = each
    if start is not None:
        yield _segment(characters[start:])


def _segment(characters: Sequence[Character]) -> Segment:
    shown = [each for each in characters if each is not _SPACE and each is not _BREAK]
    _letters, lefts, bottoms, rights, tops = zip(*shown, strict=True)
    return Segment(tuple(characters), min(lefts), min(bottoms), max(rights), max(tops))


def _gap(one: Segment, two: Segment) -> float:
    return max(two.left - one.right, one.left - two.right)


def on_one_line(one: Segment, two: Segment) -> bool:
    """True if two segments overlap by at least half of the lower one's height."""
    shared = min(one.top, two.top) - max(one.bottom, two.bottom)
    return shared >= 0.5 * min(one.height, two.height)


def words_of(segment: Segment) -> Iterator[Segment]:
    """The words of a segment, each with its box."""
    for is_space, letters in itertools.groupby(segment.characters, lambda each: each in (_SPACE, _BREAK)):
        if not is_space:
            yield _segment(list(letters))


def line_of(segments: Sequence[Segment]) -> Line:
    """Segments of one line as a line of text."""
    text = joined(segments)
    shown = [each for segment in segments for each in segment.characters if each.right > each.left]
    first = shown[0]
    # A superscript or a large initial at the start is not typical of the line.
    middle = statistics.median(
        each.top - each.bottom for each in (first, shown[len(shown) // 2], shown[len(shown) // 3])
    )
    left = min(segment.left for segment in segments)
    return Line(text, left, first.bottom + middle, first.bottom, first.bottom)


def joined(segments: Sequence[Segment]) -> str:
    """The text of segments, with single spaces."""
    text = " ".join(" ".join(segment.text for segment in segments).split(" "))
    text = " ".join(text.split())
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain(text)
