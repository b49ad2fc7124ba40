"""What is wrong with the plan of a statement, on a database that has grown.

PostgreSQL is asked for the plan; SQLite for the plan, and the statement is carried out too and taken back, to
count the steps of its machine: its plans name no numbers. The values are those the statement was recorded
with, but for those that name something: they name something of the grown database, so that a plan is not
thought cheap only because nothing would be found.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, exc

from holdfast.store.base.database import Database
from holdfast.store.search import search_reads as stored
from tests.statements.growing import BIG, PARTIAL
from tests.statements.recording import DIMENSIONS, SPACE, Sent

MOST_COST = 1500.0  # reading 100,000 rows costs PostgreSQL at least that
MOST_STEPS = 100_000  # and SQLite several steps a row
# What a row that is answered may cost beyond that, for the rows of a page.
COST_OF_ROW, STEPS_OF_ROW, PAGE = 30.0, 500, 1000
MOST_COUNTED = 5_000_000
# What a value names, by the name under which it is bound, without a number at its end.
NAMED: Mapping[str, Any] = {
    "tenant": "default", "collection": "c7", "subject": "document:old-7", "head_id": 7, "run_id": "r2-7",
    "document": "old-7", "document_id": "old-7", "task_id": 100, "order_id": "o7", "task": 100, "head": 7,
    "run": "r2-7", "key": "key-7", "digest": "d7", "kind": "index", "action_id": 1, "action": 1,
    "scope": "tenant", "limit": 100,
    # Metrics go on from the last look, a moment ago.
    "entry_xid": 1, "entry_id": 99_900, "charge": 99_900, "ended": 99_900.0,
    # Of the journal the latest 20,000 entries are looked through.
    "floor_xid": 1, "floor_id": 80_000,
}  # fmt: skip

# A question by the letter that it begins with: a vector as long as those of the grown tables, and a word.
QUERIES = {"[": "[1, 2, 3, 4]", "(": "('week')"}

# The statement that kept two cores busy without end: the innermost condition reads a table of its own. SQLite
# finds a way around that since it has statistics.
MUTANT = """
    SELECT page.id, (
        SELECT count(*) FROM holdfast_chunks c WHERE c.head_id = page.id AND NOT EXISTS (
            SELECT 1 FROM holdfast_calls, holdfast_heads h
            WHERE holdfast_calls.tenant = h.tenant AND holdfast_calls.key = c.call_key))
    FROM (SELECT id, tenant FROM holdfast_heads WHERE id > 0 ORDER BY id LIMIT 10) AS page"""
# Each of them is bad; an explainer that finds nothing wrong with one sees nothing at all.
KNOWN_BAD = (
    "SELECT count(*) FROM holdfast_chunks, holdfast_heads WHERE holdfast_chunks.head_id = 7",
    "SELECT count(*) FROM holdfast_tasks WHERE done = 7",
    "SELECT max(model) FROM holdfast_calls WHERE tenant = 'default'",
)


@dataclass(frozen=True)
class Fault:
    """Something wrong with a plan: the table that is read from end to end, or how many times too dear it is.

    With neither, nothing can excuse it.
    """

    text: str
    table: str | None = None
    times: float | None = None


def named(name: str, value: Any) -> Any:
    """The value that is bound under a name, naming something that is there."""
    if isinstance(value, str) and name == "query" and value[:1] in QUERIES:
        return QUERIES[value[0]]
    known = NAMED.get(re.sub(r"^b_|^j_|_\d+$", "", name))
    return known if isinstance(value, type(known)) and "%" not in str(value) else value


def filled(sent: Sent) -> Any:
    """The values of a statement, as the driver takes them."""
    if isinstance(sent.values, dict):
        return {name: named(name, value) for name, value in sent.values.items()}
    if len(sent.names) != len(sent.values):
        return sent.values
    return tuple(named(name, value) for name, value in zip(sent.names, sent.values, strict=True))


def faults(db: Database, sent: Sent) -> list[Fault]:
    """What is wrong with the statement; nothing when it reads what it answers and no more."""
    with db.engine.connect() as connection:
        try:
            return (_of_postgresql if db.postgresql else _of_sqlite)(connection, sent)
        except (exc.DBAPIError, exc.StatementError) as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0]
            return [Fault(f"cannot be explained: {reason}")]
        finally:
            connection.rollback()


def _of_postgresql(connection: Connection, sent: Sent) -> list[Fault]:
    if sent.caller.startswith("search_reads."):
        # The first statement of a search sets its transaction up for the others.
        connection.execute(stored.PUBLISH_SEQ_POSTGRESQL, {"tenant": "default", "collection": "c1"})
    text = SPACE.sub("1", DIMENSIONS.sub("4", sent.text))
    plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {text}", filled(sent)).scalar_one()
    top = plan[0]["Plan"]
    wrong = sorted(set(_scans(top)), key=str)
    # What is changed is not answered, and counts as if it were.
    rows = top["Plans"][0]["Plan Rows"] if top["Node Type"] == "ModifyTable" else top["Plan Rows"]
    most = MOST_COST + COST_OF_ROW * min(rows, PAGE)
    if top["Total Cost"] > most:
        wrong.append(Fault(f"cost {top['Total Cost']:.0f}", times=top["Total Cost"] / most))
    return wrong


def _bare(table: str) -> str:
    """A table as the exceptions name it."""
    return table.removeprefix("holdfast_")


def _scans(node: Mapping[str, Any], *, bounded: bool = False) -> Iterator[Fault]:
    """The tables that PostgreSQL would read from end to end, and products of two that nothing joins.

    Under a limit without a condition the front of a table is read, and no more.
    """
    kind = node["Node Type"]
    bounded = bounded or kind == "Limit"
    relation = node.get("Relation Name")
    if kind == "Seq Scan" and relation in BIG and not (bounded and "Filter" not in node):
        yield Fault(f"reads all of {relation}", _bare(relation))
    by_index = kind in {"Index Scan", "Index Only Scan"} and "Index Cond" not in node and not bounded
    if by_index and relation in BIG and node["Index Name"] not in PARTIAL:
        yield Fault(f"reads all of {relation} by {node['Index Name']}", _bare(relation))
    if kind == "Nested Loop" and "Join Filter" not in node and _is_product(*node["Plans"][:2]):
        yield Fault("multiplies two tables")
    # What is sorted or grouped is read to its end before a limit above it can do anything.
    within = bounded and kind not in {"Sort", "Aggregate", "Hash", "Incremental Sort"}
    for part in node.get("Plans", ()):
        yield from _scans(part, bounded=within)


def _is_product(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> bool:
    """True when both sides have several rows, and the inner one does not depend on the outer."""
    several = outer["Plan Rows"] > 10 and inner["Plan Rows"] > 10
    return several and "Index Cond" not in str(inner) and "Recheck Cond" not in str(inner)


def _of_sqlite(connection: Connection, sent: Sent) -> list[Fault]:
    values = filled(sent)
    lines = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sent.text}", values).all()
    parents = {line[0]: (line[1], line[3]) for line in lines}
    wrong = [
        Fault(line[3], _bare(table))
        for line in lines
        if (table := _read_whole(line[3], sent.text, again=_is_correlated(line[1], parents)))
    ]
    steps, rows = _steps(connection, sent.text, values)
    most = MOST_STEPS + STEPS_OF_ROW * min(rows, PAGE)
    if steps > most:
        wrong.append(Fault(f"{steps} steps", times=steps / most))
    return wrong


def _is_correlated(node: int, parents: Mapping[int, tuple[int, str]]) -> bool:
    """True for a part of a plan that is carried out again for every row of another."""
    while node in parents:
        node, detail = parents[node]
        if detail.startswith("CORRELATED"):
            return True
    return False


def _read_whole(line: str, text: str, *, again: bool) -> str | None:
    """The table that SQLite would read from end to end, or an index of all of it; None if there is none."""
    match = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", line)
    if match is None or match[2] in PARTIAL:
        return None
    alias = re.search(rf"\b(\w+)(?: AS)? {match[1]}\b", text)
    table = next((name for name in (match[1], alias and alias[1]) if name in BIG), None)
    # Along an index, or by number, and only so far as the limit goes: the steps show whether it is.
    return None if "LIMIT" in text and not again else table


def _steps(connection: Connection, text: str, values: Any) -> tuple[int, int]:
    """How many steps SQLite's machine takes, and how many rows it answers.

    A search that matches half the table shows here, too.
    """
    raw: Any = connection.connection.dbapi_connection
    taken, rows = [0], 0

    def count() -> int:
        taken[0] += 1
        return int(taken[0] > MOST_COUNTED / 1000)

    raw.set_progress_handler(count, 1000)
    try:
        result = connection.exec_driver_sql(text, values)
        if result.returns_rows:
            rows = len(result.fetchall())
    except (exc.IntegrityError, exc.OperationalError):
        pass  # it was interrupted, or has been carried out before
    finally:
        raw.set_progress_handler(None, 0)
    return taken[0] * 1000, rows
