"""PPTX: a page for each slide, its title first; tables as rows, titles of charts, then comments and notes."""

from collections.abc import Iterator
from typing import Any

from holdfast.documents.parse import drawings, tables
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable

_MOST_DEPTH = 200


def read_pptx(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:  # noqa: ARG001
    """The title and the slides of a PPTX, each with its speaker notes last."""
    import pptx  # noqa: PLC0415 (0.1 s that most documents do not need)

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
        blocks += [TextBlock(Role.PARAGRAPH, text) for text in _comments(slide.part)]
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            blocks += [
                TextBlock(Role.PARAGRAPH, part.strip()) for part in notes.text.split("\n") if part.strip()
            ]
        pages.append(Page(number, tuple(blocks), label or None))
    named = (deck.core_properties.title or "").strip()
    return named or next((page.label for page in pages if page.label), None), pages


def _shape(shape: Any, depth: int) -> Iterator[TextBlock]:
    if depth <= _MOST_DEPTH and hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _shape(inner, depth + 1)
    elif getattr(shape, "has_table", False):
        yield from (TextBlock(Role.ROW, text) for text in tables.row_texts(_rows(shape.table)))
    elif getattr(shape, "has_chart", False):
        for text in drawings.titles(shape.chart.part.blob):
            yield TextBlock(Role.PARAGRAPH, text)
    elif getattr(shape, "has_text_frame", False):
        lines = [paragraph for paragraph in shape.text_frame.paragraphs if paragraph.text.strip()]
        role = Role.LIST if len(lines) > 1 else Role.PARAGRAPH
        yield from (TextBlock(role, line.text.replace("\v", "\n").strip()) for line in lines)


def _rows(table: Any) -> Iterator[list[str]]:
    """The cells of a table; one that is merged with the one above it has its text."""
    above: list[str] = []
    for row in table.rows:
        cells: list[str] = []
        for cell in row.cells:
            is_below = cell._tc.get("vMerge") in {"1", "true"}  # noqa: SLF001 (no public name)
            cells.append(above[len(cells)] if is_below and len(above) > len(cells) else cell.text)
        above = cells
        yield cells


def _comments(part: Any) -> Iterator[str]:
    """The comments on a slide, of the older form and of the newer one."""
    for comments in drawings.related(part, "/comments"):
        yield from (f"Comment: {text}" for text in drawings.comment_texts(comments.blob))
