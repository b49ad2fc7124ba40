"""`Parser`: gives outlines, pages, chunks and thumbnails of documents, however hostile the file.

Thread-safe: there is one child, which handles one document at a time. After a fork the new process starts its
own child.
"""

import base64
import contextlib
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

from holdfast.core.errors import WorkError
from holdfast.documents.chunk import ChunkOptions
from holdfast.documents.parse import containers, encodings, front_matter, paid, reader, sniff, texts, wire
from holdfast.documents.parse.children import DiedError, ParserProcess
from holdfast.documents.parse.containers import Member
from holdfast.documents.parse.paid import PaidAnswer, PaidCallNeededError, PaidRequest
from holdfast.documents.parse.reader import NO_CHOICE, Cut, KnownSlices, Whole
from holdfast.documents.parse.records import Format, Outline, Page, ParseLimits, RecognisedPage, UnitRange
from holdfast.documents.parse.repositories import RepositoryFiles
from holdfast.documents.sources.patterns import PathFilter

T = TypeVar("T")
# Plain text up to this size is parsed in this process, in linear time (decision 0043), and cached between
# `outline` and `read`.
SMALL_TEXT = 256 * 1024
# Bytes of a file inside a file that are asked for at a time.
MEMBER_STEP = 8 * 1024 * 1024
# The width of a thumbnail in pixels.
WIDTH = 320
_HERE = frozenset({Format.TEXT, Format.MARKDOWN})
_CODES = frozenset(
    {
        "archive_bomb",
        "broken_file",
        "encrypted",
        "machine_data",
        "no_page",
        "no_text",
        "ocr_missing",
        "old_office",
        "parse_memory",
        "too_large",
        "too_many_pages",
        "unknown_format",
        "unsafe_archive",
        "wrong_password",
    }
)


