"""DOCX: blocks in reading order, headings by style, tables as rows; as it prints with all changes accepted.

Headers stand once before the text and footers once after it, whatever the number of pages and sections.
Footnotes, comments and titles of charts follow the paragraph that they belong to.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from holdfast.documents.parse import drawings, tables
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TEXT, _PARAGRAPH, _TABLE = f"{_W}t", f"{_W}p", f"{_W}tbl"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_TEXTS = frozenset({_TEXT, f"{_M}t"})
# The parts of an equation that stand above, below or beside each other.
_APART_NAMES = ("oMath", "num", "den", "e", "sub", "sup", "lim", "fName", "deg")
_APART = frozenset(f"{_M}{name}" for name in _APART_NAMES)
_BREAKS = {f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}tab": "\t", f"{_W}noBreakHyphen": "-"}
# Deleted text, and the second copy of a drawing for old programs.
_SKIPPED = frozenset(
    {f"{_W}del", f"{_W}moveFrom", "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"}
)
_MOST_DEPTH = 200
_MOST_SPAN = 200
# What is left of a header or footer that only counts pages.
_COUNTING = frozenset({"", "page", "page of", "of", "seite", "seite von", "von"})


@dataclass(slots=True)
class _Document:
    """What paragraphs refer to: styles by id, notes and comments by id, and the part that holds charts."""

    part: Any
    styles: dict[str, str]
    notes: dict[tuple[str, str], list[str]] = field(default_factory=dict)


def read_docx(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:  # noqa: ARG001
    """The title and the parts of a DOCX; a part ends at a manual page break.

    Computed page breaks are ignored: they move with every edit before them.
    """
    import docx  # noqa: PLC0415 (0.1 s that most documents do not need)

    source = docx.Document(path.open("rb"))
    document = _Document(source.part, {style.style_id: style.name or "" for style in source.styles})
    for ending in ("footnote", "endnote", "comment"):
        for part in drawings.related(source.part, f"/{ending}s"):
            document.notes.update(_notes(part.blob, ending))
    parts: list[list[TextBlock]] = [_margins(document, "/header")]
    for element in _body(source.element.body, 0):
        if element.tag == _TABLE:
            parts[-1] += _table(element, document, 0)
            continue
        if _breaks_before(element) and parts[-1]:
            parts.append([])
        parts[-1] += _paragraph(element, document)
        if _breaks_inside(element) and parts[-1]:
            parts.append([])
    parts[-1] += _margins(document, "/footer")
    pages = [Page(number, tuple(blocks)) for number, blocks in enumerate(parts, start=1) if blocks]
    return (source.core_properties.title or "").strip() or _first_heading(pages), pages


def _margins(document: _Document, ending: str) -> list[TextBlock]:
    """The different texts of all headers or footers, without those that only count pages."""
    texts: dict[str, None] = {}
    for part in drawings.related(document.part, ending):
        for element in _body(part.element, 0):
            lines = _cell_texts(element) if element.tag == _TABLE else [_text(element)]
            text = " ".join(" ".join(lines).split())
            words = "".join(letter if letter.isalpha() else " " for letter in text)
            if " ".join(words.lower().split()) not in _COUNTING:
                texts[text] = None
    return [TextBlock(Role.PARAGRAPH, text) for text in texts]


def _notes(blob: bytes, ending: str) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """The paragraphs of footnotes, endnotes or comments, by kind and id."""
    for note in drawings.xml(blob).iter(f"{_W}{ending}"):
        texts = [" ".join(_text(paragraph).split()) for paragraph in note.iter(_PARAGRAPH)]
        author = " ".join(note.get(f"{_W}author", "").split())
        if ending == "comment" and any(texts):
            texts = [f"Comment by {author}: {' '.join(texts)}" if author else f"Comment: {' '.join(texts)}"]
        yield (ending, note.get(f"{_W}id", "")), [text for text in texts if text]


def _body(element: Any, depth: int) -> Iterator[Any]:
    """The paragraphs and tables below an element, through content controls, text boxes and insertions."""
    for child in element:
        if child.tag in _SKIPPED or depth > _MOST_DEPTH:
            continue
        if child.tag == _TABLE:
            yield child
        elif child.tag == _PARAGRAPH:
            yield child
            yield from _boxes(child, depth + 1)
        elif len(child):
            yield from _body(child, depth + 1)


def _boxes(paragraph: Any, depth: int) -> Iterator[Any]:
    """The contents of boxes anchored in a paragraph; nested boxes belong to the outer one's text."""
    waiting = list(reversed(paragraph))
    while waiting:
        child = waiting.pop()
        if child.tag == f"{_W}txbxContent":
            yield from _body(child, depth)
        elif child.tag not in _SKIPPED:
            waiting.extend(reversed(child))


