"""A database with a hundred thousand rows in every table that grows, and fresh statistics."""

import re
from functools import partial
from typing import Any

from sqlalchemy import LargeBinary, bindparam, text

from holdfast.search import term_counts
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import metadata
from holdfast.store.follow_ups import actions
from holdfast.store.protocol import generations, publish_seq
from holdfast.store.search import vector_tables

ROWS = 100_000
# In a transaction of PostgreSQL: while one is open, readers of any journal of the server wait for it.
AT_ONCE = 5000

# Documents of one tenant, half of them published twice; a few of everything that is not finished.
GROWN = {
    "heads": """tenant, kind, subject, collection, generation, status, run_id, fingerprint,
        published_generation, visible, updated_at
        SELECT 'default', CASE WHEN n % 5 = 0 THEN 'qa' ELSE 'index' END, 'document:old-' || n,
        CASE WHEN n % 10000 = 5 THEN 'rare' WHEN (n / 100) % 2 = 1 THEN 'c7' ELSE 'c' || (n % 100) END,
        2, 'success', 'r2-' || n, 'f', 2, true, 1.0 FROM g""",
    "runs": """id, head_id, tenant, kind, subject, generation, status, disposition, reason, actor, lane,
        priority, pipeline, content, options, slices, queued_at, finished_at, pruned, past
        SELECT 'r' || (1 + n % 2) || '-' || ((n + 1) / 2), (n + 1) / 2, 'default',
        CASE WHEN n % 10 = 0 THEN 'qa' WHEN n % 10 = 3 THEN 'webhook' ELSE 'index' END, 'document:old',
        1 + n % 2, CASE WHEN n % 1000 = 3 THEN 'running' WHEN n % 1000 = 5 THEN 'queued' ELSE 'success' END,
        'accepted', CASE WHEN n % 1000 = 7 THEN 'delete' ELSE '' END, '', 'bulk', 5, '', '', '{}', 0, n,
        CASE WHEN n % 1000 <> 3 AND n % 1000 <> 5 THEN n + 1.0 END, n > 50, n % 2 = 0 FROM g""",
    "tasks": """run_id, head_id, tenant, lane, priority, age, pipeline, generation, ordinal, payload, state,
        due_at, lease_until, claimed_at, token
        SELECT 'r' || (1 + n % 2) || '-' || ((n + 1) / 2), (n + 1) / 2, 't' || (n % 20),
        CASE WHEN n % 5000 = 0 THEN 'guarded' ELSE 'bulk' END, 5, n, '', 1, 0, '{}',
        CASE WHEN n % 500 = 0 THEN 'queued' WHEN n % 1000 = 1 THEN 'running'
        WHEN n % 1000 = 2 THEN 'waiting' ELSE 'done' END, 9e9, 9e9, 1.0, 'token-' || n FROM g""",
    "messages": """run_id, celery_id, task_name, body, options, report_at
        SELECT 'r' || (1 + n % 2) || '-' || ((n + 1) / 2), 'c' || n, 'shop.build', '{}', '{}',
        CASE WHEN n % 1000 = 9 THEN 1.0 END FROM g""",
    "gateway_calls": """call, tenant, content, process, hold, held_until, created_at
        SELECT 'call-' || n, 'default', 'content-' || n, 'p', 'h', CASE WHEN n % 2 = 0 THEN 9e9 END,
        1.0 + n FROM g""",
    "gateway_usage": """tenant, hour, gateway, key_id, scope, provider, endpoint, model, requests, reused,
        waited, errors, reused_calls, saved, millis
        SELECT 'default', 490000 + n / 100, 'g', 'k' || (n % 10), 's' || (n % 100), 'openai', 'embeddings',
        'm', 1, 1, 0, 0, 1, 1, 1 FROM g""",
    "gateway_notes": """id, tenant, at, kind, key_id, scope, endpoint, model, status, code, millis
        SELECT 'n' || n, 'default', n, CASE WHEN n % 2 = 0 THEN 'slow' ELSE 'error' END, 'k', '',
        'embeddings', 'm', 200, '', n FROM g""",
    "chunks": """head_id, generation, slice, epoch, position, text, call_key, words
        SELECT 1 + n / 100, 1 + n % 2, 0, 1, n % 100, 'words', 'key-' || n,
        'all ' || CASE WHEN n % 70 = 0 THEN 'week ' ELSE '' END || 'w' || (n % 5000) FROM g""",
    "documents": """tenant, id, collection, title, source, digest, size, created_at, updated_at, deleted,
        options, chunks, thumbnail, gaps, external_id
        SELECT 'default', 'old-' || n,
        CASE WHEN n % 10000 = 5 THEN 'rare' WHEN (n / 100) % 2 = 1 THEN 'c7' ELSE 'c' || (n % 100) END,
        'Title of ' || n, 'text', 'd' || n, 1, 1.0, n, n % 1000 = 9,
        CASE WHEN n % 1000 = 8 THEN '{}' END, 1, CASE WHEN n % 2 = 0 THEN 'd' || n END,
        CASE WHEN n % 1000 = 7 THEN '[]' END, CASE WHEN n % 2 = 0 THEN 'x' || n END FROM g""",
    "document_members": """tenant, parent, child
        SELECT 'default', 'old-' || (n % 1000), 'old-' || n FROM g""",
    "document_values": """tenant, document, position, collection, path, kind, key
        SELECT 'default', 'old-' || n, 0,
        CASE WHEN n % 10000 = 5 THEN 'rare' WHEN (n / 100) % 2 = 1 THEN 'c7' ELSE 'c' || (n % 100) END,
        CASE WHEN n % 2 = 0 THEN 'author' ELSE '$labels' END, 's', 'value' || (n % 1000) FROM g""",
    "source_items": """tenant, source, external_id, document, version, name, state, look, changed_at
        SELECT 'default', 's' || (n % 20), 'item-' || n, 'old-' || n, '1', 'n',
        CASE WHEN n % 1000 = 3 THEN 'failed' WHEN n % 100 = 7 THEN 'gone' ELSE 'current' END, 1, 1.0
        FROM g""",
    "chunk_edits": """tenant, document, digest, context, original, text, enabled, mark, size, actor,
        updated_at
        SELECT 'default', 'old-' || (1 + n / 100), 'd' || n, '', 'words', 'words', true, 'm' || n, 5, '', 1.0
        FROM g""",
    "page_texts": """tenant, key, head_id, data, created_at
        SELECT 'default', 'k' || n, 1 + n / 10, '{}', 1.0 FROM g""",
    "flows": """tenant, name, version, source, digest, actor, created_at
        SELECT 'default', 'flow' || (n / 10), n % 10, 'x', 'd' || n, 'a', 1.0 FROM g""",
    "step_outputs": """tenant, key, head_id, output, created_at
        SELECT 'default', 'k' || n, 1 + n / 10, '{}', 1.0 FROM g""",
    "word_counts": """head_id, generation, slice, chunks, length, terms
        SELECT n, 1 + n % 2, 0, 100, 200, :terms FROM g""",
    "lines": """run_id, id, at, text
        SELECT 'r1-' || (1 + n / 100), 'l' || n, 1.0, 'words' FROM g""",
    "journal": """xid, at, tenant, verb, reason, head_id, run_id
        SELECT :xid, n, 'default', CASE WHEN n % 10000 = 2 THEN 'set_budget' ELSE 'claim' END,
        CASE WHEN n % 1000 = 1 THEN 'duplicate:in_progress' ELSE 'due' END, 1 + n / 10, 'r' FROM g""",
    "orders": """id, tenant, provider, endpoint, model, state, call_keys, weights, body,
        idempotency_key, keyed, holder, task_id, run_id, scopes, estimate, created_at, deadline, deadline_at,
        settled_at
        SELECT 'o' || n, 'default', 'p', 'e', 'm', CASE WHEN n % 1000 = 0 THEN 'sent' ELSE 'settled' END,
        '[]', '[]', '', 'k' || n, true, 'h', n, 'r1-' || (1 + n / 10), '["tenant"]', 1, n, 1.0, 9e9, n + 1.0
        FROM g""",
    "calls": """tenant, key, state, order_id, model, estimate, result
        SELECT 'default', 'key-' || n, 'settled', 'o' || n, 'm', 1, '' FROM g""",
    "charges": """order_id, send, tenant, scope, model, sort, tokens, amount, prices, at, run_id
        SELECT 'o' || n, 1, 'default', 'tenant', 'm',
        CASE WHEN n % 1000 = 4 THEN 'in_doubt' ELSE 'paid' END, 1, 1, '1', n, 'r1-' || (1 + n / 10) FROM g""",
    "job_results": """run_id, slice, position, tenant, head_id, document, source, mark, good, data
        SELECT 'r2-' || (1 + n / 100), n % 10, n % 100, 'default', 1 + n / 100, 'old-' || (1 + n % 1000), 2,
        'm' || n, true, '{}' FROM g""",
    "derived_nodes": """head_id, generation, slice, epoch, position, key, type, level, document,
        parent, title, text, call_key, words
        SELECT 5 + 5 * (n / 100), 1 + n % 2, n % 10, 1, n, 'n' || n, 'summary', 1 + n % 3,
        'old-' || (1 + n / 20), CASE WHEN n % 10 > 0 THEN 'n' || (n - n % 10) END, 'title', 'words',
        'key-' || n, 'all' FROM g""",
    "derived_edges": """head_id, generation, slice, epoch, position, type, source, target
        SELECT 5 + 5 * (n / 100), 1 + n % 2, n % 10, 1, n, 'relation', 'n' || n, 'n' || (n - n % 10)
        FROM g""",
    "derived_sources": """head_id, generation, slice, epoch, position, node, tenant, document, version,
        first, last
        SELECT 5 + 5 * (n / 100), 1 + n % 2, n % 10, 1, n, 'n' || n, 'default', 'old-' || (1 + n / 20),
        2, 0, 9 FROM g""",
    "derived_state": """head_id, generation, slice, epoch, position, name, level
        SELECT 5 + 5 * (n / 100), 1 + n % 2, n % 10, 1, n, 'pivot' || n, 1 + n % 3 FROM g""",
    "follow_ups": """action_id, head_id, generation, run_id
        SELECT :action, 1 + n / 2, 1 + n % 2, 'r' || (1 + n % 2) || '-' || (1 + n / 2)
        FROM g WHERE n < 90000""",
    "api_keys": """digest, id, tenant, name, scopes, created_at
        SELECT 'd' || n, 'k' || n, 't' || (n % 1000), 'n', '["read"]', 1.0 FROM g""",
    "page_sessions": """digest, key_id, created_at, expires_at
        SELECT 's' || n, 'k' || n, 1.0, 9e9 + n FROM g""",
    "idempotency": """tenant, key, fingerprint, token, open_until, created_at
        SELECT 't' || (n % 1000), 'i' || n, 'f', 't', 9e9, 9e9 + n FROM g""",
    "findings": """run_id, step, text
        SELECT 'r' || (1 + n % 2) || '-' || ((n + 1) / 2), 1, 'words' FROM g""",
    "deliveries": """id, tenant, head_id, action_id, cause, subject, generation, event, url, secret,
        created_at, since, body
        SELECT 'e' || n, CASE WHEN n < 10000 THEN 'default' ELSE 't' || (n % 20) END, 2 + 5 * (n % 4000),
        n % 7, 'r', 's', 1, 'e', 'u', 's', 1.0, 1.0, '' FROM g""",
    "ceilings": """run_id, most
        SELECT 'r' || (1 + n % 2) || '-' || ((n + 1) / 2), 1000000 FROM g""",
    "relays": """id, name, address, version, state, lease_until, lock_path, lock_device, lock_inode,
        started_at, gone_at, gone_by
        SELECT 'c' || n, 'n', 'a', '1', CASE WHEN n > 50 THEN 'gone' ELSE 'up' END, n, 'p', '1', '1', 1.0,
        CASE WHEN n > 50 THEN 2.0 END, CASE WHEN n > 50 THEN 'itself' END FROM g""",
    "carriers": """id, name, process, parent, lease_until, started_at, ended_at
        SELECT 'c' || n, 'n', 'p' || n, '', n, 1.0, CASE WHEN n > 50 THEN 2.0 END FROM g""",
}
# Tables that stay small, and why.
SMALL = {
    "turns": "one row for a lane and tenant with work",
    "duties": "one row for a duty of the sweep",
    "workers": "one row for a worker, forgotten when it is gone",
    "throttles": "one row for a provider",
    "provider_troubles": "one row for a provider that does not answer",
    "installation": "one row",
    "budgets": "set by people",
    "quotas": "one row for a tenant",
    "collections": "made by people",
    "actions": "made by people",
    "keeps": "one row for an action, which people make",
    "sources": "made by people, a limited number for a tenant",
    "rounds": "one row for a collection that is being changed",
}
VECTORS_HAVE = {"holdfast_chunk_vectors", "holdfast_vector_heads"}
BIG = {*(table.name for table in metadata.sorted_tables), *VECTORS_HAVE} - {
    f"holdfast_{name}" for name in SMALL
}
PARTIAL = {
    str(index.name)
    for table in metadata.sorted_tables
    for index in table.indexes
    if index.dialect_options["sqlite"]["where"] is not None
}


