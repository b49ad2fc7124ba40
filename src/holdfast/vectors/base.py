"""What search asks of a vector index. `exact` answers it in memory; an index inside the database can as well.

Whoever answers must answer from the caller's snapshot and no other, for the words of the same query do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from holdfast.store.base.database import Tx
from holdfast.store.search.search_reads import CollectionSnapshot
from holdfast.vectors.encoding import Vector


class Ranked(NamedTuple):
    """A chunk, the score that one leg of a search gives it, and how far the leg trusts it (0 to 1)."""

    chunk_id: int
    score: float
    trust: float = 1.0


class VectorIndex(Protocol):
    """The nearest published chunks of one collection."""

    @property
    def nbytes(self) -> int:
        """The memory it takes in this process."""

    def is_at(self, tenant: str, collection: str, publish_seq: int) -> bool:
        """True when it would answer from memory at this stamp: `nearest` would ask the database nothing."""

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
        """At most `k` chunks that `view` shows, nearest first.

        Of `heads`, of `provider` and of `model` alone where given. Only vectors of the query's own dimensions
        are compared; there may be none.
        """
