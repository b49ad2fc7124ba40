"""The list of a collection's jobs is found in the shorter of two ways, which no cost would show.

What every other statement reads is looked at by `tests/statements`.
"""

import dataclasses
import re

import pytest
from sqlalchemy import event, text

from holdfast.store.jobs import jobs
from tests.statements import growing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PLAIN = re.compile(r"(SELECT|UPDATE|DELETE|INSERT|WITH)")
LEFT = (
    "SELECT r.id FROM holdfast_runs r JOIN holdfast_heads h ON h.id = head_id"
    " WHERE h.collection = :c AND r.kind = 'qa'"
)


@pytest.fixture
def grown(world):
    growing.grow(world.db, 20_000)
    return world


def jobs_of_collection(world, collection):
    """The list of its jobs: the first, some more, those in a state. How many there are of the first."""
    query = jobs.JobQuery("default", "qa", collection, limit=50)
    jobs.page(world.db, dataclasses.replace(query, after=(1.0, "r1-500")))
    jobs.page(world.db, dataclasses.replace(query, status="failed"))
    return len(jobs.page(world.db, query))


def plans_of(world, collection):
    """The plans of all that the list of its jobs sends."""
    sent = {}

    def catch(_connection, _cursor, statement, values, _context, _many):
        sent.setdefault(statement, values)

    event.listen(world.db.engine, "before_cursor_execute", catch)
    try:
        jobs_of_collection(world, collection)
    finally:
        event.remove(world.db.engine, "before_cursor_execute", catch)
    how = "EXPLAIN" if world.db.postgresql else "EXPLAIN QUERY PLAN"
    with world.db.engine.connect() as connection:
        return [
            str(connection.exec_driver_sql(f"{how} {statement}", values).all())
            for statement, values in sent.items()
            if PLAIN.match(statement)
        ]


@pytest.mark.g6
def test_the_jobs_of_a_collection_are_not_looked_for_among_those_of_all(grown):
    """Both databases think that jobs are few, and would go through all for a collection that has none."""
    collections = ("rare", "c1", "c7")
    walked = {
        name: any("holdfast_runs_jobs" in plan for plan in plans_of(grown, name)) for name in collections
    }
    assert walked == {"rare": False, "c1": False, "c7": True}
    left = {
        name: min(len(grown.db.read(lambda tx, name=name: tx.all(text(LEFT), {"c": name}))), 50)
        for name in collections
    }
    assert {name: jobs_of_collection(grown, name) for name in collections} == left
    assert left["rare"] in range(1, 6)
    assert (left["c1"], left["c7"]) == (0, 50)
