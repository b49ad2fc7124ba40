"""The results of parsing: outlines, slices, and pages of blocks."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from holdfast.core import keys

MIB = 1024 * 1024


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


WORKBOOKS = frozenset({Format.XLSX, Format.XLS, Format.ODS})
SHEETS = WORKBOOKS | {Format.CSV, Format.TSV}
SLIDES = frozenset({Format.PPTX, Format.ODP})
ARCHIVES = frozenset({Format.DOCX, Format.PPTX, Format.XLSX, Format.ODT, Format.ODP, Format.ODS, Format.EPUB})

# Incremented whenever the same bytes would give different pages: slices are then redone (chunks with the same
# text are still not paid again).
PARSER_VERSIONS = MappingProxyType(
    {
        Format.PDF: "pdfium-2",
        Format.DOCX: "docx-2",
        Format.PPTX: "pptx-2",
        Format.XLSX: "sheet-2",
        Format.XLS: "sheet-2",
        Format.ODS: "sheet-2",
        Format.ODT: "odt-1",
        Format.ODP: "odp-1",
        Format.EPUB: "epub-1",
        Format.RTF: "rtf-1",
        Format.EML: "mail-1",
        Format.MSG: "mail-1",
        Format.JSON: "json-1",
        Format.JSONL: "json-1",
        Format.XML: "xml-1",
        Format.NOTEBOOK: "notebook-1",
        Format.CODE: "code-1",
        Format.YAML: "code-1",
        Format.CSV: "sheet-1",
        Format.TSV: "sheet-1",
        Format.HTML: "html-1",
        Format.MARKDOWN: "markdown-1",
        Format.TEXT: "text-1",
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
class Outline:
    """A document's size and structure: all that is needed to cut it into slices.

    `parts` are the rows of each sheet, in order; empty for formats without sheets.
    """

    format: Format
    unit: Unit
    units: int
    title: str | None = None
    parts: tuple[int, ...] = ()

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
    """One page, slide, sheet or part: its number from 1, its name if any, and its blocks in reading order."""

    number: int
    blocks: tuple[TextBlock, ...]
    label: str | None = None


def slices(outline: Outline, *, pages: int = 12, rows: int = 3000) -> tuple[UnitRange, ...]:
    """The document cut into slices: a PDF by `pages`, sheets by `rows`, other formats whole.

    A sheet of more than `rows` is cut separately; smaller ones share a slice if they fit.
    """
    if outline.unit is Unit.PAGE:
        return _steps(1, outline.units, pages)
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
        for block in page.blocks:
            parts += [block.role.value, str(block.level), block.text]
    return keys.digest(*parts)


def has_text(pages: Sequence[Page]) -> bool:
    """True if any of the pages has text to index."""
    return any(page.blocks for page in pages)