class Parser:
    """Parses documents within limits. Every failure is a WorkError with a code that says what is wrong."""

    def __init__(
        self, limits: ParseLimits | None = None, *, in_child: bool = False, own: Sequence[str] = ()
    ) -> None:
        """Parse within these limits; with `in_child` even small texts are parsed in the child.

        `own` names parsers of the user's own, `module:name`, which are asked first, and in the child alone.
        """
        self._limits = limits or ParseLimits()
        self._own = tuple(own)
        self._small = 0 if in_child or own else SMALL_TEXT
        self._lock = threading.Lock()
        self._child: ParserProcess | None = None
        self._recent: tuple[tuple[object, ...], Whole] | None = None
        _parsers.add(self)

    def outline(
        self,
        path: Path,
        name: str = "",
        seconds: float | None = None,
        *,
        scans: bool = False,
        password: str | None = None,
        parsers: Mapping[str, str] = NO_CHOICE,
        answer: PaidAnswer | None = None,
    ) -> Outline:
        """The format and size of a document, from its content; raises `no_text` for one without text.

        `name` is the file's name, and decides only between formats of plain text. With `scans` the pages of a
        PDF that OCR can read are named, and count as text. `password` opens a protected PDF. `parsers` maps
        formats to the parsers that are to read them. `answer` is that of a paid service: without one, a file
        whose parser needs it raises PaidCallNeededError, here and in `cut`, which says what to pay for.
        """
        self._measure(path)
        if not self._own:
            document_format = sniff.from_head(sniff.read_head(path), name)
            small = self._small_text(path, document_format)
            if small is not None:
                return small.outline()
        request = {"ask": "outline", "name": name, "scans": scans, **_secret(password)}
        return _shaped(
            wire.outline_from,
            self._ask(request | {"parsers": dict(parsers)}, path, seconds, answer),
        )

    def paid_request(
        self,
        path: Path,
        name: str = "",
        seconds: float | None = None,
        *,
        parsers: Mapping[str, str] = NO_CHOICE,
        password: str | None = None,
    ) -> PaidRequest | None:
        """The paid request that is made before the file is read; None if there is none."""
        if not self._own:
            return None
        request = {"ask": "payment", "name": name, "parsers": dict(parsers), **_secret(password)}
        needed = self._ask(request, path, seconds)
        return None if needed is None else _shaped(paid.from_wire, needed)

    @property
    def takes_anything(self) -> bool:
        """True if parsers of the user's own may read a file of any format."""
        return bool(self._own)

    def read(
        self,
        path: Path,
        document_format: Format,
        units: UnitRange,
        *,
        password: str | None = None,
        name: str = "",
    ) -> list[Page]:
        """The pages of a slice, including pages without text, which have no blocks."""
        self._measure(path)
        small = self._small_text(path, document_format)
        if small is not None:
            return small.read(units)
        request = _request("read", document_format, units, name) | _secret(password)
        return _shaped(wire.pages_from, self._ask(request, path))

    def cut(
        self,
        path: Path,
        document_format: Format,
        units: UnitRange,
        options: ChunkOptions,
        known: KnownSlices | None = None,
        seconds: float | None = None,
        recognised: Sequence[Page] = (),
        *,
        password: str | None = None,
        name: str = "",
        parsers: Mapping[str, str] = NO_CHOICE,
        answer: PaidAnswer | None = None,
    ) -> Cut:
        """The chunks of a slice, with what OCR read on some of its pages; none for a known slice."""
        self._measure(path)
        small = self._small_text(path, document_format)
        if small is not None:
            return reader.cut(small.read(units), document_format, options, known or KnownSlices())
        known = known or KnownSlices()
        request = _request("cut", document_format, units, name) | _cutting(options)
        request |= {"parsers": dict(parsers)}
        request |= {"parts": list(known.parts), "digests": list(known.digests), **_secret(password)}
        request |= {"recognised": wire.pages_to(recognised), "language": known.language}
        return _shaped(wire.cut_from, self._ask(request, path, seconds, answer))

    def language(
        self,
        path: Path,
        document_format: Format,
        samples: Sequence[UnitRange],
        *,
        password: str | None = None,
        name: str = "",
    ) -> str | None:
        """The language of a document, told from these ranges of it; None if it cannot be told."""
        self._measure(path)
        request: dict[str, Any] = {"ask": "language", "format": document_format.value, **_secret(password)}
        request |= {"samples": [[units.first, units.last] for units in samples], "name": name}
        return _shaped(wire.language_from, self._ask(request, path))

    def recognise(
        self,
        path: Path,
        document_format: Format,
        page: int,
        languages: str,
        *,
        password: str | None = None,
    ) -> RecognisedPage:
        """What OCR reads on a page, within the limits of a slice. Raises as `read` does, or `ocr_missing`."""
        self._measure(path)
        request = {"ask": "recognise", "format": document_format.value, "page": page, "languages": languages}
        request |= _secret(password)
        return _shaped(wire.recognised_from, self._ask(request, path))

    def cut_text(self, text: str, options: ChunkOptions, seconds: float | None = None) -> Cut:
        """The chunks of an uploaded text, always recognised and cut in the child."""
        request = {"ask": "text", "text": text} | _cutting(options)
        return _shaped(wire.cut_from, self._ask(request, seconds=seconds))

    def cut_pages(self, pages: Sequence[Page], options: ChunkOptions, seconds: float | None = None) -> Cut:
        """The chunks of pages made from known text."""
        request = {"ask": "pages", "pages": wire.pages_to(pages)} | _cutting(options)
        return _shaped(wire.cut_from, self._ask(request, seconds=seconds))

    def members(self, path: Path, document_format: Format) -> list[Member]:
        """The files inside an archive or a message, in order."""
        self._measure(path)
        request = {"ask": "members", "format": document_format.value}
        return _shaped(containers.from_wire, self._ask(request, path))

    def extract(self, path: Path, document_format: Format, number: int, into: BinaryIO) -> int:
        """A file inside a file is written to `into`; how many bytes it has. `too_large` beyond the limit."""
        request = {"ask": "member", "format": document_format.value, "number": number, "size": MEMBER_STEP}
        size = 0
        while True:
            part = _shaped(base64.b64decode, self._ask({**request, "at": size}, path))
            into.write(part)
            size += len(part)
            if size > self._limits.bytes:
                raise WorkError(
                    f"a file inside it has more than {self._limits.bytes:,} bytes; split it", code="too_large"
                )
            if len(part) < MEMBER_STEP:
                return size

    def files(self, path: Path, head: str, paths: PathFilter, most: int) -> RepositoryFiles:
        """The files of a Git repository in a pack, those that are accepted, and at most so many."""
        self._measure(path)
        request = {"ask": "files", "head": head, "most": most, "below": paths.below}
        request |= {"include": list(paths.include), "exclude": list(paths.exclude)}

        def shape(answer: Any) -> RepositoryFiles:
            files = [(str(name), str(blob)) for name, blob in answer["files"]]
            return RepositoryFiles(files, bool(answer["is_cut"]))

        return _shaped(shape, self._ask(request, path))

    def file(self, path: Path, blob: str, into: BinaryIO, most: int) -> int:
        """The content of a file of a Git repository is written to `into`; how many bytes it has."""
        request, size = {"ask": "file", "blob": blob, "most": most, "size": MEMBER_STEP}, 0
        while True:
            part = _shaped(base64.b64decode, self._ask({**request, "at": size}, path))
            into.write(part)
            size += len(part)
            if len(part) < MEMBER_STEP or size > most:
                return size

    def measures(self) -> tuple[str, ...]:
        """The sandbox measures in force on this system, in plain words."""
        return _shaped(lambda answer: tuple(str(each) for each in answer), self._ask({"ask": "measures"}))

    def thumbnail(
        self,
        path: Path,
        document_format: Format,
        width: int = WIDTH,
        seconds: float | None = None,
        *,
        password: str | None = None,
    ) -> bytes:
        """A PNG of the first page, drawn in the child. Raises as `read` does."""
        self._measure(path)
        request = {"ask": "thumbnail", "format": document_format.value, "width": width, **_secret(password)}
        return _shaped(base64.b64decode, self._ask(request, path, seconds))

    def page(
        self,
        path: Path,
        document_format: Format,
        page: int,
        width: int,
        *,
        passage: str = "",
        recognised: RecognisedPage | None = None,
        seconds: float | None = None,
        password: str | None = None,
    ) -> bytes:
        """A PNG of a page of a PDF or an image, with a passage marked; raises `no_page` if there is none."""
        self._measure(path)
        known = recognised or RecognisedPage(0, (), ())
        request: dict[str, Any] = {"ask": "page", "format": document_format.value, "page": page}
        request |= {"width": width, **_secret(password)}
        request |= {"passage": passage, "recognised": wire.recognised_to(known)}
        return _shaped(base64.b64decode, self._ask(request, path, seconds))

    def placeholder(self, document_format: Format, width: int = WIDTH) -> bytes:
        """A PNG with the name of the format, for a document that cannot be drawn."""
        request = {"ask": "placeholder", "format": document_format.value, "width": width}
        return _shaped(base64.b64decode, self._ask(request))

    def close(self) -> None:
        """End the child. The next document starts another."""
        with self._lock:
            if self._child is not None:
                self._child.close()
                self._child = None

    def _measure(self, path: Path) -> None:
        size = path.stat().st_size
        if size > self._limits.bytes:
            raise WorkError(
                f"the file has {size:,} bytes; the limit is {self._limits.bytes:,}; split it",
                code="too_large",
            )

    def _small_text(self, path: Path, document_format: Format | None) -> Whole | None:
        """A small plain text file, parsed now or cached from just before.

        None for files that belong in the child, with its limits of time and memory.
        """
        about = path.stat()
        if document_format is None or document_format not in _HERE or about.st_size > self._small:
            return None
        key = (str(path), document_format, about.st_ino, about.st_size, about.st_mtime_ns)
        known = self._recent
        if known is not None and known[0] == key:
            return known[1]
        text = encodings.decode_certain(texts.content(path, min(SMALL_TEXT, self._limits.text_bytes)))
        if text is None or (document_format is Format.MARKDOWN and front_matter.may_begin(text)):
            return None
        whole = reader.parsed(text, document_format)
        self._recent = (key, whole)
        return whole

    def _ask(
        self,
        request: dict[str, Any],
        path: Path | None = None,
        seconds: float | None = None,
        paid_answer: PaidAnswer | None = None,
    ) -> Any:
        """The result of a request to the child; WorkError for any problem with the document."""
        with contextlib.ExitStack() as opened:
            files = [] if path is None else [opened.enter_context(path.open("rb")).fileno()]
            if paid_answer is not None:
                request = request | {"answer": paid_answer.key}
                files.append(opened.enter_context(_unnamed(paid_answer.content)).fileno())
            with self._lock:
                answer = self._answer(request, files, seconds)
        if "paid" in answer:
            raise PaidCallNeededError(_shaped(paid.from_wire, answer["paid"]))
        if "error" not in answer:
            return answer["result"]
        code, message = answer["error"], str(answer["message"])
        if code == "unreadable_answer":
            raise _unreadable(message)
        if code == "parse_memory":
            raise self._too_hungry()
        if code == "parser_unfit":
            raise _unfit(message)
        raise WorkError(message, code=code if code in _CODES else "broken_file")

    def _answer(self, request: dict[str, Any], files: Sequence[int], seconds: float | None) -> dict[str, Any]:
        """The child's answer; the lock is held.

        A child killed from outside is replaced once: the kernel kills it when the thread that started it
        ends, which is not the document's fault. A second such death means that memory is short.
        """
        for last in (False, True):
            child = self._ready()
            try:
                answer = child.ask(request, files, seconds)
            except DiedError as death:
                self._child = None
                if death.cause == "killed" and not last:
                    continue
                raise self._verdict(death) from None
            if answer.get("error") == "parse_memory":
                child.close()
                self._child = None
            return answer
        raise AssertionError("unreachable")

    def _ready(self) -> ParserProcess:
        if self._child is not None and self._child.worn:
            self._child.close()
            self._child = None
        if self._child is None:
            self._child = ParserProcess(self._limits, self._own)
        return self._child

    def _verdict(self, death: DiedError) -> WorkError:
        if death.cause == "timeout":
            return WorkError(
                f"parsing took longer than {self._limits.seconds:g} s and was stopped; split the document or"
                " raise HOLDFAST_PARSE_SECONDS",
                code="parse_timeout",
            )
        if death.cause in {"memory", "killed"}:
            return self._too_hungry()
        if death.cause == "size":
            return WorkError(
                f"a slice has more text than the limit of {self._limits.reply:,} bytes; split the document",
                code="too_large",
            )
        if death.cause == "unfit":
            return _unfit(death.words)
        return WorkError("the file is damaged: the parser crashed; upload it again", code="broken_file")

    def _too_hungry(self) -> WorkError:
        return WorkError(
            f"parsing needed more than {self._limits.memory:,} bytes of memory and was stopped; split the"
            " document or raise HOLDFAST_PARSE_MEMORY",
            code="parse_memory",
        )

    def _forked(self) -> None:
        """After a fork: a new lock, because a thread may have held the old one, and no child yet."""
        self._lock = threading.Lock()
        if self._child is not None:
            self._child.abandon()
            self._child = None


