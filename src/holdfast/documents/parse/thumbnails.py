"""Thumbnails of the first page of documents in formats without pages.

They show the parsed text: headings larger, paragraphs in lines, lists with markers, tables and sheets as
grids. Everything is truncated before it is measured, so that no text, however long, takes more than a page's
worth of work. The same blocks always give the same bytes.
"""

import io
import itertools
import re
from collections.abc import Iterator, Sequence

from PIL import Image, ImageDraw, ImageFont

from holdfast.documents.parse import grids, typeface
from holdfast.documents.parse.records import SLIDES, Format, Role, TextBlock
from holdfast.documents.parse.typeface import DrawnWord, Style, Typeface

_PAPER, _EDGE, _INK, _LINES = (250, 250, 248), (208, 208, 204), (72, 84, 96), (226, 227, 224)
_CODE_PAPER, _DARK = (244, 245, 247), (24, 29, 36)
A4, SLIDE = 1.414, 0.5625
# All sizes below are for a picture of this width, the default for PDFs.
DRAWN = 320
MARGIN = 26
MOST_BLOCKS, MOST_LETTERS = 120, 4000
PROSE = 45
ROWS = grids.ROWS

_ITEM = re.compile(r"([ \t]{0,40})(?:[-*+•]|(\d{1,9}[.)]))[ \t]{1,9}")
_LINK = re.compile(r"!?\[([^\[\]\n]{1,200})\]\([^()\s]{0,400}\)")
_MARKS = re.compile(r"\*\*|__|`+|(?<![\w*])[*_](?=\w)|(?<=\w)[*_](?![\w*])")
_FENCES = ("```", "~~~")

_HEADINGS = {
    1: Style(18, bold=True, colour=_DARK),
    2: Style(14, bold=True, colour=_DARK),
    3: Style(12, bold=True, colour=_DARK),
}
_SMALL_HEADING = Style(10, bold=True, colour=_DARK)
_BODY, _CODE = Style(9), Style(8, colour=(60, 70, 84), mono=True)
_SLIDE_TITLE, _SLIDE_BODY = Style(20, bold=True, colour=_DARK), Style(12)


