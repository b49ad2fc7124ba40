"""Embeddings are paid by the text, under the same key as a worker's: what either has paid for serves both.

An order of a worker may be resent here, and one from here by a worker: the body is the one that
`OpenAIProvider` writes, and a result is the vector as float32. So an answer is equal as float32,
not byte for byte.
"""

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core import keys
from holdfast.core.errors import BadRequestError
from holdfast.core.records import LedgerEntry
from holdfast.ledger.pay import Call
from holdfast.llm_requests import usage
from holdfast.llm_requests.wire_provider import WireProvider
from holdfast.providers import openai, wire
from holdfast.providers.base import Answered, Exchange, Unknown
from holdfast.providers.http_provider import UnreadableAnswerError, canonical, parsed

# Not part of the key: how the vector is written, and for whom.
_UNKEYED = frozenset({"input", "model", "encoding_format", "user"})
# In the key alone: lists of tokens are not the text that spells them; `again` pays anew.
TOKENS, AGAIN = "holdfast_tokens", "again"
_NOT_SENT = frozenset({TOKENS, AGAIN})
_SPELLINGS = frozenset({None, "float", "base64"})


def calls(identity: str, fields: Mapping[str, Any], again: int) -> list[Call] | None:
    """A call for each text, or list of tokens; None for a request that cannot be split."""
    model, value = fields.get("model"), fields.get("input")
    if not isinstance(model, str) or not model or fields.get("encoding_format") not in _SPELLINGS:
        return None
    inputs = value if isinstance(value, list) else [value]
    if inputs and all(type(each) is int for each in inputs):
        inputs = [inputs]  # the tokens of one text
    params = {name: each for name, each in fields.items() if name not in _UNKEYED}
    if _NOT_SENT & params.keys():
        return None
    params |= {AGAIN: again} if again else {}
    if inputs and all(isinstance(each, str) for each in inputs):
        return [Call(identity, openai.EMBEDDINGS, model, str(text), params) for text in inputs]
    if inputs and all(
        isinstance(each, list) and all(type(token) is int for token in each) for each in inputs
    ):
        params[TOKENS] = True
        return [Call(identity, openai.EMBEDDINGS, model, keys.canonical(each), params) for each in inputs]
    return None


class TextEmbeddings(WireProvider):
    """A request for embeddings; its orders carry the texts that nobody has paid for yet."""

    def __init__(self, *args: Any, user: object = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._user = {} if user is None else {"user": user}

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """The body of an order, as a worker would write it."""
        del endpoint
        texts = [json.loads(text) for text in inputs] if TOKENS in params else list(inputs)
        sent = {name: value for name, value in params.items() if name not in _NOT_SENT}
        body = {"encoding_format": "base64", **sent, **self._user, "model": model, "input": texts}
        return canonical(body)

    def _message(self, body: bytes) -> tuple[str, bytes]:
        return "application/json", body

    def _answered(self, exchange: Exchange, reply: wire.HttpReply, facts: Any) -> Answered:
        del facts
        request, answer = json.loads(exchange.body), parsed(reply)
        texts = request["input"]
        vectors = openai.read_vectors(answer.get("data"), len(texts), request.get("dimensions"))
        spent = usage.of(answer)
        replayed = reply.headers.get("idempotent-replayed", "").lower() == "true"
        # If the server reports no usage, our estimate is recorded instead of zero.
        tokens = sum(self.count_tokens(str(each)) for each in texts) if spent is None else spent.input
        return Answered(vectors, tokens, 0, replayed)

    def send(self, exchange: Exchange, gate: Any) -> Any:
        """As for any request; a good answer that lacks a vector cannot be used."""
        try:
            return super().send(exchange, gate)
        except UnreadableAnswerError as error:
            self.reply, self.has_answered, self.failure = None, False, f"unreadable answer: {error}"
            return Unknown(self.failure, 200, code="unusable_answer")


def body(fields: Mapping[str, Any], entries: Sequence[LedgerEntry]) -> bytes:
    """The response for all texts of the request, in their order."""
    encoded = fields.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _spelled(entry.result or b"", encoded=encoded)}
        for index, entry in enumerate(entries)
    ]
    tokens = sum(entry.tokens for entry in entries)
    answer = {
        "object": "list",
        "data": data,
        "model": fields["model"],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return json.dumps(answer, separators=(",", ":")).encode()


def _spelled(vector: bytes, *, encoded: bool) -> object:
    """The vector as base64 of little-endian float32, or as numbers."""
    if encoded:
        return base64.b64encode(vector).decode()
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def checked(fields: Mapping[str, Any]) -> None:
    """Return if the texts can be sent; BadRequestError for one with half a character in it."""
    value = fields.get("input")
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise BadRequestError(
                    "a text has a lone surrogate, which is no text", code="not_json"
                ) from error
