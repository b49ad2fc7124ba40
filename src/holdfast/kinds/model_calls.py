"""How a kind asks a model: a paid call in, text or JSON out.

A call is built here and paid for by `work.pay`, which is the only door: what was answered once is in the
ledger, and the same question is answered from there for nothing, after a crash as well. Hence an answer that
cannot be read is not cured by asking the same again; ask something else (`again`), or fail.

All messages are the *text* of the call, so that they are part of its content key and of the estimate that a
budget reserves for it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from holdfast.core import keys
from holdfast.core.errors import BadRequestError, ProviderRefusedError, WorkError
from holdfast.engine import kinds, models
from holdfast.engine.kinds import Supplies
from holdfast.engine.models import Model
from holdfast.ledger.pay import Call
from holdfast.providers import local_llm, openai

T = TypeVar("T")

MOST_OUTPUT = 2000
# An answer is looked at no further than this; what a model writes within its limit is shorter by far.
MOST_TEXT = 200_000
# Braces at which an object may begin. Prose before an answer has few; each costs a look at the rest.
MOST_STARTS = 64
MOST_DEPTH = 32
# What is wrong with one input or its answer. Any other error concerns all of them.
OF_ONE = frozenset({"provider_rejected", "content_filtered", "bad_answer", "answer_cut", "invalid_answer"})


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model said. `text` is empty where it only called tools."""

    text: str
    finish_reason: str | None
    tool_calls: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    # The lengths of the pieces in which a streamed text came.
    pieces: Sequence[int] = ()
    # The tokens of what it said, as they were billed; 0 if that was not recorded.
    output_tokens: int = 0


def model(supplies: Supplies) -> Model:
    """The language model that is set up; WorkError if there is none."""
    if supplies.llm is None or not supplies.llm_model:
        message = "no language model is configured; set HOLDFAST_LLM_PROVIDER and HOLDFAST_LLM_MODEL"
        raise WorkError(message, code="no_provider")
    return named(supplies, supplies.llm, supplies.llm_model)


def named(supplies: Supplies, provider: str, name: str) -> Model:
    """A model of the provider that is set up, with the parameters that it is to be sent."""
    return Model(provider, name, models.sent_with(supplies.llm_parameters, name), supplies.llm_parameters)


def chosen(supplies: Supplies, options: Mapping[str, Any]) -> Model:
    """The model that a job or an action names with `provider` and `model`; without them the one set up.

    A provider named without a model means its default model. BadRequestError for a provider that has no such
    name here, or no usual model; WorkError where nothing is named and nothing set up.
    """
    name = options.get("model")
    if options.get("provider") is None:
        usual = model(supplies)
        return usual if name is None else named(supplies, usual.provider, str(name))
    offer = kinds.offer(supplies.llm_offers, options["provider"])
    if (model_name := str(name or offer.model or "")) == "":
        message = f"say which model of provider {options['provider']!r:.80} to use"
        raise BadRequestError(message, code="bad_params")
    return Model(offer.identity, model_name, models.sent_with(offer.parameters, model_name), offer.parameters)


def required(model: Model | None) -> Model:
    """The model of a kind that asks one; WorkError where it was given none."""
    if model is None:
        raise WorkError("this work needs a language model and has none", code="no_provider")
    return model


def question(
    model: Model | None,
    instruction: str,
    text: str,
    *,
    wants_json: bool = False,
    max_tokens: int = MOST_OUTPUT,
    hint: Mapping[str, object] | None = None,
) -> Call:
    """The paid call for one instruction over one text; WorkError where there is no model.

    `hint` is for the stand-in alone, which cannot follow an instruction (see `local_llm`); no server sees it.
    """
    messages = [{"role": "system", "content": instruction}, {"role": "user", "content": text}]
    return conversation(required(model), messages, wants_json=wants_json, max_tokens=max_tokens, hint=hint)


def conversation(
    model: Model,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    wants_json: bool = False,
    max_tokens: int = MOST_OUTPUT,
    hint: Mapping[str, object] | None = None,
) -> Call:
    """The paid call that continues `messages`, in the OpenAI wire format; the model may call `tools`."""
    params: dict[str, object] = {"messages_json": True, **model.sends(max_tokens)}
    if tools:
        params["tools"] = [dict(tool) for tool in tools]
    if wants_json:
        params["response_format"] = {"type": "json_object"}
    if model.stand_in and hint:
        params[local_llm.HINT] = dict(hint)
    text = keys.canonical([dict(message) for message in messages])
    return Call(model.provider, openai.CHAT, model.name, text, params)


