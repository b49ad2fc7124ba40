"""One interface to all formats: outline, read, thumbnail. It runs in the child.

A `DocumentReader` caches the last document, because an outline is followed by reading: documents of one slice
are parsed once for both, and sheets are read on from where the last slice ended.
"""

import contextlib
import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from holdfast.core import keys, languages
from holdfast.core.errors import HoldfastError, WorkError
from holdfast.documents import chunk, language
from holdfast.documents.chunk import ChunkOptions, ChunkText
from holdfast.documents.parse import (
    archive,
    containers,
    custom,
    machine_data,
    records,
    sniff,
    texts,
)
from holdfast.documents.parse.ocr import Recogniser
from holdfast.documents.parse.paid import PaidCallNeededError, PaidRequest
from holdfast.documents.parse.records import (
    ARCHIVES,
    CONTAINERS,
    DPI,
    IMAGES,
    PAGED,
    SHEETS,
    SLIDES,
    Format,
    Outline,
    OutlineEntry,
    Page,
    PageReading,
    ParseLimits,
    RecognisedPage,
    RecognisedWord,
    Role,
    Unit,
    UnitRange,
    has_text,
)
from holdfast.documents.parse.source import Readable, answer_key_of, password_of

# Formats read by a parser that a collection has chosen: none.
NO_CHOICE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class KnownSlices:
    """Digests of slices that need not be cut, each of a slice's content, `parts` and language.

    With the language `auto` it is told from the text of the slice.
    """

    parts: tuple[str, ...] = ()
    digests: frozenset[str] = frozenset()
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """A slice cut into chunks: the digest of its content and `Known.parts`, its pages, the chunks.

    `pieces` is None for a known slice. `exact` is false for a text that was cut as another format
    than the one it would be recognised as. `skipped` are the characters that nobody can read, left out.
    `readings` are those of pages that are not plain text, `headings` those in its text. `language` is that of
    the text, None if it is not known. `page_words` are the words of each page.
    """

    digest: str
    pages: int
    pieces: Sequence[ChunkText] | None
    exact: bool = True
    skipped: int = 0
    readings: tuple[PageReading, ...] = ()
    headings: tuple[OutlineEntry, ...] = ()
    language: str | None = None
    page_words: tuple[tuple[int, int], ...] = ()


def language_of(pages: Iterable[Page]) -> str | None:
    """The language of these pages; None if it cannot be told."""
    return language.detect(
        block.text for page in pages for block in page.blocks if block.role is not Role.CODE
    )


def cut(pages: Sequence[Page], document_format: Format, options: ChunkOptions, known: KnownSlices) -> Cut:
    """The pages of a slice, cut unless they are known."""
    pages, skipped = machine_data.readable(pages)
    spoken = language_of(pages) if known.language == languages.AUTO else known.language
    # English adds nothing: slices from before languages were told apart are still known.
    by_rules = () if languages.rules(spoken) == languages.ENGLISH_RULES else (str(spoken),)
    digest = keys.digest(records.digest(pages, document_format), *known.parts, *by_rules)
    pieces = None if digest in known.digests else chunk.cut(pages, options)
    readings = records.readings(pages) if document_format in PAGED else ()
    headings = records.headings(pages)
    return Cut(
        digest,
        len(pages),
        pieces,
        skipped=skipped,
        readings=readings,
        headings=headings,
        language=spoken,
        page_words=records.page_words(pages, document_format),
    )


def with_recognised(pages: Sequence[Page], recognised: Sequence[Page]) -> list[Page]:
    """The pages, with what OCR read on them; where it read nothing, the text layer stays."""
    by_number = {page.number: page for page in recognised}
    merged = []
    for page in pages:
        other = by_number.get(page.number)
        if other is None:
            merged.append(page)
        elif other.blocks:
            merged.append(
                replace(page, blocks=other.blocks, confidence=other.confidence, gap=None, picture=None)
            )
        else:
            confidence = None if page.blocks else other.confidence
            merged.append(replace(page, confidence=confidence, gap=other.gap, picture=None))
    return merged


def read_text(text: str, options: ChunkOptions) -> Cut:
    """A text recognised, read and cut as if it were a file."""
    try:
        form = sniff.from_head(text[: sniff.HEAD].encode("utf-8", "replace")[: sniff.HEAD])
    except HoldfastError:
        form = None
    exact = form in {Format.TEXT, Format.MARKDOWN}
    pages = texts.markdown_pages(text) if form is Format.MARKDOWN else texts.plain_pages(text)
    pages, skipped = machine_data.readable(pages)
    return Cut("", len(pages), chunk.cut(pages, options), exact=exact, skipped=skipped)


