"""PDF: text by page, with paragraphs and headings inferred from the position and height of lines.

A PDF has neither paragraphs nor headings, only positioned glyphs. PDFium gives the text in reading order,
line by line. A wider gap above a line, a change of size or an indent starts a paragraph; a short line clearly
taller than most is a heading. Everything is decided page by page, so that the text of a page does not depend
on its slice.
"""

import contextlib
import ctypes
import io
import itertools
import mmap
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pypdfium2 as pdfium  # type: ignore[import-untyped]
from pypdfium2 import raw

from holdfast.core.errors import WorkError
from holdfast.core.text import plain
from holdfast.documents.parse import (
    page_quality,
    pdf_footnotes,
    pdf_forms,
    pdf_layout,
    pdf_outline,
    pdf_properties,
    pdf_running_heads,
    properties,
    source,
)
from holdfast.documents.parse.pdf_characters import Line
from holdfast.documents.parse.pdf_layout import PagePart, PageText
from holdfast.documents.parse.records import (
    MIB,
    Format,
    GapReason,
    Outline,
    Page,
    ParseLimits,
    Role,
    TextBlock,
    Unit,
    UnitRange,
)
from holdfast.documents.parse.source import Readable

LONGEST_HEADING = 160
MAPPED = 128 * MIB
REMEMBERED = 2 * pdf_running_heads.NEARBY
_BoxAt = Callable[[int], tuple[float, float, float]]
_STOPS = ".!?:\u3002\uff01\uff1f"
_NO_TEXT_LAYER = (
    'the PDF has no text layer, it is probably a scan; to read it, install OCR: pip install "holdfast[ocr]"'
)
_BLANK = "the PDF has no text, and no picture on which OCR could read any"
# PDFium's marks for a hyphen at a line break.
_SOFT_HYPHENS = ("\x02", "\ufffe", "\xad")
_ITEM = re.compile(r"(?:[•‣◦▪●\u2013-]|\(?\d{1,3}[.)]|[a-z][.)])\s+\S")
_FOLIO = re.compile(r"(?:page\s+)?\W{0,2}\d{1,5}\W{0,2}(?:(?:of|/)\s*\d{1,5})?", re.IGNORECASE)
# Scripts without spaces between words: their lines are joined without one.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"
)


T = TypeVar("T")


class Pdf:
    """A PDF read slice by slice. It is reopened for each, so that PDFium's caches do not grow."""

    def __init__(self, path: Readable, limits: ParseLimits) -> None:
        self._path = path
        self._limits = limits
        self._read: dict[int, PageText] = {}
        self._sections: pdf_outline.Sections | None = None

    def outline(self, *, scans: bool = False) -> Outline:
        """The outline; raises `no_text` if no page has text, as in a scan without a text layer.

        With `scans` it names the pages that OCR can read, which then need no text.
        """
        with _opened(self._path) as document:
            pages = len(document)
            if pages > self._limits.pages:
                raise WorkError(
                    f"the PDF has {pages:,} pages; the limit is {self._limits.pages:,}; split it",
                    code="too_many_pages",
                )
            unread = tuple(_scans(document)) if scans else ()
            if not unread and not any(_has_text(document, number) for number in range(pages)):
                raise WorkError(_BLANK if scans else _NO_TEXT_LAYER, code="no_text")
            title = " ".join(plain(document.get_metadata_value("Title")).split())
            return Outline(
                Format.PDF,
                Unit.PAGE,
                pages,
                title or None,
                scans=unread,
                properties=properties.bounded(pdf_properties.read(document, self._path)),
                entries=pdf_outline.entries(document),
            )

    def ahead(self, units: UnitRange) -> bool:  # noqa: ARG002 (pages are read in any order)
        """Any slice can be read at any time."""
        return True

    def read(self, units: UnitRange) -> list[Page]:
        """The pages of the slice."""
        with _opened(self._path) as document:
            pages = len(document)
            last = min(units.last, pages)
            around = range(
                pdf_running_heads.nearby(units.first, pages).start,
                pdf_running_heads.nearby(max(units.first, last), pages).stop,
            )
            # Pages between two slices are part of both: what was read for the last one is not read again.
            texts = {number: self._read.get(number) or _page(document, number) for number in around}
            self._read = {number: text for number, text in texts.items() if number > last - REMEMBERED}
            if self._sections is None:
                self._sections = pdf_outline.Sections(pdf_outline.entries(document))
            sections = self._sections
        edges = {
            number: pdf_running_heads.edge_lines(text.lines, text.low, text.high)
            for number, text in texts.items()
        }
        return [
            sections.placed(
                Page(
                    number,
                    tuple(_page_blocks(_body(texts[number], edges, number, pages))),
                    gap=texts[number].gap,
                    picture=texts[number].picture,
                )
            )
            for number in range(units.first, last + 1)
        ]


