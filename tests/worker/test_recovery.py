"""Workers and single processes are killed while a slow provider without keys has an order of theirs."""

import os
import signal
import time

import pytest
from sqlalchemy import select

from holdfast.chaos.waiting import until
from holdfast.core.states import Status
from holdfast.store.base.schema import tasks
from holdfast.worker.supervisor import Pace

LEASE, SWEEP = 6.0, 0.5
# What a busy machine may need to start the next exchange, once it is due.
SLACK = 5.0
PAYING = {
    "embedding_provider": "openai",
    "embedding_model": "text-embedding-3-small",
    "embedding_api_key": "meter-key",
    "lease_ttl": str(LEASE),
    "sweep_interval": str(SWEEP),
    "order_deadline": "120",
}


def paying(meter, **more):
    return PAYING | {"embedding_base_url": meter.base_url} | more


def kill(worker):
    """All of it at once, so that no parent is left to tell of it."""
    worker.tell(signal.SIGKILL, group=True)
    worker.clear()


def counts(install):
    """(attempts, losses) of every task."""
    return [tuple(row) for row in install.db.look(select(tasks.c.attempts, tasks.c.losses))]


def resent_after(meter, exchanges, began):
    """Seconds from `began` until one more exchange than these is open."""
    meter.wait_open(exchanges + 1, 60.0)
    return time.monotonic() - began


@pytest.mark.g4
@pytest.mark.g7
def test_two_documents_live_through_a_storm_of_kills(install, meter):
    """Four times the whole worker is killed with an order of each document in flight: both are done."""
    meter.hold("after")
    items = [install.ask("paid", f"document:{n}", batches=2) for n in range(2)]
    for killed in range(4):
        worker = install.worker("-c", "2", **paying(meter))
        meter.wait_open(2 * killed + 2, 60.0)
        kill(worker)
    meter.release()
    install.worker("-c", "2", **paying(meter))
    assert {install.done(each, 60).status for each in items} == {Status.SUCCESS}
    assert {attempts for attempts, _ in counts(install)} == {0}
    assert meter.totals().charges == 4 + 2 * 4  # each input once, and what was in flight at each kill


@pytest.mark.g5
@pytest.mark.g7
def test_a_killed_workers_order_is_resent_within_its_lease_and_a_sweep(install, meter):
    """Its deadline is two minutes away; the next worker on the machine knows that nobody waits any more."""
    meter.hold("after")
    worker = install.worker("-c", "1", **paying(meter))
    requested = install.ask("paid", batches=1)
    meter.wait_open(charged=True)
    heir = install.worker("-c", "1", **paying(meter))
    kill(worker)
    took = resent_after(meter, 1, time.monotonic())
    assert took < LEASE + SWEEP + SLACK
    meter.release()
    assert install.done(requested).status is Status.SUCCESS
    assert ("expire", "worker_died") in install.journal(requested)
    assert counts(install) == [(0, 1)]
    assert heir.poll() is None


@pytest.mark.g5
@pytest.mark.g7
def test_a_killed_process_is_reported_by_its_parent_and_its_order_resent_at_once(install, meter):
    """Its neighbour goes on before its lease has run out, and the death counts against the task."""
    meter.hold("after")
    worker = install.worker("-c", "2", **paying(meter, lease_ttl="60"))
    requested = install.ask("paid", batches=1)
    meter.wait_open(charged=True)
    [busy] = [each for each in worker.health("/healthz")[1]["processes"] if each["task"]]
    os.kill(busy["pid"], signal.SIGKILL)
    took = resent_after(meter, 1, time.monotonic())
    assert took < SWEEP + 2 * SLACK  # and not the minute of its lease
    meter.release()
    assert install.done(requested).status is Status.SUCCESS
    assert ("expire", "process_died") in install.journal(requested)
    assert ("doubt", "its process has died") in install.journal(requested)
    worker.says(f"process {busy['pid']} died while running task")
    assert "Traceback" not in worker.said()
    assert counts(install) == [(1, 0)]


@pytest.mark.g5
@pytest.mark.g7
def test_an_order_longer_than_the_drain_is_settled_and_waited_for(install, meter):
    """A deploy: the new worker has the task at once, and waits for the answer that the old one waits for."""
    output = paying(meter, drain_timeout="1", order_deadline="60")
    old = install.worker("-c", "1", **output)
    meter.hold("after")
    requested = install.ask("paid", batches=1)
    meter.wait_open(charged=True)
    install.worker("-c", "1", **output)
    old.tell()
    until(lambda: ("release", "draining") in install.journal(requested), 20, "the task is not let go of")
    until(lambda: len(claims(install, requested)) == 2, 20, "nobody takes it over")
    cut_off = time.monotonic() + 1.0 + Pace().stop_grace + 1.0
    until(lambda: time.monotonic() > cut_off, 30, "time stands still")
    assert old.poll() is None
    meter.release()
    assert old.ended(30)[0] == 0
    assert install.done(requested).status is Status.SUCCESS
    assert (meter.totals().exchanges, meter.totals().excess) == (1, 0)
    assert "doubt" not in {verb for verb, _ in install.journal(requested)}


def claims(install, request):
    return [reason for verb, reason in install.journal(request) if verb == "claim"]


@pytest.mark.g7
def test_a_worker_of_the_embedded_broker_that_takes_nothing_connects_anew_and_goes_on(install):
    """Its only process stands still while work is due; when it goes on, so does the work. None restarts."""
    worker = install.worker("-c", "1")
    (child,) = worker.tree() - {worker.pid}
    os.kill(child, signal.SIGSTOP)
    requested = install.ask("nap")
    worker.says("reconnecting to the broker", 60)
    os.kill(child, signal.SIGCONT)
    assert install.done(requested, 60).status is Status.SUCCESS
    assert worker.poll() is None
    assert "Traceback" not in worker.said()
