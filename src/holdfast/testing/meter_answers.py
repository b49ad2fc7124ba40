"""The meter's answers: embeddings, completions and speech as OpenAI's, scores as Cohere's, documents.

Answers in other formats are in `meter_dialects`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.testing import meter_dialects
from holdfast.testing.meter_book import MeterOrder

DOCUMENTS = "documents/parse"
SPEECH = "audio/transcriptions"
ENDPOINTS = ("embeddings", "chat/completions", "rerank", DOCUMENTS, SPEECH, *meter_dialects.ENDPOINTS)

Chat = Callable[[Sequence[Mapping[str, Any]]], str]


def tokens(text: str) -> int:
    """Return the meter's price of a text: a token for every four characters, at least one."""
    return max(1, len(text) // 4)


def read_body(endpoint: str, body: bytes, content_type: str) -> Mapping[str, Any]:
    """Return a request as JSON; a document that comes as a file or in a form has its text as `document`."""
    if endpoint == SPEECH or (endpoint == DOCUMENTS and content_type != "application/json"):
        return {"model": "", "document": _file(body, content_type)}
    request = json.loads(body)
    if not isinstance(request, dict):
        raise ValueError("the body must be an object")  # noqa: TRY004 (the caller's mistake, not a type)
    if endpoint == DOCUMENTS:
        file = base64.b64decode(str(request.get("document", "")).rpartition(",")[2], validate=True)
        return {**request, "document": file.decode("utf-8", "replace")}
    return request


def _file(body: bytes, content_type: str) -> str:
    """Return the file in a body: all of it, or the last part of a form."""
    kind, _, boundary = content_type.partition("; boundary=")
    if kind == "multipart/form-data":
        body = body.split(f"--{boundary}".encode())[-2].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
    return body.decode("utf-8", "replace")


def read_order(endpoint: str, body: Mapping[str, Any]) -> MeterOrder:
    """Return the order in a request body; raises ValueError for what a provider would reject."""
    if endpoint in {DOCUMENTS, SPEECH}:
        others = {name: value for name, value in body.items() if name not in {"model", "document"}}
        spelled = json.dumps(others, sort_keys=True, separators=(",", ":"))
        text = str(body["document"])
        return MeterOrder(endpoint, str(body.get("model", "")), spelled, (text,), pages(text))
    if endpoint in meter_dialects.ENDPOINTS:
        inputs = _prompts({"messages": meter_dialects.messages_of(endpoint, body)})
    else:
        read = {"chat/completions": _prompts, "rerank": _ranking}.get(endpoint, _texts)
        inputs = read(body)
    named = {"model", "input", "messages", "query", "documents"}
    params = {name: value for name, value in body.items() if name not in named}
    return MeterOrder(
        endpoint=endpoint,
        model=str(body.get("model", "")),
        params=json.dumps(params, sort_keys=True, separators=(",", ":")),
        inputs=inputs,
        tokens=sum(map(tokens, inputs)),
    )


def pages(text: str) -> int:
    """Return the number of pages of a document: form feeds separate them."""
    return text.count("\f") + 1


def _texts(body: Mapping[str, Any]) -> tuple[str, ...]:
    value = body.get("input")
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError("input must be a string or a list of strings")
    return tuple(texts)


def _ranking(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the one input of a ranking: the JSON of query and documents."""
    query, documents = body.get("query"), body.get("documents")
    if not isinstance(query, str) or not isinstance(documents, list) or not documents:
        raise ValueError("query must be a string, and documents a list of strings")
    return (json.dumps({"query": query, "documents": documents}, sort_keys=True, separators=(",", ":")),)


def _prompts(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the one input of a chat: a lone user message is its own text, a conversation its JSON."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(item, dict) for item in messages):
        raise ValueError("messages must be a list of messages")
    if len(messages) == 1 and isinstance(messages[0].get("content"), str):
        return (messages[0]["content"],)
    return (json.dumps(messages, sort_keys=True, separators=(",", ":")),)


def answer(order: MeterOrder, body: Mapping[str, Any], dimensions: int, chat: Chat | None) -> bytes:
    """Return the body of a 200 for the order; deterministic."""
    if order.endpoint == DOCUMENTS:
        read = [[line for line in page.split("\n") if line.strip()] for page in order.inputs[0].split("\f")]
        return json.dumps({"pages": read, "usage": {"pages": order.tokens}}).encode()
    if order.endpoint == SPEECH:
        return json.dumps({"text": order.inputs[0]}).encode()
    if order.endpoint == "embeddings":
        return _embeddings(order, body, dimensions)
    if order.endpoint == "rerank":
        return _scores(body)
    text = (chat or _completion)(meter_dialects.messages_of(order.endpoint, body))
    if order.endpoint in meter_dialects.ENDPOINTS:
        done = (_digest(*order.inputs)[:12], order.model, text, order.tokens, tokens(text))
        return meter_dialects.whole(order.endpoint, meter_dialects.Completion(*done))
    reply = {
        "id": "chatcmpl-" + _digest(*order.inputs)[:12],
        "object": "chat.completion",
        "created": 0,
        "model": order.model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"},
        ],
        "usage": {
            "prompt_tokens": order.tokens,
            "completion_tokens": tokens(text),
            "total_tokens": order.tokens + tokens(text),
        },
    }
    return json.dumps(reply).encode()


def _embeddings(order: MeterOrder, body: Mapping[str, Any], dimensions: int) -> bytes:
    size = int(body.get("dimensions") or dimensions)
    encoded = body.get("encoding_format") == "base64"
    data = []
    for index, text in enumerate(order.inputs):
        raw = vector(order.model, text, size)
        value = base64.b64encode(raw).decode() if encoded else struct.unpack(f"<{size}f", raw)
        data.append({"object": "embedding", "index": index, "embedding": value})
    usage = {"prompt_tokens": order.tokens, "total_tokens": order.tokens}
    return json.dumps({"object": "list", "model": order.model, "data": data, "usage": usage}).encode()


def _scores(body: Mapping[str, Any]) -> bytes:
    """Documents by how many of the query's words they have, the best first."""
    words = set(re.findall(r"\w+", body["query"].lower()))
    shares = [
        len(words & set(re.findall(r"\w+", str(each).lower()))) / max(1, len(words))
        for each in body["documents"]
    ]
    ranked = sorted(range(len(shares)), key=lambda index: (-shares[index], index))
    results = [{"index": index, "relevance_score": shares[index]} for index in ranked]
    meta = {"billed_units": {"search_units": -(-len(shares) // 100)}}
    return json.dumps({"results": results[: int(body.get("top_n") or len(shares))], "meta": meta}).encode()


def vector(model: str, text: str, dimensions: int) -> bytes:
    """Return a unit vector derived from the hash of a text, as little-endian float32."""
    seed = f"{model}\0{text}".encode("utf-8", "surrogatepass")
    drawn = struct.unpack(f"<{dimensions}I", hashlib.shake_256(seed).digest(4 * dimensions))
    values = [each / 2**31 - 1.0 for each in drawn]
    length = math.hypot(*values) or 1.0
    return struct.pack(f"<{dimensions}f", *[each / length for each in values])


def _completion(messages: Sequence[Mapping[str, Any]]) -> str:
    prompt = str(messages[-1].get("content") or "")
    return f"answer {_digest(prompt)[:8]} to: {prompt[:60]}"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def events(endpoint: str, answer: bytes, body: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The same completion as a stream, word by word, with its usage if that was asked for."""
    if endpoint in meter_dialects.ENDPOINTS:
        return meter_dialects.streamed(endpoint, answer)
    reply = json.loads(answer)
    base = {"id": reply["id"], "object": "chat.completion.chunk", "created": 0, "model": reply["model"]}
    text = reply["choices"][0]["message"]["content"]
    words = [word for word in re.split(r"(?<=\s)", text) if word]
    deltas: list[tuple[dict[str, str], str | None]] = [({"content": word}, None) for word in words]
    chunks = [
        base | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in [*deltas, ({}, "stop")]
    ]
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append(base | {"choices": [], "usage": reply["usage"]})
    return (*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n")


def error(code: str, message: str) -> bytes:
    """Return the body of a refusal or failure."""
    return json.dumps({"error": {"message": message, "type": code, "code": code}}).encode()