def thumbnail(path: Readable, width: int) -> bytes:
    """The first page as a PNG, `width` pixels wide and at most three times as high."""
    with _opened(path) as document, contextlib.closing(document[0]) as page:
        across, down = page.get_size()
        scale = min(width / max(across, 1.0), 3 * width / max(down, 1.0))
        bitmap = page.render(scale=scale)
        png = io.BytesIO()
        bitmap.to_pil().convert("RGB").save(png, "PNG")
        bitmap.close()
        return png.getvalue()


def _content(path: Readable) -> Any:
    """The file for PDFium: memory-mapped; a very large one is read in pieces, more slowly."""
    with path.open("rb") as file:
        size = path.stat().st_size
        if 0 < size <= MAPPED:
            # A private mapping, because PDFium's binding needs writable memory.
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
            return (ctypes.c_ubyte * size).from_buffer(mapped)
    return path.open("rb")


@contextlib.contextmanager
def _opened(path: Readable) -> Iterator[pdfium.PdfDocument]:
    password = source.password_of(path)
    try:
        document = pdfium.PdfDocument(_content(path), password=password)
    except pdfium.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD and password is not None:
            raise WorkError(
                "the password does not open the PDF; send the right one", code="wrong_password"
            ) from error
        if error.err_code in {raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY}:
            raise WorkError(
                "the PDF is encrypted; send its password, or remove it and upload the file again",
                code="encrypted",
            ) from error
        raise WorkError(
            "the PDF is damaged and cannot be opened; upload it again", code="broken_file"
        ) from error
    try:
        document.init_forms()  # does nothing without a form
        yield document
    finally:
        document.close()


def page_count(path: Readable) -> int:
    """The number of pages."""
    with _opened(path) as document:
        return len(document)


def with_page(path: Readable, number: int, use: Callable[[pdfium.PdfPage], T]) -> T:
    """The result of `use` for page `number`, from 1; raises `no_page` if there is none."""
    with _opened(path) as document:
        if number > len(document):
            raise WorkError(f"the document has no page {number}", code="no_page")
        with contextlib.closing(document[number - 1]) as page:
            return use(page)


def _scans(document: pdfium.PdfDocument) -> Iterator[int]:
    """The numbers of the pages that seem to have no text layer."""
    for number in range(len(document)):
        with (
            contextlib.suppress(pdfium.PdfiumError),
            contextlib.closing(document[number]) as page,
            contextlib.closing(page.get_textpage()) as text,
        ):
            if page_quality.seems_unread(page, text):
                yield number + 1


def _has_text(document: pdfium.PdfDocument, number: int) -> bool:
    """True if page `number`, from 0, has text; a page that cannot be loaded has none."""
    try:
        with contextlib.closing(document[number]) as page, contextlib.closing(page.get_textpage()) as text:
            return bool(text.count_chars() and text.get_text_range().strip()) or bool(
                pdf_forms.rows(document, page)
            )
    except pdfium.PdfiumError:
        return False


def _page(document: pdfium.PdfDocument, number: int) -> PageText:
    """The text of page `number`, from 1; none for a damaged page."""
    try:
        with (
            contextlib.closing(document[number - 1]) as page,
            contextlib.closing(page.get_textpage()) as text,
        ):
            whole = text.get_text_range(errors="replace") if text.count_chars() else ""
            parts = pdf_layout.parts(page, text, whole)
            if parts is None:
                parts = [PagePart(tuple(_lines(text, whole)))]
            if fields := pdf_forms.rows(document, page):
                parts.append(PagePart(rows=fields))
            _left, low, _right, high = page.get_bbox()
            if not page_quality.is_unread(page, text, whole):
                return PageText(tuple(parts), low, high)
            unread = page_quality.picture(page)
            if page_quality.is_rubbish(text):
                parts = [PagePart(rows=fields)] if fields else []
            return PageText(tuple(parts), low, high, gap=GapReason.NO_TEXT_LAYER, picture=unread)
    except pdfium.PdfiumError:
        return PageText(gap=GapReason.DAMAGED)


def _body(text: PageText, edges: Mapping[int, Any], number: int, pages: int) -> PageText:
    """The text of a page without running heads, and without a page number on its own at the foot.

    Either would change every later page when one is inserted.
    """
    text = text.without(pdf_running_heads.running_lines(edges, number, pages))
    foot = text.low + (text.high - text.low) / 10
    text = text.without([line for line in text.lines if line.top <= foot and _FOLIO.fullmatch(line.text)])
    return replace(text, parts=pdf_footnotes.last(text.parts, _commonest(text.lines) if text.lines else 0.0))


def _page_blocks(page: PageText) -> Iterator[TextBlock]:
    """The blocks of all parts; a sentence that a column's end cut in two is put together."""
    lines = page.lines
    height = _commonest(lines) if lines else 0.0
    last: TextBlock | None = None
    for part in page.parts:
        for number, block in enumerate(_blocks(part.lines, height)):
            if last is not None and number == 0 and _runs_on(last, block):
                last = TextBlock(last.role, _spelled([last.text, block.text]))
                continue
            if last is not None:
                yield last
            last = block
        if part.rows and last is not None:
            yield last
            last = None
        yield from (TextBlock(Role.ROW, row) for row in part.rows)
    if last is not None:
        yield last


