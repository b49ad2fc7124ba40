"""DOCX and PPTX: blocks in reading order, headings by style or placeholder, tables as rows."""

from collections.abc import Iterator
from typing import Any

from holdfast.documents.parse import tables
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TEXT, _PARAGRAPH, _TABLE = f"{_W}t", f"{_W}p", f"{_W}tbl"
_BREAKS = {f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}tab": "\t", f"{_W}noBreakHyphen": "-"}
# Deleted text, and the second copy of a drawing for old programs.
_SKIPPED = frozenset(
    {f"{_W}del", f"{_W}moveFrom", "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"}
)
_MOST_DEPTH = 200


def read_docx(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:  # noqa: ARG001
    """The title and the parts of a DOCX; a part ends at a manual page break.

    Computed page breaks are ignored: they move with every edit before them. Inserted text counts, deleted
    text does not; headers, footers, notes and comments are omitted.
    """
    import docx  # noqa: PLC0415 (0.1 s that most documents do not need)

    document = docx.Document(path.open("rb"))
    styles = {style.style_id: style.name or "" for style in document.styles}
    parts: list[list[TextBlock]] = [[]]
    for element in _body(document.element.body, 0):
        if element.tag == _TABLE:
            parts[-1] += [TextBlock(Role.ROW, text) for text in tables.row_texts(_table(element))]
            continue
        if _breaks_before(element) and parts[-1]:
            parts.append([])
        block = _paragraph(element, styles)
        if block is not None:
            parts[-1].append(block)
        if _breaks_inside(element) and parts[-1]:
            parts.append([])
    pages = [Page(number, tuple(blocks)) for number, blocks in enumerate(parts, start=1) if blocks]
    return (document.core_properties.title or "").strip() or _first_heading(pages), pages


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


def _paragraph(element: Any, styles: dict[str, str]) -> TextBlock | None:
    text = _text(element).strip()
    if not text:
        return None
    properties = element.find(f"{_W}pPr")
    style = numbered = outline = None
    if properties is not None:
        style, outline = properties.find(f"{_W}pStyle"), properties.find(f"{_W}outlineLvl")
        numbered = properties.find(f"{_W}numPr")
    name = styles.get(style.get(f"{_W}val", ""), "").lower() if style is not None else ""
    level = _level(name, outline.get(f"{_W}val", "9") if outline is not None else "9")
    if level:
        return TextBlock(Role.HEADING, " ".join(text.split()), level)
    return TextBlock(Role.LIST if numbered is not None or name.startswith("list") else Role.PARAGRAPH, text)


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
        if child.tag == _TEXT:
            parts.append(child.text or "")
        elif child.tag in _BREAKS:
            parts.append(_BREAKS[child.tag])
        elif child.tag not in _SKIPPED and child.tag != f"{_W}txbxContent":
            waiting.extend(reversed(child))
    return "".join(parts)


def _table(element: Any) -> list[list[str]]:
    return [
        [
            " ".join(_text(paragraph) for paragraph in cell.iter(_PARAGRAPH))
            for cell in row.iterchildren(f"{_W}tc")
        ]
        for row in element.iterchildren(f"{_W}tr")
    ]


def _breaks_before(paragraph: Any) -> bool:
    setting = paragraph.find(f"{_W}pPr/{_W}pageBreakBefore")
    return setting is not None and setting.get(f"{_W}val", "1") not in {"0", "false", "off"}


def _breaks_inside(paragraph: Any) -> bool:
    return any(line_break.get(f"{_W}type") == "page" for line_break in paragraph.iter(f"{_W}br"))


def _first_heading(pages: list[Page]) -> str | None:
    headings = (block.text for page in pages for block in page.blocks if block.role is Role.HEADING)
    return next(headings, None)


def read_pptx(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:  # noqa: ARG001
    """The title and the slides of a PPTX, each with its speaker notes last."""
    import pptx  # noqa: PLC0415 (as above)

    deck = pptx.Presentation(path.open("rb"))
    pages: list[Page] = []
    for number, slide in enumerate(deck.slides, start=1):
        title = slide.shapes.title
        label = " ".join(title.text_frame.text.split()) if title is not None else ""
        blocks = [TextBlock(Role.HEADING, label, 1)] if label else []
        blocks += [
            block
            for shape in slide.shapes
            if title is None or shape.shape_id != title.shape_id
            for block in _shape(shape, 0)
        ]
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            blocks += [
                TextBlock(Role.PARAGRAPH, part.strip()) for part in notes.text.split("\n") if part.strip()
            ]
        pages.append(Page(number, tuple(blocks), label or None))
    return (deck.core_properties.title or "").strip() or next(
        (p.label for p in pages if p.label), None
    ), pages


def _shape(shape: Any, depth: int) -> Iterator[TextBlock]:
    if depth <= _MOST_DEPTH and hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _shape(inner, depth + 1)
    elif getattr(shape, "has_table", False):
        rows = ([cell.text for cell in row.cells] for row in shape.table.rows)
        yield from (TextBlock(Role.ROW, text) for text in tables.row_texts(rows))
    elif getattr(shape, "has_text_frame", False):
        lines = [paragraph for paragraph in shape.text_frame.paragraphs if paragraph.text.strip()]
        role = Role.LIST if len(lines) > 1 else Role.PARAGRAPH
        yield from (TextBlock(role, line.text.replace("\v", "\n").strip()) for line in lines)
