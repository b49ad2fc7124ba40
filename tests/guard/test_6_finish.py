"""`guard.finish`: a row of the application and the end of the run take effect together."""

import pytest
from celery import chord
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert, select

from holdfast.core.errors import HoldfastError
from holdfast.store.base import dialect
from holdfast.store.base.schema import runs
from holdfast.store.guarded import messages
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


def _texts(engine):
    with engine.connect() as connection:
        return list(connection.execute(select(reports.c.text).order_by(reports.c.id)).scalars())


def _statuses(application):
    ended = select(runs.c.status).order_by(runs.c.status)
    return [row.status for row in application.guard.runtime().db.read(lambda tx: tx.all(ended))]


class Died(BaseException):
    """Ends the thread of a worker as the death of its process would."""


@pytest.fixture
def build(application, theirs):
    """A task that inserts a row and ends its run in one transaction; what it does next is its argument."""

    @application.guard.task("report:{n}", bind=True)
    def build(self, n, then="return"):
        with theirs.begin() as connection:
            connection.execute(insert(reports).values(text=str(n)))
            result = application.guard.finish(connection, n * 2)
            if then == "roll back":
                raise ZeroDivisionError
        match then:
            case "raise":
                raise ValueError("too late")
            case "retry":
                raise self.retry(countdown=0)
            case "die":
                raise Died
            case "fence":
                with theirs.begin() as connection:
                    connection.execute(insert(reports).values(text="late"))
                    application.guard.fence(connection)
        return result if then == "return" else "something else"

    return build


def test_a_row_and_the_end_of_the_run_are_one_commit(application, theirs, build):
    """The run has the result that it ended with, and a delivery after it inserts nothing more."""
    requested = build.request(4)
    with application.worker():
        assert requested.result.get(timeout=10, interval=0.02) == 8
        application.deliver_again(requested.run_id)
        with pytest.raises(ZeroDivisionError):
            build.delay(5, "roll back").get(timeout=10, interval=0.02)
    assert _texts(theirs) == ["4"]
    assert _statuses(application) == ["failed", "success"]
    assert not messages.has_work(application.guard.runtime().db)


@pytest.mark.parametrize("then", ["raise", "retry", "fence", "other"])
def test_after_its_end_nothing_that_the_body_does_counts(application, theirs, build, then):
    """It raises, retries, writes behind another fence or returns something else: the run has succeeded."""
    with application.worker():
        assert build.delay(4, then).get(timeout=10, interval=0.02) == 8
    assert _texts(theirs) == ["4"]
    assert _statuses(application) == ["success"]


def test_a_worker_that_dies_after_the_commit_has_done_the_work(application, theirs, build):
    """Nothing is executed again: the sweep has the stored result reported, with its callbacks."""
    calls = []

    @application.guard.task
    def after(result):
        calls.append(result)

    requested = build.request_async((4, "die"), link=after.s())
    with pytest.raises(Died):
        application.execute(application.next_message())
    report = messages.REPORT_LATER  # its time has come
    application.guard.runtime().db.write(
        "test", lambda tx: tx.execute(report, {"b_run": requested.run_id, "b_after": -1.0})
    )
    with application.worker():
        application.sweep()
        assert requested.result.get(timeout=10, interval=0.02) == 8
        until(lambda: calls == [8])
    assert _texts(theirs) == ["4"]


def test_an_end_outside_a_task_says_so(application, theirs):
    """There is no run that could be ended."""
    with theirs.begin() as connection, pytest.raises(HoldfastError, match="no guarded task is being exec"):
        application.guard.finish(connection)


@pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning")
def test_a_chord_goes_on_whose_member_was_stored_but_not_counted(sqlite_url, redis_url, monkeypatch):
    """A worker died between the two: the member's next delivery has Redis count it."""
    application = GuardedApp(sqlite_url, backend=redis_url)

    @application.guard.task
    def pick(name):
        return name

    @application.guard.task
    def pack(names):
        return "+".join(sorted(names))

    result = chord([pick.s("a"), pick.s("b")], pack.s()).apply_async()
    first = application.next_message()
    with monkeypatch.context() as patched:

        def die(*_: object) -> None:
            raise Died

        patched.setattr(application.celery.backend, "on_chord_part_return", die)
        with pytest.raises(Died):
            application.execute(first)
    with application.worker():
        until(lambda: pick.AsyncResult(result.parent[1].id).ready())
        assert not result.ready()
        application.execute(first)
        assert result.get(timeout=10) == "a+b"
    application.close()
