"""Search, for the API, the web UI and the command line.

The question is embedded by the provider that embedded the documents. One that charges is paid through the
ledger, so that the same question is paid once; the built-in model is called directly, for there is nothing to
keep account of.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.core.filters import Filter
from holdfast.engine.engine import Engine
from holdfast.engine.job_specs import SearchQuery, SearchSource
from holdfast.extras import LazyModule
from holdfast.kinds import index
from holdfast.ledger.pay import Call
from holdfast.ledger.query_payer import QueryPayer
from holdfast.providers import local
from holdfast.providers.local import LocalProvider
from holdfast.search.searcher import Found, Mode, QualityNotice, Searcher
from holdfast.service import source_fusion
from holdfast.service.collections import Collections
from holdfast.store.library import other_models
from holdfast.vectors.base import VectorIndex
from holdfast.vectors.encoding import Vector

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

PATIENCE = 10.0
# Questions whose vectors by the built-in model are kept, and the most characters of one: about 2 MB.
REMEMBERED, SHORT = 1000, 200
# Seconds between two counts of a collection whose documents change all the time.
LOOK_EVERY = 30.0
# While some are to be indexed again whoever looks wants to see that it helps.
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

    def __init__(self, engine: Engine, collections: Collections, vectors: VectorIndex | None = None) -> None:
        self._engine = engine
        self._collections = collections
        self._searcher = Searcher(engine.db, vectors=vectors)
        self._embedded = functools.lru_cache(REMEMBERED)(_embedded)
        self._known_others: dict[tuple[str, str], _Others] = {}

    @property
    def waits(self) -> bool:
        """True when questions may be embedded by somebody else's server."""
        return any(name != local.NAME for name in self._collections.providers)

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
    ) -> Found:
        """The best hits for the question; NotFoundError for a collection that is not the tenant's.

        `sources` are the names of those that are looked in; by default all, and in other modes than hybrid
        the chunks of documents alone.

        When the provider cannot embed the question now, words alone decide: `legs` and `notices` say so.
        `notices` also tells of documents that another model has embedded, which meaning does not find.
        """
        record = self._collections.get(tenant, collection)
        chosen = self._collections.choices(record)
        more = self._sources(mode, sources)
        notices: list[QualityNotice] = []
        vectors: list[Vector] = []

        def embed(text: str) -> Vector | None:
            try:
                vector = self._embed(tenant, collection, chosen, text)
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
        )
        if mode != "keyword" and (others := self._others(tenant, collection, answer.publish_seq, chosen)):
            notices.append(_other_model(chosen, others))
        if sources is not None and index.CHUNKS not in sources:
            answer = replace(answer, hits=())
        if more:
            vector = vectors[0].tolist() if vectors else None
            limited = None if documents is None else tuple(documents)
            query = SearchQuery(tenant, collection, question, k, limited, vector, self._engine.db)
            answer = source_fusion.merged(answer, query, more, notices, only=only)
        return replace(answer, notices=tuple(notices)) if notices else answer

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

    def _embed(self, tenant: str, collection: str, chosen: index.Choices, text: str) -> Vector | None:
        provider = self._engine.parts.providers.get(chosen.provider)
        if isinstance(provider, LocalProvider):
            return self._embedded(provider, text) if len(text) <= SHORT else _embedded(provider, text)
        visitor = QueryPayer(self._engine.host, tenant, collection, PATIENCE)
        call = Call(chosen.provider, "embeddings", chosen.model, text)
        payment = self._engine.ledger.pay(visitor, [call])
        return np.frombuffer(payment.results[0], dtype="<f4")
