"""What the kind `index` keeps about a slice: in its result, in its log, and with its chunks."""

from collections.abc import Mapping
from typing import Any

from holdfast.core.chunk_edits import EDIT
from holdfast.documents.parse import records
from holdfast.documents.parse.reader import Cut
from holdfast.documents.parse.records import Format, PageReading
from holdfast.engine.work import Work
from holdfast.kinds.edited_chunks import EditedPiece
from holdfast.kinds.log_phrases import many


def chunk_data(edited: EditedPiece, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept with a chunk: its headings, its edit, or the confidence of a page read by OCR."""
    piece = edited.piece
    data: dict[str, Any] = {"headings": list(piece.headings)} if piece.headings else {}
    if edited.edit is not None:
        return {**data, EDIT: list(edited.edit.key)}
    for page, quality, confidence, _gap in facts.get("readings", ()):
        if page == piece.page and quality == records.Quality.OCR:
            data["ocr"] = confidence
    return data


def reading(reading: PageReading) -> list[Any]:
    """How a page was read, in the result of its slice: page, quality, confidence, gap."""
    return [reading.page, reading.quality.value, reading.confidence, reading.gap and reading.gap.value]


def paid_line(work: Work, ready: int, total: int) -> str:
    """How far the embedding is, for the log of the run."""
    spent = work.spent
    return f"{ready} of {many(total, 'chunk')} embedded: {spent.paid_calls} paid, {spent.reused_calls} reused"


def stages(facts: Mapping[str, Any], paid: int, written: int, total: int) -> dict[str, tuple[int, int]]:
    """How far a slice is. What was not paid for now was known before, or stands in it twice."""
    return {
        "pages": (facts["pages"], facts["pages"]),
        "embedded": (paid, total),
        "reused": (written - paid, total),
        "written": (written, total),
    }


def pages(cut: Cut, form: Format, piece: Mapping[str, Any]) -> int:
    """The pages of the slice."""
    return int(piece["last"]) - int(piece["first"]) + 1 if form in records.PAGED else cut.pages
