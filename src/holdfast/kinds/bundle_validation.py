"""What stands in a bundle, looked at with distrust: it may come from anybody, and from any release."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from holdfast.core import document_metadata, float_vectors, keys
from holdfast.core.errors import BadRequestError
from holdfast.core.gaps import Gap
from holdfast.core.languages import LANGUAGES
from holdfast.core.text import is_plain, plain, plain_json
from holdfast.documents import bundles
from holdfast.documents.blobs import digest_checked
from holdfast.documents.bundles import Bundle, BundlePart
from holdfast.documents.parse import properties
from holdfast.documents.parse.records import MOST_ENTRIES, MOST_ENTRY_TITLE, Format
from holdfast.kinds import bundle_edits, index
from holdfast.kinds.bundle_edits import BundleEdit
from holdfast.kinds.flows import checker
from holdfast.kinds.flows.checker import MOST_STEPS
from holdfast.kinds.flows.index_steps import FIELDS, OTHER_FIELDS
from holdfast.store.library import document_members
from holdfast.store.library.document_edits import MOST_EDITS
from holdfast.store.library.documents import DocumentSource

MOST_NUMBER = 2**31 - 1
MOST_TEXT = 2000
MOST_GAPS = 20
MOST_TITLE = 500
MOST_THUMBNAIL = 16 * 1024 * 1024
SOURCES = ("upload", "text", "url", document_members.SOURCE)
MOST_LINKS = 5000
STEP = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Record:
    """A document of a bundle; `chosen` is how it was indexed there."""

    title: str
    title_given: bool
    source: DocumentSource
    options: Mapping[str, Any] | None
    metadata: Mapping[str, Any]
    labels: Sequence[str]
    format: str | None
    pages: int
    gaps: tuple[Gap, ...]
    properties: Mapping[str, Any]
    outline: Sequence[Sequence[Any]]
    members: tuple[str, ...]
    inside: tuple[str, ...]
    chunks: int
    chosen: Mapping[str, Any]
    language: str | None = None
    edits: int = 0
    external_id: str | None = None

    @property
    def model(self) -> tuple[str, str]:
        """Provider and model of its vectors."""
        return str(self.chosen["provider"]), str(self.chosen["model"])


@dataclass(frozen=True, slots=True)
class BundleChunk:
    """A chunk of a bundle, with its vector if it has one; `embed` is what that was made of.

    `search` is the text whose words are searched. Both are the text, unless a flow made them.
    """

    text: str
    page: int | None
    data: Mapping[str, Any]
    vector: bytes
    embed: str
    search: str


# Bytes of the fields of one chunk.
MOST_FIELDS = 1024 * 1024


class BundleReader:
    """A part of a bundle, document by document. Of each: all its pieces, its content, its thumbnail."""

    def __init__(self, part: BundlePart) -> None:
        self._part = part
        self._chunks = part.chunks()
        self._edits = part.edits()

    def documents(self) -> Iterator[Record]:
        """The documents of the part."""
        for line in self._part.documents():
            yield record(line)

    def pieces(self, of: Record) -> Iterator[BundleChunk]:
        """The chunks of the document that was read last."""
        for _ in range(of.chunks):
            line = next(self._chunks, None)
            if line is None:
                raise bundles.bad("a document has fewer chunks than it says")
            yield piece(line, self._part.vector(line.get("vector")))

    def edits(self, of: Record) -> list[BundleEdit]:
        """The edits of the document that was read last."""
        edits = bundle_edits.read_all(islice(self._edits, of.edits), of.chunks)
        if len(edits) < of.edits:
            raise bundles.bad("a document has fewer edits than it says")
        return edits

    def content(self) -> bundles.Bytes | None:
        """The next bytes: those of a document, then those of its thumbnail."""
        return self._part.content()

    def check_end(self) -> None:
        """Return if the part has nothing beyond its documents."""
        rest = next(self._chunks, None) or next(self._edits, None)
        if rest is not None or not self._part.is_over():
            raise bundles.bad("a part has more than its documents")

    def close(self) -> None:
        """Nothing of the part is open."""
        self._part.close()


def record(line: Mapping[str, Any]) -> Record:
    """The document of a line; BadRequestError for one that cannot be taken."""
    chosen, options = line.get("index"), line.get("options")
    if not isinstance(chosen, dict) or not isinstance(options, dict | None):
        raise bundles.bad("a document does not say how it was indexed")
    known = {name: chosen[name] for name in index.Choices.__dataclass_fields__ if name in chosen}
    if not isinstance(known.get("provider"), str) or not is_plain(known["provider"]) or "model" not in known:
        raise bundles.bad("a document does not say how it was indexed")
    index.Choices(**known).checked()
    index.choices(index.Choices(model="any"), options)
    keys.canonical(chosen)
    form = line.get("format")
    if form is not None and form not in set(Format):
        form = None  # of a later release, which reads more
    source, inside = line.get("source"), tuple(_digests(line, "inside"))
    if source == document_members.SOURCE and not inside:
        source = "upload"
    return Record(
        title=" ".join(_text(line, "title", MOST_TITLE).split()) or "untitled",
        title_given=line.get("title_given") is not False,
        source=DocumentSource(
            digest_checked(_text(line, "digest", 64)),
            0,
            source if source in SOURCES else "upload",
            name=_text(line, "name", MOST_TEXT),
            url=_text(line, "url", MOST_TEXT) or None,
            etag=_text(line, "etag", MOST_TEXT) or None,
            last_modified=_text(line, "last_modified", MOST_TEXT) or None,
        ),
        options=options,
        metadata=document_metadata.checked(line.get("metadata") or {}),
        labels=tuple(_labels(line)),
        format=form,
        pages=_number(line, "pages", 0),
        gaps=tuple(_gaps(line.get("gaps"))),
        properties=_properties(line.get("properties")),
        outline=tuple(_outline(line.get("outline"))),
        members=tuple(_digests(line, "members")),
        inside=inside,
        chunks=_number(line, "chunks", 0 if line.get("edits") or line.get("members") else 1),
        chosen=chosen,
        language=line.get("language") if line.get("language") in LANGUAGES else None,
        edits=_number(line, "edits", 0),
        external_id=_external_id(line.get("external_id")),
    )


def _external_id(value: Any) -> str | None:
    """The external id of a document; a bundle of an earlier release has none."""
    if not isinstance(value, str | None):
        raise bundles.bad("the external_id of a document cannot be stored")
    return document_metadata.checked_external_id(value)


def _labels(line: Mapping[str, Any]) -> list[str]:
    labels = line.get("labels") or []
    if not isinstance(labels, list):
        raise bundles.bad("the labels of a document are not a list")
    return document_metadata.checked_labels(labels)


def _gaps(lines: Any) -> Iterator[Gap]:
    """The gaps of a document, if they are ones; a bundle of an earlier release has none."""
    for line in lines[:MOST_GAPS] if isinstance(lines, list) else ():
        if not isinstance(line, dict):
            raise bundles.bad("a gap of a document cannot be stored")
        yield Gap(_text(line, "pages", MOST_TEXT), _text(line, "reason", 40), _number(line, "count", 1))


def _digests(line: Mapping[str, Any], name: str) -> Iterator[str]:
    """The digests of documents inside a document or around it; a bundle of an earlier release has none."""
    digests = line.get(name) or []
    if not isinstance(digests, list) or not all(isinstance(each, str) for each in digests):
        raise bundles.bad(f"the {name} of a document are no digests")
    yield from map(digest_checked, digests[:MOST_LINKS])


def _properties(value: Any) -> dict[str, Any]:
    """The properties of a file, bounded like those that a parser reads; an earlier release has none."""
    return properties.bounded(value) if isinstance(value, dict) else {}


def _outline(lines: Any) -> Iterator[tuple[int, str, int]]:
    """The table of contents of a document; a bundle of an earlier release has none."""
    for line in lines[:MOST_ENTRIES] if isinstance(lines, list) else ():
        fits = isinstance(line, list) and len(line) == 3
        level, title, page = line if fits else (0, "", 0)
        if type(level) is not int or type(page) is not int or not isinstance(title, str) or level < 1:
            raise bundles.bad("an entry of a table of contents cannot be stored")
        yield min(level, 100), plain(title)[:MOST_ENTRY_TITLE], min(max(page, 1), 10**6)


def piece(line: Mapping[str, Any], vector: bytes) -> BundleChunk:
    """The chunk of a line; BadRequestError for one that cannot be taken."""
    text, data = line.get("text"), line.get("data")
    if not isinstance(text, str) or not text:
        raise bundles.bad("a chunk has no text")
    headings = data.get("headings") if isinstance(data, dict) else None
    fits = isinstance(headings, list) and all(isinstance(each, str) for each in headings)
    if vector and not float_vectors.is_finite(vector):
        raise bundles.bad("a vector contains a value that is not a number")
    page = None if line.get("page") is None else _number(line, "page", 0)
    metadata: dict[str, Any] = (
        {"headings": [plain(each) for each in headings or ()]} if fits and headings else {}
    )
    ocr = data.get("ocr") if isinstance(data, dict) else None
    if type(ocr) is int and 0 <= ocr <= 100:
        metadata["ocr"] = ocr
    for name in (FIELDS, OTHER_FIELDS):
        if fields := _fields(data.get(name) if isinstance(data, dict) else None):
            metadata[name] = fields
    embed, search = (_flow_text(line, name) or plain(text) for name in ("embed", "search"))
    return BundleChunk(plain(text), page, metadata, vector, embed, search)


def _flow_text(line: Mapping[str, Any], name: str) -> str:
    """A text that a flow made of a chunk; empty if there is none."""
    text = line.get(name)
    if text is not None and not isinstance(text, str):
        raise bundles.bad(f"{name} of a chunk is not text")
    return plain(text or "")


def _fields(value: Any) -> dict[str, Any]:
    """The fields that the steps of a flow made of a chunk."""
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > MOST_STEPS:
        raise bundles.bad("the fields of a chunk are no mapping of a few names")
    try:
        fields: dict[str, Any] = plain_json(value)
        fits = all(checker.is_field_name(name) for name in fields)
        fits = fits and len(keys.canonical(fields)) <= MOST_FIELDS
    except ValueError:
        fits = False
    if not fits:
        raise bundles.bad("a field of a chunk cannot be stored")
    return fields


def _text(line: Mapping[str, Any], name: str, most: int) -> str:
    value = line.get(name)
    text = "" if value is None else value
    if not isinstance(text, str) or not is_plain(text) or len(text.encode()) > 4 * most:
        raise bundles.bad(f"the {name} of a document cannot be stored")
    return text[:most]


def _number(line: Mapping[str, Any], name: str, least: int) -> int:
    value = line.get(name)
    number = least if value is None and not least else value
    if type(number) is not int or not least <= number <= MOST_NUMBER:
        raise bundles.bad(f"{name} is not a valid number")
    return number


def verify(bundle: Bundle, most_bytes: int, check: Callable[[], None]) -> list[int]:
    """The number of documents of each part, once all of it was read and is as it says; or BadRequestError.

    `check` is called every now and then and may raise.
    """
    sizes: list[int] = []
    totals = [0, 0, 0]
    for number in range(1, bundle.manifest.parts + 1):
        reader = BundleReader(bundle.part(number))
        size = 0
        for each in reader.documents():
            size += 1
            if each.edits > MOST_EDITS:
                raise bundles.bad("a document has too many edits")
            reader.edits(each)
            for chunk in reader.pieces(each):
                totals[1] += 1
                totals[2] += bool(chunk.vector)
            check()
            _verify_content(reader, each, most_bytes, check)
        reader.check_end()
        reader.close()
        totals[0] += size
        sizes.append(size)
    manifest = bundle.manifest
    if totals != [manifest.documents, manifest.chunks, manifest.vectors]:
        raise bundles.bad("it contains less than its manifest says")
    return sizes


def _verify_content(reader: BundleReader, of: Record, most: int, check: Callable[[], None]) -> None:
    content = reader.content()
    if content is not None:
        if content.size > most:
            message = f"a document of the bundle has {content.size:,} bytes, more than the limit of {most:,}"
            raise BadRequestError(message, code="too_large")
        hasher = hashlib.sha256()
        while some := content.read(STEP):
            hasher.update(some)
            check()
        if hasher.hexdigest() != of.source.digest:
            raise bundles.bad("the bytes of a document do not match its digest")
    picture = reader.content()
    if picture is not None:
        if picture.size > MOST_THUMBNAIL:
            raise bundles.bad("a thumbnail is too large")
        picture.skip()
