"""Processes that die around the COMMIT of a row and of the request for its run: SQLAlchemy and Django."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from holdfast.store.base import dialect
from tests.guard import killed_requests
from tests.guard.application import GuardedApp, until

ROOT = Path(__file__).resolve().parents[2]
# In one statement, so that both are of the same moment.
HALVES = """
    SELECT orders.id AS row_id, runs.subject FROM orders
    FULL JOIN (
        SELECT heads.subject, CAST(substr(heads.subject, 7) AS integer) AS order_id
        FROM holdfast_runs JOIN holdfast_heads AS heads ON heads.id = holdfast_runs.head_id
    ) AS runs ON runs.order_id = orders.id
"""
WAITED = """
    SELECT max(claimed.at - requested.at) FROM holdfast_journal AS requested
    JOIN holdfast_journal AS claimed ON claimed.run_id = requested.run_id AND claimed.verb = 'claim'
    WHERE requested.verb = 'request'
"""

pytestmark = pytest.mark.g4


@contextlib.contextmanager
def orders_in(url):
    """An engine of the application, with a table of orders."""
    engine = create_engine(dialect.parse(url))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (id integer PRIMARY KEY)"))
    try:
        yield engine
    finally:
        with engine.begin() as connection:
            connection.execute(text("DROP TABLE orders"))
        engine.dispose()


def killed(url: str, flavour: str, kills: int) -> dict[str, int]:
    """How often a process died at each point."""
    command = [sys.executable, "-m", "tests.guard.killed_requests", url, flavour, str(kills)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def answered(engine, statement):
    with engine.connect() as connection:
        return connection.execute(text(statement)).all()


def started(url, theirs, flavour, kills):
    """The orders that have a run, which was started, after so many deaths; these and no others have a row."""
    application, starts = GuardedApp(url), []

    @application.guard.task("order:{number}", name=killed_requests.TASK)
    def build(number):
        starts.append(number)

    application.guard.sweeper.start()  # every two seconds, as in a worker
    with application.worker():
        died = killed(url, flavour, kills)
        assert died == dict.fromkeys(killed_requests.POINTS, kills // len(killed_requests.POINTS))
        halves = answered(theirs, HALVES)
        assert [half for half in halves if half.row_id is None or half.subject is None] == []
        orders = {half.row_id for half in halves}
        until(lambda: orders <= set(starts))
    application.close()
    points = killed_requests.POINTS
    assert sorted(starts) == sorted(orders)
    assert {number for number in range(kills) if points[number % 5] == "committed"} <= orders
    assert {number for number in orders if points[number % 5] not in {"on its way", "committed"}} == set()
    return orders


@pytest.mark.parametrize(
    ("database", "flavour"),
    [("postgresql_url", "sqlalchemy"), ("sqlite_url", "django")],
    ids=lambda name: name,
)
def test_the_run_exists_if_and_only_if_the_row_does(request, database, flavour):
    """Whenever the process dies: before the request, before, during or after the COMMIT of both."""
    url = request.getfixturevalue(database)
    with orders_in(url) as theirs:
        assert started(url, theirs, flavour, 5)


@pytest.mark.long
@pytest.mark.timeout(700)
@pytest.mark.parametrize("flavour", ["sqlalchemy", "django"])
def test_two_hundred_deaths_around_the_commit(database_url, flavour):
    """Every run that exists is started within five seconds after its request, by a worker that sweeps."""
    with orders_in(database_url) as theirs:
        orders = started(database_url, theirs, flavour, 200)
        ((waited,),) = answered(theirs, WAITED)
    print(f"{len(orders)} of 200 orders were committed; each was started within {waited:.1f} s")
    assert waited <= 5.0