def grow(db: Database, rows: int = ROWS, *, analysed: bool = False) -> int:
    """Every table that grows has so many rows; answers the number of an action in it.

    SQLite has the statistics that the product gives it, unless it is to be `analysed`.
    """
    missing = BIG - {f"holdfast_{name}" for name in GROWN} - VECTORS_HAVE
    assert not missing, f"say in GROWN how these grow, or in SMALL why they do not: {sorted(missing)}"
    about = {"tenant": "default", "collection": "c7", "kind": "extract", "options": {}, "pipeline": ""}
    action = actions.add_action(db, **about)
    terms = term_counts.encode(["all week w77 w3 w4999"] * 100)[2]
    # SQLite has one writer, and numbers no transactions.
    values = {"xid": int(db.postgresql), "action": action, "terms": terms}
    if db.postgresql:  # which runs are of which head is worked out by the number of the row
        db.write("by_hand", lambda tx: tx.execute(text("TRUNCATE holdfast_heads RESTART IDENTITY CASCADE")))
    at_once = AT_ONCE if db.postgresql else rows
    for name, source in GROWN.items():
        for low in range(1, rows + 1, at_once):
            series = _series(low, min(low + at_once - 1, rows))
            db.write("by_hand", partial(_fill, name=name, source=source, series=series, values=values))
    db.write("by_hand", partial(_finish, rows=rows))
    if db.postgresql or analysed:
        db.write("by_hand", lambda tx: tx.connection.exec_driver_sql("ANALYZE"))
    return action


