"""Properties of a PDF: its Info dictionary and, where that is silent, its XMP packet.

PDFium reads the Info dictionary. XMP is searched in the bytes: writers leave it uncompressed, as the standard
recommends, so that others can find it. One that is compressed or encrypted is not read. Of several packets
that of the document counts, the last that speaks of PDF; pictures inside may have their own.
"""

import mmap
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pypdfium2 as pdfium  # type: ignore[import-untyped]

from holdfast.core.text import plain
from holdfast.documents.parse import properties
from holdfast.documents.parse.source import Readable

_INFO = {"Title": "title", "Author": "author", "Subject": "subject"}
_TIMES = {"CreationDate": "created", "ModDate": "modified"}
_BEGIN, _END = b"<x:xmpmeta", b"</x:xmpmeta>"
_MOST_PACKET = 256 * 1024
_MOST_PACKETS = 200
_OF_PDF = b"http://ns.adobe.com/pdf/1.3/"
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_XMP = "{http://ns.adobe.com/xap/1.0/}"
_PDF = "{http://ns.adobe.com/pdf/1.3/}"
_TEXTS = {
    f"{_DC}title": "title",
    f"{_DC}creator": "author",
    f"{_DC}description": "description",
    f"{_DC}language": "language",
    f"{_DC}publisher": "publisher",
    f"{_DC}subject": "keywords",
}
_ATTRIBUTES = {f"{_XMP}CreateDate": "created", f"{_XMP}ModifyDate": "modified", f"{_PDF}Keywords": "keywords"}
_SEPARATED = re.compile(r"\s*;\s*")


def read(document: pdfium.PdfDocument, path: Readable) -> dict[str, Any]:
    """The properties of an open PDF."""
    info = {}
    for key, name in _INFO.items():
        info[name] = " ".join(plain(document.get_metadata_value(key)[:4000]).split())
    authors = properties.one_or_all(_SEPARATED.split(info.pop("author")))
    words = properties.keywords(plain(document.get_metadata_value("Keywords")[:4000]))
    times = {
        name: properties.pdf_time(document.get_metadata_value(key)[:100]) for key, name in _TIMES.items()
    }
    return properties.merged({**info, "author": authors, "keywords": words, **times}, _xmp(path))


def _xmp(path: Readable) -> dict[str, Any]:
    packet = b""
    for each in _packets(path):
        if not packet or _OF_PDF in each:
            packet = each
    if not packet:
        return {}
    try:
        root = ET.fromstring(packet)  # noqa: S314 (expat 2.5, in the child)
    except (ET.ParseError, ValueError):
        return {}
    return _named(root)


def _packets(path: Readable) -> Iterator[bytes]:
    size = path.stat().st_size
    if not size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as content:
        at = 0
        for _ in range(_MOST_PACKETS):
            start = content.find(_BEGIN, at)
            if start < 0:
                return
            end = content.find(_END, start, start + _MOST_PACKET)
            at = start + len(_BEGIN)
            if end >= 0:
                at = end + len(_END)
                yield content[start:at]


def _named(root: ET.Element) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for description in root.iter(f"{_RDF}Description"):
        for tag, text in [
            *description.attrib.items(),
            *((each.tag, each.text or "") for each in description),
        ]:
            if (name := _ATTRIBUTES.get(tag)) is not None and text.strip():
                value = properties.keywords(text) if name == "keywords" else properties.time_text(text)
                named.setdefault(name, value)
        for element in description:
            if (name := _TEXTS.get(element.tag)) is None:
                continue
            items = [" ".join((item.text or "").split()) for item in element.iter(f"{_RDF}li")]
            items = list(filter(None, items)) or list(filter(None, [" ".join((element.text or "").split())]))
            if name == "author":
                named[name] = properties.one_or_all(items)
            elif items:
                named[name] = items if name == "keywords" else items[0]
    return named