def placeholder(document_format: Format, width: int) -> bytes:
    """A blank page with the name of the format, for documents that cannot be shown."""
    height = round(width * A4)
    image = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, width - 1, height - 1), outline=_EDGE, width=max(1, width // 160))
    margin, step = width // 8, max(4, height // 18)
    for number, top in enumerate(range(height // 2 + step, height - margin, step)):
        right = width - margin - (width // 5 if number % 4 == 3 else 0)
        draw.rectangle((margin, top, right, top + max(1, step // 4)), fill=_LINES)
    font = ImageFont.load_default(max(8, width // 7))
    draw.text((width / 2, height / 3), document_format.value.upper(), fill=_INK, font=font, anchor="mm")
    return _png(image, width)


def page(blocks: Sequence[TextBlock], document_format: Format, width: int) -> bytes:
    """The blocks of a page on white, as many as fit; slides are wider than high."""
    slide = document_format in SLIDES
    image = Image.new("RGB", (DRAWN, round(DRAWN * (SLIDE if slide else A4))), "white")
    _Page(image, _shown(blocks, document_format), slide=slide).fill()
    return _png(image, width)


def sheet(rows: Sequence[Sequence[str]], name: str | None, width: int) -> bytes:
    """The upper left corner of a sheet with grid lines, column letters and row numbers."""
    image = Image.new("RGB", (DRAWN, round(DRAWN * A4)), "white")
    grids.draw_sheet(image, rows, name)
    return _png(image, width)


def _png(image: Image.Image, width: int) -> bytes:
    if image.width != width:
        size = width, max(1, round(image.height * width / image.width))
        image = image.resize(size, Image.Resampling.LANCZOS)
    png = io.BytesIO()
    image.save(png, "PNG")
    return png.getvalue()


def _shown(blocks: Sequence[TextBlock], document_format: Format) -> list[TextBlock]:
    """The blocks that may fit, each truncated, without invisible markup."""
    shown = []
    if document_format is Format.MARKDOWN and len(blocks) > 1 and _is_front_matter(blocks[0]):
        blocks = blocks[1:]
    for block in itertools.islice(blocks, MOST_BLOCKS):
        text = block.text[:MOST_LETTERS]
        if document_format is Format.MARKDOWN and block.role is not Role.CODE:
            text = _MARKS.sub("", _LINK.sub(r"\1", text))
        shown.append(TextBlock(block.role, typeface.clean(text), block.level))
    return shown


def _is_front_matter(block: TextBlock) -> bool:
    return block.role is Role.CODE and not block.text.lstrip().startswith(_FENCES)


class _Page:
    """A page being filled from its top; `_top` is where the next line begins."""

    def __init__(self, image: Image.Image, blocks: Sequence[TextBlock], *, slide: bool) -> None:
        self._image = image
        self._draw = ImageDraw.Draw(image)
        self._blocks = blocks
        self._slide = slide
        self._faces = Typeface("".join(block.text for block in blocks))
        self._top = MARGIN - 6 if slide else MARGIN
        self._bottom = image.height - (MARGIN - 8 if slide else MARGIN)
        self._body = _SLIDE_BODY if slide else _BODY

    def fill(self) -> None:
        """Draw blocks until nothing more fits."""
        for role, group in itertools.groupby(self._blocks, key=lambda block: block.role):
            if role is Role.ROW:
                grid = grids.table([block.text for block in itertools.islice(group, 40)])
                self._top = grids.draw_table(
                    self._image,
                    self._faces,
                    grid,
                    (MARGIN, self._top, self._image.width - MARGIN, self._bottom),
                )
                continue
            for block in group:
                if self._is_full(self._body):
                    return
                self._add(block)

    def _add(self, block: TextBlock) -> None:
        if block.role is Role.HEADING:
            self._heading(block)
        elif block.role is Role.CODE:
            self._code(block.text)
        elif block.role is Role.LIST:
            self._item(block.text)
        else:
            for line in _paragraph_lines(block.text):
                self._lines(line, self._body)
            self._top += 5

    def _is_full(self, style: Style) -> bool:
        return self._top + style.size > self._bottom

    def _heading(self, block: TextBlock) -> None:
        style = _HEADINGS.get(block.level, _SMALL_HEADING)
        if self._slide and block.level == 1:
            style = _SLIDE_TITLE
        if self._top > MARGIN:
            self._top += style.size // 2
        self._lines(" ".join(block.text.split()), style, most=4)
        self._top += 4

    def _item(self, text: str) -> None:
        mark = _ITEM.match(text)
        depth = min(3, len(mark[1].expandtabs(4)) // 2) if mark else 0
        indent = 10 + 10 * depth
        top, size = self._top, self._body.size
        text = " ".join((text[mark.end() :] if mark else text).split())
        rtl = typeface.is_rtl(text)
        if self._is_full(self._body):
            return
        if mark and mark[2]:
            self._lines(mark[2], self._body, left=10 * depth)
            self._top, indent = top, indent + max(0, size * len(mark[2]) // 2 - 6)
        else:
            across = self._image.width - MARGIN - 4 - 10 * depth if rtl else MARGIN + 2 + 10 * depth
            middle, half = top + size * 0.62, size / 6
            self._draw.ellipse(
                (across, middle - half, across + 2 * half, middle + half), fill=self._body.colour
            )
        self._lines(text, self._body, left=indent)
        self._top += 2

    def _code(self, text: str) -> None:
        """Draw code unwrapped, cut off at the right, on grey."""
        lines = [line.expandtabs(4).rstrip() for line in text.split("\n")]
        lines = [line for line in lines if not line.lstrip().startswith(_FENCES)]
        room = max(1, (self._bottom - self._top - 8) // _CODE.leading)
        lines = lines[:room]
        left, right = MARGIN, self._image.width - MARGIN
        foot = min(self._bottom, self._top + len(lines) * _CODE.leading + 8)
        self._draw.rounded_rectangle((left, self._top, right, foot), 3, fill=_CODE_PAPER)
        self._top += 4
        for line in lines:
            indent = min(30, len(line) - len(line.lstrip())) * _CODE.size * 0.6
            words = self._words(line[:200], _CODE)
            self._place(
                _within(words, right - left - 12 - indent, self._gap(_CODE)), _CODE, left + 6 + indent
            )
            self._top += _CODE.leading
        self._top = foot + 7

    def _gap(self, style: Style) -> float:
        return style.size * 0.6 if style.mono else self._faces.space(style)

    def _words(self, text: str, style: Style) -> list[DrawnWord]:
        return [self._faces.word(word, style, glued=glued) for word, glued in typeface.split(text)]

    def _lines(self, text: str, style: Style, *, left: int = 0, most: int = 1000) -> None:
        """Draw the text in lines between the margins, from the right for right-to-left scripts."""
        start, end = MARGIN + left, self._image.width - MARGIN
        rtl = typeface.is_rtl(text)
        if rtl:
            start, end = MARGIN, end - left
        words = self._words(text, style)
        for line in itertools.islice(_wrapped(words, end - start, self._faces, style), most):
            if self._is_full(style):
                return
            self._place(_turned(line) if rtl else line, style, end if rtl else start, from_right=rtl)
            self._top += style.leading

    def _place(
        self, words: Sequence[DrawnWord], style: Style, edge: float, *, from_right: bool = False
    ) -> None:
        gap = self._gap(style)
        base = self._top + style.size
        if from_right:
            edge -= _length(words, gap)
        for number, word in enumerate(words):
            if number and not word.glued:
                edge += gap
            typeface.draw_word(self._draw, (edge, base), word, style)
            edge += word.width


def _length(words: Sequence[DrawnWord], gap: float) -> float:
    return sum(word.width + (0 if word.glued or not number else gap) for number, word in enumerate(words))


def _within(words: Sequence[DrawnWord], width: float, gap: float) -> list[DrawnWord]:
    """The words that start within a width; the last may be cut off."""
    line: list[DrawnWord] = []
    across = 0.0
    for word in words:
        across += word.width + gap
        if across > width:
            break
        line.append(word)
    return line


def _turned(line: Sequence[DrawnWord]) -> list[DrawnWord]:
    """The words of a right-to-left line in visual order; Latin words keep their order."""
    turned: list[DrawnWord] = []
    runs = itertools.groupby(line, key=lambda word: word.rtl)
    for rtl, run in reversed([(rtl, list(run)) for rtl, run in runs]):
        turned += reversed(run) if rtl else run
    return turned


def _paragraph_lines(text: str) -> list[str]:
    """A paragraph as one line to wrap, or as its own lines if they are short, as in a postal address."""
    lines = [line.strip() for line in text.split("\n")]
    if all(len(line) >= PROSE for line in lines[:-1]):
        return [" ".join(lines)]
    return lines


def _wrapped(
    words: Sequence[DrawnWord], width: float, faces: Typeface, style: Style
) -> Iterator[list[DrawnWord]]:
    """Lines of words that fit; a word longer than a line is split."""
    gap = faces.space(style)
    line: list[DrawnWord] = []
    for word in itertools.chain.from_iterable(_broken(word, width, faces, style) for word in words):
        if line and _length([*line, word], gap) > width:
            yield line
            line = []
        line.append(word)
    if line:
        yield line


def _broken(word: DrawnWord, width: float, faces: Typeface, style: Style) -> Iterator[DrawnWord]:
    while word.width > width and len(word.text) > 1:
        most = max(1, int(len(word.text) * width / word.width))
        while most > 1 and faces.word(word.text[:most], style).width > width:
            most -= 1
        yield faces.word(word.text[:most], style, glued=word.glued)
        word = faces.word(word.text[most:], style, glued=True)
    yield word
