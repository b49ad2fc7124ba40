"""The process in which the user's own functions run: requests on standard input, answers on standard output.

It has the rights and the environment of its worker, and a memory limit. A thread reads the requests, so that
the process ends with its owner also while a function hangs. What functions print goes to standard error.
"""

import contextlib
import importlib
import json
import os
import queue
import resource
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.core import keys
from holdfast.core.errors import BadRequestError

MOST_OUTPUT = 64 * 1024
MOST_MESSAGE = 1000
MOST_DEPTH = 64

Function = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]


def main(memory: int) -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses to set some limits
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    functions: dict[str, Function] = {}
    while True:
        answer = answered(json.loads(requests.get()), functions)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _read(requests: "queue.SimpleQueue[bytes]") -> None:
    requests_file = os.fdopen(os.dup(0), "rb")
    while line := requests_file.readline():
        requests.put(line)
    os._exit(0)


def answered(request: Mapping[str, Any], functions: dict[str, Function]) -> dict[str, Any]:
    """The output of the function, or what went wrong: nobody else's code is between it and the caller."""
    call = request["call"]
    step = "import"
    try:
        if call not in functions:
            functions[call] = _imported(call)
        step = "raised"
        output = functions[call](request["fields"], request["settings"])
        _check_depth(output)
        size = len(keys.canonical({"output": output}).encode("utf-8", "replace"))
    except MemoryError:
        return {"error": "memory", "message": ""}
    except BadRequestError as error:
        return {"error": "not_json", "message": error.message[:MOST_MESSAGE]}
    except BaseException as error:  # noqa: BLE001 - code of the user's may raise anything, exits included
        return {"error": step, "message": _words(error)}
    return {"error": "size", "message": f"{size:,}"} if size > MOST_OUTPUT else {"output": output}


def _imported(call: str) -> Function:
    module, _, name = call.partition(":")
    function: Function = getattr(importlib.import_module(module), name)
    return function


def _check_depth(value: Any, depth: int = 0) -> None:
    if depth > MOST_DEPTH:
        raise BadRequestError(f"it is nested deeper than {MOST_DEPTH} levels", code="not_json")
    if isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            _check_depth(each, depth + 1)


def _words(error: BaseException) -> str:
    words = "".join(traceback.format_exception_only(error)).strip()
    return words[:MOST_MESSAGE]


if __name__ == "__main__":
    main(int(sys.argv[1]))
