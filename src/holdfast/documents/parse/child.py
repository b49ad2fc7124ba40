"""The parser process: it reads requests from its standard input and answers on its standard output.

It is started by `children.ParserProcess`, serves many documents and ends with its input, when its owner
closes it or dies. If the owner dies in the middle of a document, the child dies with it (PR_SET_PDEATHSIG on
Linux; elsewhere the CPU time limit ends it). It imports each parser at first use, and never the store. Before
its first document it drops all rights that parsers do not need (`sandbox`); documents arrive as open
descriptors over the socket that is its standard input.
"""

import base64
import contextlib
import ctypes
import json
import math
import os
import resource
import signal
import socket
import sys
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.documents.chunk import ChunkOptions
from holdfast.documents.parse import containers, custom, paid, repositories, sandbox, wire
from holdfast.documents.parse.reader import DocumentReader, KnownSlices, cut, placeholder, read_text
from holdfast.documents.parse.records import Format, ParseLimits, UnitRange
from holdfast.documents.parse.source import SourceFile
from holdfast.documents.sources.patterns import PathFilter

_PR_SET_PDEATHSIG = 1
_repository = repositories.OpenRepository()
_NO_ROOM = ("memory", "failed to map segment")


def main(owner: int, limits_json: str, parsers_json: str = "[]") -> None:
    """Serve requests until the input ends."""
    _die_with(owner)
    limits = ParseLimits(**json.loads(limits_json))
    # It ends with its input, not by a signal sent to all processes of a stopping service.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    requests = socket.socket(fileno=os.dup(0))
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.environ.clear()  # the interpreter may have added a locale
    memory = _Resident()
    # Before the sandbox closes: what they import may lie anywhere.
    names = json.loads(parsers_json)
    own = custom.load(names)
    measures = sandbox.confine(limits)
    reader = DocumentReader(limits, own, names)
    while (received := wire.receive(requests)) is not None:
        request, files = received
        _grant_seconds(limits.seconds)
        source = _source(request, files)
        answer = _answer(reader, request, source, measures)
        answers.write(wire.frame({**answer, "resident": memory.now()}))
        answers.flush()


def _source(request: dict[str, Any], files: list[int]) -> SourceFile | None:
    """The document of a request, with what a paid service said about it."""
    if not files:
        return None
    answer = SourceFile(files[1]) if len(files) > 1 else None
    return SourceFile(files[0], request.get("password"), answer, str(request.get("answer", "")))


def _answer(
    reader: DocumentReader, request: dict[str, Any], source: SourceFile | None, measures: tuple[str, ...]
) -> dict[str, Any]:
    """The answer to one request; a parser's failure is an answer too."""
    try:
        return {"result": measures if request["ask"] == "measures" else _do(reader, request, source)}
    except WorkError as error:
        return {"error": error.code, "message": error.message}
    except paid.PaidCallNeededError as needed:
        return {"paid": paid.to_wire(needed.request)}
    except MemoryError:
        return {"error": "parse_memory", "message": ""}
    except ImportError as error:
        # The parser itself is broken, or there was no memory to load it; not the document's fault.
        message_text = " ".join(str(error).split())[:200]
        code = "parse_memory" if any(sign in message_text for sign in _NO_ROOM) else "parser_unfit"
        return {"error": code, "message": message_text}
    except Exception as error:  # noqa: BLE001 (outermost loop: a damaged file may raise anything)
        message_text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        if source is not None and source.answer is not None:
            return {"error": "unreadable_answer", "message": message_text}
        message = f"the file is damaged and cannot be read ({message_text}); upload it again"
        return {"error": "broken_file", "message": message}


