"""The meter's answers in the formats of Anthropic's messages, OpenAI's responses and Cohere's chat.

Each is made of the same completion: the text, and the tokens of prompt and text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Completion:
    """What is answered, whatever the format."""

    id: str
    model: str
    text: str
    input_tokens: int
    output_tokens: int

    @property
    def words(self) -> list[str]:
        """The text, word by word."""
        return [word for word in re.split(r"(?<=\s)", self.text) if word]


def messages_of(endpoint: str, body: Mapping[str, Any]) -> Any:
    """The messages of a request, as a chat completion has them."""
    if endpoint != "responses":
        return body.get("messages")
    value = body.get("input")
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


def _message(done: Completion) -> dict[str, Any]:
    return {
        "id": f"msg_{done.id}",
        "type": "message",
        "role": "assistant",
        "model": done.model,
        "content": [{"type": "text", "text": done.text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": done.input_tokens, "output_tokens": done.output_tokens},
    }


def _message_events(done: Completion) -> list[bytes]:
    start = {**_message(done), "content": [], "stop_reason": None}
    start["usage"] = {"input_tokens": done.input_tokens, "output_tokens": 1}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    block = {"type": "text", "text": ""}
    return [
        _event({"type": "message_start", "message": start}),
        _event({"type": "content_block_start", "index": 0, "content_block": block}),
        *(
            _event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}})
            for word in done.words
        ),
        _event({"type": "content_block_stop", "index": 0}),
        _event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": done.output_tokens}}),
        _event({"type": "message_stop"}),
    ]


def _response(done: Completion) -> dict[str, Any]:
    content = [{"type": "output_text", "text": done.text, "annotations": []}]
    message = {"id": f"msg_{done.id}", "type": "message", "role": "assistant", "status": "completed"}
    total = done.input_tokens + done.output_tokens
    return {
        "id": f"resp_{done.id}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": done.model,
        "output": [{**message, "content": content}],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": done.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": done.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": total,
        },
    }


def _response_events(done: Completion) -> list[bytes]:
    whole = _response(done)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    position = {"item_id": f"msg_{done.id}", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        *(
            {"type": "response.output_text.delta", "delta": word, "logprobs": [], **position}
            for word in done.words
        ),
        {"type": "response.completed", "response": whole},
    ]
    return [_event({**event, "sequence_number": number}) for number, event in enumerate(events)]


def _cohere(done: Completion) -> dict[str, Any]:
    billed = {"input_tokens": done.input_tokens, "output_tokens": done.output_tokens}
    content = [{"type": "text", "text": done.text}]
    return {
        "id": done.id,
        "finish_reason": "COMPLETE",
        "message": {"role": "assistant", "content": content},
        "usage": {"billed_units": billed, "tokens": billed},
    }


def _cohere_events(done: Completion) -> list[bytes]:
    whole = _cohere(done)
    ended = {"finish_reason": "COMPLETE", "usage": whole["usage"]}
    return [
        _event({"type": "message-start", "id": done.id, "delta": {"message": {"role": "assistant"}}}),
        *(
            _event({"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": word}}}})
            for word in done.words
        ),
        _event({"type": "message-end", "id": done.id, "delta": ended}),
    ]


def _event(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


_WHOLE: dict[str, Callable[[Completion], dict[str, Any]]] = {
    "messages": _message,
    "responses": _response,
    "chat": _cohere,
}
_STREAMED: dict[str, Callable[[Completion], list[bytes]]] = {
    "messages": _message_events,
    "responses": _response_events,
    "chat": _cohere_events,
}
ENDPOINTS = tuple(_WHOLE)


def whole(endpoint: str, done: Completion) -> bytes:
    """The body of a 200."""
    return json.dumps(_WHOLE[endpoint](done)).encode()


def streamed(endpoint: str, answer: bytes) -> tuple[bytes, ...]:
    """The same answer as a stream of events."""
    return tuple(_STREAMED[endpoint](_completion(endpoint, json.loads(answer))))


def _completion(endpoint: str, reply: Mapping[str, Any]) -> Completion:
    """The completion that a body was made of."""
    usage = reply["usage"].get("billed_units", reply["usage"])
    content = {
        "messages": lambda: reply["content"],
        "responses": lambda: reply["output"][0]["content"],
        "chat": lambda: reply["message"]["content"],
    }[endpoint]()
    number = str(reply["id"]).rpartition("_")[2]
    tokens = usage["input_tokens"], usage["output_tokens"]
    return Completion(number, str(reply.get("model", "")), content[0]["text"], *tokens)
