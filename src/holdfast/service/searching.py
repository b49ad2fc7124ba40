"""Search as the API, the page and the command line ask for it.

The question is embedded by the provider that embedded the documents. One that charges is paid through the
ledger, so that the same question is paid once; the model on board is asked directly, for there is nothing to
keep account of.
"""

import functools
from collections.abc import Sequence

import numpy as np

from holdfast.core.errors import HoldfastError
from holdfast.engine.engine import Engine
from holdfast.kinds import index
from holdfast.ledger.pay import Call
from holdfast.ledger.visitor import Visitor
from holdfast.providers.local import LocalProvider
from holdfast.search.query import Found, Mode, Searcher
from holdfast.service.library import Library
from holdfast.vectors.base import VectorIndex
from holdfast.vectors.form import Vector

PATIENCE = 10.0
# Questions whose vectors by the model on board are kept, and the most characters of one: about 2 MB.
REMEMBERED, SHORT = 1000, 200


def _embedded(provider: LocalProvider, text: str) -> Vector:
    found: Vector = provider.embed([text])[0]
    found.flags.writeable = False
    return found


class Searching:
    """Answers questions over collections."""

    def __init__(self, engine: Engine, library: Library, vectors: VectorIndex | None = None) -> None:
        self._engine = engine
        self._library = library
        self._searcher = Searcher(engine.db, vectors=vectors)
        self._embedded = functools.lru_cache(REMEMBERED)(_embedded)

    @property
    def waits(self) -> bool:
        """True when questions are embedded by somebody else's server."""
        provider = self._engine.parts.providers.get(self._library.provider)
        return not isinstance(provider, LocalProvider)

    def search(
        self,
        tenant: str,
        collection: str,
        question: str,
        *,
        k: int = 10,
        documents: Sequence[str] | None = None,
        mode: Mode = "hybrid",
    ) -> Found:
        """The best chunks for the question; NotFoundError for a collection that is not the tenant's.

        When the provider cannot embed the question now, words alone decide, and `legs` says so.
        """
        found = self._library.collection(tenant, collection)
        chosen = self._library.choices(found)
        return self._searcher.search(
            tenant,
            collection,
            question,
            k=k,
            documents=documents,
            mode=mode,
            model=chosen.model,
            embed=lambda text: self._embed(tenant, collection, chosen, text),
            seen=found.publish_seq,
        )

    def _embed(self, tenant: str, collection: str, chosen: index.Choices, text: str) -> Vector | None:
        provider = self._engine.parts.providers.get(chosen.provider)
        if isinstance(provider, LocalProvider):
            return self._embedded(provider, text) if len(text) <= SHORT else _embedded(provider, text)
        visitor = Visitor(self._engine.host, tenant, collection, PATIENCE)
        call = Call(chosen.provider, "embeddings", chosen.model, text)
        try:
            payment = self._engine.ledger.pay(visitor, [call])
        except HoldfastError:
            return None
        return np.frombuffer(payment.results[0], dtype="<f4")
