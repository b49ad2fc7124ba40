"""What an idle installation costs: statements of the database, and memory."""

import re
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlalchemy import event

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.core.states import Status

SECONDS = 6.0


@pytest.fixture
def statements(on_postgresql, services):
    """`statements()`: how many the server has carried out for this installation so far, by its own log."""
    name = urlsplit(on_postgresql.database_url).path[1:]
    with psycopg.connect(services["postgresql"]["url"], autocommit=True) as server:
        server.execute(f"ALTER DATABASE \"{name}\" SET log_statement = 'all'")
        log, begun = Path(services["postgresql"]["log"]), Path(services["postgresql"]["log"]).stat().st_size
        carried_out = re.compile(rf"\] {name} LOG:\s+(?:statement|execute [^:]*): (?!BEGIN|COMMIT|ROLLBACK)")

        def count():
            with log.open(errors="replace") as lines:
                lines.seek(begun)
                return sum(1 for line in lines if carried_out.search(line))

        yield count
        server.execute(f'ALTER DATABASE "{name}" RESET log_statement')


@pytest.mark.postgresql
def test_an_idle_installation_is_quiet_and_small(on_postgresql, statements, record_property):
    """A worker of two processes and a sweep: under 4 statements a second, and the worker under 200 MB."""
    worker = on_postgresql.worker("-c", "2", sweep_interval="2")
    sweeping = on_postgresql.start("sweep", sweep_interval="2")
    on_postgresql.ask("nap")
    requested = on_postgresql.ask("nap", "document:2")
    assert on_postgresql.done(requested).status is Status.SUCCESS
    until(lambda: not sum(each["task"] is not None for each in processes(worker)), 10, "it is not idle")
    # A duty that is due every minute, or the end of what was just done, may fall into one stretch of time.
    rate = next((result for result in measured(statements) if result < 4), 4.0)
    memory = sum(share(pid) for pid in worker.tree())
    record_property("statements_per_second", rate)
    record_property("megabytes", memory)
    print(f"idle: {rate:.2f} statements/s, {memory:.0f} MB")
    assert sweeping.poll() is None
    assert 0.5 < rate < 4
    assert 20 < memory < 200


@pytest.mark.postgresql
def test_api_and_worker_at_rest_make_few_transactions(on_postgresql, services):
    """By the count of the server itself: at most 3 transactions a second, with the API up as well."""
    worker = on_postgresql.worker("-c", "2", sweep_interval="2")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    on_postgresql.start("api", port=str(port))
    until(lambda: answers(port), 60, "the API is not up")
    until(lambda: not sum(each["task"] is not None for each in processes(worker)), 10, "it is not idle")
    name = urlsplit(on_postgresql.database_url).path[1:]
    counted = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s"

    with psycopg.connect(services["postgresql"]["url"], autocommit=True) as server:
        transactions = lambda: server.execute(counted, [name]).fetchone()[0]
        rate = next((result for result in measured(transactions) if result <= 3), 99.0)
    print(f"idle: {rate:.2f} transactions/s")
    assert rate <= 3


def answers(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def measured(statements):
    """Statements a second, over stretches of time one after another: on a busy machine rest comes late."""
    for _ in range(10):
        before, began = statements(), time.monotonic()
        time.sleep(SECONDS)
        yield (statements() - before) / (time.monotonic() - began)


def processes(worker):
    return worker.health("/healthz")[1]["processes"]


def share(pid):
    """The proportional set size of a process, in MB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


@pytest.mark.parametrize("where", ["install", pytest.param("on_postgresql", marks=pytest.mark.postgresql)])
def test_a_sweep_that_finds_nothing_makes_one_statement(where, request):
    """A round that another sweeper has done already, or in which there is nothing to do, costs one look."""
    position = request.getfixturevalue(where)
    with bootstrap.open_runtime(position.settings(sweep_interval=600.0), ()) as runtime:
        runtime.engine.sweep()  # enrols, and wins everything
        said = []
        note = lambda *given: said.append(given[2])
        event.listen(runtime.db.engine, "before_cursor_execute", note)
        runtime.engine.sweep()
        lost = [each for each in said if not each.upper().startswith(("BEGIN", "COMMIT", "ROLLBACK", "SET"))]
    assert len(lost) == 1, lost
