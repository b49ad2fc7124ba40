"""A client for the OpenAI API and the many servers that are compatible with it.

The official SDK resends paid requests by itself, which must not happen here; hence a thin client.

The body of a 200 is validated before it counts as an answer: the number of embeddings, their indices, lengths
and values. An invalid answer was most likely charged and cannot be used: it is `Unknown`.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.core import float_vectors
from holdfast.providers import event_stream, wire
from holdfast.providers.base import Answered, Exchange, Profile
from holdfast.providers.http_provider import HttpProvider, UnreadableAnswerError, canonical, count, parsed

EMBEDDINGS = "embeddings"
CHAT = "chat/completions"

# OpenAI documents no idempotency keys and no uncharged statuses: resending an order may cost twice.
OPENAI = Profile(
    name="openai", honours_keys=False, key_retention=0.0, max_inputs=2048, max_tokens=300_000, deadline=120.0
)

# Set by `encode`, or changes the number of results: callers may not override them.
_RESERVED = frozenset({"model", "input", "messages", "n"})
# Part of the content key alone: no server sees them.
_NOT_SENT = frozenset({"system", "messages_json", "again"})


class OpenAIProvider(HttpProvider):
    """A server with the OpenAI API; `base_url` includes `/v1`, as for OpenAI clients."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        profile: Profile = OPENAI,
        *,
        max_connections: int = 64,
        max_answer: int = wire.MAX_ANSWER,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(
            base_url,
            api_key,
            profile,
            max_connections=max_connections,
            max_answer=max_answer,
            ssl_context=ssl_context,
        )

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """Return the canonical body of an order. Raises ValueError for an order that cannot be sent.

        For chat there is exactly one input: the user's prompt or, with `messages_json` true in `params`, a
        JSON list of messages. `system` in `params` becomes a first message; all other parameters go into the
        body as they are. With `stream` the answer comes in pieces; only a chat has them.
        """
        if endpoint != CHAT and "stream" in params:
            raise ValueError("only a chat is streamed")
        if overridden := _RESERVED & params.keys():
            raise ValueError(f"reserved parameters, remove them: {', '.join(sorted(overridden))}")
        if not 1 <= len(inputs) <= self._profile.max_inputs:
            raise ValueError(f"an order takes 1 to {self._profile.max_inputs} inputs, not {len(inputs)}")
        match endpoint:
            case "embeddings":
                body = {"encoding_format": "base64", **params, "model": model, "input": list(inputs)}
            case "chat/completions" if len(inputs) == 1:
                others = {name: value for name, value in params.items() if name not in _NOT_SENT}
                body = {**others, "model": model, "messages": _messages(params, inputs[0])}
            case "chat/completions":
                raise ValueError("a chat order takes exactly one input")
            case _:
                raise ValueError(f"unknown endpoint {endpoint!r}; use {EMBEDDINGS!r} or {CHAT!r}")
        return canonical(body)

    def _answer(self, exchange: Exchange, reply: wire.HttpReply) -> Answered:
        request = json.loads(exchange.body)
        if reply.headers.get("content-type", "").lower().startswith(event_stream.MEDIA_TYPE):
            answer, lengths = _streamed(reply)
        else:
            answer, lengths = parsed(reply), None
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        # If the server reports no usage, our estimate is recorded instead of zero.
        spent = count(usage.get("prompt_tokens"))
        produced = count(usage.get("completion_tokens"))
        results: Sequence[bytes]
        if exchange.endpoint == EMBEDDINGS:
            results = read_vectors(answer.get("data"), len(request["input"]), request.get("dimensions"))
            texts = request["input"]
        else:
            result = _completion(answer.get("choices"), lengths)
            if produced is None:
                produced = self.count_tokens(str(result["content"])) if result["content"] else 0
            results = (_stored(result | {"output_tokens": produced}),)
            texts = [str(message.get("content") or "") for message in request["messages"]]
        return Answered(
            results=results,
            input_tokens=sum(map(self.count_tokens, texts)) if spent is None else spent,
            output_tokens=produced or 0,
            replayed=reply.headers.get("idempotent-replayed", "").lower() == "true",
        )

    def _heard_by(self, exchange: Exchange) -> Callable[[bytes], None] | None:
        """What passes pieces of text on while a stream arrives; the whole is read again at the end."""
        hear = exchange.hear
        if hear is None:
            return None
        stream = event_stream.ChatStream()
        broken = False

        def heard(chunk: bytes) -> None:
            nonlocal broken
            try:
                for piece in () if broken else stream.feed(chunk):
                    hear(piece)
            except event_stream.StreamError:
                broken = True  # the outcome says so when all has arrived

        return heard


