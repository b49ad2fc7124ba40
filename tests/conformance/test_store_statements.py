"""A statement that is executed again answers as it did at first, and fails as it did at first."""

import sqlite3
import threading

import pytest
from sqlalchemy import bindparam, event, exc, func, insert, select, text, update

from holdfast.core.errors import StoreUnavailableError
from holdfast.store.base import dialect
from holdfast.store.base.schema import budgets, journal
from tests.conformance.conftest import build

NOTE = insert(journal).values(tenant="t", verb="note", reason="r")
NOTES = select(journal.c.at, journal.c.data, journal.c.epoch, func.length(journal.c.verb)).where(
    journal.c.verb == "note", journal.c.tenant == bindparam("tenant")
)
BUDGET = insert(budgets).values(tenant="t")
SPEND = (
    update(budgets)
    .where(budgets.c.scope == bindparam("b_scope"))
    .values(spent=budgets.c.spent + bindparam("b_more"))
    .returning(budgets.c.spent, budgets.c.warned)
)
LISTED = select(budgets.c.scope).where(budgets.c.scope.in_(bindparam("scopes", expanding=True)))
TIMES = 4


def again(world, statement, values=None):
    """What the statement says at each of several executions; the first goes the long way."""
    return [world.db.write("by_hand", lambda tx: tx.execute(statement, values)) for _ in range(TIMES)]


def test_rows_are_the_same_each_time(world):
    """Numbers, JSON, nothing at all, and a column without a name."""
    world.db.write(
        "by_hand", lambda tx: tx.execute(NOTE, {"at": 1.5, "data": {"b": [1, None, "ü"]}, "epoch": None})
    )
    for output in again(world, NOTES, {"tenant": "t"}):
        row = output.one()
        assert tuple(row) == (1.5, {"b": [1, None, "ü"]}, None, 4)
        assert (row.at, row.data, row.epoch) == tuple(row)[:3]
        assert row._asdict()["data"] == {"b": [1, None, "ü"]}
    assert [output.first() for output in again(world, NOTES, {"tenant": "nobody"})] == [None] * TIMES


def test_many_rows_are_written_each_time(world):
    """With the values of each; what is not given is as the table says."""
    for _ in range(TIMES):
        some = [{"at": float(n), "data": {"n": n}} for n in range(3)]
        world.db.write("by_hand", lambda tx, some=some: tx.execute(NOTE, some))
    rows = world.rows(select(journal.c.at, journal.c.data, journal.c.actor).where(journal.c.verb == "note"))
    assert sorted(row.at for row in rows) == sorted([0.0, 1.0, 2.0] * TIMES)
    assert all(row.data == {"n": int(row.at)} and row.actor is None for row in rows)


def test_a_write_tells_how_many_rows_it_changed_and_gives_them_back(world):
    """Also when there are none."""
    world.db.write("by_hand", lambda tx: tx.execute(BUDGET, [{"scope": "one"}, {"scope": "two"}]))
    for number, output in enumerate(again(world, SPEND, {"b_scope": "one", "b_more": 5}), start=1):
        assert tuple(output.one()) == (5 * number, False)
    for output in again(world, SPEND, {"b_scope": "none", "b_more": 5}):
        assert not output.all()
        with pytest.raises(exc.NoResultFound):
            output.scalar_one()
    everything = update(budgets).values(reserved=7)
    assert [output.rowcount for output in again(world, everything)] == [2] * TIMES


def test_a_list_that_is_expanded_into_the_text_goes_the_long_way(world):
    """Its text depends on its length."""
    world.db.write("by_hand", lambda tx: tx.execute(BUDGET, [{"scope": each} for each in "abc"]))
    for scopes in (["a"], ["a", "b", "c"], [], ["b", "c"]):
        result = world.db.read(
            lambda tx, scopes=scopes: tx.all(LISTED.order_by(budgets.c.scope), {"scopes": scopes})
        )
        assert [row.scope for row in result] == scopes
        result = world.db.read(lambda tx, scopes=scopes: tx.all(LISTED, {"scopes": scopes}))
        assert sorted(row.scope for row in result) == scopes


def test_the_same_statement_with_other_values_is_another_one(world):
    """An insert names the columns it is given."""
    for values in ({"scope": "a"}, {"scope": "b", "spent": 3}, {"scope": "c"}, {"spent": 4, "scope": "d"}):
        world.db.write("by_hand", lambda tx, values=values: tx.execute(BUDGET, values))
    rows = world.rows(select(budgets.c.scope, budgets.c.spent).order_by(budgets.c.scope))
    assert [tuple(row) for row in rows] == [("a", 0), ("b", 3), ("c", 0), ("d", 4)]


def test_a_broken_promise_is_told_as_ever(world):
    """The constraint by its name, as an error of SQLAlchemy, and the transaction is gone."""
    for _ in range(TIMES):
        with pytest.raises(exc.IntegrityError):
            world.db.write("by_hand", lambda tx: tx.execute(BUDGET, [{"scope": "x"}, {"scope": "x"}]))
    assert world.count(budgets) == 0


