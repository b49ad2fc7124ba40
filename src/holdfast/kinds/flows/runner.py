"""Carries the steps of a flow out over the chunks of a slice, one step after another.

Who pays, keeps outputs and looks at the clock is `StepTools`: a worker, an estimate, or a trial. The same
code decides in all of them what is asked, so that an estimate is for what a run would ask.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.core.errors import WorkError
from holdfast.core.records import Spent
from holdfast.engine.models import Model
from holdfast.kinds import model_calls
from holdfast.kinds.flows import functions, step_calls
from holdfast.kinds.flows.step_calls import Answer
from holdfast.kinds.flows.steps import DOCUMENT, SKIP, Flow, Step
from holdfast.kinds.flows.templates import shown
from holdfast.ledger.pay import Call

GROUP = 32
MOST_ERRORS = 3
# Of one input; with `on_error: skip` the others go on.
OF_ONE = model_calls.OF_ONE | {"step_failed", "document_too_long"}


class StepTools(Protocol):
    """What the steps need: an answer to each call, and a clock."""

    @property
    def spent(self) -> Spent:
        """What was paid until now."""

    def now(self) -> float:
        """Seconds by a clock that only runs forward."""

    def model(self, step: Step) -> Model:
        """The model that a step asks."""

    def pay(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """The answers; None for one that is not known."""

    def call(self, step: Step, fields: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        """The outputs of a function: values, WorkErrors, and `UnknownOutput` for one that is not known."""

    def report(self, step: Step, done: int, total: int) -> None:
        """So much of the step is done."""


class UnknownOutput:
    """The output of a step that nobody has carried out yet."""


@dataclass(slots=True)
class StepReport:
    """What became of a step. `left_out`: its condition did not hold. Money is in nano-dollars."""

    number: int
    kind: str
    name: str
    per: str
    items: int = 0
    left_out: int = 0
    failed: int = 0
    seconds: float = 0.0
    paid_calls: int = 0
    reused_calls: int = 0
    paid: int = 0
    # No language model is set up: what it made is quoted from the text.
    stand_in: bool = False
    errors: list[str] = field(default_factory=list)
    # Of a step per document its output, otherwise that of the first chunk that has one.
    output: Any = None

    def as_json(self) -> dict[str, Any]:
        """For the result of a slice."""
        shortened = shown(self.output)[:2000]
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__ if name != "output"},
            "seconds": round(self.seconds, 3),
            "output": shortened,
        }


@dataclass(frozen=True, slots=True)
class ChunkOutput:
    """A chunk after all steps: what is embedded and searched, and its fields. Not shown: not published."""

    embed: str
    search: str
    fields: Mapping[str, Any]
    is_published: bool = True


@dataclass(frozen=True, slots=True)
class FlowOutput:
    """Every chunk in order, the fields of the document, and what became of each step."""

    chunks: Sequence[ChunkOutput]
    document: Mapping[str, Any]
    steps: Sequence[StepReport]

    @property
    def failed(self) -> int:
        """How many items a step failed on and was told to skip."""
        return sum(step.failed for step in self.steps)


class FlowRunner:
    """One flow over the chunks of one slice. `document` are the fields of the document."""

    def __init__(self, flow: Flow, tools: StepTools, document: Mapping[str, Any]) -> None:
        self._flow = flow
        self._tools = tools
        self._document = dict(document)
        self._made: dict[str, Any] = {}

    def run(self, chunks: Sequence[Mapping[str, Any]], most: int | None = None) -> FlowOutput:
        """The chunks, each with the fields `text`, `page`, `headings` and `position`, after all steps.

        With `most`, so many of them; what is done for the document is done for all of its text.
        """
        whole = "\n\n".join(str(each["text"]) for each in chunks)
        chunks = chunks[:most]
        outputs: list[dict[str, Any]] = [{} for _ in chunks]
        reports = []
        for step in self._flow.makers:
            report = StepReport(step.number, step.kind, step.name, step.per)
            report.stand_in = step.kind != "python" and self._tools.model(step).stand_in
            began, before = self._tools.now(), self._tools.spent
            if step.per == DOCUMENT:
                fields = [{**self._document, **self._made, "text": whole}]
                self._carry_out(step, fields, [self._made], report)
            else:
                views = [
                    {**self._document, **self._made, **chunk, **own}
                    for chunk, own in zip(chunks, outputs, strict=True)
                ]
                self._carry_out(step, views, outputs, report)
            spent = self._tools.spent
            report.seconds = self._tools.now() - began
            report.paid_calls = spent.paid_calls - before.paid_calls
            report.reused_calls = spent.reused_calls - before.reused_calls
            report.paid = spent.paid - before.paid
            reports.append(report)
        return FlowOutput(
            [self._chunk(chunk, own) for chunk, own in zip(chunks, outputs, strict=True)], self._made, reports
        )

    def _carry_out(
        self,
        step: Step,
        views: Sequence[Mapping[str, Any]],
        outputs: Sequence[dict[str, Any]],
        report: StepReport,
    ) -> None:
        """The step's output is in `outputs` for every item that its condition holds for."""
        concerned = [at for at, fields in enumerate(views) if step.is_for(fields)]
        report.items, report.left_out = len(concerned), len(views) - len(concerned)
        for start in range(0, len(concerned), GROUP):
            group = concerned[start : start + GROUP]
            for at, output in zip(group, self._outputs(step, [views[at] for at in group]), strict=True):
                if isinstance(output, WorkError):
                    if step.on_error != SKIP or output.code not in OF_ONE:
                        raise WorkError(f"{step.name}: {output.message}", code=output.code) from output
                    report.failed += 1
                    report.errors = [*report.errors, output.message[:300]][:MOST_ERRORS]
                elif not isinstance(output, UnknownOutput):
                    outputs[at][step.name] = output
                    report.output = output if report.output is None else report.output
            self._tools.report(step, start + len(group), len(concerned))

    def _outputs(self, step: Step, views: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        if step.kind == "python":
            return self._tools.call(step, [functions.read_fields(step, fields) for fields in views])
        return self._asked(step, views)

    def _asked(self, step: Step, views: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The outputs of a paid step; the first questions of all items are paid for together."""
        model = self._tools.model(step)
        texts = [step.template.filled(fields) if step.template is not None else "" for fields in views]
        planned: list[list[Call] | WorkError] = []
        for text in texts:
            try:
                planned.append(step_calls.first_calls(step, model, text) if text else [])
            except WorkError as error:
                planned.append(error)
        calls = [call for each in planned if isinstance(each, list) for call in each]
        answers = iter(self._tools.pay(calls) if calls else ())
        return [self._output(step, model, *each, answers) for each in zip(texts, planned, strict=True)]

    def _output(
        self, step: Step, model: Model, text: str, planned: list[Call] | WorkError, answers: Any
    ) -> Any:
        if isinstance(planned, WorkError):
            return planned
        if not planned:
            return UnknownOutput()  # an item without any text has no output
        mine = [next(answers) for _ in planned]
        try:
            output = step_calls.output(step, model, text, mine, self._tools.pay)
        except WorkError as error:
            return error
        return UnknownOutput() if output is None else output

    def _chunk(self, chunk: Mapping[str, Any], own: Mapping[str, Any]) -> ChunkOutput:
        return chunk_output(self._flow, self._document, chunk, {**self._made, **own})


def chunk_output(
    flow: Flow, document: Mapping[str, Any], chunk: Mapping[str, Any], outputs: Mapping[str, Any]
) -> ChunkOutput:
    """The chunk after all steps that made these fields."""
    fields = {**document, **chunk, **outputs}
    text = str(chunk["text"])
    embed = next((step for step in flow.of_kind("embed") if step.is_for(fields)), None)
    embedded = embed.template.filled(fields) if embed is not None and embed.template is not None else text
    searched = "\n".join(filter(None, (shown(_value(fields, name)) for name in flow.search_fields())))
    publish = flow.of_kind("publish")
    is_published = not publish or publish[0].is_for(fields)
    return ChunkOutput(embedded or text, searched, dict(outputs), is_published)


def _value(fields: Mapping[str, Any], name: str) -> Any:
    value = fields.get(name)
    # The words of an object are those of its values.
    return " ".join(_words(value)) if isinstance(value, dict | list) else value


def _words(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for each in value.values() for word in _words(each)]
    if isinstance(value, list):
        return [word for each in value for word in _words(each)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
