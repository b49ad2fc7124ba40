"""A database with a hundred thousand rows in every table that grows, and fresh statistics."""

import re

from sqlalchemy import LargeBinary, bindparam, text

from holdfast.search import counts
from holdfast.store.base.database import Database
from holdfast.store.follow_ups import actions
from holdfast.store.protocol import generations, publish_seq

ROWS = 100_000

# Documents of one tenant, half of them published twice; a few of everything that is not finished.
GROWN = {
    "heads": """tenant, kind, subject, collection, generation, status, run_id, fingerprint,
        published_generation, visible, updated_at
        SELECT 'default', CASE WHEN n % 5 = 0 THEN 'qa' ELSE 'index' END, 'document:old-' || n,
        CASE WHEN n % 10000 = 5 THEN 'rare' ELSE 'c' || (n % 100) END, 2, 'success', 'r2-' || n, 'f',
        2, true, 1.0 FROM g""",
    "runs": """id, head_id, tenant, kind, subject, generation, status, disposition, reason, actor, lane,
        priority, pipeline, content, options, slices, queued_at, finished_at, pruned, past
        SELECT 'r' || (1 + n % 2) || '-' || ((n + 1) / 2), (n + 1) / 2, 'default',
        CASE WHEN n % 10 = 0 THEN 'qa' WHEN n % 10 = 3 THEN 'webhook' ELSE 'index' END, 'document:old',
        1 + n % 2, 'success', 'accepted', '', '', 'bulk', 5, '', '', '{}', 0, 1.0, 2.0, n > 50, n % 2 = 0
        FROM g""",
    "tasks": """run_id, head_id, tenant, lane, priority, age, pipeline, generation, ordinal, payload, state,
        due_at, lease_until, claimed_at, token
        SELECT 'r' || (1 + n % 2) || '-' || ((n + 1) / 2), (n + 1) / 2, 't' || (n % 20), 'bulk', 5, n, '', 1,
        0, '{}', CASE WHEN n % 500 = 0 THEN 'queued' WHEN n % 1000 = 1 THEN 'running'
        WHEN n % 1000 = 2 THEN 'waiting' ELSE 'done' END, 9e9, 9e9, 1.0, 'token-' || n FROM g""",
    "chunks": """head_id, generation, slice, epoch, position, text, call_key, words
        SELECT 1 + n / 100, 1 + n % 2, 0, 1, n % 100, 'words', 'key-' || n,
        'all ' || CASE WHEN n % 70 = 0 THEN 'week ' ELSE '' END || 'w' || (n % 5000) FROM g""",
    "documents": """tenant, id, collection, title, source, digest, size, created_at, updated_at
        SELECT 'default', 'old-' || n, 'c' || (n % 100), 'Title of ' || n, 'text', 'd' || n, 1, 1.0, n
        FROM g""",
    "word_counts": """head_id, generation, slice, chunks, length, terms
        SELECT n, 1 + n % 2, 0, 100, 200, :terms FROM g""",
    "lines": """run_id, id, at, text
        SELECT 'r1-' || (1 + n / 100), 'l' || n, 1.0, 'words' FROM g""",
    "journal": """at, tenant, verb, reason, head_id, run_id
        SELECT 1e10, 'default', 'claim', 'due', 1 + n / 10, 'r' FROM g""",
    "orders": """id, tenant, provider, endpoint, model, state, call_keys, weights, body,
        idempotency_key, keyed, holder, task_id, run_id, scopes, estimate, created_at, deadline, deadline_at,
        settled_at
        SELECT 'o' || n, 'default', 'p', 'e', 'm', CASE WHEN n % 1000 = 0 THEN 'sent' ELSE 'settled' END,
        '[]', '[]', '', 'k' || n, true, 'h', n, 'r1-' || (1 + n / 10), '["tenant"]', 1, 1.0, 1.0, 9e9, 2.0
        FROM g""",
    "calls": """tenant, key, state, order_id, model, estimate, result
        SELECT 'default', 'key-' || n, 'settled', 'o' || n, 'm', 1, '' FROM g""",
    "charges": """order_id, send, tenant, scope, model, sort, tokens, amount, prices, at, run_id
        SELECT 'o' || n, 1, 'default', 'tenant', 'm', 'paid', 1, 1, '1', 1.0, 'r1-' || (1 + n / 10) FROM g""",
    "job_results": """run_id, slice, position, tenant, head_id, document, source, mark, good, data
        SELECT 'r2-' || (1 + n / 100), n % 10, n % 100, 'default', 1 + n / 100, 'old-' || (1 + n % 1000), 2,
        'm' || n, true, '{}' FROM g""",
    "follow_ups": """action_id, head_id, generation, run_id
        SELECT :action, 1 + n / 2, 1 + n % 2, 'r' FROM g WHERE n < 90000""",
    "api_keys": """digest, id, tenant, name, scopes, created_at
        SELECT 'd' || n, 'k' || n, 't' || (n % 1000), 'n', '["read"]', 1.0 FROM g""",
    "page_sessions": """digest, key_id, created_at, expires_at
        SELECT 's' || n, 'k' || n, 1.0, 9e9 FROM g""",
    "idempotency": """tenant, key, fingerprint, token, open_until, created_at
        SELECT 't' || (n % 1000), 'i' || n, 'f', 't', 9e9, 9e9 FROM g""",
    "findings": """run_id, step, text
        SELECT 'r' || (1 + n % 2) || '-' || ((n + 1) / 2), 1, 'words' FROM g""",
    "deliveries": """id, tenant, head_id, action_id, cause, subject, generation, event, url, secret,
        created_at, since, body
        SELECT 'e' || n, CASE WHEN n < 10000 THEN 'default' ELSE 't' || (n % 20) END, 2 + 5 * (n % 10000),
        n % 7, 'r', 's', 1, 'e', 'u', 's', 1.0, 1.0, '' FROM g""",
}


def grow(db: Database) -> int:
    """Every table that grows has a hundred thousand rows; answers the number of an action in it."""
    about = {"tenant": "default", "collection": "c7", "kind": "extract", "options": {}, "pipeline": ""}
    action = actions.add_action(db, **about)
    given = {"action": action, "terms": counts.encode(["all week w77 w3 w4999"] * 100)[2]}
    series = f"WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {ROWS})"

    def body(tx):
        if db.postgresql:  # which runs are of which head is worked out by the number of the row
            tx.execute(text("TRUNCATE heads RESTART IDENTITY CASCADE"))
            # A third of the time would go into looking up, row by row, that each has the other it names.
            tx.execute(text("SET LOCAL session_replication_role = replica"))
        for name, wanted in GROWN.items():
            columns, source = wanted.replace("document:", r"document\:").split("SELECT", 1)
            for table in ("orders", "calls", "deliveries"):  # PostgreSQL does not take text for bytes
                source = source.replace(", ''", ", ''::bytea") if name == table else source
            source = re.sub(r"('(\{\}|\[.*?\])')", r"\1::json", source).replace("::", r"\:\:")
            if not db.postgresql:
                source = re.sub(r"\\:\\:(bytea|json)", "", source)
            values = {key: value for key, value in given.items() if f":{key}" in source}
            typed = [bindparam("terms", type_=LargeBinary())] if "terms" in values else []
            tx.execute(
                text(f"INSERT INTO {name} ({columns}) {series} SELECT {source}").bindparams(*typed), values
            )
        publish_seq.bump(tx, "default", "c1")
        for tenant in range(20):
            tx.execute(generations.NEW_TURN, {"b_lane": "bulk", "b_tenant": f"t{tenant}"})

    db.write("by_hand", body)
    with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    return action