def _messages(params: Mapping[str, object], text: str) -> list[object]:
    parsed = _parsed_messages(text) if params.get("messages_json") is True else None
    messages: list[object] = parsed or [{"role": "user", "content": text}]
    system = params.get("system")
    return [{"role": "system", "content": system}, *messages] if system else messages


def _parsed_messages(text: str) -> list[object] | None:
    """Return the list of messages encoded in `text`, None if it is anything else."""
    try:
        value = json.loads(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and all(isinstance(item, dict) and "role" in item for item in value):
        return value
    return None


def read_vectors(data: object, expected: int, dimensions: object) -> tuple[bytes, ...]:
    """Return little-endian float32 vectors in the order of the inputs; UnreadableAnswerError if not all."""
    if not isinstance(data, list) or len(data) != expected:
        raise UnreadableAnswerError(
            f"{len(data) if isinstance(data, list) else 'no'} embeddings for {expected} inputs"
        )
    by_index: dict[int, bytes] = {}
    for item in data:
        index = item.get("index") if isinstance(item, dict) else None
        if type(index) is not int or not 0 <= index < expected or index in by_index:
            raise UnreadableAnswerError("indices of the embeddings do not match the inputs")
        by_index[index] = _vector(item.get("embedding"))
    sizes = {len(vector) for vector in by_index.values()}
    if len(sizes) != 1 or (isinstance(dimensions, int) and sizes != {4 * dimensions}):
        raise UnreadableAnswerError("embeddings of the wrong length")
    return tuple(by_index[index] for index in range(expected))


def _vector(value: Any) -> bytes:
    try:
        vector = float_vectors.decoded(value) if isinstance(value, str) else float_vectors.packed(value)
    except (TypeError, ValueError, OverflowError) as exc:
        raise UnreadableAnswerError("an embedding is neither base64 nor numbers") from exc
    if not float_vectors.is_finite(vector):
        raise UnreadableAnswerError("an embedding is empty or not finite")
    return vector


def _streamed(reply: wire.HttpReply) -> tuple[dict[str, Any], list[int]]:
    """The completion that a stream carries, as if it had come at once, and the lengths of its pieces."""
    if reply.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnreadableAnswerError("compressed without request")
    stream = event_stream.ChatStream()
    try:
        stream.feed(reply.body)
    except event_stream.StreamError as exc:
        raise UnreadableAnswerError(str(exc)) from exc
    if not stream.is_complete:
        raise UnreadableAnswerError("the stream broke off")
    choice = {"message": {"content": stream.text}, "finish_reason": stream.finish_reason}
    return {"choices": [choice], "usage": stream.usage}, [len(piece) for piece in stream.pieces]


def _completion(choices: object, lengths: list[int] | None = None) -> dict[str, object]:
    """Return what is stored of the first choice, with the pieces in which it came."""
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise UnreadableAnswerError("no choice with a message")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise UnreadableAnswerError("content is not text")
    result: dict[str, object] = {"content": content, "finish_reason": choice.get("finish_reason")}
    if lengths is not None:
        result["pieces"] = lengths
    if message.get("tool_calls"):
        result["tool_calls"] = message["tool_calls"]
    return result


def _stored(result: dict[str, object]) -> bytes:
    try:
        return canonical(result)
    except ValueError as exc:
        raise UnreadableAnswerError("text that is not valid Unicode") from exc
