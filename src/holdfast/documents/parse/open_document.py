"""ODT and ODP: blocks in reading order, headings by outline level, tables as rows, notes of slides last.

Trees are walked with a bound on depth, as deep as people write and far from Python's own limit.
"""

import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from holdfast.core.errors import WorkError
from holdfast.documents.parse import archive, tables
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable

_SPACE = "urn:oasis:names:tc:opendocument:xmlns"
_TEXT, _TABLE = f"{{{_SPACE}:text:1.0}}", f"{{{_SPACE}:table:1.0}}"
_DRAW, _OFFICE = f"{{{_SPACE}:drawing:1.0}}", f"{{{_SPACE}:office:1.0}}"
_SHOW = f"{{{_SPACE}:presentation:1.0}}"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_CREATOR = "{http://purl.org/dc/elements/1.1/}creator"
_ENCRYPTION = f"{{{_SPACE}:manifest:1.0}}encryption-data"
# Deleted text, comments (which follow their paragraph), and what a program computes.
_SKIPPED = frozenset(
    {f"{_TEXT}tracked-changes", f"{_OFFICE}annotation", f"{_OFFICE}forms", f"{_TEXT}note-citation"}
    | {f"{_TEXT}sequence-decls", f"{_SHOW}notes", f"{_TEXT}ruby-text"}
)
_PARAGRAPHS = frozenset({f"{_TEXT}p", f"{_TEXT}h"})
_MOST_DEPTH = 200
_MOST_REPEATED = 1000


