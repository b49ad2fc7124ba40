"""No hot statement reads a whole table, on either database, with a hundred thousand rows in each that grows.

`HOT` is a table of calls. Every statement that a call sends is caught on its way to the driver and explained
with the very values it was sent with; so a new call in the table is all it takes to watch its statements.
"""

import contextlib
import re

import pytest
from sqlalchemy import event, exc, text

from holdfast.core.records import Chunk, Slice, Spent
from holdfast.core.states import Lane
from holdfast.store import actions, budgets, calls, claims, duties, orders, prune, reads, requests
from holdfast.store import tasks as fenced
from holdfast.store.schema import metadata

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS = 100_000
SMALL = {"turns", "turn", "duties", "budgets", "throttles", "collections", "actions"}
BIG = {table.name for table in metadata.sorted_tables} - SMALL
PARTIAL = {
    str(index.name)
    for table in metadata.sorted_tables
    for index in table.indexes
    if index.dialect_options["sqlite"]["where"] is not None
}
DERIVED = {"offers", "best", "json_each", "CONSTANT", "journal"}  # the journal: its front, under a LIMIT
MOST_COST = 1500  # reading 100,000 rows costs PostgreSQL at least that
MOST_STEPS = 100_000  # and SQLite several steps a row
RULES = claims.LockHeld(attempt_cap=3)

# Documents of one tenant, half of them published twice; a few of everything that is not finished.
GROWN = {
    "heads": """tenant, kind, subject, collection, generation, status, run_id, fingerprint,
        published_generation, visible, updated_at
        SELECT 'default', 'index', 'document:old-' || n, 'c' || (n % 100), 2, 'success', 'r2-' || n, 'f',
        2, true, 1.0 FROM g""",
    "runs": """id, head_id, tenant, kind, subject, generation, status, disposition, reason, actor, lane,
        priority, pipeline, content, options, slices, queued_at, finished_at, pruned, past
        SELECT 'r' || (1 + n % 2) || '-' || ((n + 1) / 2), (n + 1) / 2, 'default', 'index', 'document:old',
        1 + n % 2, 'success', 'accepted', '', '', 'bulk', 5, '', '', '{}', 0, 1.0, 2.0, n > 50, n % 2 = 0
        FROM g""",
    "tasks": """run_id, head_id, tenant, lane, priority, age, pipeline, generation, ordinal, payload, state,
        due_at, lease_until, claimed_at, token
        SELECT 'r' || (1 + n % 2) || '-' || ((n + 1) / 2), (n + 1) / 2, 't' || (n % 20), 'bulk', 5, n, '', 1,
        0, '{}', CASE WHEN n % 500 = 0 THEN 'queued' WHEN n % 1000 = 1 THEN 'running'
        WHEN n % 1000 = 2 THEN 'waiting' ELSE 'done' END, 9e9, 9e9, 1.0, 'token-' || n FROM g""",
    "chunks": """head_id, generation, slice, epoch, position, text
        SELECT 1 + n / 100, 1 + n % 2, 0, 1, n % 100, 'words' FROM g""",
    "word_counts": """head_id, generation, slice, chunks, length, terms
        SELECT n, 1 + n % 2, 0, 1, 1, '' FROM g""",
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
    "follow_ups": """action_id, head_id, generation, run_id
        SELECT :action, 1 + n / 2, 1 + n % 2, 'r' FROM g WHERE n < 90000""",
}


def grow(world):
    """A hundred thousand rows in every table that grows, and fresh statistics."""
    about = {"tenant": "default", "collection": "c7", "kind": "extract", "options": {}, "pipeline": ""}
    action = actions.add_action(world.db, **about)
    series = f"WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {ROWS})"

    def body(tx):
        for name, wanted in GROWN.items():
            columns, source = wanted.replace("document:", r"document\:").split("SELECT", 1)
            for table in ("orders", "calls", "word_counts"):  # PostgreSQL does not take text for bytes
                source = source.replace(", ''", ", ''::bytea") if name == table else source
            source = re.sub(r"('(\{\}|\[.*?\])')", r"\1::json", source).replace("::", r"\:\:")
            if not world.db.postgresql:
                source = re.sub(r"\\:\\:(bytea|json)", "", source)
            values = {"action": action} if ":action" in source else {}
            tx.execute(text(f"INSERT INTO {name} ({columns}) {series} SELECT {source}"), values)
        for tenant in range(20):
            tx.execute(requests.NEW_TURN, {"b_lane": "bulk", "b_tenant": f"t{tenant}"})

    world.db.write("by_hand", body)
    with world.db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    return action


