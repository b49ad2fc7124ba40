"""Embeddings are paid by the text: a request is split, what is known is looked up, and the rest is one order.

An answer is put together in the order of the request and in the encoding that it asks for; its usage is the
sum of what its texts cost when each was paid for.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core import keys
from holdfast.ledger import prices
from holdfast.ledger.pay import Call
from holdfast.llm_requests import usage
from holdfast.llm_requests.http_messages import CHARGE_HEADER, HttpAnswer
from holdfast.llm_requests.wire_keys import SdkRequest
from holdfast.llm_requests.wire_provider import WireProvider
from holdfast.providers import wire
from holdfast.providers.base import Answered, Exchange, Unknown
from holdfast.providers.http_provider import UnreadableAnswerError, canonical

# Not part of the key: the same vector, spelled differently.
_ENCODING = "encoding_format"
_INPUT = "input"


def inputs(request: SdkRequest) -> list[Any] | None:
    """The texts, or lists of tokens, of a request for embeddings; None if it cannot be split."""
    if request.endpoint != "embeddings":
        return None
    value = request.fields.get(_INPUT)
    texts = value if isinstance(value, list) else [value]
    if texts and all(type(each) is int for each in texts):
        texts = [texts]  # the tokens of one text
    plain = all(isinstance(each, str) for each in texts)
    tokens = all(isinstance(each, list) and all(type(token) is int for token in each) for each in texts)
    return texts if texts and (plain or tokens) else None


def calls(request: SdkRequest, texts: Sequence[Any], scope: Mapping[str, object]) -> list[Call]:
    """A call for each text, which is written as JSON: tokens are not the text that spells them."""
    params = {**request.params, **scope}
    rest = {name: value for name, value in request.fields.items() if name not in {_INPUT, _ENCODING, "model"}}
    if rest:
        params["body"] = rest
    return [
        Call(request.provider, request.endpoint, request.model, keys.canonical(text), params)
        for text in texts
    ]


class EmbeddingsProvider(WireProvider):
    """A request for embeddings; its orders carry the texts that nobody has paid for yet."""

    def __init__(self, *args: Any, fields: Mapping[str, Any], **options: Any) -> None:
        super().__init__(*args, **options)
        self._fields = fields

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """The request with these texts alone."""
        del endpoint, model, params
        body = {**self._fields, _INPUT: [json.loads(text) for text in inputs]}
        return b"application/json\n" + canonical(body)

    def _answered(self, exchange: Exchange, reply: wire.HttpReply, facts: Any) -> Answered:
        del facts
        texts = json.loads(exchange.body.partition(b"\n")[2])[_INPUT]
        answer = json.loads(reply.body)
        vectors = _vectors(answer, len(texts))
        spent = usage.of(answer)
        shares = prices.split(spent.input if spent else 0, [self.count_tokens(str(each)) for each in texts])
        rest = {name: value for name, value in answer.items() if name not in {"data", "usage"}}
        results = tuple(
            json.dumps({"embedding": vector, "tokens": share, "rest": rest}, separators=(",", ":")).encode()
            for vector, share in zip(vectors, shares, strict=True)
        )
        replayed = reply.headers.get("idempotent-replayed") == "true"
        return Answered(results, spent.input if spent else 0, 0, replayed, units=0 if spent else None)

    def send(self, exchange: Exchange, gate: Any) -> Any:
        """As for any request; a good answer that lacks a vector cannot be used."""
        try:
            return super().send(exchange, gate)
        except UnreadableAnswerError as error:
            self.has_answered, self.failure = False, f"unreadable answer: {error}"
            return Unknown(self.failure, None, code="unusable_answer")


def _vectors(answer: Mapping[str, Any], size: int) -> list[Any]:
    data = answer.get("data")
    if not isinstance(data, list) or len(data) != size:
        raise UnreadableAnswerError("the wrong number of vectors")
    by_index = {
        each.get("index", at): each.get("embedding") for at, each in enumerate(data) if isinstance(each, dict)
    }
    vectors = [by_index.get(at) for at in range(size)]
    if not all(isinstance(vector, (str, list)) and vector for vector in vectors):
        raise UnreadableAnswerError("a vector is missing")
    return vectors


def answer(request: SdkRequest, results: Sequence[bytes], charge: str) -> HttpAnswer:
    """The response for all texts of the request, in their order."""
    parts = [json.loads(result) for result in results]
    encoded = request.fields.get(_ENCODING) == "base64"
    data = [
        {"object": "embedding", "index": at, "embedding": _spelled(part["embedding"], encoded=encoded)}
        for at, part in enumerate(parts)
    ]
    tokens = sum(part["tokens"] for part in parts)
    spent = {"prompt_tokens": tokens, "total_tokens": tokens}
    body = {**parts[0]["rest"], "data": data, "usage": spent}
    headers = {"content-type": "application/json", CHARGE_HEADER: charge}
    return HttpAnswer(200, headers, json.dumps(body, separators=(",", ":")).encode())


def _spelled(vector: Any, *, encoded: bool) -> Any:
    """The vector as base64 of little-endian float32, or as numbers."""
    if encoded and isinstance(vector, list):
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
    if not encoded and isinstance(vector, str):
        raw = base64.b64decode(vector)
        return list(struct.unpack(f"<{len(raw) // 4}f", raw))
    return vector