def _do(reader: DocumentReader, request: dict[str, Any], source: SourceFile | None) -> Any:
    if request["ask"] == "text":
        return wire.cut_to(read_text(request["text"], _options(request)))
    if request["ask"] == "pages":
        return wire.cut_to(
            cut(wire.pages_from(request["pages"]), Format.TEXT, _options(request), KnownSlices())
        )
    if request["ask"] == "placeholder":
        return base64.b64encode(placeholder(Format(request["format"]), request["width"])).decode("ascii")
    if source is None:
        raise ValueError("a request without a document")
    if request["ask"] in {"files", "file"}:
        return _of_repository(request, source)
    if request["ask"] == "payment":
        needed = reader.paid_request(source, request["name"], request["parsers"])
        return None if needed is None else paid.to_wire(needed)
    if request["ask"] == "outline":
        outline = reader.outline(
            source, request["name"], scans=request["scans"], parsers=request.get("parsers", {})
        )
        return wire.outline_to(outline)
    document_format = Format(request["format"])
    if request["ask"] in {"members", "member"}:
        return _inside(reader, request, source, document_format)
    if request["ask"] in {"thumbnail", "page", "recognise"}:
        return _picture(reader, request, source, document_format)
    return _text(reader, request, source, document_format)


def _text(
    reader: DocumentReader, request: dict[str, Any], source: SourceFile, document_format: Format
) -> Any:
    name = request.get("name", "")
    if request["ask"] == "language":
        samples = [UnitRange(first, last) for first, last in request["samples"]]
        return reader.language(source, document_format, samples, name)
    units, parsers = UnitRange(request["first"], request["last"]), request.get("parsers", {})
    if request["ask"] == "cut":
        known = KnownSlices(tuple(request["parts"]), frozenset(request["digests"]), request["language"])
        recognised = wire.pages_from(request["recognised"])
        cut_slice = reader.cut(
            source, document_format, units, _options(request), known, recognised, name, parsers
        )
        return wire.cut_to(cut_slice)
    return wire.pages_to(reader.read(source, document_format, units, name, parsers))


def _picture(
    reader: DocumentReader, request: dict[str, Any], source: SourceFile, document_format: Format
) -> Any:
    if request["ask"] == "thumbnail":
        return base64.b64encode(reader.thumbnail(source, document_format, request["width"])).decode("ascii")
    if request["ask"] == "page":
        page = wire.recognised_from(request["recognised"])
        picture = reader.page(
            source, document_format, request["page"], request["width"], request["passage"], page.words
        )
        return base64.b64encode(picture).decode("ascii")
    return wire.recognised_to(
        reader.recognise(source, document_format, request["page"], request["languages"])
    )


def _inside(
    reader: DocumentReader, request: dict[str, Any], source: SourceFile, document_format: Format
) -> Any:
    if request["ask"] == "members":
        return containers.to_wire(reader.members(source, document_format))
    part = reader.member_part(source, document_format, request["number"], request["at"], request["size"])
    return base64.b64encode(part).decode("ascii")


def _of_repository(request: dict[str, Any], source: SourceFile) -> Any:
    pack = _repository.pack(source)
    if request["ask"] == "files":
        paths = PathFilter(tuple(request["include"]), tuple(request["exclude"]), request["below"])
        listing = pack.files(request["head"], paths, request["most"])
        return {"files": listing.files, "is_cut": listing.is_cut}
    part = pack.blob(request["blob"], request["most"])[request["at"] : request["at"] + request["size"]]
    return base64.b64encode(part).decode("ascii")


def _options(request: dict[str, Any]) -> ChunkOptions:
    size, overlap, delimiter, drop = request["options"]
    return ChunkOptions(size, overlap, delimiter, tuple(drop))


def _grant_seconds(seconds: float) -> None:
    """Limit the CPU time of the next request; beyond it the kernel ends this process with SIGXCPU.

    Only needed if the owner is gone: otherwise the owner enforces the time limit.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    _soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(
            resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


class _Resident:
    """The resident memory of this process, read from a file opened before the sandbox closes."""

    def __init__(self) -> None:
        try:
            self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1

    def now(self) -> int:
        """Bytes; the peak if the current size is not available."""
        if self._file >= 0:
            return int(os.pread(self._file, 200, 0).split()[1]) * resource.getpagesize()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _die_with(owner: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != owner:
        sys.exit(0)  # the owner died before the line above
