"""The results of parsing: outlines, slices, and pages of blocks."""

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any

from holdfast.core import keys

MIB = 1024 * 1024
# The resolution at which pages are recognised (OCR), and the most pixels of a page of any size.
DPI = 200
MOST_PIXELS = 16_000_000
# Boxes of words are in this many parts of a page's width and height.
BOX_SCALE = 10_000
# The most pages of a slice that are to be recognised: each takes seconds.
SLICE_SCANS = 4
# The entries of a table of contents, in a document and in one of its slices, and the characters of one.
MOST_ENTRIES = 2000
MOST_SLICE_ENTRIES = 500
MOST_ENTRY_TITLE = 200
# The rows of a sheet from which its language is told.
SAMPLE_ROWS = 200


_EAST_ASIAN = re.compile("[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")


class Format(enum.StrEnum):
    """A file's format. The file name is at most a hint."""

    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    XLS = "xls"
    ODT = "odt"
    ODP = "odp"
    ODS = "ods"
    EPUB = "epub"
    ZIP = "zip"
    RTF = "rtf"
    EML = "eml"
    MSG = "msg"
    CSV = "csv"
    TSV = "tsv"
    JSON = "json"
    JSONL = "jsonl"
    XML = "xml"
    NOTEBOOK = "ipynb"
    HTML = "html"
    MARKDOWN = "markdown"
    CODE = "code"
    YAML = "yaml"
    TEXT = "text"
    PNG = "png"
    JPEG = "jpeg"
    TIFF = "tiff"
    WEBP = "webp"
    OWN = "own"  # read by a parser of the user's own


WORKBOOKS = frozenset({Format.XLSX, Format.XLS, Format.ODS})
SHEETS = WORKBOOKS | {Format.CSV, Format.TSV}
CONTAINERS = frozenset({Format.ZIP, Format.EML, Format.MSG})
SLIDES = frozenset({Format.PPTX, Format.ODP})
ARCHIVES = frozenset({Format.DOCX, Format.PPTX, Format.XLSX, Format.ODT, Format.ODP, Format.ODS, Format.EPUB})
IMAGES = frozenset({Format.PNG, Format.JPEG, Format.TIFF, Format.WEBP})
# Documents whose pages may be pictures: they have a quality.
PAGED = IMAGES | {Format.PDF}

# Incremented whenever the same bytes would give different pages: slices are then redone (chunks with the same
# text are still not paid again).
PARSER_VERSIONS = MappingProxyType(
    {
        Format.PDF: "pdfium-3",
        Format.DOCX: "docx-2",
        Format.PPTX: "pptx-2",
        Format.XLSX: "sheet-2",
        Format.XLS: "sheet-2",
        Format.ODS: "sheet-2",
        Format.ODT: "odt-1",
        Format.ODP: "odp-1",
        Format.EPUB: "epub-1",
        Format.ZIP: "zip-1",
        Format.RTF: "rtf-1",
        Format.EML: "mail-1",
        Format.MSG: "mail-1",
        Format.JSON: "json-1",
        Format.JSONL: "json-1",
        Format.XML: "xml-1",
        Format.NOTEBOOK: "notebook-2",
        Format.CODE: "code-1",
        Format.YAML: "code-1",
        Format.CSV: "sheet-1",
        Format.TSV: "sheet-1",
        Format.HTML: "html-1",
        Format.MARKDOWN: "markdown-2",
        Format.TEXT: "text-1",
        Format.PNG: "image-1",
        Format.JPEG: "image-1",
        Format.TIFF: "image-1",
        Format.WEBP: "image-1",
        Format.OWN: "own-1",
    }
)


class Unit(enum.StrEnum):
    """The unit in which a document is counted."""

    PAGE = "page"
    SLIDE = "slide"
    ROW = "row"
    PART = "part"