def placeholder(document_format: Format, width: int) -> bytes:
    """A PNG for a document that cannot be drawn."""
    from holdfast.documents.parse import thumbnails  # noqa: PLC0415 (loads Pillow)

    return thumbnails.placeholder(document_format, width)


def parsed(text: str, document_format: Format) -> "Whole":
    """Plain text or Markdown, parsed."""
    if document_format is Format.TEXT:
        return Whole(document_format, None, texts.plain_pages(text))
    pages = texts.markdown_pages(text)
    return Whole(document_format, texts.markdown_title(pages[0].blocks), pages)


class Opened(Protocol):
    """An open document, with its outline and slices."""

    def outline(self) -> Outline:
        """The document's outline."""

    def ahead(self, units: UnitRange) -> bool:
        """True if the slice can still be read; otherwise the document must be reopened."""

    def read(self, units: UnitRange) -> list[Page]:
        """The pages of the slice."""


class Whole:
    """A document that is one slice, parsed in full."""

    def __init__(self, document_format: Format, title: str | None, pages: Sequence[Page]) -> None:
        """Raises `no_text` if the pages are empty."""
        if not has_text(pages):
            raise WorkError("the document contains no text", code="no_text")
        _check_readable(pages, document_format)
        self._format = document_format
        self._title = title
        self._pages = pages

    def outline(self) -> Outline:
        """The slides of a deck, or the parts of any other document."""
        unit = Unit.SLIDE if self._format in SLIDES else Unit.PART
        return Outline(self._format, unit, self._pages[-1].number, self._title)

    def ahead(self, units: UnitRange) -> bool:  # noqa: ARG002 (all of it is here)
        """Any slice can be read at any time."""
        return True

    def read(self, units: UnitRange) -> list[Page]:
        """The pages of the slice."""
        return [page for page in self._pages if units.first <= page.number <= units.last]


def _check_readable(pages: Sequence[Page], document_format: Format) -> None:
    """Return if there is something to read; code that is minified but for its licence is not."""
    left, skipped = machine_data.readable(pages)
    size = sum(len(block.text) for page in left for block in page.blocks) if skipped else 1
    if not size or (document_format is Format.CODE and size * 10 < skipped):
        raise WorkError(
            "the file is encoded data or minified code, which nobody can read; upload the original",
            code="machine_data",
        )


