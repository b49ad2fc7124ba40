"""The process that parses: it reads requests from its standard input and answers on its standard output.

It is started by `children.Child`, lives for many documents and ends when its input does, which is when its
owner closes it or dies. An owner that dies in the middle of a document takes the child along
(PR_SET_PDEATHSIG on Linux; elsewhere the limit of CPU time ends it). It imports each parser when it is first
needed, and never the store.
"""

import base64
import contextlib
import ctypes
import json
import math
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.documents.parse import wire
from holdfast.documents.parse.reader import Reader
from holdfast.documents.parse.records import Format, Limits, Slice

_PR_SET_PDEATHSIG = 1
MOST_WORDS = 64 * 1024
_NO_ROOM = ("memory", "failed to map segment")


def main(owner: int, limits_json: str) -> None:
    """Serve requests until the input ends."""
    _die_with(owner)
    limits = Limits(**json.loads(limits_json))
    # It ends with its input, not with what is sent to every process of a service that stops.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _bound(resource.RLIMIT_CORE, 0)
    _bound(resource.RLIMIT_FSIZE, MOST_WORDS)  # it has no file to write but its last words
    _bound(resource.RLIMIT_AS, limits.memory)
    requests = os.fdopen(os.dup(0), "rb")
    # Whatever a library prints must not end up between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    reader = Reader(limits)
    while (request := wire.receive(requests)) is not None:
        _grant_seconds(limits.seconds)
        answers.write(wire.frame(_answer(reader, request)))
        answers.flush()


def _answer(reader: Reader, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request; every failure of a parser is an answer too."""
    try:
        return {"result": _do(reader, request), "resident": _resident()}
    except WorkError as error:
        return {"error": error.code, "message": error.message, "resident": _resident()}
    except MemoryError:
        return {"error": "parse_memory", "message": "", "resident": _resident()}
    except ImportError as error:
        # The parser itself is not whole: no document is at fault. Or there was no room to load it.
        told = " ".join(str(error).split())[:200]
        code = "parse_memory" if any(sign in told for sign in _NO_ROOM) else "parser_unfit"
        return {"error": code, "message": told, "resident": _resident()}
    except Exception as error:  # noqa: BLE001 (the outermost loop: a broken file breaks parsers in any way)
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        message = f"the file is damaged and cannot be read ({told}); upload it again"
        return {"error": "broken_file", "message": message, "resident": _resident()}


def _do(reader: Reader, request: dict[str, Any]) -> Any:
    path = Path(request["path"])
    if request["ask"] == "outline":
        return wire.outline_to(reader.outline(path, request["name"]))
    document_format = Format(request["format"])
    if request["ask"] == "read":
        return wire.pages_to(reader.read(path, document_format, Slice(request["first"], request["last"])))
    return base64.b64encode(reader.thumbnail(path, document_format, request["width"])).decode("ascii")


def _grant_seconds(seconds: float) -> None:
    """The CPU time of the next request; past it the kernel ends this process with SIGXCPU."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _bound(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds) + 1)


def _bound(what: int, most: int) -> None:
    """A limit of this process is `most`, or the lower one that was set for it from outside."""
    _soft, hard = resource.getrlimit(what)
    with contextlib.suppress(ValueError, OSError):  # macOS knows some limits and refuses to set them
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _resident() -> int:
    """The resident memory of this process in bytes, its peak where the present size cannot be told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 (a hundred times a second)
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _die_with(owner: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != owner:
        sys.exit(0)  # the owner died before the line above
