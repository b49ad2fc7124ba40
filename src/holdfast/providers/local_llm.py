"""A stand-in for a language model: offline and free, through the same interface as paid ones.

It is *not* a language model. It copies sentences and values from its input by fixed rules (here and in
`extractive`), and always answers the same. So an installation works without any model, and everything around
the answer (ledger, jobs, results) is real. It does not understand instructions: a hint among the parameters,
which is never sent to a server, says what to do.

* `{"do": "pairs", "count": n}`: JSON with at most n questions whose answers are in the text.
* `{"do": "fields", "schema": {...}}`: JSON with the fields that patterns find.
* `{"do": "answer", "question": "...", "sources": [[1, "..."], ...]}`: quoted sentences, each with `[n]`.
* `{"do": "graph"}`: JSON with the names of the text, and which of them are in one sentence.
* `{"do": "report", "names": [...]}`: JSON with a title, key sentences, and which of the names each has.
* `{"do": "sentences", "count": n}`: n key sentences.
* `{"do": "summary", "tokens": n}`: a line as title, and key sentences of about n tokens.
* no hint: the key sentences of the text. If tools are offered, it calls the first one once, then answers.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.providers import cooccurrence, extractive
from holdfast.providers.base import Answered, Exchange, NotSent, Outcome, Profile, Profiled, free

NAME = "local-extractive"
MODEL = "extractive-1"
HINT = "stand_in"
ENDPOINT = "chat/completions"
STOPS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f")
SENTENCES = 3
LOCAL = free(NAME, max_inputs=1)


class LocalLanguageProvider(Profiled):
    """A provider that charges nothing, is always available, and only quotes the text."""

    def __init__(self, profile: Profile = LOCAL) -> None:
        super().__init__(profile)

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """Return the messages and the hint as JSON. Raises ValueError for anything it does not support."""
        if endpoint != ENDPOINT:
            raise ValueError(f"the local stand-in has no {endpoint!r}; it only answers chats")
        if model != MODEL:
            raise ValueError(f"the local stand-in has one model, {MODEL}, not {model!r}")
        if len(inputs) != 1:
            raise ValueError("a chat order takes exactly one input")
        body = {
            "messages": _messages(inputs[0]) if params.get("messages_json") is True else _user(inputs[0]),
            "tools": params.get("tools") or [],
            HINT: params.get(HINT) or {},
        }
        return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """Answer the messages, if `gate` allows it."""
        if not gate():
            return NotSent("the lease is no longer valid")
        body = json.loads(exchange.body)
        result = answer(body["messages"], body["tools"], body[HINT])
        output = self.count_tokens(result["content"] or "")
        stored = result | {"output_tokens": output}
        encoded = json.dumps(stored, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        return Answered(
            (encoded,),
            input_tokens=sum(self.count_tokens(str(each.get("content") or "")) for each in body["messages"]),
            output_tokens=output,
            replayed=False,
        )

    def count_tokens(self, text: str) -> int:
        """Return an estimate: one token per four characters."""
        return max(1, len(text) // 4)

    def close(self) -> None:
        """Nothing to close."""


def answer(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], hint: Mapping[str, Any]
) -> dict[str, Any]:
    """The stand-in's answer to a conversation, in the stored form of a chat result."""
    tool_results = [message for message in messages if message.get("role") == "tool"]
    if tools and not tool_results:
        name = str((tools[0].get("function") or {}).get("name") or "")
        call = {"id": "call-1", "type": "function", "function": {"name": name, "arguments": "{}"}}
        return {"content": None, "finish_reason": "tool_calls", "tool_calls": [call]}
    sources = tool_results or [message for message in messages if message.get("role") == "user"][:1]
    text = "\n".join(str(message.get("content") or "") for message in sources)
    match hint.get("do"):
        case "pairs":
            count = hint.get("count")
            pairs = extractive.pairs(text, count if type(count) is int else 1)
            content = json.dumps({"pairs": pairs}, ensure_ascii=False)
        case "fields":
            schema = hint.get("schema")
            values = extractive.fields(text, schema if isinstance(schema, dict) else {})
            content = json.dumps(values, ensure_ascii=False)
        case "answer":
            content = _quoted(hint)
        case "graph":
            content = json.dumps(cooccurrence.graph(text), ensure_ascii=False)
        case "report":
            report = cooccurrence.report(text, cooccurrence.report_names(hint))
            content = json.dumps(report, ensure_ascii=False)
        case "sentences":
            count = hint.get("count")
            best = extractive.key_sentences(text, count if type(count) is int else SENTENCES)
            content = " ".join(best) or text[:1000]
        case "summary":
            tokens = hint.get("tokens")
            content = extractive.summary(text, tokens if type(tokens) is int else 300)
        case _:
            content = " ".join(extractive.key_sentences(text, SENTENCES)) or "The text says nothing."
    return {"content": content, "finish_reason": "stop"}


def _quoted(hint: Mapping[str, Any]) -> str:
    """Sentences of the sources that have the question's words, quoted and cited."""
    sources = [
        (each[0], each[1])
        for each in hint.get("sources") or ()
        if isinstance(each, list) and len(each) == 2 and type(each[0]) is int and isinstance(each[1], str)
    ]
    quotations = extractive.quotations(str(hint.get("question") or ""), sources, SENTENCES)
    # A line without a full stop has one after the quotation: each keeps its own citation.
    stops = ((sentence, "" if sentence.endswith(STOPS) else ".", number) for sentence, number in quotations)
    said = (f"“{sentence}”{stop} [{number}]" for sentence, stop, number in stops)
    return " ".join(said) or "The sources have no sentence that could be quoted."


def _user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def _messages(text: str) -> list[dict[str, Any]]:
    """The messages encoded in `text`, or one user message with it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _user(text)
    if isinstance(value, list) and value and all(isinstance(item, dict) and "role" in item for item in value):
        return value
    return _user(text)
