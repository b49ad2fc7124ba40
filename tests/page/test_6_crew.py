"""The stream tells when a worker comes or is lost, so that no page has to ask."""

import pytest
from sqlalchemy import update

from holdfast.service.journal import CREW_EVERY, Crew, Watch
from holdfast.store.base.schema import workers as table
from holdfast.store.features import open_database
from holdfast.store.protocol import workers
from holdfast.store.protocol.workers import Worker, WorkerState


@pytest.fixture
def db(database_url):
    created = open_database(database_url)
    yield created
    created.close()


def looks(watch):
    """What is told of the workers by as many looks as it takes."""
    items = [one for _ in range(CREW_EVERY) for one in watch.look(["anna"], None)]
    return [one.states for one in items if isinstance(one, Crew)]


def test_a_worker_that_comes_and_is_lost_is_told_of_once(db):
    """How busy it is says nothing: that may be another tenant's work."""
    watch = Watch(db, {})
    assert looks(watch) == []
    worker = Worker("w", "w", "here", 1, "1", "", "", ("bulk",), (), 1, 0, WorkerState.WORKING)
    workers.report(db, worker)
    assert looks(watch) == [{"working": 1}]
    db.write("busy", lambda tx: tx.execute(update(table).values(busy=1)))
    assert looks(watch) == []
    db.write("silent", lambda tx: tx.execute(update(table).values(seen_at=table.c.seen_at - 60.0)))
    assert looks(watch) == [{"lost": 1}]
    assert looks(watch) == []
