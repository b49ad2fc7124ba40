"""What the paid steps ask a model, and what they make of its answer.

A text that is too long for one question is asked about in windows: `enrich` puts the answers together with
one more question, `extract` takes the first value of each field. Every question is content alone, so that the
same text costs nothing the second time, in whatever document, run or version of a flow it stands.
"""

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.core.text import plain
from holdfast.engine.models import Model
from holdfast.kinds import extract, model_calls, prompt, schemas
from holdfast.kinds.flows.steps import Step
from holdfast.ledger.pay import Call

Answer = bytes | WorkError | None
"""What a call gave; None if that is not known, because it is only estimated."""
Pay = Callable[[Sequence[Call]], Sequence[Answer]]

WINDOW = extract.WINDOW
MOST_WINDOWS = extract.MOST_WINDOWS
# What an answer is thought to be that nobody has yet: as long as it may be.
UNKNOWN = "word "


class GuessedText(str):
    """A text in place of an answer that nobody has paid for yet."""

    __slots__ = ()


def first_calls(step: Step, model: Model, text: str) -> list[Call]:
    """The questions about a text that can be asked at once; WorkError for one that is too long."""
    windows = [text[start : start + WINDOW] for start in range(0, len(text), WINDOW)]
    if len(windows) > MOST_WINDOWS:
        message = f"{step.name}: the text has {len(text):,} characters; at most {WINDOW * MOST_WINDOWS:,}"
        raise WorkError(message, code="document_too_long")
    if step.kind == "extract":
        return [extract.call_for(model, each, _schema(step, windows), **_limits(step)) for each in windows]
    if len(windows) == 1:
        return [_question(step, model, step.params["prompt"], text)]
    parts = [
        prompt.PART.format(number=number, of=len(windows), text=each)
        for number, each in enumerate(windows, start=1)
    ]
    return [_question(step, model, step.params["prompt"], part) for part in parts]


def output(step: Step, model: Model, text: str, answers: Sequence[Answer], pay: Pay) -> Any:
    """What the step makes of the answers to its `first_calls`; None if they are not known.

    More may be asked for: a repair of an answer that does not follow the schema, or one that puts parts
    together. WorkError where the answers cannot be used.
    """
    if step.kind == "extract":
        return _extracted(step, model, text, answers, pay)
    texts = [_text(step, each) for each in answers]
    while len(texts) > 1:
        instruction = prompt.TOGETHER.format(instruction=step.params["prompt"])
        whole = "\n\n".join(texts)[:WINDOW]
        texts = [_text(step, pay([_question(step, model, instruction, whole)])[0])]
    return texts[0]


def _question(step: Step, model: Model, instruction: str, text: str) -> Call:
    tokens = int(step.params["max_tokens"])
    hint = {"do": "summary", "tokens": tokens} if tokens >= 100 else None
    return model_calls.question(model, instruction, text, max_tokens=tokens, hint=hint)


def _text(step: Step, answer: Answer) -> str:
    if isinstance(answer, WorkError):
        raise answer
    if answer is None:
        return GuessedText(UNKNOWN * int(step.params["max_tokens"]))
    return plain(model_calls.text(answer).strip())


def _schema(step: Step, windows: Sequence[str]) -> Any:
    # A field that a later window has is not missing in an earlier one.
    schema = step.params["schema"]
    return schema if len(windows) == 1 else schemas.without_required(schema)


def _limits(step: Step) -> dict[str, Any]:
    return {"instruction": step.params["instruction"], "max_tokens": int(step.params["max_tokens"])}


def _extracted(step: Step, model: Model, text: str, answers: Sequence[Answer], pay: Pay) -> Any:
    calls = first_calls(step, model, text)
    window_schema = _schema(step, answers)  # type: ignore[arg-type]  # as many answers as windows
    fields: dict[str, Any] = {}
    failed: WorkError | None = None
    for call, answer in zip(calls, answers, strict=True):
        try:
            values = _read(call, answer, window_schema, pay)
        except WorkError as error:
            failed = failed or error
            continue
        if values is None:
            return None
        fields |= {name: value for name, value in values.items() if name not in fields}
    if failed is not None and not fields:
        raise failed
    if wrong := schemas.faults(fields, step.params["schema"]):
        raise extract.invalid(wrong)
    return fields


def _read(call: Call, answer: Answer, schema: Any, pay: Pay) -> dict[str, Any] | None:
    """The fields of one window, after one repair at most; None if the answer is not known."""
    if isinstance(answer, WorkError):
        raise answer
    if answer is None:
        return None
    try:
        return extract.read_answer(answer, schema)
    except WorkError as error:
        if error.code == "content_filtered":
            raise
        second = pay([model_calls.again(call, answer, extract.complaint(error))])[0]
    if isinstance(second, WorkError):
        raise second
    return None if second is None else extract.read_answer(second, schema)
