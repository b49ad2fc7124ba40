"""A client for `rerank` in Cohere's wire format, which Jina and others share: how well texts answer a query.

An order has one input, the JSON of `{"documents": […], "query": …}`. Its result is the JSON list of the
scores, one for each document in their order; null for one that the server left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

from holdfast.providers import wire
from holdfast.providers.base import Answered, Exchange, Profile
from holdfast.providers.http_provider import HttpProvider, UnreadableAnswerError, canonical, count, parsed

RERANK = "rerank"
# Cohere counts documents of at most so many tokens, up to so many of them in one search that is billed.
TOKENS_OF_DOCUMENT, DOCUMENTS_OF_SEARCH = 500, 100

# No idempotency keys and no uncharged statuses are documented: resending an order may cost twice.
COHERE = Profile(
    name="cohere", honours_keys=False, key_retention=0.0, max_inputs=1, max_tokens=1_000_000, deadline=30.0
)

_RESERVED = frozenset({"model", "query", "documents", "top_n", "return_documents"})


class CohereProvider(HttpProvider):
    """A server with Cohere's `rerank`; `base_url` includes `/v2` (`/v1` for servers that have only that)."""

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """Return the canonical body of an order. Raises ValueError for an order that cannot be sent."""
        if endpoint != RERANK:
            raise ValueError(f"unknown endpoint {endpoint!r}; use {RERANK!r}")
        if overridden := _RESERVED & params.keys():
            raise ValueError(f"reserved parameters, remove them: {', '.join(sorted(overridden))}")
        if len(inputs) != 1:
            raise ValueError("an order to rerank takes exactly one input")
        query, documents = read_input(inputs[0])
        return canonical(
            {**params, "model": model, "query": query, "documents": documents, "top_n": len(documents)}
        )

    def _answer(self, exchange: Exchange, reply: wire.HttpReply) -> Answered:
        request = json.loads(exchange.body)
        answer = parsed(reply)
        scores = _scores(answer.get("results"), len(request["documents"]))
        meta = answer.get("meta")
        meta = meta if isinstance(meta, dict) else {}
        billed, tokens, usage = (
            each if isinstance(each, dict) else {}
            for each in (meta.get("billed_units"), meta.get("tokens"), answer.get("usage"))
        )
        billed_for = count(billed.get("search_units"))
        read = count(tokens.get("input_tokens"))
        if read is None:
            read = count(usage.get("total_tokens"))
        if read is None:
            read = sum(map(self.count_tokens, [request["query"], *request["documents"]]))
        return Answered(
            results=(canonical(scores),),
            input_tokens=read,
            output_tokens=0,
            replayed=reply.headers.get("idempotent-replayed", "").lower() == "true",
            units=searches(map(self.count_tokens, request["documents"]))
            if billed_for is None
            else billed_for,
        )


def searches(tokens: Iterable[int]) -> int:
    """How many searches are billed for documents of so many tokens."""
    parts = sum(max(1, -(-each // TOKENS_OF_DOCUMENT)) for each in tokens)
    return max(1, -(-parts // DOCUMENTS_OF_SEARCH))


def written_input(query: str, documents: Sequence[str]) -> str:
    """The one input of an order."""
    return canonical({"query": query, "documents": list(documents)}).decode()


def read_input(text: str) -> tuple[str, list[str]]:
    """Query and documents of an input; ValueError for anything else."""
    value = json.loads(text)
    query, documents = (
        value.get(name) if isinstance(value, dict) else None for name in ("query", "documents")
    )
    if not isinstance(query, str) or not isinstance(documents, list) or not documents:
        raise ValueError("an order to rerank needs a query and documents")
    if not all(isinstance(each, str) for each in documents):
        raise ValueError("the documents of an order to rerank are texts")
    return query, documents


def _scores(results: object, number: int) -> list[float | None]:
    """The scores in the order of the documents."""
    if not isinstance(results, list) or not 0 < len(results) <= number:
        raise UnreadableAnswerError("no results, or more of them than documents")
    scores: list[float | None] = [None] * number
    for each in results:
        index = each.get("index") if isinstance(each, dict) else None
        score = each.get("relevance_score") if isinstance(each, dict) else None
        if type(index) is not int or not 0 <= index < number or scores[index] is not None:
            raise UnreadableAnswerError("indices of the results do not match the documents")
        scores[index] = _score(score)
    return scores


def _score(score: object) -> float:
    # A truth value is an int to Python, and an int may be too large for a float.
    if type(score) not in {int, float}:
        raise UnreadableAnswerError("a score is not a number")
    try:
        value = float(score)  # type: ignore[arg-type]  # int or float, as tested
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise UnreadableAnswerError("a score is not a number")
    return value
