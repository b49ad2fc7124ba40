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


def counts(premises):
    """(attempts, losses) of every task."""
    return [tuple(row) for row in premises.db.look(select(tasks.c.attempts, tasks.c.losses))]


def resent_after(meter, exchanges, began):
    """Seconds from `began` until one more exchange than these is open."""
    meter.wait_open(exchanges + 1, 60.0)
    return time.monotonic() - began


@pytest.mark.g4
@pytest.mark.g7
def test_two_documents_live_through_a_storm_of_kills(premises, meter):
    """Four times the whole worker is killed with an order of each document in flight: both are done."""
    meter.hold("after")
    asked = [premises.ask("paid", f"document:{n}", batches=2) for n in range(2)]
    for killed in range(4):
        worker = premises.worker("-c", "2", **paying(meter))
        meter.wait_open(2 * killed + 2, 60.0)
        kill(worker)
    meter.release()
    premises.worker("-c", "2", **paying(meter))
    assert {premises.done(each, 60).status for each in asked} == {Status.SUCCESS}
    assert {attempts for attempts, _ in counts(premises)} == {0}
    assert meter.totals().charges == 4 + 2 * 4  # each input once, and what was in flight at each kill


@pytest.mark.g5
@pytest.mark.g7
def test_a_killed_workers_order_is_resent_within_its_lease_and_a_sweep(premises, meter):
    """Its deadline is two minutes away; the next worker on the machine knows that nobody waits any more."""
    meter.hold("after")
    worker = premises.worker("-c", "1", **paying(meter))
    asked = premises.ask("paid", batches=1)
    meter.wait_open(charged=True)
    heir = premises.worker("-c", "1", **paying(meter))
    kill(worker)
    took = resent_after(meter, 1, time.monotonic())
    assert took < LEASE + SWEEP + SLACK
    meter.release()
    assert premises.done(asked).status is Status.SUCCESS
    assert ("expire", "worker_died") in premises.journal(asked)
    assert counts(premises) == [(0, 1)]
    assert heir.poll() is None


@pytest.mark.g5
@pytest.mark.g7
def test_a_killed_process_is_reported_by_its_parent_and_its_order_resent_at_once(premises, meter):
    """Its neighbour goes on before its lease has run out, and the death counts against the task."""
    meter.hold("after")
    worker = premises.worker("-c", "2", **paying(meter, lease_ttl="60"))
    asked = premises.ask("paid", batches=1)
    meter.wait_open(charged=True)
    [busy] = [each for each in worker.health("/healthz")[1]["processes"] if each["task"]]
    os.kill(busy["pid"], signal.SIGKILL)
    took = resent_after(meter, 1, time.monotonic())
    assert took < SWEEP + 2 * SLACK  # and not the minute of its lease
    meter.release()
    assert premises.done(asked).status is Status.SUCCESS
    assert ("expire", "process_died") in premises.journal(asked)
    assert ("doubt", "its process has died") in premises.journal(asked)
    worker.says(f"process {busy['pid']} died while running task")
    assert "Traceback" not in worker.said()
    assert counts(premises) == [(1, 0)]


@pytest.mark.g5
@pytest.mark.g7
def test_an_order_longer_than_the_drain_is_settled_and_waited_for(premises, meter):
    """A deploy: the new worker has the task at once, and waits for the answer that the old one waits for."""
    told = paying(meter, drain_timeout="1", order_deadline="60")
    old = premises.worker("-c", "1", **told)
    meter.hold("after")
    asked = premises.ask("paid", batches=1)
    meter.wait_open(charged=True)
    premises.worker("-c", "1", **told)
    old.tell()
    until(lambda: ("release", "draining") in premises.journal(asked), 20, "the task is not let go of")
    until(lambda: len(claims(premises, asked)) == 2, 20, "nobody takes it over")
    cut_off = time.monotonic() + 1.0 + Pace().stop_grace + 1.0
    until(lambda: time.monotonic() > cut_off, 30, "time stands still")
    assert old.poll() is None
    meter.release()
    assert old.ended(30)[0] == 0
    assert premises.done(asked).status is Status.SUCCESS
    assert (meter.totals().exchanges, meter.totals().excess) == (1, 0)
    assert "doubt" not in {verb for verb, _ in premises.journal(asked)}


def claims(premises, asked):
    return [reason for verb, reason in premises.journal(asked) if verb == "claim"]


@pytest.mark.g7
def test_a_worker_of_the_embedded_broker_that_takes_nothing_connects_anew_and_goes_on(premises):
    """Its only process stands still while work is due; when it goes on, so does the work. None restarts."""
    worker = premises.worker("-c", "1")
    (child,) = worker.tree() - {worker.pid}
    os.kill(child, signal.SIGSTOP)
    asked = premises.ask("nap")
    worker.says("reconnecting to the broker", 60)
    os.kill(child, signal.SIGCONT)
    assert premises.done(asked, 60).status is Status.SUCCESS
    assert worker.poll() is None
    assert "Traceback" not in worker.said()
