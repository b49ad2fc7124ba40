"""Guarded tasks lose their workers many times: when each runs again, and what zombies leave behind."""

import os
import signal
import statistics
import time

import pytest
from sqlalchemy import text

from holdfast.chaos.brokers import RedisBroker
from tests.guard.application import until
from tests.guard.processes import Shop, kill_all

pytestmark = [pytest.mark.long, pytest.mark.postgresql, pytest.mark.timeout(900)]
FROZEN = 50


@pytest.fixture
def shop(require, postgresql_url, tmp_path):
    """An application on Redis with a visibility timeout of an hour; its lease is chosen by the test."""
    broker, opened = RedisBroker(require("redis"), own=False), []

    def make(lease: str) -> Shop:
        opened.append(Shop(broker.url, broker.url, postgresql_url, tmp_path, lease=lease))
        return opened[-1]

    yield make
    for each in opened:
        each.stop()
    broker.close()


def test_a_hundred_frozen_executions_leave_nothing_behind(shop):
    """Two workers are frozen with fifty tasks each and wake up after others took over: no row, no call."""
    here = shop("3")
    worker, frozen = here.worker(processes=FROZEN + 10, pool="threads"), []
    for batch in range(2):
        names = [f"{batch}-{number}" for number in range(FROZEN)]
        for name in names:
            here.module.ship.apply_async((name, 6.0), link=here.module.pick.si(f"after-{name}"))
        until(lambda names=names: len(_started(here, names)) == FROZEN, 60)
        kill_all(worker, signal.SIGSTOP)
        frozen.append(worker)
        worker = here.worker(processes=FROZEN + 10, pool="threads")
        until(lambda names=names: all(here.effects().get(f"after-{name}") for name in names), 120)
    for worker in frozen:
        kill_all(worker, signal.SIGCONT)
    time.sleep(8.0)
    effects = here.effects()
    print(f"{len(effects)} effects, {len(here.starts())} starts of {2 * FROZEN * 2} tasks")
    assert set(effects.values()) == {1}
    assert len(effects) == 2 * FROZEN * 2
    assert len(here.starts()) == 2 * FROZEN * 3


def _started(here, names):
    with here.engine.connect() as connection:
        rows = connection.execute(text("SELECT DISTINCT name FROM shop_starts"))
        return {row.name for row in rows} & set(names)


def test_a_lost_task_runs_again_within_fifteen_seconds_at_the_usual_lease(shop):
    """Twenty deaths, of pool processes and of whole workers; the visibility timeout is an hour."""
    here = shop("12")
    workers = [here.worker(processes=2), here.worker(processes=2)]
    times = []
    for number in range(20):
        name = f"n{number}"
        result = here.module.ship.delay(name, 1.0)
        until(lambda name=name: here.starts(name))
        pid = here.starts(name)[0]
        if number % 2:
            os.kill(pid, signal.SIGKILL)
            killed = time.monotonic()
        else:
            worker = next(each for each in workers if os.getpgid(pid) == each.pid)
            killed = kill_all(worker)
            workers[workers.index(worker)] = here.worker(processes=2)
        until(lambda name=name: len(here.starts(name)) == 2, 60)
        times.append(time.monotonic() - killed)
        assert result.get(timeout=30) == name
    print(f"recovered after {statistics.median(times):.1f} s in the median, {max(times):.1f} s at most")
    assert sorted(times)[18] <= 15.0
    assert set(here.effects().values()) == {1}
