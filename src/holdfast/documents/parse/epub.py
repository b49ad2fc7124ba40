"""EPUB: the chapters of a book in the order in which they are read, each a part."""

import posixpath
import urllib.parse
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from holdfast.core.errors import WorkError
from holdfast.documents.parse import archive, html
from holdfast.documents.parse.records import MIB, Page, ParseLimits, Role
from holdfast.documents.parse.source import Readable

_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_PACKAGE = "{http://www.idpf.org/2007/opf}"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_ENCRYPTED = "{http://www.w3.org/2001/04/xmlenc#}CipherReference"
_TEXTS = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"})
_MOST_PACKAGE = 8 * MIB
_MOST_CHAPTER = 32 * MIB


def read(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:
    """The title and the chapters of a book. `encrypted` if its chapters are protected against copying."""
    with archive.opened(path) as book:
        package_name = _package_name(book)
        package = _xml(book, package_name)
        locked = _locked(book)
        pages: list[Page] = []
        size = 0
        for number, name in enumerate(_spine(package, posixpath.dirname(package_name)), start=1):
            if name in locked:
                raise WorkError(
                    "the book is protected against copying; upload a copy without protection",
                    code="encrypted",
                )
            if number > limits.pages:
                raise WorkError(
                    f"the book has more than {limits.pages:,} chapters; split it", code="too_many_pages"
                )
            data = archive.member(book, name, _MOST_CHAPTER)
            size += len(data)
            if size > limits.text_bytes:
                raise WorkError(
                    f"the book is larger than {limits.text_bytes:,} bytes; split it", code="too_large"
                )
            _title, blocks = html.blocks_of(data)
            label = next((block.text for block in blocks if block.role is Role.HEADING), None)
            if blocks:
                pages.append(Page(number, blocks, label))
    return _title_of(package), pages


def _package_name(book: zipfile.ZipFile) -> str:
    for root in _xml(book, "META-INF/container.xml").iter(f"{_CONTAINER}rootfile"):
        if name := root.get("full-path"):
            return name
    raise WorkError("the book does not name its contents; upload it again", code="broken_file")


def _xml(book: zipfile.ZipFile, name: str) -> ET.Element:
    try:
        return ET.fromstring(archive.member(book, name, _MOST_PACKAGE))  # noqa: S314 (expat 2.5, in the child)
    except (ET.ParseError, ValueError) as error:
        raise WorkError(
            f"{name[:100]!r} of the book is damaged ({error}); upload it again", code="broken_file"
        ) from error


def _spine(package: ET.Element, folder: str) -> Iterator[str]:
    """The names of the chapters in reading order, each once, without the table of contents."""
    items = {item.get("id"): item for item in package.iter(f"{_PACKAGE}item")}
    names: dict[str, None] = {}
    for reference in package.iter(f"{_PACKAGE}itemref"):
        item = items.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _TEXTS:
            continue
        if "nav" not in (item.get("properties") or "").split():
            target = urllib.parse.unquote(urllib.parse.urldefrag(item.get("href") or "").url)
            names[posixpath.normpath(posixpath.join(folder, target))] = None
    yield from names


def _locked(book: zipfile.ZipFile) -> frozenset[str]:
    """The members that are encrypted; fonts often are, chapters only in protected books."""
    name = "META-INF/encryption.xml"
    if name not in book.namelist():
        return frozenset()
    return frozenset(
        urllib.parse.unquote(reference.get("URI") or "") for reference in _xml(book, name).iter(_ENCRYPTED)
    )


def _title_of(package: ET.Element) -> str | None:
    titles = (" ".join((element.text or "").split()) for element in package.iter(_TITLE))
    return next(filter(None, titles), None)
