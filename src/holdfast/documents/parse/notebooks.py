"""Jupyter notebooks: Markdown and code cells in order. Outputs and attachments are left out."""

from typing import Any

from holdfast.core.errors import WorkError
from holdfast.core.text import plain
from holdfast.documents.parse import json_records, texts
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable


def read(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:
    """The title and the one page of a notebook, of the current format or of version 3."""
    return pages(json_records.loads(texts.load(path, limits.text_bytes)))


def pages(notebook: Any) -> tuple[str | None, list[Page]]:
    """The title and the one page of a decoded notebook."""
    blocks: list[TextBlock] = []
    for cell in _cells(notebook):
        text = _source(cell)
        if cell.get("cell_type") == "code":
            blocks += [TextBlock(Role.CODE, text)] if text.strip() else []
        elif cell.get("cell_type") == "heading":
            blocks.append(TextBlock(Role.HEADING, " ".join(text.split()), int(cell.get("level", 1))))
        else:
            blocks += texts.markdown_pages(text)[0].blocks if not blocks else texts.markdown_cell(text)
    return texts.markdown_title(tuple(blocks)), [Page(1, tuple(blocks))]


def _cells(notebook: Any) -> list[dict[str, Any]]:
    if not isinstance(notebook, dict):
        raise WorkError("the notebook has no cells; save it again and upload it", code="broken_file")
    sheets = [notebook, *(each for each in notebook.get("worksheets") or () if isinstance(each, dict))]
    cells = [cell for sheet in sheets for cell in sheet.get("cells") or ()]
    return [cell for cell in cells if isinstance(cell, dict)]


def _source(cell: dict[str, Any]) -> str:
    """A cell's text, which is a string or a list of lines; version 3 has the code in `input`."""
    source = cell.get("source", cell.get("input", ""))
    return plain("".join(map(str, source)) if isinstance(source, list) else str(source))
