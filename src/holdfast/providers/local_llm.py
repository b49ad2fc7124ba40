"""A stand-in for a language model: offline, for nothing, through the same door as the paid ones.

It is *not* a language model. It copies sentences and values out of the text it is given, in ways that are
written down here and in `extractive`, and always answers the same. So an installation without any model works
at once, and everything around the answer (ledger, jobs, results) is the real thing. It does not understand an
instruction: what it is to do comes as a hint among the parameters, which no server is ever sent.

* `{"do": "pairs", "count": n}`: JSON with at most n questions whose answers stand in the text.
* `{"do": "fields", "schema": {...}}`: JSON with the fields that patterns find.
* no hint: the most telling sentences of the text. Offered tools, it calls the first one once, then answers.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.providers import extractive
from holdfast.providers.base import Answered, Exchange, NotSent, Outcome, Profile, Profiled, free

NAME = "local-extractive"
MODEL = "extractive-1"
HINT = "stand_in"
ENDPOINT = "chat/completions"
SENTENCES = 3
LOCAL = free(NAME, max_inputs=1)


class LocalLanguageProvider(Profiled):
    """A provider that charges nothing, is never away, and says no more than the text does."""

    def __init__(self, profile: Profile = LOCAL) -> None:
        super().__init__(profile)

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """Return the messages and the hint as JSON. Raises ValueError for what the stand-in cannot do."""
        if endpoint != ENDPOINT:
            raise ValueError(f"the local stand-in knows no {endpoint!r}; it only answers")
        if model != MODEL:
            raise ValueError(f"the local stand-in is one model, {MODEL}, not {model!r}")
        if len(inputs) != 1:
            raise ValueError("a chat order carries exactly one input")
        body = {
            "messages": _messages(inputs[0]) if params.get("messages_json") is True else _user(inputs[0]),
            "tools": params.get("tools") or [],
            HINT: params.get(HINT) or {},
        }
        return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """Answer the messages, if `gate` allows it."""
        if not gate():
            return NotSent("the lease is no longer trusted")
        body = json.loads(exchange.body)
        said = answer(body["messages"], body["tools"], body[HINT])
        written = json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        heard = sum(self.count_tokens(str(message.get("content") or "")) for message in body["messages"])
        return Answered(
            (written.encode(),),
            input_tokens=heard,
            output_tokens=self.count_tokens(said["content"] or ""),
            replayed=False,
        )

    def count_tokens(self, text: str) -> int:
        """Return an estimate: four characters to a token."""
        return max(1, len(text) // 4)

    def close(self) -> None:
        """Nothing is open."""


def answer(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], hint: Mapping[str, Any]
) -> dict[str, Any]:
    """What the stand-in says to a conversation, in the stored form of a chat result."""
    told = [message for message in messages if message.get("role") == "tool"]
    if tools and not told:
        name = str((tools[0].get("function") or {}).get("name") or "")
        call = {"id": "call-1", "type": "function", "function": {"name": name, "arguments": "{}"}}
        return {"content": None, "finish_reason": "tool_calls", "tool_calls": [call]}
    heard = told or [message for message in messages if message.get("role") == "user"][:1]
    text = "\n".join(str(message.get("content") or "") for message in heard)
    match hint.get("do"):
        case "pairs":
            count = hint.get("count")
            pairs = extractive.pairs(text, count if type(count) is int else 1)
            content = json.dumps({"pairs": pairs}, ensure_ascii=False)
        case "fields":
            schema = hint.get("schema")
            found = extractive.fields(text, schema if isinstance(schema, dict) else {})
            content = json.dumps(found, ensure_ascii=False)
        case _:
            content = " ".join(extractive.telling(text, SENTENCES)) or "The text says nothing."
    return {"content": content, "finish_reason": "stop"}


def _user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def _messages(text: str) -> list[dict[str, Any]]:
    """The messages that `text` spells; otherwise it is the only one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _user(text)
    if isinstance(value, list) and value and all(isinstance(item, dict) and "role" in item for item in value):
        return value
    return _user(text)
