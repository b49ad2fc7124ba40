"""Nearest-neighbour queries on the pgvector tables, in the caller's snapshot, limited to visible chunks."""

from collections.abc import Sequence

from sqlalchemy import text

from holdfast.store.base.database import Tx
from holdfast.store.search.search_reads import StoredVector
from holdfast.store.search.vector_tables import Space

# Vectors of other generations are skipped and the scan continues. The caller scores and sorts the results
# again, so their order need not be strict.
_WIDTH = text(
    "SELECT set_config('hnsw.ef_search', :width, true),"
    " set_config('hnsw.iterative_scan', 'relaxed_order', true)"
)
_VISIBLE = """
    JOIN holdfast_heads heads ON heads.id = v.head_id AND heads.published_generation = v.generation
    WHERE v.space = {space:d} AND heads.visible
      AND heads.tenant = :tenant AND heads.collection = :collection"""
NEAR = f"""
    SELECT v.chunk_id FROM holdfast_chunk_vectors v {_VISIBLE}
    ORDER BY v.embedding\\:\\:halfvec({{dimensions:d}}) <=> CAST(:query AS halfvec({{dimensions:d}}))
    LIMIT :most"""  # noqa: S608 - filled in with whole numbers alone
# All of these documents are compared: materialised, so that no index is used for their order.
_AMONG = f"""
    WITH those AS MATERIALIZED (
        SELECT v.chunk_id, v.embedding FROM holdfast_chunk_vectors v {_VISIBLE}
          AND v.head_id = ANY(CAST(:heads AS bigint[])))
    SELECT chunk_id FROM those ORDER BY embedding <=> CAST(:query AS halfvec) LIMIT :most"""  # noqa: S608 - as above


def near(
    tx: Tx, tenant: str, collection: str, space: Space, query: str, most: int, heads: Sequence[int] | None
) -> list[int]:
    """About the `most` nearest visible chunks of the space; if `heads` are given, exactly theirs."""
    values = {"tenant": tenant, "collection": collection, "query": query, "most": most}
    if heads is not None:
        rows = tx.all(text(_AMONG.format(space=space.id)), values | {"heads": list(heads)})
    else:
        tx.execute(_WIDTH, {"width": str(min(1000, max(200, 2 * most)))})
        rows = tx.all(text(NEAR.format(space=space.id, dimensions=space.dimensions)), values)
    return [row.chunk_id for row in rows]


_BY_ID = text(
    """
    SELECT chunks.id, chunks.head_id, calls.provider, calls.model, calls.result FROM holdfast_chunks chunks
    JOIN holdfast_heads heads ON heads.id = chunks.head_id AND heads.published_generation = chunks.generation
    JOIN holdfast_calls calls ON calls.tenant = heads.tenant AND calls.key = chunks.call_key
    WHERE chunks.id = ANY(CAST(:ids AS bigint[])) AND heads.visible
      AND heads.tenant = :tenant AND heads.collection = :collection AND calls.result IS NOT NULL
    """
)


def vectors(tx: Tx, tenant: str, collection: str, ids: Sequence[int]) -> list[StoredVector]:
    """The ledger's vectors of the visible ones among these chunks."""
    values = {"tenant": tenant, "collection": collection, "ids": list(ids)}
    return [StoredVector._make(row) for row in tx.in_binary(_BY_ID, values)]
