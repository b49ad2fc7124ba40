"""Properties of documents that are archives: Office Open XML, OpenDocument, EPUB."""

import posixpath
import zipfile
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from holdfast.documents.parse import archive, properties
from holdfast.documents.parse.records import MIB, Format
from holdfast.documents.parse.source import Readable

_DC = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_CORE = "{http://schemas.openxmlformats.org/package/2006/metadata/core-properties}"
_EXTENDED = "{http://schemas.openxmlformats.org/officeDocument/2006/extended-properties}"
_META = "{urn:oasis:names:tc:opendocument:xmlns:meta:1.0}"
_PACKAGE = "{http://www.idpf.org/2007/opf}"
_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_MOST = 1 * MIB
# By tag, the name of a property. Dublin Core is common to all three.
_DUBLIN = {
    f"{_DC}title": "title",
    f"{_DC}creator": "author",
    f"{_DC}subject": "subject",
    f"{_DC}description": "description",
    f"{_DC}language": "language",
    f"{_DC}publisher": "publisher",
    f"{_DC}identifier": "identifier",
    f"{_DC}date": "date",
}
_TIMES = {
    f"{_TERMS}created": "created",
    f"{_TERMS}modified": "modified",
    f"{_META}creation-date": "created",
}
_OTHERS = {
    f"{_CORE}category": "category",
    f"{_CORE}keywords": "keywords",
    f"{_META}keyword": "keywords",
    f"{_META}initial-creator": "author",
    f"{_EXTENDED}Company": "company",
}


def read(path: Readable, document_format: Format) -> dict[str, Any]:
    """The properties of an office document or a book."""
    with archive.opened(path) as document:
        if document_format is Format.EPUB:
            return _of([_root(document, _package(document))], several_subjects=True)
        if document_format in {Format.ODT, Format.ODP, Format.ODS}:
            return _of([_root(document, "meta.xml")], modified=f"{_DC}date")
        return _of([_root(document, name) for name in ("docProps/core.xml", "docProps/app.xml")])


def _of(
    roots: list[ET.Element | None], *, modified: str | None = None, several_subjects: bool = False
) -> dict[str, Any]:
    texts: dict[str, list[str]] = {}
    times: dict[str, str | None] = {}
    for element in (each for root in roots if root is not None for each in root.iter()):
        text = " ".join((element.text or "").split())
        if not text:
            continue
        if element.tag == modified or element.get("property") == "dcterms:modified":
            times["modified"] = properties.time_text(text)
        elif element.tag in _TIMES:
            times[_TIMES[element.tag]] = properties.time_text(text)
        elif (name := _DUBLIN.get(element.tag) or _OTHERS.get(element.tag)) is not None:
            texts.setdefault("keywords" if several_subjects and name == "subject" else name, []).append(text)
    return {**_named(texts), **{name: text for name, text in times.items() if text}}


def _named(texts: Mapping[str, list[str]]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for name, values in texts.items():
        if name == "keywords":
            named[name] = [word for value in values for word in properties.keywords(value)]
        elif name == "author":
            named[name] = properties.one_or_all(part for value in values for part in value.split(";"))
        else:
            named[name] = values[0]
    return named


def _root(document: zipfile.ZipFile, name: str) -> ET.Element | None:
    """The root of a small member; None if there is none."""
    if name not in document.NameToInfo:
        return None
    return ET.fromstring(archive.member(document, name, _MOST))  # noqa: S314 (expat 2.5, in the child)


def _package(book: zipfile.ZipFile) -> str:
    container = _root(book, "META-INF/container.xml")
    roots = () if container is None else container.iter(f"{_CONTAINER}rootfile")
    return posixpath.normpath(next(iter(roots)).get("full-path") or "")
