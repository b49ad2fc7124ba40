"""The process that parses: it reads requests from its standard input and answers on its standard output.

It is started by `children.Child`, lives for many documents and ends when its input does, which is when its
owner closes it or dies. An owner that dies in the middle of a document takes the child along
(PR_SET_PDEATHSIG on Linux; elsewhere the limit of CPU time ends it). It imports each parser when it is first
needed, and never the store. Before its first document it gives up all that parsers do not need (`sandbox`);
documents come as open descriptors, over the socket that is its standard input.
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
from holdfast.documents.parse import sandbox, wire
from holdfast.documents.parse.reader import DocumentReader, KnownSlices, cut, placeholder, read_text
from holdfast.documents.parse.records import Format, ParseLimits, UnitRange
from holdfast.documents.parse.source import SourceFile

_PR_SET_PDEATHSIG = 1
_NO_ROOM = ("memory", "failed to map segment")


def main(owner: int, limits_json: str) -> None:
    """Serve requests until the input ends."""
    _die_with(owner)
    limits = ParseLimits(**json.loads(limits_json))
    # It ends with its input, not with what is sent to every process of a service that stops.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    requests = socket.socket(fileno=os.dup(0))
    # Whatever a library prints must not end up between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.environ.clear()  # an interpreter may put a locale into it
    memory = _Resident()
    measures = sandbox.confine(limits)
    reader = DocumentReader(limits)
    while (received := wire.receive(requests)) is not None:
        request, descriptor = received
        _grant_seconds(limits.seconds)
        source = None if descriptor is None else SourceFile(descriptor)
        answer = _answer(reader, request, source, measures)
        answers.write(wire.frame({**answer, "resident": memory.now()}))
        answers.flush()


def _answer(
    reader: DocumentReader, request: dict[str, Any], source: SourceFile | None, measures: tuple[str, ...]
) -> dict[str, Any]:
    """The answer to one request; every failure of a parser is an answer too."""
    try:
        return {"result": measures if request["ask"] == "measures" else _do(reader, request, source)}
    except WorkError as error:
        return {"error": error.code, "message": error.message}
    except MemoryError:
        return {"error": "parse_memory", "message": ""}
    except ImportError as error:
        # The parser itself is not whole: no document is at fault. Or there was no room to load it.
        told = " ".join(str(error).split())[:200]
        code = "parse_memory" if any(sign in told for sign in _NO_ROOM) else "parser_unfit"
        return {"error": code, "message": told}
    except Exception as error:  # noqa: BLE001 (the outermost loop: a broken file breaks parsers in any way)
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        message = f"the file is damaged and cannot be read ({told}); upload it again"
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
    if request["ask"] == "outline":
        return wire.outline_to(reader.outline(source, request["name"]))
    document_format = Format(request["format"])
    if request["ask"] == "thumbnail":
        return base64.b64encode(reader.thumbnail(source, document_format, request["width"])).decode("ascii")
    wanted = UnitRange(request["first"], request["last"])
    if request["ask"] == "cut":
        known = KnownSlices(tuple(request["parts"]), frozenset(request["digests"]))
        return wire.cut_to(reader.cut(source, document_format, wanted, _options(request), known))
    return wire.pages_to(reader.read(source, document_format, wanted))


def _options(request: dict[str, Any]) -> ChunkOptions:
    return ChunkOptions(*request["options"])


def _grant_seconds(seconds: float) -> None:
    """The CPU time of the next request; past it the kernel ends this process with SIGXCPU.

    Only for a child whose owner is gone: the owner ends it at its own clock, and this limit can be raised.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    _soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(
            resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


class _Resident:
    """The resident memory of this process, read from a file that is opened while that is possible."""

    def __init__(self) -> None:
        try:
            self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1

    def now(self) -> int:
        """Bytes; the peak where the present size cannot be told."""
        if self._file >= 0:
            return int(os.pread(self._file, 200, 0).split()[1]) * resource.getpagesize()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _die_with(owner: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != owner:
        sys.exit(0)  # the owner died before the line above