class DocumentReader:
    """Reads documents within limits of size. The process around it limits time and memory."""

    def __init__(
        self, limits: ParseLimits, own: Sequence[custom.OwnParser] = (), names: Sequence[str] = ()
    ) -> None:
        """Read within these limits, with the user's own parsers first; `names` are theirs, in order."""
        self._limits = limits
        self._own = own
        self._named = dict(zip(names, own, strict=False))
        self._key: tuple[object, ...] = ()
        self._document: Opened | None = None
        self._recogniser = Recogniser()
        self._inside: tuple[tuple[object, ...], containers.Container] | None = None

    def outline(
        self, path: Readable, name: str, *, scans: bool = False, parsers: Mapping[str, str] = NO_CHOICE
    ) -> Outline:
        """The outline of a file; the format is recognised by content. `parsers` are chosen by format."""
        if self._own_parser(path, name, parsers) is not None:
            return self._opened(path, Format.OWN, name, parsers).outline()
        document_format = sniff.sniff(path, name)
        if document_format is Format.ZIP:
            members = len(self.members(path, document_format))
            return Outline(document_format, Unit.PART, members, members=members)
        if scans and document_format is Format.PDF:
            from holdfast.documents.parse import pdf  # noqa: PLC0415 (loads PDFium)

            return pdf.Pdf(path, self._limits).outline(scans=True)
        outline = self._opened(path, document_format).outline()
        if document_format in CONTAINERS:
            outline = replace(outline, members=len(self.members(path, document_format)))
        if document_format is Format.PDF:
            return outline
        from holdfast.documents.parse import file_properties  # noqa: PLC0415 (loads selectolax)

        own = file_properties.read(path, document_format, self._limits)
        title = own.get("title") if document_format is Format.MARKDOWN else None
        return replace(outline, properties=own, title=str(title) if title else outline.title)

    def members(self, path: Readable, document_format: Format) -> list[containers.Member]:
        """The files inside a file."""
        return self._container(path, document_format).members

    def member_part(self, path: Readable, document_format: Format, number: int, at: int, size: int) -> bytes:
        """The next bytes of a file inside a file."""
        return self._container(path, document_format).read(number, at, size)

    def _container(self, path: Readable, document_format: Format) -> containers.Container:
        """The container, newly opened or cached from the last request."""
        key = _key(path, document_format)
        if self._inside is None or self._inside[0] != key:
            self._inside = None
            self._inside = key, containers.opened(path, document_format, self._limits)
        return self._inside[1]

    def cut(
        self,
        path: Readable,
        document_format: Format,
        units: UnitRange,
        options: ChunkOptions,
        known: KnownSlices,
        recognised: Sequence[Page] = (),
        name: str = "",
        parsers: Mapping[str, str] = NO_CHOICE,
    ) -> Cut:
        """The chunks of a slice, with the pages of it that were recognised."""
        pages = with_recognised(self.read(path, document_format, units, name, parsers), recognised)
        return cut(pages, document_format, options, known)

    def language(
        self, path: Readable, document_format: Format, samples: Iterable[UnitRange], name: str = ""
    ) -> str | None:
        """The language of a document, told from these ranges of it."""
        pages = (page for units in samples for page in self.read(path, document_format, units, name))
        return language_of(pages)

    def recognise(
        self, path: Readable, document_format: Format, number: int, languages: str
    ) -> RecognisedPage:
        """What OCR reads on a page of a PDF or an image."""
        if document_format is Format.PDF:
            from holdfast.documents.parse import page_quality, pdf  # noqa: PLC0415 (loads PDFium)

            picture = pdf.with_page(path, number, page_quality.grey)
        else:
            from holdfast.documents.parse import images  # noqa: PLC0415 (loads Pillow)

            picture = images.grey(path, document_format, number)
        return self._recogniser.recognise(picture, languages, DPI)

    def read(
        self,
        path: Readable,
        document_format: Format,
        units: UnitRange,
        name: str = "",
        parsers: Mapping[str, str] = NO_CHOICE,
    ) -> list[Page]:
        """The pages of a slice; `name` and `parsers` decide between parsers of the user's own."""
        document = self._opened(path, document_format, name, parsers)
        if not document.ahead(units):
            self._key = ()
            document = self._opened(path, document_format, name, parsers)
        return document.read(units)

    def page(
        self,
        path: Readable,
        document_format: Format,
        number: int,
        width: int,
        passage: str,
        words: Sequence[RecognisedWord],
    ) -> bytes:
        """A PNG of a page of a PDF or an image, with a passage marked."""
        from holdfast.documents.parse import page_pictures  # noqa: PLC0415 (loads PDFium and Pillow)

        return page_pictures.drawn(path, document_format, number, width, passage, words)

    def thumbnail(self, path: Readable, document_format: Format, width: int) -> bytes:
        """A PNG of the first page: a PDF's as printed, others drawn from their text."""
        if document_format is Format.PDF:
            from holdfast.documents.parse import pdf  # noqa: PLC0415 (loads PDFium)

            return pdf.thumbnail(path, width)
        if document_format in IMAGES:
            from holdfast.documents.parse import images  # noqa: PLC0415 (loads Pillow)

            return images.png(path, document_format, 1, width)
        from holdfast.documents.parse import thumbnails  # noqa: PLC0415 (loads Pillow)

        if document_format in SHEETS:
            from holdfast.documents.parse import sheets  # noqa: PLC0415 (loads calamine)

            if document_format in ARCHIVES:
                archive.check(path, self._limits)
            name, rows = sheets.corner(path, document_format, self._limits, thumbnails.ROWS)
            return thumbnails.sheet(rows, name, width)
        if document_format in {Format.TEXT, Format.MARKDOWN}:
            document: Opened = parsed(texts.beginning(path), document_format)
        else:
            self._key = () if document_format is Format.JSONL else self._key  # read from its beginning
            document = self._opened(path, document_format)
        outline = document.outline()
        last = min(outline.units, thumbnails.ROWS) if outline.unit is Unit.ROW else outline.units
        pages = document.read(UnitRange(1, last))
        return thumbnails.page(next(page.blocks for page in pages if page.blocks), document_format, width)

    def _opened(
        self,
        path: Readable,
        document_format: Format,
        name: str = "",
        parsers: Mapping[str, str] = NO_CHOICE,
    ) -> Opened:
        """The document, newly opened or cached from the last request."""
        opened_with = password_of(path), answer_key_of(path)
        key = (*_key(path, document_format), *opened_with, *sorted(parsers.items()))
        if self._document is None or self._key != key:
            self._document = None  # freed before the next one is loaded
            if document_format is Format.OWN:
                self._document = self._open_own(path, name, parsers)
            else:
                self._document = _open(path, document_format, self._limits)
            self._key = key
        return self._document

    def paid_request(self, path: Readable, name: str, parsers: Mapping[str, str]) -> PaidRequest | None:
        """The paid request that is made before this file is read; None if there is none."""
        parser = self._own_parser(path, name, parsers)
        return None if parser is None else self._request_of(parser, path, name)

    def _request_of(self, parser: custom.OwnParser, path: Readable, name: str) -> PaidRequest | None:
        full = next(each for each, known in self._named.items() if known is parser)
        return custom.request_of(parser, full, path, lambda: page_count(path, name, self._limits))

    def _own_parser(self, path: Readable, name: str, parsers: Mapping[str, str]) -> custom.OwnParser | None:
        """The parser of the user's own that reads this file: the chosen one, or the first that accepts it."""
        chosen = None
        if parsers:
            with contextlib.suppress(HoldfastError):
                chosen = parsers.get(sniff.sniff(path, name).value)
        if chosen == custom.OURS:
            return None
        if chosen is None:
            return custom.accepting(self._own, path, name)
        if chosen not in self._named:
            message = f"HOLDFAST_PARSERS of this process does not name {chosen}, which the options choose"
            raise WorkError(message, code="parser_unfit")
        return self._named[chosen]

    def _open_own(self, path: Readable, name: str, parsers: Mapping[str, str]) -> "Whole":
        parser = self._own_parser(path, name, parsers)
        if parser is None:
            raise WorkError(
                "no parser of HOLDFAST_PARSERS reads this file any more; index it again",
                code="unknown_format",
            )
        request = None if answer_key_of(path) else self._request_of(parser, path, name)
        if request is not None:
            raise PaidCallNeededError(request)
        return Whole(Format.OWN, None, custom.pages(parser, path, self._limits))


