"""Hits in the order of a reranking model: at most one paid call, and never a failed search.

The call has nothing but the question and the texts of the hits, in the order of the texts: the same question
over the same hits is paid once, whatever their order was. What goes wrong leaves the hits in their own order,
and the response says so.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.engine import kinds
from holdfast.engine.engine import Engine
from holdfast.engine.kinds import Offer
from holdfast.ledger.pay import Call
from holdfast.ledger.query_payer import QueryPayer
from holdfast.providers import cohere
from holdfast.search import rules
from holdfast.search.hits import Found, Hit, QualityNotice
from holdfast.store.library.collections import Collection

# Hits that are ranked anew, however many are asked for, so that every page is of the same order.
CANDIDATES = 50
MOST_TEXT = 8_000  # characters of one of them
PATIENCE = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Reranker:
    """A provider that ranks, by the name that the settings have for it; without an offer it is not set up."""

    name: str
    offer: Offer | None


def main_collection(hits: Sequence[Hit], names: Sequence[str]) -> str:
    """The collection that most of these texts are from, of equals the one that was named first: it pays."""
    sizes: Counter[str] = Counter()
    for hit in hits:
        sizes[hit.collection or names[0]] += len(hit.text)
    return max(names, key=lambda name: (sizes[name], -names.index(name)))


class Reranking:
    """Ranks hits by the providers that the settings have."""

    def __init__(self, engine: Engine, offers: Mapping[str, Offer]) -> None:
        self._engine = engine
        self._offers = offers

    @property
    def is_set_up(self) -> bool:
        """True if somebody else's server may be asked to rank."""
        return bool(self._offers)

    def check(self, search: Mapping[str, Any]) -> None:
        """Return if the rules of a collection name a provider that exists; otherwise BadRequestError."""
        if choice := search.get(rules.RERANK):
            self._named(choice)

    def chosen(self, choice: bool | str | None, records: Sequence[Collection]) -> Reranker | None:
        """Who ranks: by the request, otherwise by the collections if they agree; None for nobody.

        BadRequestError `unknown_provider` for a request that names nobody who could.
        """
        own = {json.dumps((record.search or {}).get(rules.RERANK)) for record in records}
        by_collection = json.loads(own.pop()) if len(own) == 1 else None
        if choice is None or (choice is True and isinstance(by_collection, str)):
            try:
                return self._named(by_collection) if by_collection else None
            except BadRequestError:
                # It was there when somebody chose it for the collection: no reason to fail each search.
                return Reranker(str(by_collection), None)
        return self._named(choice) if choice else None

    def _named(self, choice: bool | str) -> Reranker:
        if choice is not True:
            return Reranker(str(choice), kinds.offer(self._offers, choice))
        if len(self._offers) != 1:
            known = f"name one of: {', '.join(sorted(self._offers))}" if self._offers else "there is none"
            message = f'`rerank` needs a provider with `wire = "cohere"` in the settings; {known}'
            raise BadRequestError(message, code="unknown_provider")
        return Reranker(*next(iter(self._offers.items())))

    def reranked(
        self,
        tenant: str,
        reranker: Reranker,
        question: str,
        result: Found,
        names: Sequence[str],
        max_cost: int | None = None,
    ) -> Found:
        """The result with its best hits in the reranker's order; or as it was, with a notice."""
        head, rest = result.hits[:CANDIDATES], result.hits[CANDIDATES:]
        good, weak = [hit for hit in head if not hit.weak], [hit for hit in head if hit.weak]
        texts = sorted({hit.text[:MOST_TEXT] for hit in good})
        if len(texts) < 2:
            return result
        try:
            call = self._call(reranker, question, texts)
            self._check_cost(call, max_cost)
            payer = QueryPayer(self._engine.host, tenant, main_collection(good, names), PATIENCE)
            payment = self._engine.ledger.pay(payer, [call])
        except HoldfastError as error:
            message = (
                f"{reranker.name} could not rank the hits ({error.message}): they are in their own order"
            )
            return replace(result, notices=(*result.notices, QualityNotice("not_reranked", message)))
        scores: dict[str, float | None] = dict(zip(texts, json.loads(payment.results[0]), strict=True))
        ranked = [replace(hit, relevance=scores[hit.text[:MOST_TEXT]]) for hit in good]
        ranked.sort(key=lambda hit: float("-inf") if hit.relevance is None else hit.relevance, reverse=True)
        return replace(
            result,
            hits=(*ranked, *weak, *rest),
            legs=(*result.legs, "rerank"),
            spent=result.spent + payment.spent,
        )

    def _call(self, reranker: Reranker, question: str, texts: Sequence[str]) -> Call:
        offer = reranker.offer
        if offer is None or offer.model is None:
            message = f"there is no provider {reranker.name!r} in the settings any more"
            raise BadRequestError(message, code="unknown_provider")
        provider = self._engine.ledger.provider(offer.identity)
        tokens = [provider.count_tokens(each) for each in texts]
        parameters = offer.parameters.get(offer.model, offer.parameters.get("", {}))
        text = cohere.written_input(question, texts)
        return Call(
            offer.identity, cohere.RERANK, offer.model, text, dict(parameters), units=cohere.searches(tokens)
        )

    def _check_cost(self, call: Call, most: int | None) -> None:
        if most is None:
            return
        cost = self._engine.ledger.estimate(call)
        if cost is None or cost > most:
            raise HoldfastError("that may cost more than `max_cost`", code="over_budget")
