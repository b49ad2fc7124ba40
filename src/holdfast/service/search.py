"""Search, for the API, the web UI and the CLI.

The query is embedded by the provider that embedded the documents. A provider that charges is paid through
the ledger, so the same query is paid once; the built-in model is called directly, as there is nothing to
account for.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.errors import BadRequestError, ConflictError, HoldfastError, NotFoundError
from holdfast.core.filters import Filter
from holdfast.core.records import Spent
from holdfast.engine.engine import Engine
from holdfast.engine.job_specs import SearchQuery, SearchSource
from holdfast.engine.kinds import Offer
from holdfast.extras import LazyModule
from holdfast.kinds import index
from holdfast.ledger.pay import Call
from holdfast.ledger.query_payer import QueryPayer
from holdfast.providers import local
from holdfast.providers.local import LocalProvider
from holdfast.search import rules
from holdfast.search.hits import Found, QualityNotice
from holdfast.search.query import Floor, SearchPart
from holdfast.search.searcher import MOST_HITS, MOST_RANKED, Mode, Searcher
from holdfast.service import graph_search, reranking, search_pages, source_fusion
from holdfast.service.collections import Collections
from holdfast.service.graph_catalogue import GraphCatalogues
from holdfast.service.graph_search import GraphSearch
from holdfast.service.reranking import Reranking
from holdfast.service.search_pages import PER_DOCUMENT, LikeThis, SearchPage, SearchRequest
from holdfast.store.library import other_models
from holdfast.store.library.collections import Collection
from holdfast.vectors.base import VectorIndex
from holdfast.vectors.encoding import Vector

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

PATIENCE = 10.0
# By the built-in model 99 of 100 questions of random letters stay below 0.28 and real ones seldom below 0.2.
# Of other models nothing is known, so that their floor is low.
LOCAL_FLOOR, OTHER_FLOOR = Floor(0.28, 0.12, 0.15), Floor(0.2, 0.1, 0.2)
RANDOM_LETTERS = Floor(0.28, 0.12, 0.30)
SHORTEST_PIECES = 2.3  # letters per token: words have more, random letters less
# Questions whose vectors by the built-in model are kept, and the most characters of one: about 2 MB.
REMEMBERED, SHORT = 1000, 200
# Seconds between two counts of a collection whose documents change all the time.
LOOK_EVERY = 30.0
# While some are being re-indexed, people want to see the progress.
LOOK_AGAIN = 1.0


def _embedded(provider: LocalProvider, text: str) -> Vector:
    vector: Vector = provider.embed([text])[0]
    vector.flags.writeable = False
    return vector


class _Others(NamedTuple):
    """How many documents another model has embedded: as of which stamp, and when that was looked up."""

    state: tuple[int, str, str]
    number: int
    at: float

    def holds(self, state: tuple[int, str, str], now: float) -> bool:
        """True when it was counted for the same model a moment ago, though something was published since."""
        wait = LOOK_AGAIN if self.number else LOOK_EVERY
        return self.state[1:] == state[1:] and now - self.at < wait


def _unembedded(chosen: index.Choices, error: HoldfastError) -> QualityNotice:
    message = (
        f"the question could not be embedded by {chosen.provider} ({error.message}): "
        "only words were matched, not meaning"
    )
    return QualityNotice("not_embedded", message)


def _other_model(chosen: index.Choices, number: int) -> QualityNotice:
    many = f"{number}{' or more' if number == other_models.MOST else ''}"
    message = (
        f"{many} of the documents were embedded by another provider or model than {chosen.model} of "
        f"{chosen.provider}: they are searched by words only, until they are indexed again"
    )
    return QualityNotice("other_model", message, number)


class Searching:
    """Answers questions over collections."""

    def __init__(
        self,
        engine: Engine,
        collections: Collections,
        vectors: VectorIndex | None = None,
        rerankers: Mapping[str, Offer] | None = None,
        catalogues: GraphCatalogues | None = None,
    ) -> None:
        self._engine = engine
        self._graphs = GraphSearch(engine, catalogues or GraphCatalogues())
        self._collections = collections
        self._reranking = Reranking(engine, rerankers or {})
        self._searcher = Searcher(engine.db, vectors=vectors)
        self._embedded = functools.lru_cache(REMEMBERED)(_embedded)
        self._known_others: dict[tuple[str, str], _Others] = {}

    @property
    def waits(self) -> bool:
        """True when questions may be embedded, or hits ranked, by somebody else's server."""
        return self._reranking.is_set_up or any(name != local.NAME for name in self._collections.providers)

    def search(
        self,
        tenant: str,
        collection: str,
        question: str,
        *,
        k: int = 10,
        documents: Sequence[str] | None = None,
        only: Filter | None = None,
        mode: Mode = "hybrid",
        sources: Sequence[str] | None = None,
        rerank: bool | str | None = None,
        max_cost: int | None = None,
    ) -> Found:
        """The best hits for the question; NotFoundError for a collection that is not the tenant's.

        `sources` are the names of those that are looked in; by default all, and in other modes than hybrid
        the chunks of documents alone.

        When the provider cannot embed the question now, words alone decide: `legs` and `notices` say so.
        `notices` also tells of documents that another model has embedded, which meaning does not find.
        """
        record = self._collections.get(tenant, collection)
        chosen = self._collections.choices(record)
        reranker = self._reranking.chosen(rerank, [record])
        most, k = k, k if reranker is None else max(k, reranking.CANDIDATES)
        more = self._sources(mode, sources)
        notices: list[QualityNotice] = []
        payments: list[Spent] = []
        vectors: list[Vector] = []

        def embed(text: str) -> Vector | None:
            try:
                vector = self._embed(tenant, collection, chosen, text, payments)
            except HoldfastError as error:
                notices.append(_unembedded(chosen, error))
                return None
            vectors.extend(() if vector is None else (vector,))
            return vector

        answer = self._searcher.search(
            tenant,
            collection,
            question,
            k=k,
            documents=documents,
            only=only,
            mode=mode,
            provider=chosen.provider,
            model=chosen.model,
            embed=embed,
            seen=record.publish_seq,
            floor=self._floor(chosen, question),
            rules=rules.read(record.search),
        )
        # Counted over the whole collection, so nothing to tell someone who is limited to a part of it.
        if (
            only is None
            and mode != "keyword"
            and (others := self._others(tenant, collection, answer.publish_seq, chosen))
        ):
            notices.append(_other_model(chosen, others))
        if sources is not None and index.CHUNKS not in sources:
            answer = replace(answer, hits=())
        if more:
            vector = vectors[0].tolist() if vectors else None
            limited = None if documents is None else tuple(documents)
            whose = (tenant, collection, question, k, limited, vector)
            query = SearchQuery(*whose, self._engine.db, only, answer.publish_seq)
            answer = source_fusion.merged(answer, query, more, notices, only=only)
        if notices or payments:
            answer = replace(answer, notices=tuple(notices), spent=sum(payments, Spent()))
        if reranker is not None:
            answer = self._reranking.reranked(tenant, reranker, question, answer, [collection], max_cost)
            answer = replace(answer, hits=answer.hits[:most])
        return answer

    def find(self, request: SearchRequest) -> SearchPage:
        """A page of hits of one or several collections, perhaps by document; NotFoundError as `search`.

        With `like` the hits are like that document, or like its chunk, which is not among them. Nothing is
        embedded or paid for.
        """
        if request.graph is not None:
            return self._by_graph(request)
        end = request.offset + request.k
        most = min(MOST_RANKED, (end * PER_DOCUMENT if request.grouped else end) + 1)
        if request.like is not None:
            result = self._like(request, request.like, most)
        elif len(request.collections) == 1:
            result = self.search(
                request.tenant,
                request.collections[0],
                request.text,
                k=most,
                documents=request.documents,
                only=request.only,
                mode=request.mode,
                sources=request.sources,
                rerank=request.rerank,
                max_cost=request.max_cost,
            )
        else:
            result = self._several(request, most)
        return search_pages.page(result, request)

    def _by_graph(self, request: SearchRequest) -> SearchPage:
        """A page of hits that the knowledge graphs of the collections lead to."""
        end = request.offset + request.k
        most = min(MOST_RANKED, (end * PER_DOCUMENT if request.grouped else end) + 1)
        records = self._records(request)
        reranker = self._reranking.chosen(request.rerank, records)
        shown, most = most, most if reranker is None else max(most, reranking.CANDIDATES)
        payments: list[Spent] = []
        results: dict[str, Found | HoldfastError] = {}
        for record in records:
            chosen = self._collections.choices(record)
            embed = functools.partial(self._embed, request.tenant, record.id, chosen, payments=payments)
            try:
                results[record.id] = self._graphs.search(
                    request, record.id, most, embed, self._fitting(request)
                )
            except ConflictError as error:
                results[record.id] = error
        result = replace(graph_search.merged(results, most), spent=sum(payments, Spent()))
        if reranker is not None:
            names = [record.id for record in records]
            result = self._reranking.reranked(
                request.tenant, reranker, request.text, result, names, request.max_cost
            )
        return search_pages.page(replace(result, hits=result.hits[:shown]), request)

    def _fitting(self, request: SearchRequest) -> graph_search.Hybrid:
        """The usual search for the same question, in some documents of a collection."""
        return lambda name, documents: self.search(
            request.tenant,
            name,
            request.text,
            k=MOST_HITS,
            documents=documents,
            only=request.only,
            sources=[index.CHUNKS],
            rerank=False,
        )

    def _like(self, request: SearchRequest, like: LikeThis, most: int) -> Found:
        parts = [self._part(request, record, [], []) for record in self._records(request)]
        result = self._searcher.like(
            request.tenant, parts, like.document_id, most, at=like.at, only=request.only
        )
        if result is None:
            message = f"nothing of document {like.document_id!r} is searchable"
            raise NotFoundError(message, code="unknown_document")
        return result

    def _several(self, request: SearchRequest, most: int) -> Found:
        notices: list[QualityNotice] = []
        payments: list[Spent] = []
        records = self._records(request)
        reranker = self._reranking.chosen(request.rerank, records)
        shown, most = most, most if reranker is None else max(most, reranking.CANDIDATES)
        parts = [self._part(request, record, notices, payments) for record in records]
        result = self._searcher.search_several(
            request.tenant,
            parts,
            request.text,
            most,
            documents=request.documents,
            only=request.only,
            mode=request.mode,
        )
        if request.sources is not None and index.CHUNKS not in request.sources:
            result = replace(result, hits=())
        for source in self._sources(request.mode, request.sources):
            for name in request.collections:
                limited = None if request.documents is None else tuple(request.documents)
                query = SearchQuery(
                    request.tenant, name, request.text, most, limited, None, self._engine.db, request.only
                )
                result = source_fusion.merged(result, query, [source], notices, only=request.only)
        legs = tuple(dict.fromkeys(result.legs))
        result = replace(result, notices=tuple(notices), legs=legs, spent=sum(payments, Spent()))
        if reranker is None:
            return result
        names = [record.id for record in records]
        result = self._reranking.reranked(
            request.tenant, reranker, request.text, result, names, request.max_cost
        )
        return replace(result, hits=result.hits[:shown])

    def _records(self, request: SearchRequest) -> list[Collection]:
        names = dict.fromkeys(request.collections)
        return [self._collections.get(request.tenant, name) for name in names]

    def _part(
        self,
        request: SearchRequest,
        record: Collection,
        notices: list[QualityNotice],
        payments: list[Spent],
    ) -> SearchPart:
        chosen = self._collections.choices(record)

        def embed(text: str) -> Vector | None:
            try:
                return self._embed(request.tenant, record.id, chosen, text, payments)
            except HoldfastError as error:
                notices.append(_unembedded(chosen, error))
                return None

        floor = self._floor(chosen, request.text)
        return SearchPart(record.id, embed, chosen.provider, chosen.model, floor, rules.read(record.search))

    def _floor(self, chosen: index.Choices, text: str) -> Floor:
        """Which cosines are chance, by the model and by whether the question looks like words."""
        provider = self._engine.parts.providers.get(chosen.provider)
        if not isinstance(provider, LocalProvider):
            return OTHER_FLOOR
        plain = text[:SHORT]
        is_odd = plain.isascii() and provider.letters_per_token(plain) < SHORTEST_PIECES
        return RANDOM_LETTERS if is_odd else LOCAL_FLOOR

    def _sources(self, mode: Mode, names: Sequence[str] | None) -> list[SearchSource]:
        """The sources to look in besides the chunks; BadRequestError for a name that there is not."""
        known = {each.name: each for each in self._engine.registry.search_sources}
        for name in names or ():
            if name not in known:
                message = f"there is no search source {name!r:.80}; use one of: {', '.join(known)}"
                raise BadRequestError(message, code="unknown_source")
        selected = (known[name] for name in (known if names is None else names))
        return [each for each in selected if each.find is not None and mode == "hybrid"]

    def _others(self, tenant: str, collection: str, publish_seq: int, chosen: index.Choices) -> int:
        """How many documents another model has embedded, as of this stamp or a moment ago."""
        name, state = (tenant, collection), (publish_seq, chosen.provider, chosen.model)
        known = self._known_others.get(name)
        now = time.monotonic()
        if known is not None and (known.state == state or known.holds(state, now)):
            return known.number
        number = other_models.count(
            self._engine.db, tenant, collection, provider=chosen.provider, model=chosen.model
        )
        if len(self._known_others) >= REMEMBERED:
            self._known_others.clear()
        self._known_others[name] = _Others(state, number, now)
        return number

    def _embed(
        self, tenant: str, collection: str, chosen: index.Choices, text: str, payments: list[Spent]
    ) -> Vector | None:
        provider = self._engine.parts.providers.get(chosen.provider)
        if isinstance(provider, LocalProvider):
            return self._embedded(provider, text) if len(text) <= SHORT else _embedded(provider, text)
        visitor = QueryPayer(self._engine.host, tenant, collection, PATIENCE)
        call = Call(chosen.provider, "embeddings", chosen.model, text)
        payment = self._engine.ledger.pay(visitor, [call])
        payments.append(payment.spent)
        return np.frombuffer(payment.results[0], dtype="<f4")