def _series(low: int, high: int) -> str:
    return f"WITH RECURSIVE g(n) AS (SELECT {low} UNION ALL SELECT n + 1 FROM g WHERE n < {high})"


def _fill(tx: Tx, *, name: str, source: str, series: str, values: dict[str, Any]) -> None:
    postgresql = tx.db.postgresql
    if postgresql:
        # A third of the time would go into looking up, row by row, that each has the other it names.
        tx.execute(text("SET LOCAL session_replication_role = replica"))
    columns, rows = re.sub(r"(document|duplicate):", r"\1\\:", source).split("SELECT", 1)
    if name in {"orders", "calls", "deliveries"}:  # PostgreSQL does not take text for bytes
        rows = rows.replace(", ''", ", ''::bytea")
    rows = re.sub(r"('(\{\}|\[.*?\])')", r"\1::json", rows).replace("::", r"\:\:")
    if not postgresql:
        rows = re.sub(r"\\:\\:(bytea|json)", "", rows)
    bound = {key: value for key, value in values.items() if f":{key}" in rows}
    typed = [bindparam("terms", type_=LargeBinary())] if "terms" in bound else []
    tx.execute(
        text(f"INSERT INTO holdfast_{name} ({columns}) {series} SELECT {rows}").bindparams(*typed), bound
    )


