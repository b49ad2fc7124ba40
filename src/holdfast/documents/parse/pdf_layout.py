"""The parts of a PDF page that is more than one column of text: its regions, in reading order."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pypdfium2 as pdfium  # type: ignore[import-untyped]

from holdfast.documents.parse import pdf_characters, pdf_columns
from holdfast.documents.parse.pdf_characters import Line, Segment


@dataclass(frozen=True, slots=True)
class PagePart:
    """A region of a page: lines of text, or the rows of a table."""

    lines: tuple[Line, ...] = ()
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageText:
    """A page as it was read, with everything that is printed on it; `low` and `high` are its edges."""

    parts: tuple[PagePart, ...] = ()
    low: float = 0.0
    high: float = 0.0

    @property
    def lines(self) -> list[Line]:
        """All lines outside tables."""
        return [line for part in self.parts for line in part.lines]

    def without(self, lines: Collection[Line]) -> "PageText":
        """The same page without some of its lines, unless nothing would be left."""
        dropped = {id(line) for line in lines}
        parts = tuple(
            PagePart(tuple(line for line in part.lines if id(line) not in dropped), part.rows)
            for part in self.parts
        )
        left = tuple(part for part in parts if part.lines or part.rows)
        return replace(self, parts=left) if left else self


def parts(page: pdfium.PdfPage, text: pdfium.PdfTextPage, whole: str) -> list[PagePart] | None:
    """The regions of a page, in reading order; None if PDFium's lines are right as they are.

    Pages that are shown turned are left to PDFium: their boxes lie on their side.
    """
    visible = pdf_characters.visible_box(page)
    if page.get_rotation() or pdf_characters.is_plain(text, whole, visible):
        return None
    characters, cropped = pdf_characters.characters_of(text, visible)
    segments = pdf_characters.segments_of(characters)
    if pdf_columns.is_scrambled(segments):
        return [PagePart(_lines(region)) for region in pdf_columns.regions(segments)]
    return [PagePart(_lines(segments))] if cropped else None


def _lines(segments: Sequence[Segment]) -> tuple[Line, ...]:
    """Segments in their order as lines: those that follow each other on one line are put together."""
    lines: list[list[Segment]] = []
    for segment in segments:
        if lines and pdf_characters.on_one_line(lines[-1][-1], segment):
            lines[-1].append(segment)
        else:
            lines.append([segment])
    return tuple(pdf_characters.line_of(line) for line in lines)
