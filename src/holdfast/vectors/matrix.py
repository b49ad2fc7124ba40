"""Normalised vectors in immutable blocks. Two matrices share the blocks that they have in common.

A copy of 100,000 vectors for each published document would cost more than the search itself. So new vectors
come as a separate block, removed ones are masked in their old block, and blocks are rewritten only when half
of one is removed or there are too many small ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from holdfast.extras import LazyModule
from holdfast.vectors.base import Ranked
from holdfast.vectors.encoding import Vector, normalised

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

SMALL = 2048
MOST_SMALL = 12
DIGITS = 6  # cosines that differ by less are equal

Ids: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """Some vectors, the chunk and the head of each, and which of them are live (None: all)."""

    ids: Ids
    heads: Ids
    vectors: Vector
    alive: NDArray[np.bool_] | None = None

    @property
    def nbytes(self) -> int:
        """The memory of its arrays."""
        return self.ids.nbytes + self.heads.nbytes + self.vectors.nbytes

    def __len__(self) -> int:
        return len(self.ids) if self.alive is None else int(np.count_nonzero(self.alive))

    def without(self, heads: Ids) -> VectorBlock:
        """The same block with the vectors of these heads masked."""
        gone = np.isin(self.heads, heads)
        if not gone.any():
            return self
        alive = ~gone if self.alive is None else self.alive & ~gone
        left = VectorBlock(self.ids, self.heads, self.vectors, alive)
        return left if 2 * len(left) > len(self.ids) else _merged([left])

    def nearest(self, query: Vector, k: int, among: Ids | None) -> tuple[Ids, Vector]:
        """The ids and cosines of its `k` best, unordered."""
        counts = self.alive
        if among is not None:
            selected = np.isin(self.heads, among)
            counts = selected if counts is None else counts & selected
        if counts is None:
            ids, scores = self.ids, _cosines(self.vectors, query)
        else:
            rows = np.flatnonzero(counts)
            ids = self.ids[rows]
            few = 4 * len(rows) < len(self.ids)
            scores = _cosines(self.vectors[rows], query) if few else _cosines(self.vectors, query)[rows]
        if len(ids) > k:
            best = np.argpartition(-scores, k - 1)[:k]
            ids, scores = ids[best], scores[best]
        return ids, scores


def _cosines(vectors: Vector, query: Vector) -> Vector:
    """The product of each row with the query, row by row.

    Not `vectors @ query`: that uses the threads of BLAS, which busy-wait for each other. On a machine with
    busy cores it was measured at 156 ms where this takes 4.
    """
    products: Vector = np.vecdot(vectors, query)
    return products


def block(ids: Sequence[int], heads: Sequence[int], vectors: Sequence[bytes]) -> VectorBlock:
    """A block of vectors with the same number of dimensions."""
    rows = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(ids), -1)
    return VectorBlock(np.array(ids, dtype=np.int64), np.array(heads, dtype=np.int64), normalised(rows))


def _merged(blocks: Sequence[VectorBlock]) -> VectorBlock:
    live = [(one, slice(None) if one.alive is None else one.alive) for one in blocks]
    return VectorBlock(
        np.concatenate([one.ids[rows] for one, rows in live]),
        np.concatenate([one.heads[rows] for one, rows in live]),
        np.concatenate([one.vectors[rows] for one, rows in live]),
    )


@dataclass(frozen=True, slots=True)
class Matrix:
    """All vectors of one model in one collection."""

    blocks: tuple[VectorBlock, ...] = ()

    @property
    def nbytes(self) -> int:
        """The memory of its blocks."""
        return sum(one.nbytes for one in self.blocks)

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def changed(self, gone: Collection[int], come: Iterable[VectorBlock]) -> Matrix:
        """The matrix without the vectors of some heads and with additional blocks."""
        heads = np.array(list(gone), dtype=np.int64)
        left = [one.without(heads) for one in self.blocks] if len(heads) else list(self.blocks)
        left = [one for one in [*left, *come] if len(one)]
        small = [one for one in left if len(one.ids) < SMALL]
        if len(small) > MOST_SMALL:
            left = [one for one in left if len(one.ids) >= SMALL] + [_merged(small)]
        return Matrix(tuple(left))

    def nearest(self, query: Vector, k: int, among: Collection[int] | None = None) -> list[Ranked]:
        """The `k` nearest vectors, nearest first, ties by id; only of the heads `among`, if given."""
        heads = None if among is None else np.array(list(among), dtype=np.int64)
        by_block = [one.nearest(query, k, heads) for one in self.blocks]
        if not by_block or k < 1:
            return []
        ids = np.concatenate([ids for ids, _ in by_block])
        scores = np.round(np.concatenate([scores for _, scores in by_block]).astype(np.float64), DIGITS)
        order = np.lexsort((ids, -scores))[:k]
        return list(map(Ranked, ids[order].tolist(), scores[order].tolist()))