def _finish(tx: Tx, *, rows: int) -> None:
    """What is of no table alone."""
    for collection in ("c1", "c7"):
        publish_seq.bump(tx, "default", collection)
    for tenant in range(20):
        tx.execute(generations.NEW_TURN, {"b_lane": "bulk", "b_tenant": f"t{tenant}"})
    tx.execute(
        text(f"INSERT INTO holdfast_collections (tenant, id) {_series(1, 1000)} SELECT 't' || n, 'c' FROM g")
    )
    if tx.db.postgresql and tx.execute(vector_tables._EXTENSION).one().offered:
        _grow_vectors(tx, _series(1, rows))


VECTORS = r"""INSERT INTO holdfast_chunk_vectors
    SELECT 1 + n / 100, n, 1 + n % 2, 1, ARRAY[n % 7, n % 11, n % 13, n % 17]\:\:real[]\:\:halfvec FROM g"""
VECTOR_INDEX = r"""CREATE INDEX holdfast_chunk_vectors_1 ON holdfast_chunk_vectors
    USING hnsw ((embedding\:\:halfvec(4)) halfvec_cosine_ops) WITH (m = 2, ef_construction = 4)
    WHERE space = 1"""


def _grow_vectors(tx: Tx, series: str) -> None:
    """The tables of pgvector hold the vectors of every chunk, as one space with its index."""
    vector_tables._make(tx)
    for statement in (
        "INSERT INTO holdfast_vector_spaces VALUES (1, 'default', 'c7', 'p', 'm', 4)",
        "INSERT INTO holdfast_vector_stamps VALUES ('default', 'c7', 1)",
        "INSERT INTO holdfast_vector_heads SELECT id, 2, tenant, collection FROM holdfast_heads",
        VECTORS,
        # Built with little care: what counts is that a plan can use it.
        VECTOR_INDEX,
    ):
        tx.execute(text(f"{series} {statement}" if "FROM g" in statement else statement))
