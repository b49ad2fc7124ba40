"""Clients go on uploading while PostgreSQL itself is stopped as by a power cut, and started again."""

import signal

import pytest

from holdfast.chaos import stacks
from holdfast.testing.meter import Meter
from tests.acceptance.load import Clients
from tests.acceptance.servers import all_servers
from tests.acceptance.service import Service

pytestmark = [pytest.mark.timeout(300), pytest.mark.g4, pytest.mark.g6]

RECOVERED = "database system was not properly shut down; automatic recovery in progress"


@pytest.fixture
def service(require):
    """An API and two workers on a PostgreSQL of their own; the provider honours keys."""
    for name in stacks.NEEDED[stacks.RABBITMQ]:
        require(name)
    with (
        stacks.opened(all_servers(), stacks.RABBITMQ, frozenset({"database"})) as stack,
        Meter(honour_keys=True) as meter,
        Service(stack, meter, lease_ttl=6, sweep_interval=0.5) as created,
    ):
        for each in [created.worker(), created.worker()]:
            each.ready()
        yield created


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.long)])
def test_uploads_while_postgresql_is_restarted(service, times):
    """No session is ended in order, and what was committed comes back from the log alone. Who asks
    meanwhile is told to come again; every upload that was accepted ends well, and none is paid twice.
    """
    server = service.stack.database_server
    with Clients(service) as clients:
        clients.more()
        for number in range(times):
            output = clients.count(503)
            server.stop(signal.SIGQUIT)
            service.wait(lambda told=output: clients.count(503) >= told + 3, "somebody is told to come again")
            server.start()
            accepted = len(clients.accepted)
            service.wait(lambda known=accepted: len(clients.accepted) >= known + 4, "uploads are accepted")
            assert server.log().count(RECOVERED) == number + 1
    clients.judge()
