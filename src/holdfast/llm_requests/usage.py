"""What an answer says about itself: the tokens it cost, and whether it is all there and good.

The formats are those of OpenAI (chat, responses, embeddings), Anthropic, Cohere and Google; an answer in any
other is complete when its body is, and unpriced.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.providers.event_stream import DONE, EventReader, StreamError
from holdfast.providers.http_provider import count, estimated_tokens

_INPUT = ("prompt_tokens", "input_tokens", "promptTokenCount")
_OUTPUT = ("completion_tokens", "output_tokens", "candidatesTokenCount")
# Counted beside the input, not within it. Their prices differ; the bill rather shows too much.
_MORE_INPUT = ("cache_creation_input_tokens", "cache_read_input_tokens")
_ENDS = frozenset({"message_stop", "message-end", "response.completed", "response.incomplete", "stream-end"})
_FAILURES = frozenset({"error", "response.failed"})
# What the frame of a message costs beside its text.
_MESSAGE_TOKENS = 4


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of an answer."""

    input: int
    output: int


def of(answer: object) -> TokenUsage | None:
    """The tokens that an answer names; None if it names none."""
    if not isinstance(answer, dict):
        return None
    return _read(_merged(answer))


def _merged(answer: Mapping[str, Any]) -> dict[str, Any]:
    """All that an answer, or an event of one, says about its usage, wherever it says so."""
    usage: dict[str, Any] = {}
    for holder in (answer, answer.get("message"), answer.get("response"), answer.get("delta")):
        if not isinstance(holder, dict):
            continue
        for name in ("usage", "usageMetadata", "meta"):
            known = holder.get(name)
            if isinstance(known, dict):
                billed = known.get("billed_units")
                usage |= billed if isinstance(billed, dict) else known
    return {name: value for name, value in usage.items() if count(value) is not None}


def _read(usage: Mapping[str, int]) -> TokenUsage | None:
    known = [usage.get(name, 0) for name in _INPUT], [usage.get(name, 0) for name in _OUTPUT]
    if not any(name in usage for name in (*_INPUT, *_OUTPUT)):
        return None
    return TokenUsage(max(known[0]) + sum(usage.get(name, 0) for name in _MORE_INPUT), max(known[1]))


class StreamFacts:
    """What the events of a streamed answer say, read as they arrive."""

    def __init__(self) -> None:
        self._events: EventReader | None = EventReader()
        self._usage: dict[str, int] = {}
        self._is_known = False
        self._is_finished = False
        self.has_ended = False
        self.has_failed = False
        # Tokens of a chat as OpenAI streams it, estimated from its text.
        self._chat_tokens: int | None = None

    def feed(self, chunk: bytes) -> None:
        """The next bytes of the answer."""
        if self._events is None:
            return
        try:
            for data in self._events.feed(chunk):
                self._event(data)
        except StreamError:  # longer than any event that is of interest here: nothing is said about the rest
            self._events = None

    @property
    def usage(self) -> TokenUsage | None:
        """The tokens that the events name; None if they name none."""
        return _read(self._usage)

    def estimated(self, request: bytes) -> TokenUsage | None:
        """The tokens of a streamed chat that names none, by its text; None if that says too little."""
        prompt = _prompt_tokens(request)
        if self._chat_tokens is None or prompt is None or self._events is None:
            return None
        return TokenUsage(prompt, self._chat_tokens)

    @property
    def is_complete(self) -> bool:
        """False if the events are of a known kind and the last of them is missing."""
        return self.has_ended or self._is_finished or not self._is_known or self._events is None

    def _event(self, data: str) -> None:
        if data.strip() == DONE:
            self.has_ended = True
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        kind, choices = event.get("type"), event.get("choices")
        self._is_known = self._is_known or isinstance(choices, list) or isinstance(kind, str)
        self.has_ended = self.has_ended or kind in _ENDS
        self._is_finished = self._is_finished or _is_finished(choices)
        self.has_failed = self.has_failed or kind in _FAILURES or isinstance(event.get("error"), dict)
        self._usage |= _merged(event)
        if isinstance(choices, list):
            deltas = [each.get("delta") for each in choices if isinstance(each, dict)]
            self._chat_tokens = (self._chat_tokens or 0) + sum(map(_delta_tokens, deltas))


def _is_finished(choices: object) -> bool:
    return isinstance(choices, list) and any(
        isinstance(each, dict) and isinstance(each.get("finish_reason"), str) for each in choices
    )


def _delta_tokens(delta: object) -> int:
    """The tokens of a piece: a provider that streams sends one or a few at a time."""
    if not isinstance(delta, dict):
        return 0
    texts = [delta.get(name) for name in ("content", "reasoning_content", "refusal")]
    for call in delta.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        texts += [function.get("name"), function.get("arguments")] if isinstance(function, dict) else []
    return sum(estimated_tokens(text) for text in texts if isinstance(text, str) and text)


def _prompt_tokens(request: bytes) -> int | None:
    """The tokens of the messages and tools of a chat; None if it has more than text."""
    try:
        body = json.loads(request)
    except (ValueError, RecursionError):
        return None
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list):
        return None
    total = sum(estimated_tokens(json.dumps(body[name])) for name in ("tools", "functions") if name in body)
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        for part in parts:
            if not isinstance(part, dict) or not isinstance(part.get("text"), str):
                return None  # a picture, sound or file, whose tokens are not its characters
            total += _MESSAGE_TOKENS + estimated_tokens(part["text"])
    return total
