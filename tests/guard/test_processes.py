"""Guarded tasks in real workers on Redis and RabbitMQ: killed, frozen, redelivered, flushed."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import chain, chord, group
from celery.exceptions import TaskRevokedError

from holdfast.chaos.brokers import RabbitBroker, RedisBroker
from tests.guard.application import until
from tests.guard.processes import Shop, kill_all

pytestmark = [pytest.mark.postgresql]
# Lease 3 s, sweep 0.5 s, and what a busy machine takes to start again.
RECOVERED = 15.0


@pytest.fixture(params=["redis", "rabbitmq"])
def shop(
    request: pytest.FixtureRequest,
    require: Callable[[str], str],
    services: dict[str, Any],
    postgresql_url: str,
    tmp_path: Path,
) -> Iterator[Callable[..., Shop]]:
    """Makes an application on each broker; its processes are ended."""
    redis_broker = RedisBroker(require("redis"), own=False)
    broker: Any = redis_broker
    options = {}
    if request.param == "rabbitmq":
        broker = RabbitBroker(require("rabbitmq"), services["rabbitmq"]["management"], own=False)
        options = {"queue_type": "quorum"}
    opened: list[Shop] = []

    def make(**others: str) -> Shop:
        opened.append(Shop(broker.url, redis_broker.url, postgresql_url, tmp_path, **options, **others))
        return opened[-1]

    make.broker = broker  # type: ignore[attr-defined]
    yield make
    for each in opened:
        each.stop()
    for each in {id(redis_broker): redis_broker, id(broker): broker}.values():
        each.close()


def test_a_killed_process_and_a_killed_worker_lose_nothing(shop):
    """The task runs again at once, or when the lease has run out; its effect takes place once."""
    here = shop()
    first = here.worker(processes=2)
    here.worker()
    result = here.module.ship.delay("a", 2.0)
    until(lambda: here.starts("a"))
    os.kill(here.starts("a")[-1], signal.SIGKILL)
    killed = time.monotonic()
    until(lambda: len(here.starts("a")) == 2)
    assert time.monotonic() - killed < RECOVERED
    assert result.get(timeout=30) == "a"
    slow = here.module.ship.delay("b", 3.0)
    until(lambda: here.starts("b"))
    if _is_child(here.starts("b")[-1], first):
        killed = kill_all(first)
        until(lambda: len(here.starts("b")) == 2, 30)
        assert time.monotonic() - killed < RECOVERED
    assert slow.get(timeout=30) == "b"
    assert here.effects() == {"a": 1, "b": 1}


def _is_child(pid: int, worker: Any) -> bool:
    return os.getpgid(pid) == worker.pid


def test_a_frozen_worker_that_wakes_up_changes_nothing(shop):
    """Another worker took over meanwhile: the zombie's effect, result and callback are dropped."""
    here = shop()
    first = here.worker()
    result = here.module.ship.apply_async(("a", 1.0), link=here.module.pick.si("after"))
    until(lambda: here.starts("a"))
    kill_all(first, signal.SIGSTOP)
    here.worker()
    until(lambda: here.effects().get("a"), 30)
    kill_all(first, signal.SIGCONT)
    assert result.get(timeout=20) == "a"
    until(lambda: here.effects().get("after"), 20)
    time.sleep(2.0)
    assert here.effects() == {"a": 1, "after": 1}
    assert "Traceback" not in here.logs()


def test_a_chord_whose_workers_are_killed_completes(shop):
    """Each member has its effect once, and so has the body, though a worker dies right after an effect."""
    here = shop()
    workers = [here.worker(), here.worker()]
    names = [f"n{number}" for number in range(4)]
    result = chord([here.module.pick.s(name, 1.0) for name in names], here.module.pack.s()).apply_async()
    until(lambda: here.starts("n0"))
    kill_all(workers[0])
    here.worker()
    until(lambda: sum(here.effects().values()) >= 2, 40)
    kill_all(workers[1])
    assert result.get(timeout=60) == "+".join(names)
    assert here.effects() == {**dict.fromkeys(names, 1), "+".join(names): 1}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_construct_has_its_effects_once_though_workers_die(shop):
    """Chain, group, chord, retry, replacement and callback; twelve workers die right after an effect."""
    here = shop(visibility="2")
    pick, si = here.module.pick, here.module.pick.si
    workers = [here.worker(), here.worker()]
    results = [
        chain(si("chain-1", 0.3), si("chain-2", 0.3), si("chain-3", 0.3)).apply_async(),
        group(si("group-1", 0.3), si("group-2", 0.3), si("group-3", 0.3)).apply_async(),
        chord([pick.s("chord-1", 0.3), pick.s("chord-2", 0.3)], here.module.pack.s()).apply_async(),
        here.module.weigh.delay("retry"),
        here.module.exchange.delay("replace"),
        pick.apply_async(("link-1", 0.3), link=si("link-2", 0.3)),
    ]
    names = {"chain-1", "chain-2", "chain-3", "group-1", "group-2", "group-3", "chord-1", "chord-2"}
    names |= {"chord-1+chord-2", "retry", "replace", "link-1", "link-2"}
    for number in range(12):
        before = sum(here.effects().values())
        until(lambda before=before: sum(here.effects().values()) > before or before == len(names), 60)
        kill_all(workers.pop(number % 2))
        workers.append(here.worker())
    answers = [result.get(timeout=120) for result in results]
    assert answers[1:5] == [["group-1", "group-2", "group-3"], "chord-1+chord-2", "retry", "replace"]
    until(lambda: here.effects().get("link-2"), 60)
    time.sleep(5.0)
    assert here.effects() == dict.fromkeys(names, 1)


def test_a_request_in_a_transaction_needs_no_message(shop):
    """The sweep of a worker publishes it within seconds after the commit."""
    here = shop()
    with here.engine.begin() as connection:
        requested = here.module.ship.request("a", using=connection)
    here.worker()
    begun = time.monotonic()
    assert requested.result.get(timeout=20) == "a"
    assert time.monotonic() - begun < 5 + 5


def test_time_limits_and_revocation_end_the_run(shop):
    """A hard limit fails it, a termination cancels it; neither is run again."""
    here = shop()
    here.worker(processes=2)
    late = here.module.ship.apply_async(("late", 30.0), time_limit=1)
    with pytest.raises(Exception, match="TimeLimitExceeded"):
        late.get(timeout=20)
    gone = here.module.ship.delay("gone", 30.0)
    until(lambda: here.starts("gone"))
    gone.revoke(terminate=True, signal="SIGKILL")
    with pytest.raises(TaskRevokedError):
        gone.get(timeout=20)
    until(lambda: here.module.ship.request("gone", 30.0).created)
    time.sleep(1.0)
    assert len(here.starts("late")) == 1


def test_a_visibility_timeout_shorter_than_the_task_starts_it_once(require, postgresql_url, tmp_path):
    """Redis delivers it again every two seconds, to two workers; a plain task starts each time."""
    broker = RedisBroker(require("redis"), own=False)
    here = Shop(broker.url, broker.url, postgresql_url, tmp_path, visibility="2")
    try:
        here.worker(processes=2)
        here.worker(processes=2)
        guarded = here.module.ship.delay("guarded", 7.0)
        unguarded = here.module.plain.delay("plain", 7.0)
        assert guarded.get(timeout=40) == "guarded"
        assert unguarded.get(timeout=40) == "plain"
        assert len(here.starts("guarded")) == 1
        assert len(here.starts("plain")) > 1
        assert here.effects() == {"guarded": 1}
    finally:
        here.stop()
        broker.close()
