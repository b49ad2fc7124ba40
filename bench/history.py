"""A database as it looks after a long life: finished work, paid calls, and perhaps a long queue.

Rows are made inside the database, with the columns that the transitions write; foreign keys are not checked
meanwhile. PostgreSQL's statistics are then brought up to date, as its autovacuum would. SQLite gets none,
because nothing in the product makes any there.
"""

from typing import Self

from sqlalchemy import create_engine, text

from bench import worker
from holdfast.store.base import dialect

TENANTS = 20
NEW = "new-"
# A vector of 384 four-byte numbers: below the size at which PostgreSQL would move it out of its row.
RESULT_BYTES = 1536

_POSTGRESQL = {
    "SERIES": "generate_series(1, COUNT) AS series(i)",
    "HEX32": "md5('PREFIX' || i)",
    "HEX64": "md5('a' || i) || md5('b' || i)",
    "BLOB": f"decode(repeat(md5(i::text), {RESULT_BYTES // 16}), 'hex')",
}
_SQLITE = {
    "SERIES": (
        "(WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < COUNT) SELECT i FROM s)"
    ),
    "HEX32": "lower(hex(randomblob(16)))",
    "HEX64": "lower(hex(randomblob(32)))",
    "BLOB": f"randomblob({RESULT_BYTES})",
}

HEADS = """
INSERT INTO holdfast_heads (tenant, kind, subject, generation, status, run_id, fingerprint,
                   published_generation, visible, updated_at)
SELECT 'PREFIX' || (i % TENANTS), 'KIND', 'old:' || i, 1, 'STATUS', HEX32, 'f', PUBLISHED,
       PUBLISHED = 1, 1700000000 + i * 0.1
FROM SERIES
"""
RUNS = """
INSERT INTO holdfast_runs (id, head_id, tenant, kind, subject, generation, status, disposition, reason, actor,
                  lane, priority, pipeline, content, options, queued_at, started_at, finished_at, pruned)
SELECT run_id, id, tenant, kind, subject, 1, status, 'accepted', 'never_done', '', 'bulk',
       5, 'KIND@1', '', '{}', updated_at, updated_at, CASE WHEN visible THEN updated_at END, visible
FROM holdfast_heads WHERE status = 'STATUS'
"""
TASKS = """
INSERT INTO holdfast_tasks (run_id, head_id, tenant, lane, priority, age, pipeline, generation, ordinal,
                   payload, state, due_at, epoch, owner, token, claimed_at, signed_at)
SELECT id, head_id, tenant, lane, priority, queued_at, pipeline, 1, 0, '{}', 'STATE',
       queued_at, PUBLISHED, 'past:1', id, queued_at, queued_at
FROM holdfast_runs WHERE status = 'STATUS'
"""
TURNS = (
    "INSERT INTO holdfast_turns (lane, tenant, last_served) SELECT 'bulk', 'PREFIX' || (i - 1), 0 FROM SERIES"
)
JOURNAL = """
INSERT INTO holdfast_journal (at, tenant, verb, reason, head_id, run_id, task_id, generation, epoch, actor)
SELECT signed_at, tenant, 'publish', 'all_slices_done', head_id, run_id, id, 1, 1, 'past:1'
FROM holdfast_tasks
"""
CALLS = """
INSERT INTO holdfast_calls (tenant, key, state, order_id, run_id, model, estimate, cost, tokens, result,
                   settled_at)
SELECT 'default', HEX64, 'settled', 'order-' || (i / 100), 'run-' || (i / 100), 'm', 10, 10, 5, BLOB,
       1700000000 + i
FROM SERIES
"""


class History:
    """Loads rows through one connection, outside the protocol; after the block they are on disk."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(dialect.parse(url), isolation_level="AUTOCOMMIT")
        self._postgresql = dialect.is_postgresql(self._engine)
        self._words = {"KIND": worker.KIND, **(_POSTGRESQL if self._postgresql else _SQLITE)}

    def __enter__(self) -> Self:
        self._connection = self._engine.connect()
        if self._postgresql:
            self._driver("SET session_replication_role = replica", "SET maintenance_work_mem = '256MB'")
        else:
            self._driver(
                "PRAGMA foreign_keys = OFF", "PRAGMA synchronous = OFF", "PRAGMA cache_size = -200000"
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._postgresql:
            self._driver("VACUUM ANALYZE", "CHECKPOINT")
        else:
            self._driver("PRAGMA synchronous = FULL", "PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
        self._engine.dispose()

    def finished(self, count: int, *, tenants: int = TENANTS) -> None:
        """`count` published runs of one task each, with their heads and a line each in the journal."""
        self._work(count, tenants, PREFIX="old-", STATUS="success", STATE="done", PUBLISHED="1")
        self._load(JOURNAL)

    def queued(self, count: int, *, tenants: int) -> None:
        """`count` runs stand in the queue, evenly of `tenants` tenants."""
        self._work(count, tenants, PREFIX=NEW, STATUS="queued", STATE="queued", PUBLISHED="0")

    def paid(self, count: int) -> None:
        """`count` settled calls of one tenant, each with its result."""
        self._load(CALLS, COUNT=str(count))

    def _work(self, count: int, tenants: int, **words: str) -> None:
        for statement in (HEADS, RUNS, TASKS):
            self._load(statement, COUNT=str(count), TENANTS=str(tenants), **words)
        self._load(TURNS, COUNT=str(tenants), **words)

    def _load(self, statement: str, **words: str) -> None:
        for name, meaning in (self._words | words).items():
            statement = statement.replace(name, meaning)
        self._driver(statement)

    def _driver(self, *statements: str) -> None:
        for statement in statements:
            self._connection.execute(text(statement))