class Role(enum.StrEnum):
    """The role of a block."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    ROW = "row"
    CODE = "code"


class Quality(enum.StrEnum):
    """Where the text of a page comes from."""

    TEXT = "text"
    OCR = "ocr"
    EMPTY = "empty"


class GapReason(enum.StrEnum):
    """Why a page that shows something has not been read, or not all of it."""

    NO_TEXT_LAYER = "no_text_layer"
    LOW_CONFIDENCE = "low_confidence"
    NOTHING_RECOGNISED = "nothing_recognised"
    OCR_FAILED = "ocr_failed"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Limits for one document: time and memory of the child, and sizes.

    `seconds` is wall time per request and CPU time of the child; `memory` its address space; `bytes` the
    file; `text_bytes` a file of plain text or Markdown; `expanded` the members of an archive together;
    `cells` those of a workbook; `reply` the output of one slice.
    """

    seconds: float = 60.0
    memory: int = 512 * MIB
    bytes: int = 256 * MIB
    text_bytes: int = 64 * MIB
    expanded: int = 1024 * MIB
    pages: int = 20_000
    cells: int = 5_000_000
    reply: int = 64 * MIB


@dataclass(frozen=True, slots=True)
class UnitRange:
    """The units `first` to `last` of an outline, counted from 1, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """An entry of a table of contents: its level from 1, its title and the number of its page."""

    level: int
    title: str
    page: int


@dataclass(frozen=True, slots=True)
class Outline:
    """A document's size and structure: all that is needed to cut it into slices.

    `parts` are the rows of each sheet, in order; empty for formats without sheets. `scans` are the pages that
    seem to have no text layer, if they were asked for. `members` is how many files are inside it, which
    become documents of their own. `properties` are what the file says about itself, `entries` the bookmarks
    of a PDF.
    """

    format: Format
    unit: Unit
    units: int
    title: str | None = None
    parts: tuple[int, ...] = ()
    scans: tuple[int, ...] = ()
    members: int = 0
    properties: Mapping[str, Any] = field(default_factory=dict)
    entries: tuple[OutlineEntry, ...] = ()

    @property
    def whole(self) -> UnitRange:
        """The slice that is the whole document."""
        return UnitRange(1, self.units)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A block of text. `level` is 1 to 6 for a heading and 0 otherwise."""

    role: Role
    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """One page, slide, sheet or part: its number from 1, its name if any, and its blocks in reading order.

    `confidence`, 0 to 100, is that of text recognition (OCR), for a page whose blocks come from it. `gap` is
    why a page is not read, and `picture` the digest of all that is drawn on a page to recognise. `section` is
    the part of the table of contents in which it begins, outermost first.
    """

    number: int
    blocks: tuple[TextBlock, ...]
    label: str | None = None
    confidence: int | None = None
    gap: GapReason | None = None
    picture: str | None = None
    section: tuple[str, ...] = ()

    @property
    def quality(self) -> Quality:
        """Where its text comes from."""
        if not self.blocks:
            return Quality.EMPTY
        return Quality.TEXT if self.confidence is None else Quality.OCR


@dataclass(frozen=True, slots=True)
class PageReading:
    """How a page was read, without its text: for pages that are more or less than plain text."""

    page: int
    quality: Quality
    confidence: int | None = None
    gap: GapReason | None = None
    picture: str | None = None


def readings(pages: Sequence[Page]) -> tuple[PageReading, ...]:
    """How these pages were read; those of plain text are left out."""
    return tuple(
        PageReading(page.number, page.quality, page.confidence, page.gap, page.picture)
        for page in pages
        if page.gap is not None or page.quality is not Quality.TEXT
    )


@dataclass(frozen=True, slots=True)
class RecognisedWord:
    """A word read by OCR, and its box in ten-thousandths of the width and height, from the upper left."""

    text: str
    left: int
    top: int
    right: int
    bottom: int


@dataclass(frozen=True, slots=True)
class RecognisedPage:
    """What OCR read on a page, and with what confidence, 0 to 100. `blank`: there is nothing on it."""

    confidence: int
    blocks: tuple[TextBlock, ...]
    words: tuple[RecognisedWord, ...]
    blank: bool = False


