"""Titles of the charts on the sheets of an XLSX, which the reader of cells does not tell."""

import posixpath
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from holdfast.documents.parse import archive, drawings
from holdfast.documents.parse.records import MIB
from holdfast.documents.parse.source import Readable

_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}sheet"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_MOST = 8 * MIB
_WORKBOOK = "xl/workbook.xml"


def titles(path: Readable) -> dict[str, tuple[str, ...]]:
    """By the name of a sheet, the titles of its charts; of a damaged drawing, none."""
    with archive.opened(path) as book:
        if not any(name.startswith("xl/charts/") for name in book.namelist()):
            return {}
        try:
            return {name: tuple(_of_sheet(book, member)) for name, member in _sheets(book)}
        except (ET.ParseError, ValueError):
            return {}


def _sheets(book: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """The names of the sheets and the members that hold them."""
    targets = dict(_related(book, _WORKBOOK))
    for sheet in ET.fromstring(archive.member(book, _WORKBOOK, _MOST)).iter(_SHEET):  # noqa: S314 (in the child)
        member = targets.get(sheet.get(_ID, ""))
        if member is not None:
            yield sheet.get("name", ""), member


def _of_sheet(book: zipfile.ZipFile, sheet: str) -> Iterator[str]:
    for _id, drawing in _related(book, sheet):
        if not drawing.startswith("xl/drawings/"):
            continue
        for _id, chart in _related(book, drawing):
            if chart.startswith("xl/charts/"):
                yield from drawings.titles(archive.member(book, chart, _MOST))


def _related(book: zipfile.ZipFile, member: str) -> Iterator[tuple[str, str]]:
    """The ids and names of the members that a member refers to."""
    folder, _slash, name = member.rpartition("/")
    listing = f"{folder}/_rels/{name}.rels"
    if listing not in book.namelist():
        return
    for relation in ET.fromstring(archive.member(book, listing, _MOST)).iter(_RELATION):  # noqa: S314
        target = relation.get("Target", "")
        if relation.get("TargetMode") != "External":
            joined = target[1:] if target.startswith("/") else posixpath.join(folder, target)
            yield relation.get("Id", ""), posixpath.normpath(joined)