def _runs_on(last: TextBlock, block: TextBlock) -> bool:
    """True if a paragraph that ends a column goes on in the next one."""
    return (
        last.role in {Role.PARAGRAPH, Role.LIST}
        and block.role is Role.PARAGRAPH
        and last.text[-1:] not in _STOPS
        and block.text[:1].islower()
    )


def _lines(text: pdfium.PdfTextPage, whole: str) -> Iterator[Line]:
    box_at = _boxes(text)
    at = 0
    for line in whole.split("\n"):
        shown = line.strip(" \t\r\f\v")
        if shown:
            start = at + _utf16_length(line[: len(line) - len(line.lstrip(" \t\r\f\v"))])
            left, top, bottom = box_at(start)
            if len(shown) > 4:
                # A superscript or a large initial at the start is not typical of the line.
                heights = [top - bottom, *(_height(box_at, start, shown, part) for part in (2, 3))]
                top = bottom + sorted(heights)[1]
            broken = any(mark in shown for mark in _SOFT_HYPHENS)
            last_bottom = box_at(start + _utf16_length(shown) - 1)[2] if broken else bottom
            yield Line(plain(shown), left, top, bottom, last_bottom)
        at += _utf16_length(line) + 1


def _height(box_at: _BoxAt, start: int, shown: str, part: int) -> float:
    """The height of the character at a half or a third of a line."""
    at = len(shown) // part
    if shown[at].isspace():
        at -= 1
    _left, top, bottom = box_at(start + _utf16_length(shown[:at]))
    return top - bottom


def _utf16_length(text: str) -> int:
    """The length of a text as PDFium counts it, in UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _boxes(text: pdfium.PdfTextPage) -> _BoxAt:
    """Left, top and bottom of the character at an index of the text; zeros for one that PDFium inserted."""
    box, handle = raw.FS_RECTF(), text.raw
    pointer = ctypes.byref(box)
    index_of, box_of = raw.FPDFText_GetCharIndexFromTextIndex, raw.FPDFText_GetLooseCharBox

    def box_at(at: int) -> tuple[float, float, float]:
        if not box_of(handle, index_of(handle, at), pointer):
            return 0.0, 0.0, 0.0
        return box.left, box.top, box.bottom

    return box_at


def _blocks(lines: Sequence[Line], height: float) -> Iterator[TextBlock]:
    if not lines:
        return
    gaps = [gap for one, two in itertools.pairwise(lines) if 0 <= (gap := one.last_bottom - two.top) < height]
    leading = statistics.median(gaps) if gaps else 0.0
    held: list[Line] = []
    for line in lines:
        if held and _begins(held, line, height, leading):
            yield _block(held, height)
            held = []
        held.append(line)
    yield _block(held, height)


def _commonest(lines: list[Line]) -> float:
    """The most common height of these lines."""
    weights: dict[float, int] = {}
    for line in lines:
        key = round(line.height, 1)
        weights[key] = weights.get(key, 0) + len(line.text)
    return max(weights, key=lambda key: (weights[key], -key))


def _begins(held: list[Line], line: Line, height: float, leading: float) -> bool:
    """True if the line starts a new block."""
    last = held[-1]
    if abs(line.height - last.height) > 0.12 * height or _ITEM.match(line.text):
        return True
    gap = last.last_bottom - line.top
    if gap > leading + 0.4 * height or gap < -3 * height:
        return True
    # An indented first line, as books set it, after a line that ended a sentence.
    return len(held) > 1 and 0.5 * height < line.left - last.left < 5 * height and last.text[-1:] in _STOPS


def _block(lines: list[Line], height: float) -> TextBlock:
    text = _spelled([line.text for line in lines])
    ratio = lines[0].height / height if height > 0 else 1.0
    if ratio >= 1.15 and len(text) <= LONGEST_HEADING and any(map(str.isalnum, text)):
        return TextBlock(Role.HEADING, text, 1 if ratio >= 1.6 else 2 if ratio >= 1.3 else 3)
    return TextBlock(Role.LIST if _ITEM.match(text) else Role.PARAGRAPH, text)


def _spelled(lines: list[str]) -> str:
    text = "".join(_joined(lines))
    for mark in _SOFT_HYPHENS:
        text = text.replace(mark, "")
    return text


def _joined(lines: list[str]) -> Iterator[str]:
    """The lines of one paragraph and their separators; words hyphenated at a line end are joined.

    Lines are stripped and not empty, so that only the previous line matters.
    """
    for text, line in itertools.pairwise(lines):
        broken = text[-1:] == "-" and text[-2:-1].islower() and line[:1].islower()
        if broken or text.endswith(_SOFT_HYPHENS):
            yield text[:-1]
        elif _UNSPACED.match(text[-1:]) and _UNSPACED.match(line[:1]):
            yield text
        else:
            yield f"{text} "
    yield lines[-1]
