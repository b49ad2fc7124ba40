"""A `VectorIndex` inside PostgreSQL, for collections whose vectors should not be in every process's memory.

The extension selects candidates by its HNSW index, at half precision and with a small loss; their scores are
computed from the ledger's vectors, so a chunk gets the same score as from `exact`.

The snapshot of the query decides what is visible, as everywhere. The tables are filled after publications; if
they are not complete at the stamp of the snapshot, the missing documents are compared in memory. A collection
that is not in the tables at all is left to `exact`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.extras import LazyModule
from holdfast.store.base.database import Tx
from holdfast.store.search import nearest_vectors
from holdfast.store.search import vector_tables as tables
from holdfast.store.search.search_reads import CollectionSnapshot
from holdfast.store.search.snapshot_cache import SnapshotCache
from holdfast.vectors.base import Ranked
from holdfast.vectors.encoding import Vector, normalised
from holdfast.vectors.exact import ExactIndex
from holdfast.vectors.matrix import Matrix, block

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

# How often a process checks whether the tables exist.
LOOK_EVERY = 30.0


@dataclass(frozen=True, slots=True)
class _Rest:
    """The part of a view that is not in the tables."""

    view: CollectionSnapshot

    @property
    def publish_seq(self) -> int:
        return self.view.publish_seq

    @property
    def nbytes(self) -> int:
        return 100 * len(self.view.heads) + 200


class PgvectorIndex:
    """Answers from the pgvector tables for collections that are in them, and from memory for others."""

    def __init__(self, exact: ExactIndex, clock: Callable[[], float] = time.monotonic) -> None:
        self._exact = exact
        self._beside = ExactIndex()
        self._rests: SnapshotCache[_Rest] = SnapshotCache(16 << 20)
        self._clock = clock
        self._there = False
        self._look_at = 0.0

    @property
    def nbytes(self) -> int:
        """The memory of what is compared in this process."""
        return self._exact.nbytes + self._beside.nbytes

    def is_at(self, tenant: str, collection: str, publish_seq: int) -> bool:
        """See `base.VectorIndex`. If the tables exist the database is queried."""
        looked = not self._there and self._clock() < self._look_at
        return looked and self._exact.is_at(tenant, collection, publish_seq)

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
        """See `base.VectorIndex`; about one in a hundred of the nearest may be missed."""
        towards = normalised(np.asarray(query, dtype=np.float32).ravel())
        name = (tenant, collection)
        whole_at = tables.stamp(tx, *name) if self._are_there(tx) else None
        if whole_at is None or len(towards) > tables.MOST_DIMENSIONS:
            return self._exact.nearest(tx, *name, view, query, k, heads=heads, provider=provider, model=model)
        if not towards.any() or k < 1:
            return []
        ranked = self._nearest_in_tables(tx, name, towards, k, heads, (provider, model))
        if whole_at != view.publish_seq:
            rest = self._rests.at(name, view.publish_seq, lambda _: _Rest(_rest(tx, name, view))).view
            beside = self._beside.nearest(
                tx, *name, rest, query, k, heads=heads, provider=provider, model=model
            )
            ranked |= {one.chunk_id: one for one in beside}
        return sorted(ranked.values(), key=lambda near: (-near.score, near.chunk_id))[:k]

    def _are_there(self, tx: Tx) -> bool:
        if not tx.db.postgresql:
            return False
        if self._clock() >= self._look_at:
            self._there = tables.are_there(tx)
            self._look_at = self._clock() + LOOK_EVERY
        return self._there

    def _nearest_in_tables(
        self,
        tx: Tx,
        name: tuple[str, str],
        towards: Vector,
        k: int,
        heads: Collection[int] | None,
        embedder: tuple[str | None, str | None],
    ) -> dict[int, Ranked]:
        """The nearest chunks from the tables, scored by the ledger's vectors."""
        literal = "[" + ",".join(f"{each:.6g}" for each in towards.tolist()) + "]"
        among = None if heads is None else list(heads)
        ranked: dict[int, Ranked] = {}
        for space in tables.spaces_of(tx, *name):
            of = zip(embedder, (space.provider, space.model), strict=True)
            if space.dimensions != len(towards) or any(want not in {None, has} for want, has in of):
                continue
            ids = nearest_vectors.near(tx, *name, space, literal, k, among)
            usable = [
                one for one in nearest_vectors.vectors(tx, *name, ids) if len(one.vector) == 4 * len(towards)
            ]
            if usable:
                rows = block(*zip(*((one.chunk_id, one.head_id, one.vector) for one in usable), strict=True))
                ranked |= {one.chunk_id: one for one in Matrix((rows,)).nearest(towards, k)}
        return ranked


def _rest(tx: Tx, name: tuple[str, str], view: CollectionSnapshot) -> CollectionSnapshot:
    return CollectionSnapshot(view.publish_seq, tables.missing(tx, *name))
