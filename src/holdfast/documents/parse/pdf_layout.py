"""The parts of a PDF page that is more than one column of text: its regions, in reading order."""

from collections.abc import Sequence

import pypdfium2 as pdfium  # type: ignore[import-untyped]

from holdfast.documents.parse import pdf_characters, pdf_columns
from holdfast.documents.parse.pdf_characters import Line, Segment


def parts(page: pdfium.PdfPage, text: pdfium.PdfTextPage, whole: str) -> list[list[Line]] | None:
    """The lines of a page by region, in reading order; None if PDFium's lines are right as they are.

    Pages that are shown turned are left to PDFium: their boxes lie on their side.
    """
    visible = pdf_characters.visible_box(page)
    if page.get_rotation() or pdf_characters.is_plain(text, whole, visible):
        return None
    characters, cropped = pdf_characters.characters_of(text, visible)
    segments = pdf_characters.segments_of(characters)
    if pdf_columns.is_scrambled(segments):
        return [_lines(region) for region in pdf_columns.regions(segments)]
    return [_lines(segments)] if cropped else None


def _lines(segments: Sequence[Segment]) -> list[Line]:
    """Segments in their order as lines: those that follow each other on one line are put together."""
    lines: list[list[Segment]] = []
    for segment in segments:
        if lines and pdf_characters.on_one_line(lines[-1][-1], segment):
            lines[-1].append(segment)
        else:
            lines.append([segment])
    return [pdf_characters.line_of(line) for line in lines]
