"""The interface of a vector index. `exact` implements it in memory; an index inside the database can as well.

Results must come from the caller's snapshot and no other, as the keyword results of the same query do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from holdfast.store.base.database import Tx
from holdfast.store.search.search_reads import CollectionSnapshot
from holdfast.vectors.encoding import Vector


class Ranked(NamedTuple):
    """A chunk, its score in one leg of a search, and how far the leg trusts it (0 to 1)."""

    chunk_id: int
    score: float
    trust: float = 1.0


class VectorIndex(Protocol):
    """The nearest published chunks of one collection."""

    @property
    def nbytes(self) -> int:
        """The memory it uses in this process."""

    def is_at(self, tenant: str, collection: str, publish_seq: int) -> bool:
        """True if it would answer from memory at this stamp: `nearest` would not query the database."""

    def nearest(
        self,
        tx: Tx,
        tenant: str,
        collection: str,
        view: CollectionSnapshot,
        query: Vector,
        k: int,
        *,
        heads: Collection[int] | None = None,
        provider: str | None = None,
        model: str | None = None,
    ) -> list[Ranked]:
        """At most `k` chunks of `view`, nearest first.

        Only of `heads`, `provider` and `model`, if given. Only vectors with the query's dimensions are
        compared; there may be none.
        """