def slices(outline: Outline, *, pages: int = 12, rows: int = 3000) -> tuple[UnitRange, ...]:
    """The document cut into slices: a PDF by `pages` and by scans, sheets by `rows`, other formats whole.

    A sheet of more than `rows` is cut separately; smaller ones share a slice if they fit.
    """
    if outline.unit is Unit.PAGE:
        return tuple(_page_ranges(outline, pages))
    if outline.unit is not Unit.ROW:
        return (outline.whole,)
    ranges: list[UnitRange] = []
    start, row = 1, 0
    for height in outline.parts:
        if row + height - start + 1 > rows:
            if row >= start:
                ranges.append(UnitRange(start, row))
            start = row + 1
        row += height
        if height > rows:
            ranges.extend(_steps(start, row, rows))
            start = row + 1
    if row >= start:
        ranges.append(UnitRange(start, row))
    return tuple(ranges)


def samples(outline: Outline) -> tuple[UnitRange, ...]:
    """Small ranges that stand for the whole document: its beginning, and of pages some of its middle."""
    if outline.unit is not Unit.PAGE:
        return (UnitRange(1, min(outline.units, SAMPLE_ROWS)),)
    middle = max(3, outline.units // 2)
    ranges = (UnitRange(1, min(2, outline.units)), UnitRange(middle, min(middle + 1, outline.units)))
    return tuple(each for each in ranges if each.first <= each.last)


def _page_ranges(outline: Outline, pages: int) -> Iterator[UnitRange]:
    """Ranges of at most `pages`, of which at most SLICE_SCANS are scans."""
    scans, start, held = set(outline.scans), 1, 0
    for page in range(1, outline.units + 1):
        if page > start and (page - start >= pages or (page in scans and held >= SLICE_SCANS)):
            yield UnitRange(start, page - 1)
            start, held = page, 0
        held += page in scans
    yield UnitRange(start, outline.units)


def _steps(first: int, last: int, size: int) -> tuple[UnitRange, ...]:
    return tuple(
        UnitRange(start, min(start + size - 1, last)) for start in range(first, last + 1, max(1, size))
    )


def digest(pages: Sequence[Page], document_format: Format) -> str:
    """The digest of a slice's content: equal exactly if parser, page numbers, labels and text are.

    Page numbers count, because rows reused from an earlier generation keep theirs.
    """
    parts = [PARSER_VERSIONS[document_format]]
    for page in pages:
        parts += ["page", str(page.number), page.label or ""]
        if page.quality is Quality.OCR:  # its chunks are marked
            parts += ["ocr", str(page.confidence)]
        if page.section:
            parts += ["section", *page.section]
        for block in page.blocks:
            parts += [block.role.value, str(block.level), block.text]
    return keys.digest(*parts)


def has_text(pages: Sequence[Page]) -> bool:
    """True if any of the pages has text to index."""
    return any(page.blocks for page in pages)


def page_words(pages: Sequence[Page], document_format: Format) -> tuple[tuple[int, int], ...]:
    """The number of each page and of its words; none for rows, which have no pages.

    A character of Chinese or Japanese counts as a word, as in word processors.
    """
    if document_format in SHEETS or document_format is Format.JSONL:
        return ()
    return tuple((page.number, sum(_words(block.text) for block in page.blocks)) for page in pages)


def _words(text: str) -> int:
    if text.isascii():
        return len(text.split())
    return len(_EAST_ASIAN.sub(" ", text).split()) + len(_EAST_ASIAN.findall(text))


def headings(pages: Sequence[Page]) -> tuple[OutlineEntry, ...]:
    """The headings of the pages as entries of a table of contents, as far as they are not too many."""
    entries = (
        OutlineEntry(max(1, block.level), " ".join(block.text.split())[:MOST_ENTRY_TITLE], page.number)
        for page in pages
        for block in page.blocks
        if block.role is Role.HEADING
    )
    return tuple(islice(entries, MOST_SLICE_ENTRIES))