def test_whoever_listens_hears_every_execution(world):
    """What counts or traces statements misses none."""
    heard = []
    event.listen(world.db.engine, "before_cursor_execute", lambda *told: heard.append(told[2]))
    again(world, NOTES, {"tenant": "t"})
    assert len([said for said in heard if "journal" in said]) == TIMES


def test_a_connection_is_used_again_when_its_transaction_ended_well(world):
    """One is enough for all that comes one after another; what failed goes back to the pool."""
    pool = world.db.engine.pool
    for _ in range(TIMES):
        world.db.write("by_hand", lambda tx: tx.all(NOTES, {"tenant": "t"}))
        world.db.look(NOTES, {"tenant": "t"})
        world.db.read(lambda tx: (tx.all(NOTES, {"tenant": "t"}), world.db.look(NOTES, {"tenant": "t"})))
    assert pool.checkedout() <= 2
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            world.db.write("by_hand", lambda tx: (tx.execute(BUDGET, {"scope": "x"}), 1 / 0))
    assert pool.checkedout() == 0
    assert world.count(budgets) == 0


def test_what_a_connection_was_used_for_does_not_stay_with_it(world):
    """It is told anew for each transaction what it is for."""

    def told(tx):
        return {name: tx.connection.get_execution_options()[name] for name in dialect.WRITE}

    for _ in range(TIMES):
        assert world.db.write("by_hand", told, relaxed=True) == dialect.RELAXED
        assert world.db.read(told) == dialect.READ
        assert world.db.write("by_hand", told) == dialect.WRITE


def test_a_connection_that_was_cut_is_replaced(postgresql_url):
    """The transaction runs again on a new one, whichever statement found out."""
    world, other = build(postgresql_url), build(postgresql_url)
    again(world, NOTES, {"tenant": "t"})
    tries = []

    def body(tx):
        tries.append(tx.execute(text("SELECT pg_backend_pid()")).scalar_one())
        if len(tries) == 1:
            other.db.read(lambda cutter: cutter.one(text(f"SELECT pg_terminate_backend({tries[0]}, 5000)")))
        return tx.all(NOTES, {"tenant": "t"})

    assert list(world.db.write("by_hand", body)) == []
    assert len(set(tries)) == 2
    world.db.close()
    other.db.close()


def test_a_writer_that_must_wait_begins_as_soon_as_it_can(sqlite_url, monkeypatch):
    """And when the lock is never free, it says that the database does not answer."""
    sqlite_world = build(sqlite_url)
    path = sqlite_world.db.engine.url.database
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, other.rollback).start()
    assert sqlite_world.db.write("by_hand", lambda tx: tx.execute(BUDGET, {"scope": "x"})).rowcount == 1
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(dialect, "BUSY_TIMEOUT", 0.05)
    monkeypatch.setattr(sqlite_world.db, "_patience", 0.2)
    with pytest.raises(StoreUnavailableError, match="locked"):
        sqlite_world.db.write("by_hand", lambda tx: tx.execute(BUDGET, {"scope": "y"}))
    other.close()
    sqlite_world.db.close()


def test_a_disk_that_is_full_is_told_as_such(sqlite_url):
    """Nobody is sent to look for a server or an address when all that is missing is room."""
    sqlite_world = build(sqlite_url)

    def fill(tx):
        tx.execute(text("PRAGMA max_page_count = 1"))  # the file may not grow any more
        for _ in range(1000):
            tx.execute(NOTE, {"at": 1.5, "data": {"b": "x" * 4000}, "epoch": 7})

    with pytest.raises(StoreUnavailableError, match=r"cannot be written to \(.*full\); free disk space"):
        sqlite_world.db.write("by_hand", fill)
    sqlite_world.db.close()


def test_rows_in_the_binary_format_are_the_same_as_in_text(world):
    """Numbers, bytes, JSON and nothing; what is asked after them in the same transaction is as ever."""
    world.db.write("by_hand", lambda tx: tx.execute(NOTE, {"at": 1.5, "data": {"b": "ü"}, "epoch": 7}))
    for _ in range(TIMES):

        def read(tx):
            return [ask(NOTES, {"tenant": "t"}) for ask in (tx.in_binary, tx.all, tx.in_binary, tx.all)]

        for rows in world.db.read(read):
            assert list(map(tuple, rows)) == [(1.5, {"b": "ü"}, 7, 4)]


def test_binary_rows_of_a_statement_made_for_the_occasion(world):
    """It goes the long way, and nobody hears of it afterwards."""

    def read(tx):
        result = tx.in_binary(text("SELECT 41 + 1 AS answer"))
        return [row.answer for row in (*result, *tx.all(text("SELECT 43 AS answer")))]

    assert [world.db.read(read) for _ in range(2)] == [[42, 43]] * 2


def test_a_connection_in_use_is_closed_after_its_database(world):
    """Nobody holds it any more when its transaction ends: it must not be left to the garbage collector."""

    def body(tx):
        world.db.close()
        return tx.connection.connection.dbapi_connection

    connection = world.db.read(body)
    with pytest.raises(Exception, match="closed"):
        connection.execute("SELECT 1")
