"""The user's own functions that `python` steps call: those that a setting names, and no others.

They are code of the installation, like its analysers, and have its rights; each runs in a process beside the
worker, within limits of time and memory. A function gets the fields that its step reads and the step's
settings, and returns a value of JSON:

    def mark(fields, settings):
        return {"emails": fields["text"].count("@")}
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.core import keys
from holdfast.core.errors import WorkError
from holdfast.core.text import plain, plain_json
from holdfast.kinds.flows import function_child
from holdfast.kinds.flows.conditions import value_of
from holdfast.kinds.flows.function_child import MOST_OUTPUT
from holdfast.kinds.flows.function_process import FunctionDiedError, FunctionProcess, FunctionProcesses
from holdfast.kinds.flows.steps import VERSIONS, Step

# What a process says went wrong, as the end of a sentence.
SENTENCES = {
    "raised": "raised {message}",
    "not_json": "returned what is not JSON ({message})",
    "size": f"returned {{message}} bytes; at most {MOST_OUTPUT:,}",
}


def read_fields(step: Step, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the step reads, and nothing else: its output cannot depend on more."""
    return {name: value_of(fields, name) for name in step.params["reads"]}


def key_of(step: Step, fields: Mapping[str, Any]) -> str:
    """The key of the step's output for these fields."""
    params = {name: step.params.get(name) for name in ("call", "version", "settings")}
    return keys.digest("step", str(VERSIONS["python"]), keys.canonical(params), keys.canonical(dict(fields)))


class StepFunctions:
    """The functions that a setting names, called in processes of their own."""

    def __init__(self, registered: Sequence[str] = (), processes: FunctionProcesses | None = None) -> None:
        self.registered = tuple(registered)
        self._processes = processes or FunctionProcesses()

    def close(self) -> None:
        """The processes have ended; they start again when they are needed."""
        self._processes.close()

    def outputs(
        self, step: Step, inputs: Mapping[str, Mapping[str, Any]], check: Callable[[], None]
    ) -> dict[str, Any]:
        """What the function returns for each of the inputs, by their keys; a WorkError where it fails.

        WorkError for a function that no setting names, or that cannot be imported. `check` is called
        between two calls and while one takes long; what it raises ends the call.
        """
        call = step.params["call"]
        if call not in self.registered:
            message = (
                f"the function {call} is not registered on this worker: HOLDFAST_FLOW_FUNCTIONS lists them"
            )
            raise WorkError(message, code="unknown_function")
        outputs: dict[str, Any] = {}
        for key, fields in inputs.items():
            check()
            with self._processes.lent() as process:
                outputs[key] = self._output(process, step, fields, check)
        return outputs

    def _output(
        self, process: FunctionProcess, step: Step, fields: Mapping[str, Any], check: Callable[[], None]
    ) -> Any:
        call = step.params["call"]
        settings = dict(step.params.get("settings") or {})
        try:
            answer = process.ask({"call": call, "fields": dict(fields), "settings": settings}, check)
        except FunctionDiedError as death:
            return WorkError(f"{call} {death}", code="step_failed")
        error = answer.get("error")
        if error is None and "output" in answer:
            return plain_json(answer["output"], function_child.MOST_DEPTH + 1)
        if error == "import":
            message = (
                f"the function {call} cannot be imported ({answer.get('message')}); it must look like "
                "module:name, in a folder of HOLDFAST_PYTHON_PATH or installed"
            )
            raise WorkError(plain(message), code="unknown_function")
        if error == "memory":
            most = self._processes.limits.memory // 1024**2
            message = f"{call} needed more than {most:,} MiB of memory (HOLDFAST_FLOW_FUNCTION_MEMORY)"
            return WorkError(message, code="step_failed")
        sentence = SENTENCES.get(str(error), "gave no answer").format(message=answer.get("message"))
        return WorkError(plain(f"{call} {sentence}")[:1000], code="step_failed")