def work(world):
    """A document from its request to its publication, and everything that can happen to it."""
    db, plan = world.db, world.start(collection="books", lane=Lane.INTERACTIVE)
    world.request(lane=Lane.INTERACTIVE)
    fenced.plan(db, plan, [Slice(), Slice()], Spent())
    one, two = world.claim(), world.claim()
    fenced.stage(db, one, [Chunk(0)])
    claims.release(db, one, "drain")
    one = world.claim()
    fenced.stage(db, one, [Chunk(0)])
    fenced.advance(db, one, fenced.Report(1, 2, line="one"), "line")
    claims.renew(db, one, 60.0)
    claims.still_held(db, one)
    claims.put_back(db, two, reason="rate", delay=0.0)
    duties.fall_due(db)
    two = world.claim()
    world.lapse(two)
    duties.expire(db, cap=9)
    two = world.claim()
    fenced.finish(db, one, spent=Spent())
    fenced.finish(db, two, spent=Spent())
    world.request(content="b", collection="books")
    requests.cancel(db, one.head_id)
    actions.move(db, one.head_id, "papers")
    requests.delete(db, "default", "document:1")
    return one


HOT = {
    "work": work,
    "failure": lambda world: fenced.fail(world.db, world.start(subject="document:2"), code="c", message="m"),
    "named": lambda world: claims.claim_named(
        world.db, 100, pipelines=[""], owner="o", token="t", ttl=9.0, rules=RULES
    ),
    "sweep": lambda world: (
        duties.expire(world.db, cap=3),
        duties.forgotten(world.db, list(Lane), 50),
        duties.look_again(world.db),
        duties.mend_stranded(world.db),
        duties.next_change(world.db),
        duties.glance(world.db, 50),
    ),
    "prune": lambda world: (prune.prune_generations(world.db), prune.prune_history(world.db, 60.0)),
    "visit": lambda world: actions.visit(world.db, world.action),
    "reads": lambda world: (
        reads.head(world.db, "default", "index", "document:old-7"),
        reads.runs_of(world.db, 7),
        reads.progress_of(world.db, "r1-7"),
        reads.visible_chunks(world.db, 7),
        reads.story(world.db, 7),
        reads.lanes(world.db),
    ),
    "ledger": lambda world: (
        calls.look_up(world.db, "default", ["key-1", "key-2", "other"]),
        calls.paid_by(world.db, 5, ["o5", "o6"]),
        orders.doubt(world.db, "o1000", 0, reason="cut"),
        orders.recover(world.db, "o2000"),
        orders.recover_forgotten(world.db),
        budgets.recompute(world.db),
    ),
}


@pytest.fixture
def grown(world):
    world.action = grow(world)
    return world


def caught(world, call):
    """Every (statement, values) that `call` sends, once per text."""
    sent = {}

    def catch(_connection, _cursor, statement, values, _context, executemany):
        sent.setdefault(statement, values[0] if executemany else values)

    event.listen(world.db.engine, "before_cursor_execute", catch)
    try:
        call(world)
    finally:
        event.remove(world.db.engine, "before_cursor_execute", catch)
    plain = re.compile(r"(SELECT|UPDATE|DELETE|INSERT|WITH)")
    return {one: values for one, values in sent.items() if plain.match(one)}


def scans(world, statement, values):
    """What the plan of `statement` reads from end to end, and what it costs when that is too much."""
    with world.db.engine.connect() as connection:
        if world.db.postgresql:
            plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", values).scalar_one()
            top = plan[0]["Plan"]
            whole = sorted(name for name in _whole(top) if name in BIG)
            return whole + ([f"cost {top['Total Cost']}"] if top["Total Cost"] > MOST_COST else [])
        lines = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
        steps = _steps(connection, statement, values)
    return [line[3] for line in lines if _reads_all(line[3])] + (
        [f"{steps} steps"] if steps > MOST_STEPS else []
    )


def _whole(node):
    """The tables that PostgreSQL would read from end to end."""
    if node["Node Type"] == "Seq Scan":
        yield node["Relation Name"]
    for part in node.get("Plans", ()):
        yield from _whole(part)


def _reads_all(line):
    """True when SQLite would read a table, or an index of all of it, from end to end."""
    match = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", line)
    if match is None or match[1] in SMALL or match[1].startswith("anon_") or match[1] in DERIVED:
        return False
    return match[2] not in PARTIAL


def _steps(connection, statement, values):
    """How many steps SQLite's machine takes: a search that matches half the table shows here, too."""
    if statement.startswith("INSERT"):
        return 0
    raw, taken = connection.connection.dbapi_connection, []
    raw.set_progress_handler(lambda: taken.append(1) and 0, 1000)
    with contextlib.suppress(exc.IntegrityError):  # it was carried out before, and not for the first time now
        connection.exec_driver_sql(statement, values).close()
    raw.set_progress_handler(None, 0)
    connection.rollback()
    return len(taken) * 1000


@pytest.mark.g6
@pytest.mark.g7
def test_no_hot_statement_reads_a_whole_table(grown):
    """Cost follows the work at hand, not the history: every plan goes through an index."""
    assert scans(grown, "SELECT count(*) FROM tasks WHERE done = 7", ()), "the check is blind"
    assert scans(grown, "SELECT max(model) FROM calls WHERE tenant = 'default'", ()), "the check is blind"
    bad = {}
    for name, call in HOT.items():
        for statement, values in caught(grown, call).items():
            if found := scans(grown, statement, values):
                bad[f"{name}: {statement}"] = found
    assert not bad, "\n\n".join(f"{found}\n{statement}" for statement, found in bad.items())