def _paragraph(element: Any, document: _Document) -> Iterator[TextBlock]:
    """A paragraph, then its charts, notes and comments."""
    text = _text(element).strip()
    properties = element.find(f"{_W}pPr")
    style = numbered = outline = None
    if properties is not None:
        style, outline = properties.find(f"{_W}pStyle"), properties.find(f"{_W}outlineLvl")
        numbered = properties.find(f"{_W}numPr")
    name = document.styles.get(style.get(f"{_W}val", ""), "").lower() if style is not None else ""
    level = _level(name, outline.get(f"{_W}val", "9") if outline is not None else "9")
    if text and level:
        yield TextBlock(Role.HEADING, " ".join(text.split()), level)
    elif text:
        role = Role.LIST if numbered is not None or name.startswith("list") else Role.PARAGRAPH
        yield TextBlock(role, text)
    for title in drawings.chart_titles(element, document.part):
        yield TextBlock(Role.PARAGRAPH, title)
    for each in _referred(element, document):
        yield TextBlock(Role.PARAGRAPH, each)


def _referred(element: Any, document: _Document) -> Iterator[str]:
    """The notes and comments that an element refers to, in order."""
    if not document.notes:
        return
    for reference in element.iter(f"{_W}footnoteReference", f"{_W}endnoteReference", f"{_W}commentReference"):
        kind = reference.tag.removeprefix(_W).removesuffix("Reference")
        yield from document.notes.get((kind, reference.get(f"{_W}id", "")), ())


def _level(style: str, outline: str) -> int:
    """The level of a heading, 0 for other text; outline level 9 means body text."""
    if style == "title":
        return 1
    number = style.removeprefix("heading ")
    if style.startswith("heading ") and number.isdecimal():
        return min(int(number), 6)
    return min(int(outline) + 1, 6) if outline.isdecimal() and int(outline) < 9 else 0


def _text(element: Any) -> str:
    """The text of a paragraph, without boxes anchored in it."""
    parts: list[str] = []
    waiting = list(reversed(element))
    while waiting:
        child = waiting.pop()
        if child.tag in _TEXTS:
            parts.append(child.text or "")
        elif child.tag in _BREAKS:
            parts.append(_BREAKS[child.tag])
        elif child.tag not in _SKIPPED and child.tag != f"{_W}txbxContent":
            if child.tag in _APART and parts and not parts[-1].endswith(" "):
                parts.append(" ")
            waiting.extend(reversed(child))
    return "".join(parts)


def _table(table: Any, document: _Document, depth: int) -> Iterator[TextBlock]:
    """The rows of a table, then those of the tables in its cells, and their notes and comments.

    A cell that is merged with the one above it has its text in every row; one that spans columns stands in
    the first of them.
    """
    rows: list[list[str]] = []
    inner: list[Any] = []
    for row in table.iterchildren(f"{_W}tr"):
        cells: list[str] = []
        for cell in _cells(row):
            tables_inside = [each for each in _body(cell, depth) if each.tag == _TABLE]
            inner += tables_inside
            text = " ".join(
                filter(None, (_text(each).strip() for each in _body(cell, depth) if each.tag != _TABLE))
            )
            above = rows[-1][len(cells)] if rows and len(rows[-1]) > len(cells) else ""
            cells += [above if not text and _is_continued(cell) else text, *[""] * (_span(cell) - 1)]
        rows.append(cells)
    yield from (TextBlock(Role.ROW, text) for text in tables.row_texts(rows))
    if depth < _MOST_DEPTH:
        for each in inner:
            yield from _table(each, document, depth + 1)
    if not depth:
        yield from (TextBlock(Role.PARAGRAPH, text) for text in _referred(table, document))


def _cells(row: Any) -> Iterator[Any]:
    """The cells of a row, through content controls."""
    for child in row:
        if child.tag == f"{_W}tc":
            yield child
        elif child.tag == f"{_W}sdt":
            yield from child.iterfind(f"{_W}sdtContent/{_W}tc")


def _span(cell: Any) -> int:
    span = cell.find(f"{_W}tcPr/{_W}gridSpan")
    value = span.get(f"{_W}val", "1") if span is not None else "1"
    return max(1, min(int(value), _MOST_SPAN)) if value.isdecimal() else 1


def _is_continued(cell: Any) -> bool:
    """True for a cell that is merged with the one above it."""
    merge = cell.find(f"{_W}tcPr/{_W}vMerge")
    return merge is not None and merge.get(f"{_W}val", "continue") == "continue"


def _cell_texts(table: Any) -> list[str]:
    return [_text(paragraph) for paragraph in table.iter(_PARAGRAPH)]


def _breaks_before(paragraph: Any) -> bool:
    setting = paragraph.find(f"{_W}pPr/{_W}pageBreakBefore")
    return setting is not None and setting.get(f"{_W}val", "1") not in {"0", "false", "off"}


def _breaks_inside(paragraph: Any) -> bool:
    return any(line_break.get(f"{_W}type") == "page" for line_break in paragraph.iter(f"{_W}br"))


def _first_heading(pages: list[Page]) -> str | None:
    headings = (block.text for page in pages for block in page.blocks if block.role is Role.HEADING)
    return next(headings, None)