def again(call: Call, answered: bytes, complaint: str) -> Call:
    """A new call: the same conversation, the answer it got, and what was wrong with that."""
    messages = json.loads(call.text)
    messages += [
        {"role": "assistant", "content": answer(answered).text},
        {"role": "user", "content": complaint},
    ]
    return Call(call.provider, call.endpoint, call.model, keys.canonical(messages), call.params)


def answer(result: bytes) -> ModelAnswer:
    """What the settled `result` says; WorkError if it is no chat result at all."""
    try:
        reply = json.loads(result)
    except (ValueError, RecursionError) as error:
        raise WorkError("the model's answer is not readable", code="bad_answer") from error
    if not isinstance(reply, dict):
        raise WorkError("the model's answer is not readable", code="bad_answer")
    content, reason, tools = reply.get("content"), reply.get("finish_reason"), reply.get("tool_calls")
    output = reply.get("output_tokens")
    return ModelAnswer(
        text=content if isinstance(content, str) else "",
        finish_reason=reason if isinstance(reason, str) else None,
        tool_calls=tuple(each for each in tools if isinstance(each, dict)) if isinstance(tools, list) else (),
        pieces=reply["pieces"] if isinstance(reply.get("pieces"), list) else (),
        output_tokens=output if type(output) is int else 0,
    )


def text(result: bytes) -> str:
    """The text of the answer; WorkError where the model gave none, or was not let."""
    said = answer(result)
    if said.finish_reason == "content_filter":
        message = "the provider's content filter withheld the answer; change the text or the notes"
        raise WorkError(message, code="content_filtered")
    if not said.text.strip():
        raise WorkError("the model returned an empty answer; try another model", code="bad_answer")
    return said.text


def value(result: bytes, form: type[T]) -> T:
    """The first JSON value of type `form` in the answer: bare, in a fence, or among prose.

    WorkError where there is none, with its own code for an answer that the output limit cut off.
    """
    said = text(result)
    parsed = _first(said[:MOST_TEXT], form)
    if parsed is not None:
        return parsed
    if answer(result).finish_reason == "length":
        message = "the answer was cut off at its output limit; ask for less at a time"
        raise WorkError(message, code="answer_cut")
    raise WorkError("the model did not answer with the JSON it was asked for", code="bad_answer")


class Payer(Protocol):
    """Who pays for calls: the work of a task, or a caller who waits for the answers."""

    def pay(self, calls: Sequence[Call]) -> Sequence[bytes]:
        """The results of the calls."""


def paid(payer: Payer, calls: Sequence[Call]) -> list[bytes | WorkError]:
    """The results of the calls, or why the provider refused one, in order.

    A refusal of one input does not bar the others: they are paid for on their own, and what was settled
    before the refusal is in the ledger. A refusal of everything (no credit, a wrong key) is raised.
    """
    try:
        return list(payer.pay(calls))
    except ProviderRefusedError as error:
        if error.code not in OF_ONE:
            raise
        if len(calls) == 1:
            return [error]
    return [each for call in calls for each in paid(payer, [call])]


def _first(said: str, form: type[T]) -> T | None:
    decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
    opening = "[" if form is list else "{"
    position = said.find(opening)
    for _ in range(MOST_STARTS):
        if position < 0:
            return None
        try:
            parsed, _end = decoder.raw_decode(said, position)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, form) and _shallow(parsed):
            return parsed
        position = said.find(opening, position + 1)
    return None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _finite(written: str) -> float:
    """A number that can be written as JSON again: 1e999 is read as infinity, which no database keeps."""
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"{written[:20]} is too large")
    return number


def _shallow(value: object) -> bool:
    """False for what is nested so deep that walking through it would end the worker's stack."""
    level = [value]
    for _ in range(MOST_DEPTH):
        inner = [
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, dict | list)
        ]
        level = [one for each in inner for one in each]
        if not level:
            return True
    return False
