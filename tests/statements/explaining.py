"""What is wrong with the plan of a statement, on a database that has grown.

PostgreSQL is asked for the plan; SQLite for the plan, and a statement that reads is carried out too, to count
the steps of its machine: its plans name no numbers. The values are those the statement was recorded with, but
for those that name something: they name something of the grown database, so that a plan is not thought cheap
only because nothing would be found.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from psycopg.types.json import Json
from sqlalchemy import Connection, exc

from holdfast.store.base import schema
from holdfast.store.base.database import Database
from holdfast.store.search import search_reads as stored
from tests.statements.recording import AsJson, Sent

# Tables that stay small: one row for a lane and tenant, a duty, a worker, a budget, a round under way.
SMALL = {
    "turns", "duties", "budgets", "throttles", "collections", "actions", "workers", "rounds",
}  # fmt: skip
TABLES = set(schema.metadata.sorted_tables)
BIG = {table.name for table in TABLES} - SMALL
PARTIAL = {
    str(index.name)
    for table in TABLES
    for index in table.indexes
    if index.dialect_options["sqlite"]["where"] is not None
}
MOST_COST = 1500.0  # reading 100,000 rows costs PostgreSQL at least that
MOST_STEPS = 100_000  # and SQLite several steps a row
MOST_COUNTED = 5_000_000
# What a value names, by the name under which it is bound, without a number at its end.
NAMED: Mapping[str, Any] = {
    "tenant": "default", "collection": "c7", "subject": "document:old-7", "head_id": 7, "run_id": "r2-7",
    "document": "old-7", "document_id": "old-7", "task_id": 100, "order_id": "o7", "task": 100, "head": 7,
    "run": "r2-7", "key": "key-7", "digest": "d7", "kind": "index", "action_id": 1, "action": 1,
}  # fmt: skip


def named(name: str, value: Any) -> Any:
    """The value that is bound under a name, naming something that is there."""
    known = NAMED.get(re.sub(r"^b_|^j_|_\d+$", "", name))
    return known if known is not None and isinstance(value, type(known)) else value


def filled(sent: Sent) -> Any:
    """The values of a statement, as the driver takes them."""
    if isinstance(sent.values, dict):
        return {name: _wrapped(named(name, value)) for name, value in sent.values.items()}
    if len(sent.names) != len(sent.values):
        return sent.values
    return tuple(named(name, value) for name, value in zip(sent.names, sent.values, strict=True))


def _wrapped(value: Any) -> Any:
    return Json(value.value) if isinstance(value, AsJson) else value


def faults(db: Database, sent: Sent, *, most: float = 1.0) -> list[str]:
    """What is wrong with the statement; nothing when it reads what it answers and no more.

    `most` is how many times the usual cost it may have.
    """
    with db.engine.connect() as connection:
        try:
            return (_of_postgresql if db.postgresql else _of_sqlite)(connection, sent, most)
        finally:
            connection.rollback()


def _of_postgresql(connection: Connection, sent: Sent, most: float) -> list[str]:
    if "store/search" in sent.caller:
        # The first statement of a search sets its transaction up for the others.
        connection.execute(stored.PUBLISH_SEQ_POSTGRESQL, {"tenant": "default", "collection": "c1"})
    plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {sent.text}", filled(sent)).scalar_one()
    top = plan[0]["Plan"]
    wrong = sorted(set(_scans(top)))
    if top["Total Cost"] > MOST_COST * most:
        wrong.append(f"cost {top['Total Cost']:.0f}")
    return wrong


def _scans(node: Mapping[str, Any], *, bounded: bool = False) -> Iterator[str]:
    """The tables that PostgreSQL would read from end to end, and products of two that nothing joins.

    Under a limit without a condition the front of a table is read, and no more.
    """
    kind = node["Node Type"]
    bounded = bounded or kind == "Limit"
    relation = node.get("Relation Name")
    if kind == "Seq Scan" and relation in BIG and not (bounded and "Filter" not in node):
        yield f"reads all of {relation}"
    by_index = kind in {"Index Scan", "Index Only Scan"} and "Index Cond" not in node and not bounded
    if by_index and relation in BIG and node["Index Name"] not in PARTIAL:
        yield f"reads all of {relation} by {node['Index Name']}"
    if kind == "Nested Loop" and "Join Filter" not in node and _is_product(*node["Plans"][:2]):
        yield "multiplies two tables"
    # What is sorted or grouped is read to its end before a limit above it can do anything.
    within = bounded and kind not in {"Sort", "Aggregate", "Hash", "Incremental Sort"}
    for part in node.get("Plans", ()):
        yield from _scans(part, bounded=within)


def _is_product(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> bool:
    """True when both sides have several rows, and the inner one does not depend on the outer."""
    several = outer["Plan Rows"] > 10 and inner["Plan Rows"] > 10
    return several and "Index Cond" not in str(inner) and "Recheck Cond" not in str(inner)


def _of_sqlite(connection: Connection, sent: Sent, most: float) -> list[str]:
    lines = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sent.text}", filled(sent)).all()
    wrong = [line[3] for line in lines if _reads_all(line[3], sent.text)]
    steps = _steps(connection, sent)
    return wrong + ([f"{steps} steps"] if steps > MOST_STEPS * most else [])


def _reads_all(line: str, text: str) -> bool:
    """True when SQLite would read a table, or an index of all of it, from end to end."""
    match = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", line)
    if match is None or match[1] not in BIG:
        return False
    if match[2] in PARTIAL:
        return False
    # Along an index, or by number, and only so far as the limit goes: the steps show whether it is.
    return "LIMIT" not in text


def _steps(connection: Connection, sent: Sent) -> int:
    """How many steps SQLite's machine takes: a search that matches half the table shows here, too."""
    if not re.match(r"\s*(SELECT|WITH|UPDATE|DELETE)", sent.text):
        return 0
    raw: Any = connection.connection.dbapi_connection
    taken = [0]

    def count() -> int:
        taken[0] += 1
        return int(taken[0] > MOST_COUNTED / 1000)

    raw.set_progress_handler(count, 1000)
    try:
        connection.exec_driver_sql(sent.text, filled(sent)).close()
    except (exc.IntegrityError, exc.OperationalError):
        pass  # it was interrupted, or has been carried out before
    finally:
        raw.set_progress_handler(None, 0)
    return taken[0] * 1000
