"""The user's own functions that `python` steps call: those that a setting names, and no others.

They are code of the installation, like its analysers: they run in the worker, with its rights. A function
gets the fields that its step reads and the step's settings, and returns a value of JSON:

    def mark(fields, settings):
        return {"emails": fields["text"].count("@")}
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.core import keys
from holdfast.core.errors import BadRequestError, WorkError
from holdfast.kinds.flows.conditions import value_of
from holdfast.kinds.flows.steps import VERSIONS, Step

MOST_OUTPUT = 64 * 1024

Function = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]


def load(call: str, registered: Sequence[str]) -> Function:
    """The function at `module:name`, if a setting names it; WorkError otherwise."""
    if call not in registered:
        message = f"the function {call} is not registered on this worker: HOLDFAST_FLOW_FUNCTIONS lists them"
        raise WorkError(message, code="unknown_function")
    module, _, name = call.partition(":")
    try:
        function: Function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"the function {call} cannot be imported ({error}); it must look like module:name"
        raise WorkError(message, code="unknown_function") from error
    return function


def read_fields(step: Step, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the step reads, and nothing else: its output cannot depend on more."""
    return {name: value_of(fields, name) for name in step.params["reads"]}


def key_of(step: Step, fields: Mapping[str, Any]) -> str:
    """The key of the step's output for these fields."""
    params = {name: step.params.get(name) for name in ("call", "version", "settings")}
    return keys.digest("step", str(VERSIONS["python"]), keys.canonical(params), keys.canonical(dict(fields)))


def called(step: Step, function: Function, fields: Mapping[str, Any]) -> Any:
    """What the function returns; WorkError if it raises or returns no small JSON value."""
    call = step.params["call"]
    try:
        output = function(dict(fields), dict(step.params.get("settings") or {}))
    except WorkError:
        raise
    except Exception as error:  # a function of the user's may raise anything, and `on_error` decides
        message = f"{step.name}: {call} raised {type(error).__name__}: {error}"[:1000]
        raise WorkError(message, code="step_failed") from error
    try:
        size = len(keys.canonical({"output": output}))
    except (BadRequestError, TypeError, ValueError, RecursionError) as error:
        message = f"{step.name}: {call} returned what is not JSON ({error})"[:1000]
        raise WorkError(message, code="step_failed") from error
    if size > MOST_OUTPUT:
        message = f"{step.name}: {call} returned {size:,} bytes; at most {MOST_OUTPUT:,}"
        raise WorkError(message, code="step_failed")
    return output