def page_count(path: Readable, name: str, limits: ParseLimits) -> int:
    """The pages or slides of a file, by its format; 0 if the format has none, or they cannot be counted."""
    try:
        document_format = sniff.sniff(path, name)
        if document_format is Format.PDF:
            from holdfast.documents.parse import pdf  # noqa: PLC0415 (loads PDFium)

            return pdf.page_count(path)
        if document_format in IMAGES | SLIDES:
            return _open(path, document_format, limits).outline().units
    except HoldfastError:
        return 0
    return 0


def _key(path: Readable, document_format: Format) -> tuple[object, ...]:
    about = path.stat()
    return document_format, about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


# By format, the module and the function that reads a document whole. Each is loaded at first use.
_READERS = {
    Format.DOCX: ("word", "read_docx"),
    Format.PPTX: ("slides", "read_pptx"),
    Format.ODT: ("open_document", "read_text"),
    Format.ODP: ("open_document", "read_slides"),
    Format.EPUB: ("epub", "read"),
    Format.RTF: ("rich_text", "read"),
    Format.EML: ("mail", "read_eml"),
    Format.MSG: ("mail", "read_msg"),
    Format.JSON: ("json_records", "read"),
    Format.XML: ("xml_text", "read"),
    Format.NOTEBOOK: ("notebooks", "read"),
    Format.HTML: ("html", "read"),
    Format.CODE: ("source_code", "read"),
    Format.YAML: ("source_code", "read"),
}


def _open(path: Readable, document_format: Format, limits: ParseLimits) -> Opened:
    if document_format is Format.ZIP:
        raise WorkError("an archive has no text of its own", code="no_text")
    if document_format in ARCHIVES:
        archive.check(path, limits)
    if document_format is Format.PDF:
        from holdfast.documents.parse import pdf  # noqa: PLC0415 (loads PDFium)

        return pdf.Pdf(path, limits)
    if document_format in IMAGES:
        from holdfast.documents.parse import images  # noqa: PLC0415 (loads Pillow)

        return images.Images(path, document_format, limits)
    if document_format in SHEETS:
        from holdfast.documents.parse import sheets  # noqa: PLC0415 (loads calamine)

        return sheets.Rows(path, document_format, limits)
    if document_format is Format.JSONL:
        from holdfast.documents.parse import json_records  # noqa: PLC0415 (as above)

        return json_records.RecordLines(path, limits)
    if document_format in _READERS:
        module, name = _READERS[document_format]
        read = getattr(importlib.import_module(f"holdfast.documents.parse.{module}"), name)
        return Whole(document_format, *read(path, limits))
    return parsed(texts.load(path, limits.text_bytes), document_format)
