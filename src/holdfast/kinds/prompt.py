"""`prompt`: an instruction is run over a document's text; over a long one in parts, put together in the end.

Each part is a paid call of its own, so that a document of which one page changed pays for the parts that
changed and for putting them together; and a run that is taken up again pays for nothing twice.
"""

from dataclasses import dataclass
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.engine import ready_documents
from holdfast.engine.models import Model
from holdfast.engine.ready_documents import ReadyDocument
from holdfast.engine.work import Work
from holdfast.kinds import model_calls
from holdfast.ledger.pay import Call

GROUP = 8
PART = (
    "This is part {number} of {of} of a long document. Do what you are asked for this part alone.\n\n{text}"
)
TOGETHER = (
    "{instruction}\n\nThe document was too long to be read at once. Below are the answers for its parts, in "
    "their order. Put them together into one answer to the instruction above."
)


@dataclass(frozen=True, slots=True)
class PromptTask:
    """What to ask. Sizes are in tokens: of a part that is read at once, and of an answer."""

    instruction: str
    part_tokens: int = 6000
    most_parts: int = 40
    answer_tokens: int = 1000


def foreseen(model: Model, task: PromptTask, document: ReadyDocument) -> tuple[list[Call], bool]:
    """The calls for a document, and whether these are all: what puts parts together is not known before.

    For that one call is counted, over answers as long as they may be. None for a document that is too long.
    """
    parts = document.parts(task.part_tokens)
    if len(parts) > task.most_parts:
        return [], True
    calls = [_question(model, task, task.instruction, text) for text in _texts(parts)]
    if len(parts) > 1:
        answers = "answer " * (task.answer_tokens * len(parts))
        calls.append(_question(model, task, TOGETHER.format(instruction=task.instruction), answers))
    return calls, len(parts) == 1


def _texts(parts: list[str]) -> list[str]:
    """What the model is shown of each part."""
    if len(parts) == 1:
        return parts
    return [PART.format(number=number, of=len(parts), text=text) for number, text in enumerate(parts, 1)]


def _question(model: Model, task: PromptTask, instruction: str, text: str) -> Call:
    return model_calls.question(model, instruction, text, max_tokens=task.answer_tokens)


def run(work: Work, model: Model, task: PromptTask, document: ReadyDocument) -> dict[str, Any]:
    """The model's answer over the whole document; WorkError before anything is paid if it is too long."""
    parts = document.parts(task.part_tokens)
    if len(parts) > task.most_parts:
        message = (
            f"the document has {len(parts)} parts of {task.part_tokens} tokens, more than most_parts "
            f"({task.most_parts}); raise it, or part_tokens, if you want to pay for that"
        )
        raise WorkError(message, code="document_too_long")
    read = len(parts)
    answers = _ask(work, model, task, task.instruction, _texts(parts))
    while len(answers) > 1:
        packs = ready_documents.packed(answers, task.part_tokens)
        if len(packs) == len(answers):
            # Answers that fill a part each: two at a time, so that every round has fewer.
            packs = ["\n\n".join(answers[first : first + 2]) for first in range(0, len(answers), 2)]
        answers = _ask(work, model, task, TOGETHER.format(instruction=task.instruction), packs)
    return {"answer": answers[0], "parts": read, "model": model.name, "stand_in": model.stand_in}


def _ask(work: Work, model: Model, task: PromptTask, instruction: str, texts: list[str]) -> list[str]:
    answers: list[str] = []
    for start in range(0, len(texts), GROUP):
        calls = [_question(model, task, instruction, text) for text in texts[start : start + GROUP]]
        answers += [model_calls.text(result) for result in work.pay(calls)]
        if len(texts) > GROUP:
            work.progress(len(answers), len(texts), unit="parts")
    return answers
