"""Told to stop: what is in flight is settled, tasks go to others, and nothing holds the process up."""

import re
import signal
from urllib.parse import urlsplit

import psycopg
import pytest

from holdfast.chaos.proxy import Proxy
from holdfast.chaos.waiting import until
from holdfast.core.states import Status, TaskState
from holdfast.store.protocol import workers

PAYING = {
    "embedding_provider": "openai",
    "embedding_model": "text-embedding-3-small",
    "embedding_api_key": "meter-key",
}


# Well before the 25 s that a drain may take by default: nothing waited for that to be over.
PROMPTLY = 18
END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


@pytest.mark.g5
@pytest.mark.parametrize("group", [False, True], ids=["main-process", "process-group"])
def test_an_order_in_flight_is_settled_and_its_task_handed_over(install, meter, group):
    """SIGTERM while an order is open, as an orchestrator or as systemd sends it: no second charge, exit 0."""
    output = PAYING | {"embedding_base_url": meter.base_url}
    worker = install.worker("-c", "1", **output)
    meter.hold("after")
    requested = install.ask("paid", batches=3)
    meter.wait_open(charged=True)
    worker.tell(group=group)
    until(lambda: worker.health("/readyz")[0] == 503, 10, "it stays ready")
    meter.release()
    code, seconds = worker.ended(30)
    assert (code, seconds < PROMPTLY) == (0, True)
    assert ("release", "draining") in install.journal(requested)
    assert [task.state for task in install.tasks(requested)] == [TaskState.QUEUED]
    assert "exited with" not in worker.said()
    install.worker("-c", "1", **output)
    assert install.done(requested).status is Status.SUCCESS
    assert (meter.totals().charges, meter.totals().excess) == (3, 0)


@pytest.mark.g4
def test_a_task_that_holds_on_is_handed_over(install):
    """Past the drain time the task goes to others and the process ends; the journal says so."""
    worker = install.worker("-c", "1", drain_timeout="1")
    requested = install.ask("deafening")
    until(lambda: install.run(requested).status is Status.RUNNING, 10, "it does not begin")
    worker.tell()
    code, seconds = worker.ended(30)
    assert (code, seconds < PROMPTLY) == (0, True)
    worker.says("did not stop within 1 s and is handed over")
    assert ("release", "hand_over") in install.journal(requested)
    assert [task.state for task in install.tasks(requested)] == [TaskState.QUEUED]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_lost_terminal_drain_as_well(install, number):
    """Exit code 0 and one line; Celery would answer 1, or start itself again."""
    worker = install.worker("-c", "1")
    worker.tell(number)
    code, seconds = worker.ended(30)
    assert (code, seconds < PROMPTLY) == (0, True)
    assert len(re.findall("stopping: draining for at most 25 s", worker.said())) == 1
    assert "shutdown" not in worker.said()
    assert [each.state for each in workers.known(install.db)] == ["stopped"]


@pytest.mark.parametrize("stack", ["redis", "rabbitmq"])
def test_a_broker_in_a_black_hole_does_not_keep_it(install, request, stack):
    """The connection swallows everything and says nothing; the worker ends all the same, long before 25 s."""
    result = request.getfixturevalue("redis_broker" if stack == "redis" else "rabbit_broker")
    result.flush()
    parts = urlsplit(result.url)
    with Proxy(parts.hostname, parts.port) as proxy:
        netloc = f"{parts.netloc.rpartition(':')[0]}:{proxy.port}"
        worker = install.worker("-c", "1", broker_url=parts._replace(netloc=netloc).geturl())
        proxy.black_hole()
        worker.tell()
        code, seconds = worker.ended(30)
    assert (code, seconds < PROMPTLY) == (0, True)
    assert [each.state for each in workers.known(install.db)] == ["stopped"]


@pytest.mark.postgresql
def test_a_database_that_is_away_does_not_keep_it(on_postgresql, require):
    """It cannot say farewell, and ends within the drain time and five seconds."""
    worker = on_postgresql.worker("-c", "1", drain_timeout="3")
    name = urlsplit(on_postgresql.database_url).path[1:]
    with psycopg.connect(require("postgresql"), autocommit=True) as server:
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            server.execute(END_ALL, [name])
            worker.tell()
            code, seconds = worker.ended(30)
        finally:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    assert (code, seconds < PROMPTLY) == (0, True)  # the patience with a database is 20 s


def test_fewer_processes_are_fewer_and_the_others_go_on(install):
    """Autoscaling ends idle processes; one that only stopped working would eat wake-ups for ever."""
    worker = install.worker("--autoscale", "3,1")
    items = [install.ask("nap", f"document:{n}", seconds=0.7) for n in range(3)]
    assert {install.done(each).status for each in items} == {Status.SUCCESS}
    most = lambda: len(worker.health("/healthz")[1]["processes"])
    until(lambda: worker.said().count("Scaling down") and most() == 1, 20, "it does not become smaller")
    later = [install.ask("nap", f"document:later{n}") for n in range(4)]
    assert {install.done(each, 5).status for each in later} == {Status.SUCCESS}
    assert "exited with" not in worker.said()