def _unnamed(content: bytes) -> IO[bytes]:
    """An open file without a name that has this content."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    file.write(content)
    file.flush()
    return file


def _request(ask: str, document_format: Format, units: UnitRange, name: str) -> dict[str, Any]:
    about = {"ask": ask, "format": document_format.value, "first": units.first, "last": units.last}
    return about | ({"name": name} if document_format is Format.OWN else {})


def _secret(password: str | None) -> dict[str, str]:
    """The part of a request that opens a protected document; nothing without a password."""
    return {} if password is None else {"password": password}


def _cutting(options: ChunkOptions) -> dict[str, Any]:
    return {"options": [options.size_tokens, options.overlap, options.delimiter, list(options.drop)]}


def _unreadable(words: str) -> WorkError:
    return WorkError(
        f"the parser could not read the answer of its provider ({words}); fix the parser, then retry: the"
        " answer is kept and not paid again",
        code="unreadable_answer",
    )


def _unfit(words: str) -> WorkError:
    return WorkError(
        f"the parser could not run ({words}); the document is not at fault; fix the installation, then retry",
        code="parser_unfit",
    )


def _shaped(shape: Callable[[Any], T], answer: Any) -> T:
    try:
        return shape(answer)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise WorkError(
            "the file is damaged: the parser returned invalid data; upload it again", code="broken_file"
        ) from error


_parsers: "weakref.WeakSet[Parser]" = weakref.WeakSet()


def _after_fork() -> None:
    for parser in list(_parsers):
        parser._forked()  # noqa: SLF001 (this module's own class)


os.register_at_fork(after_in_child=_after_fork)