def read_text(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:
    """The title and the one part of an ODT."""
    with archive.opened(path) as document:
        body = _body(document, limits)
        title = _title(document, limits)
    blocks = tuple(_blocks(body, 0))
    heading = next((block.text for block in blocks if block.role is Role.HEADING), None)
    return title or heading, [Page(1, blocks)]


def read_slides(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:
    """The title and the slides of an ODP, each with its speaker notes last."""
    with archive.opened(path) as document:
        body = _body(document, limits)
        title = _title(document, limits)
    pages = [_slide(number, slide) for number, slide in enumerate(body.iter(f"{_DRAW}page"), start=1)]
    return title or next((page.label for page in pages if page.label), None), pages


def _body(document: zipfile.ZipFile, limits: ParseLimits) -> ET.Element:
    if "META-INF/manifest.xml" in document.namelist():
        manifest = _xml(document, "META-INF/manifest.xml", limits)
        if next(manifest.iter(_ENCRYPTION), None) is not None:
            raise WorkError(
                "the document is encrypted; remove its password and upload it again", code="encrypted"
            )
    body = _xml(document, "content.xml", limits).find(f"{_OFFICE}body")
    if body is None:
        raise WorkError("the document has no body; upload it again", code="broken_file")
    return body


def _xml(document: zipfile.ZipFile, name: str, limits: ParseLimits) -> ET.Element:
    try:
        return ET.fromstring(archive.member(document, name, limits.text_bytes))  # noqa: S314 (expat 2.5, in the child)
    except (ET.ParseError, ValueError) as error:
        raise WorkError(f"{name} is damaged ({error}); upload the file again", code="broken_file") from error


def _title(document: zipfile.ZipFile, limits: ParseLimits) -> str | None:
    if "meta.xml" not in document.namelist():
        return None
    title = next(_xml(document, "meta.xml", limits).iter(_TITLE), None)
    return " ".join((title.text or "").split()) or None if title is not None else None


def _slide(number: int, slide: ET.Element) -> Page:
    label = ""
    blocks: list[TextBlock] = []
    for shape in slide:
        inside = list(_blocks(shape, 0)) if shape.tag not in _SKIPPED else []
        if not label and shape.get(f"{_SHOW}class") == "title" and inside:
            label = " ".join(" ".join(block.text for block in inside).split())
            blocks.insert(0, TextBlock(Role.HEADING, label, 1))
        else:
            blocks += inside
    for notes in slide.iterfind(f"{_SHOW}notes"):
        blocks += _blocks(notes, 0)
    return Page(number, tuple(blocks), label or None)


def _blocks(element: ET.Element, depth: int, *, listed: bool = False) -> Iterator[TextBlock]:
    """The blocks below an element, through sections, lists, frames and text boxes."""
    if depth > _MOST_DEPTH:
        raise WorkError("the document is nested too deeply; save it again", code="broken_file")
    for child in element:
        if child.tag in _SKIPPED:
            continue
        if child.tag in _PARAGRAPHS:
            yield from _paragraph(child, depth, listed=listed)
        elif child.tag == f"{_TABLE}table":
            rows = [[_cell_text(cell, depth) for cell in _cells(row)] for row in _rows(child)]
            yield from (TextBlock(Role.ROW, text) for text in tables.row_texts(rows))
        else:
            yield from _blocks(child, depth + 1, listed=listed or child.tag == f"{_TEXT}list")


def _paragraph(paragraph: ET.Element, depth: int, *, listed: bool) -> Iterator[TextBlock]:
    """A paragraph, then its footnotes and the boxes that are anchored in it."""
    text, inside = _text(paragraph)
    text = text.strip()
    if text and paragraph.tag == f"{_TEXT}h":
        level = paragraph.get(f"{_TEXT}outline-level", "1")
        yield TextBlock(
            Role.HEADING,
            " ".join(text.split()),
            min(int(level), 6) if level.isdecimal() and level != "0" else 1,
        )
    elif text:
        yield TextBlock(Role.LIST if listed else Role.PARAGRAPH, text)
    for each in inside:
        if each.tag == f"{_OFFICE}annotation":
            yield TextBlock(Role.PARAGRAPH, _comment(each, depth))
        else:
            yield from _blocks(each, depth + 1)


def _comment(annotation: ET.Element, depth: int) -> str:
    author = " ".join((annotation.findtext(_CREATOR) or "").split())
    text = " ".join(block.text for block in _blocks(annotation, depth + 1))
    return f"Comment by {author}: {text}" if author else f"Comment: {text}"


def _text(paragraph: ET.Element) -> tuple[str, list[ET.Element]]:
    """The text of a paragraph, and the notes and frames in it, whose text is their own."""
    parts: list[str] = []
    inside: list[ET.Element] = []
    waiting: list[ET.Element | str] = [paragraph]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            parts.append(each)
            continue
        if each is not paragraph and each.tail:
            waiting.append(each.tail)
        if each.tag == f"{_OFFICE}annotation":
            inside.append(each)
            continue
        if each.tag in _SKIPPED:
            continue
        if each.tag == f"{_TEXT}note" or each.tag.startswith(_DRAW):
            inside.append(each)
        elif each.tag == f"{_TEXT}s":
            count = each.get(f"{_TEXT}c", "1")
            parts.append(" " * min(int(count), _MOST_REPEATED) if count.isdecimal() else " ")
        elif each.tag in {f"{_TEXT}tab", f"{_TEXT}line-break"}:
            parts.append("\t" if each.tag == f"{_TEXT}tab" else "\n")
        else:
            waiting.extend(reversed(each))
            parts.append(_collapsed(each.text or ""))
    return "".join(parts), inside


def _collapsed(text: str) -> str:
    """Line breaks of the file are spaces of the text."""
    return text.replace("\n", " ")


def _rows(table: ET.Element) -> Iterator[ET.Element]:
    """The rows of a table, in groups or not, without those of tables in its cells."""
    waiting = [table]
    while waiting:
        each = waiting.pop()
        if each.tag == f"{_TABLE}table-row":
            yield each
        else:
            waiting.extend(reversed([child for child in each if child.tag.startswith(f"{_TABLE}table-")]))


def _cells(row: ET.Element) -> Iterator[ET.Element]:
    """The cells of a row; one that is covered by a merged neighbour is empty."""
    for cell in row:
        if cell.tag in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}:
            repeated = cell.get(f"{_TABLE}number-columns-repeated", "1")
            count = min(int(repeated), _MOST_REPEATED) if repeated.isdecimal() else 1
            yield from [cell] * (count if len(cell) else 1)


def _cell_text(cell: ET.Element, depth: int) -> str:
    return " ".join(block.text for block in _blocks(cell, depth + 1))
