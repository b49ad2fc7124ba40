"""Clients go on uploading while the broker, the database and workers go away: nothing accepted is lost."""

import contextlib
import socket
import sqlite3

import pytest

from holdfast.chaos import stacks
from holdfast.testing.meter import Meter
from tests.acceptance.load import Clients
from tests.acceptance.servers import all_servers
from tests.acceptance.service import Service

pytestmark = [pytest.mark.timeout(300), pytest.mark.g4, pytest.mark.g6]


@pytest.fixture(scope="module", params=stacks.NAMES)
def service(request, require):
    """An API and two workers on a fresh stack; the provider honours keys: nothing may be charged twice."""
    for name in stacks.NEEDED[request.param]:
        require(name)
    with (
        stacks.opened(all_servers(), request.param) as stack,
        Meter(honour_keys=True) as meter,
        Service(stack, meter, lease_ttl=6, sweep_interval=0.5) as created,
    ):
        for each in [created.worker(), created.worker()]:
            each.ready()
        yield created


@contextlib.contextmanager
def away(proxy):
    """The server behind the proxy is gone; connections to it end at once, old and new."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    was, proxy.target = proxy.target, ("127.0.0.1", port)
    proxy.cut()
    yield
    proxy.target = was


@contextlib.contextmanager
def locked(path):
    """Somebody else writes to the SQLite file and does not come to an end; reading goes on."""
    with contextlib.closing(sqlite3.connect(path, timeout=60.0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_uploads_while_the_broker_is_away(service):
    """They are accepted as ever: a message is only a wake-up. On the embedded stack its folder is emptied."""
    with Clients(service, to="broker") as clients:
        clients.more()
        if service.broker is None:
            for _ in range(3):
                service.stack.broker.flush()
                clients.more(4)
        else:
            with away(service.broker):
                clients.more(16)
            clients.more()
            service.broker.black_hole()
            clients.more(16)
            service.broker.heal()
        clients.more()
    assert clients.count(503) == 0
    clients.judge()


def test_uploads_while_the_database_is_away(service):
    """Whoever cannot be served is told so, with 503, and to come again. SQLite is locked instead."""
    with Clients(service, to="database") as clients:
        clients.more()
        if service.database is None:
            with locked(service.stack.data_dir / "holdfast.db"):
                for _ in range(5):
                    assert service.client.get("collections/database/documents?limit=1").status == 200
        else:
            service.database.cut()
            clients.more()
            with away(service.database):
                service.wait(lambda: clients.count(503) >= 3, "somebody is told to come again")
        clients.more()
    clients.judge()


def test_uploads_while_workers_are_killed(service):
    """Another worker goes on with what they had begun."""
    with Clients(service, to="workers") as clients:
        clients.more()
        for worker in service.workers[:2]:
            worker.clear()
            service.worker()
            clients.more()
    clients.judge()


def test_uploads_through_a_storm_of_workers(service):
    """All are killed in the same moment, some before they were ready, and others start instead: twice."""
    with Clients(service, to="storm") as clients:
        clients.more()
        for _ in range(2):
            fresh = [service.worker() for _ in range(3)]
            fresh[0].ready()
            clients.more(4)
            for worker in service.workers:
                worker.clear()
            clients.more(4)
        service.worker().ready()
        clients.more()
    clients.judge()
