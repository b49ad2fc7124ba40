"""What is left of guarded calls when their history is deleted."""

import secrets

import pytest
from sqlalchemy import text

from tests.guard.application import GuardedApp

COUNTS = """
    SELECT (SELECT count(*) FROM holdfast_heads) AS heads, (SELECT count(*) FROM holdfast_runs) AS runs,
        (SELECT count(*) FROM holdfast_messages) AS messages, (SELECT count(*) FROM holdfast_tasks) AS tasks
"""


@pytest.fixture
def aged(database_url):
    """An application whose ended runs are deleted after a day, and a way to let a day pass."""
    application = GuardedApp(database_url, history_retention=1)
    db = application.guard.runtime().db

    def pass_a_day():
        application.sweep()  # what has ended is marked as such
        for table, column in (("runs", "finished_at"), ("journal", "at"), ("duties", "next_at")):
            later = f"UPDATE holdfast_{table} SET {column} = {column} - 100000"
            db.write("test", lambda tx, later=later: tx.execute(text(later)))
        application.sweep()
        return tuple(db.read(lambda tx: tx.one(text(COUNTS))))

    yield application, pass_a_day
    application.close()


def _called(application, calls, **options):
    @application.guard.task(options.pop("key", None), name=f"build-{secrets.token_hex(3)}", **options)
    def build(n):
        return n

    with application.worker():
        return build, [build.delay(n).get(timeout=10, interval=0.02) for n in calls]


def test_calls_without_a_key_leave_nothing_behind(aged):
    """Neither run nor head, so that tasks with ever new arguments do not fill the table; calls go on."""
    application, pass_a_day = aged
    build, _ = _called(application, [1, 2, 2])
    assert pass_a_day() == (0, 0, 0, 0)
    with application.worker():
        assert build.delay(2).get(timeout=10, interval=0.02) == 2


def test_calls_with_a_key_leave_their_latest_run(aged):
    """It says what the key stands at, and its generation goes on."""
    application, pass_a_day = aged
    build, _ = _called(application, [7, 7], key="report:{n}")
    assert pass_a_day() == (1, 1, 1, 1)
    assert build.request(7).generation == 3


def test_a_call_that_is_to_be_done_once_is_remembered(aged):
    """It is answered with the first result after its history is due."""
    application, pass_a_day = aged
    build, _ = _called(application, [7], once=True)
    assert pass_a_day() == (1, 1, 1, 1)
    assert build.request(7).disposition == "unchanged"


def test_a_call_under_way_is_left_alone(aged):
    """Made again after the last one had ended, it has the head of the last, which stays."""
    application, pass_a_day = aged
    build, _ = _called(application, [7])
    build.delay(7)
    assert pass_a_day() == (1, 1, 1, 1)
