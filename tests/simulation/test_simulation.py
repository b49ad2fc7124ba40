"""The simulator itself: it replays, it keeps finding nothing, and it does find what is broken on purpose."""

import os
import random
from collections.abc import Iterator

import pytest
from sqlalchemy import bindparam, update

from holdfast.core import decide
from holdfast.core.records import Landed
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import tasks
from holdfast.store.money import orders
from holdfast.store.protocol import claims
from tests.simulation.report import explain
from tests.simulation.runner import run_seed
from tests.simulation.storage import Storage

FIXED = range(200)
FRESH = 100  # `make simulate` explores as many as one likes


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    """One database for all seeds of this file; its compiled statements are dear."""
    created = Storage()
    yield created
    created.close()


def _first_failure(storage: Storage, seeds: range) -> str:
    for seed in seeds:
        result = run_seed(storage, seed)
        if result.failure:
            return explain(result)
    return ""


@pytest.mark.parametrize("part", range(4))
def test_known_schedules_keep_every_promise(storage: Storage, part: int) -> None:
    """The same schedules every time: a change that breaks one of them is noticed."""
    assert not _first_failure(storage, FIXED[part * 50 : part * 50 + 50])


def test_fresh_schedules_keep_every_promise(storage: Storage) -> None:
    """New schedules every time; a failure names the seed that replays it."""
    start = int(os.environ.get("SIMULATION_START", random.SystemRandom().randrange(10**6, 10**9)))
    print(f"seeds from {start}")
    assert not _first_failure(storage, range(start, start + FRESH))


def test_a_seed_replays_step_by_step(storage: Storage) -> None:
    """The trace of a seed is the same whatever was simulated before it."""
    first = [run_seed(storage, seed, fingerprint=True).fingerprint for seed in range(12)]
    again = [run_seed(storage, seed, fingerprint=True).fingerprint for seed in reversed(range(12))]
    assert first == again[::-1]


def test_a_fence_that_lets_everybody_write_is_noticed(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the fence a thawed worker writes what is no longer its own (G2)."""
    monkeypatch.setattr(decide, "fence", lambda *_: Landed())
    assert "broke G" in _first_failure(storage, range(100))


def test_a_renewal_that_takes_back_a_lost_lease_is_noticed(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal that also acquires keeps a thawed worker alive beside its successor (G2)."""
    broken = (
        update(tasks).where(tasks.c.id == bindparam("b_task")).values(lease_until=now() + bindparam("b_ttl"))
    )
    monkeypatch.setattr(claims, "RENEW", broken)
    assert "broke G2" in _first_failure(storage, range(150))


def test_an_unknown_outcome_taken_for_a_refusal_is_noticed(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An order whose answer was lost must be in doubt; voiding it pays twice without a trace (G5)."""
    monkeypatch.setattr(orders, "doubt", orders.void)
    assert "broke G5" in _first_failure(storage, range(150))
