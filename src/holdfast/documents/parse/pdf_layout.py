"""The parts of a PDF page that is more than one column of text: its regions, in reading order."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pypdfium2 as pdfium  # type: ignore[import-untyped]

from holdfast.documents.parse import pdf_characters, pdf_columns, pdf_rules, pdf_tables
from holdfast.documents.parse.pdf_characters import Line, Segment
from holdfast.documents.parse.pdf_tables import Table
from holdfast.documents.parse.records import GapReason


@dataclass(frozen=True, slots=True)
class PagePart:
    """A region of a page: lines of text, or the rows of a table."""

    lines: tuple[Line, ...] = ()
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageText:
    """A page as it was read, with everything that is printed on it; `low` and `high` are its edges.

    `gap` and `picture` are those of `records.Page`.
    """

    parts: tuple[PagePart, ...] = ()
    low: float = 0.0
    high: float = 0.0
    gap: GapReason | None = None
    picture: str | None = None

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
    if page.get_rotation() or text.count_chars() > pdf_characters.MOST_CHARACTERS:
        return None
    grids = pdf_rules.grids(pdf_rules.rules_of(page))
    if not grids and pdf_characters.is_plain(text, whole, visible):
        return None
    characters, cropped = pdf_characters.characters_of(text, visible)
    segments = pdf_characters.segments_of(characters)
    segments, placed = _with_tables(segments, grids)
    if pdf_columns.is_scrambled(segments):
        return [part for region in pdf_columns.regions(segments) for part in _parts(region, placed)]
    return list(_parts(segments, placed)) if cropped or placed else None


def _with_tables(
    segments: list[Segment], grids: Sequence[pdf_rules.RuledGrid]
) -> tuple[list[Segment], dict[int, Table]]:
    """The segments with one in place of each table, and the tables by the identity of that segment."""
    placed: dict[int, Table] = {}
    for grid in grids:
        table = pdf_tables.ruled(grid, segments)
        if table is not None:
            segments = _replaced(segments, table, placed)
    for table in pdf_tables.unruled([segment for segment in segments if segment.characters]):
        segments = _replaced(segments, table, placed)
    return segments, placed


def _replaced(segments: Sequence[Segment], table: Table, placed: dict[int, Table]) -> list[Segment]:
    """The segments with one of the table's size where its first one was."""
    members = {id(segment) for segment in table.members}
    stand_in = Segment(
        (),
        min(segment.left for segment in table.members),
        min(segment.bottom for segment in table.members),
        max(segment.right for segment in table.members),
        max(segment.top for segment in table.members),
    )
    placed[id(stand_in)] = table
    first = next(at for at, segment in enumerate(segments) if id(segment) in members)
    before, after = segments[:first], segments[first:]
    return [*before, stand_in, *(segment for segment in after if id(segment) not in members)]


def _parts(segments: Sequence[Segment], placed: Mapping[int, Table]) -> Iterator[PagePart]:
    """Lines and tables, in the order of the segments."""
    start = 0
    for at, segment in enumerate(segments):
        table = placed.get(id(segment))
        if table is not None:
            if at > start:
                yield PagePart(_lines(segments[start:at]))
            yield PagePart(rows=table.rows)
            start = at + 1
    if start < len(segments):
        yield PagePart(_lines(segments[start:]))


def _lines(segments: Sequence[Segment]) -> tuple[Line, ...]:
    """Segments in their order as lines: those that follow each other on one line are put together."""
    lines: list[list[Segment]] = []
    for segment in segments:
        if lines and pdf_characters.on_one_line(lines[-1][-1], segment):
            lines[-1].append(segment)
        else:
            lines.append([segment])
    return tuple(pdf_characters.line_of(line) for line in lines)
