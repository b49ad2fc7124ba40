"""Requests and writes in the application's own transactions."""

import threading

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert, select, update
from sqlalchemy.orm import Session

from holdfast import Guard
from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.store.base import dialect
from holdfast.store.base.schema import tasks
from tests.guard.application import GuardedApp, until

metadata = MetaData()
reports = Table("reports", metadata, Column("id", Integer, primary_key=True), Column("text", String))


@pytest.fixture
def theirs(application):
    """The application's own engine, with a table of its own, in the same database."""
    engine = create_engine(dialect.parse(application.url))
    metadata.create_all(engine)
    yield engine
    metadata.drop_all(engine)
    engine.dispose()


def _rows(engine):
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(select(reports))]


def test_a_run_exists_if_and_only_if_the_row_does(application, theirs):
    """Requested in the transaction of the row: rolled back with it, started after its commit."""
    starts = []

    @application.guard.task("report:{n}")
    def build(n):
        starts.append(n)

    with application.worker():
        with Session(theirs) as session:
            session.execute(insert(reports).values(id=1, text=""))
            assert build.request(1, using=session).disposition == "accepted"
            session.rollback()
        with theirs.begin() as connection:
            connection.execute(insert(reports).values(id=2, text=""))
            requested = build.request(2, using=connection)
        application.sweep_until(requested.result.ready)
        application.sweep()
    assert starts == [2]
    assert _rows(theirs) == [(2, "")]


def test_a_fenced_write_takes_effect_only_for_the_current_execution(application, theirs):
    """The write of a zombie is rolled back, whatever it believes; its `except Exception` does not help."""
    starts, thaw = [], threading.Event()

    @application.guard.task("report:{n}")
    def build(n):
        starts.append(n)
        mine = len(starts)
        if mine == 1:
            thaw.wait(10)
        try:
            with Session(theirs) as session, session.begin():
                session.execute(update(reports).values(text=f"execution {mine}"))
                application.guard.fence(session)
        except Exception:  # noqa: BLE001 - as applications do
            starts.append("swallowed")

    with theirs.begin() as connection:
        connection.execute(insert(reports).values(id=7, text=""))
    with application.worker():
        result = build.delay(7)
        until(lambda: starts)
        expire = update(tasks).where(tasks.c.state == "running").values(lease_until=1.0)
        application.guard.runtime().db.write("test", lambda tx: tx.execute(expire))
        application.sweep_until(result.ready)
        thaw.set()
        threading.Event().wait(0.5)
    assert _rows(theirs) == [(7, "execution 2")]
    assert starts == [7, 7]


def test_a_fence_outside_a_task_says_so(application, theirs):
    """There is no execution whose right to write could be tested."""
    with Session(theirs) as session, pytest.raises(HoldfastError, match="no guarded task is being executed"):
        application.guard.fence(session)


def test_a_transaction_of_something_else_is_refused(application):
    """In one line; and so is a session on another database."""

    @application.guard.task("report:{n}")
    def build(n): ...

    with pytest.raises(BadRequestError, match=r"using= takes .*, not str"):
        build.request(7, using="session")


@pytest.mark.postgresql
def test_a_session_on_another_database_is_refused(postgresql_url):
    """The run would not be in the transaction of the row."""
    application = GuardedApp(postgresql_url)

    @application.guard.task("report:{n}")
    def build(n): ...

    with (
        create_engine("sqlite://").connect() as connection,
        pytest.raises(BadRequestError, match="they must be in the same database"),
    ):
        build.request(7, using=connection)
    application.close()


def test_the_database_may_be_that_of_an_engine(application, theirs):
    """Its URL is used, password included; anything else is refused in one line."""
    guard = Guard(application.celery, engine=theirs, sweep=False)
    assert guard.runtime().db.engine.url.database == theirs.url.database
    guard.close()
    with pytest.raises(BadRequestError, match="a guard takes database=, which is a URL, or engine="):
        Guard(application.celery, database=theirs)


def test_two_requests_in_one_transaction_are_one_run(application, theirs):
    """The second sees the first, which nobody else can see yet: it gets the same AsyncResult."""

    @application.guard.task("report:{n}")
    def build(n): ...

    with theirs.begin() as connection:
        first, second = build.request(1, using=connection), build.request(1, using=connection)
    assert (first.disposition, second.disposition) == ("accepted", "duplicate")
    assert first.result.id == second.result.id
