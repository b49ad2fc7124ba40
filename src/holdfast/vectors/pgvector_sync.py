"""Keeps the pgvector tables in step with what is published, without delaying publications.

An HNSW index takes about a millisecond per vector, too long for a publication to wait; until a vector is
stored, readers compare it in memory. Nothing depends on this work: it is a copy, it may stop anywhere, and
the next round continues from what is there.

It runs in its own thread, as the first index of a large collection takes minutes and the sweep, which starts
it, has leases to look after.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy import exc

from holdfast.core.errors import StoreUnavailableError
from holdfast.extras import LazyModule
from holdfast.store.base.database import Database, Tx
from holdfast.store.search import search_reads as stored
from holdfast.store.search import vector_tables as tables
from holdfast.vectors.encoding import normalised

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

# Below this many chunks a collection is compared in memory, whatever the settings: it is as fast.
SMALL = 2000
# Up to this many bytes of vectors `auto` keeps a collection in memory: 250,000 of 256 dimensions.
LARGE = 256 << 20
HEADS_AT_ONCE = 50
# Seconds until a database without the extension, or without the right to it, is checked again.
AGAIN_AFTER = 600.0

log = logging.getLogger(__name__)


class Filling:
    """The duty of the sweep. `least` is in chunks, `large` in bytes: both must be reached."""

    def __init__(
        self,
        db: Database,
        *,
        least: int = SMALL,
        large: int = LARGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._least = least
        self._large = large
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._clock = clock
        self._again_at = 0.0
        # The stamps at which every collection was checked.
        self._seen: dict[tuple[str, str], int] = {}
        self._are_there = False

    def __call__(self) -> int:
        """A round is under way, started now if there was none."""
        if not self._stopping and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._try, name="vectors", daemon=True)
            self._thread.start()
        return 0

    def close(self, patience: float = 5.0) -> None:
        """No further round starts; one under way stops after its batch, if that ends in time."""
        self._stopping = True
        if self._thread is not None:
            self._thread.join(patience)

    def _try(self) -> None:
        try:
            self.round()
        except tables.BusyError:
            log.debug("another process is filling the pgvector tables")
        except (StoreUnavailableError, exc.SQLAlchemyError) as error:
            log.warning("the pgvector tables were not filled; the next round continues: %s", error)

    def round(self) -> int:
        """Every large collection is in the tables as it was seen. Returns the number of new vectors.

        Only collections with publications since the last round are checked.
        """
        were_there, self._are_there = self._are_there, self._db.read(tables.are_there)
        if were_there and not self._are_there:
            self._seen = {}  # their content is gone
        stamps = tables.publish_seqs(self._db)
        changed = {name: seq for name, seq in stamps.items() if self._seen.get(name) != seq}
        if not changed or self._clock() < self._again_at:
            return 0
        chunks = {name: tables.chunks_of(self._db, *name) for name in changed}
        filled = 0
        if self._are_wanted(max(chunks.values())):
            if not tables.prepare(self._db):
                self._again_at = self._clock() + AGAIN_AFTER
                return 0
            self._are_there = True
            for name in changed:
                filled += self._filled(tables.due(self._db, *name, chunks[name]))
                if self._stopping:
                    return filled
        self._seen = stamps
        return filled

    def _are_wanted(self, chunks: int) -> bool:
        """True if the tables exist, or a collection with so many chunks is the first that needs them."""
        least = max(self._least, self._large // (4 * tables.MOST_DIMENSIONS))
        return chunks >= least or tables.are_begun(self._db)

    def _filled(self, one: tables.Due | None) -> int:
        """How many vectors of the collection were added; none if it is up to date or compared in memory."""
        if one is None or self._stopping:
            return 0
        large = one.chunks >= self._least and 4 * one.chunks * one.dimensions >= self._large
        return self._fill(one) if one.is_kept or large else 0

    def _fill(self, one: tables.Due) -> int:
        name = (one.tenant, one.collection)
        filled = 0
        while True:
            gap, rows = self._db.read(lambda tx: _seen(tx, *name))
            if self._stopping:
                return filled
            if not gap.missing and not gap.stale:
                break
            tables.put(self._db, *name, gap, rows)
            filled += len(rows)
        if one.chunks:
            tables.settle(self._db, *name, gap.publish_seq)
        else:
            tables.forget(self._db, *name)
        if filled:
            log.info(
                "collection %s of tenant %s: %d vectors are in pgvector", one.collection, one.tenant, filled
            )
        return filled


def _seen(tx: Tx, tenant: str, collection: str) -> tuple[tables.VectorGap, list[tables.VectorRow]]:
    """What is missing, and its vectors, in one snapshot."""
    gap = tables.gap(tx, tenant, collection, HEADS_AT_ONCE)
    rows: list[tables.VectorRow] = []
    for batch in stored.vectors_of(tx, list(gap.missing)):
        rows += [row for one in batch if (row := _row(one)) is not None]
    return gap, rows


def _row(one: stored.StoredVector) -> tables.VectorRow | None:
    """The vector as the tables take it; None if it is invalid, has no direction, or is too long for HNSW."""
    if not one.vector or len(one.vector) % 4 or len(one.vector) > 4 * tables.MOST_DIMENSIONS:
        return None
    scaled = normalised(np.frombuffer(one.vector, dtype="<f4").astype(np.float32, copy=False))
    return (
        tables.VectorRow(one.head_id, one.chunk_id, one.provider, one.model, scaled.astype(">f2").tobytes())
        if scaled.any()
        else None
    )
