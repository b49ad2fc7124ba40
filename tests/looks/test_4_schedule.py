"""Looks that are due: started by the sweep, once each, later after failures, and for every tenant."""

import pytest
from sqlalchemy import update

from holdfast.kinds import look
from holdfast.service.requests import RequestContext
from holdfast.store.base.schema import sources as sources_table
from tests.looks.flaky import FlakySource
from tests.looks.install import WISH, counts


def test_a_look_is_started_when_it_is_due_and_the_next_one_later(install):
    """What is new is there without anybody asking, and two sweepers start one look."""
    source = install.add(refresh_every=300.0)
    install.work()
    assert install.sources.start_due() == 0
    install.write("a.txt", "Apples are red.")
    install.pass_time(331.0)
    due = [install.again(source), install.again(source)]
    assert [install.sources._start(each) for each in due] == [1, 0]
    install.work()
    assert counts(install.again(source)) == {"new": 1}
    assert install.sources.start_due() == 0


def test_the_duty_of_the_sweep_starts_looks(install):
    """A worker's sweep is enough: no other scheduler is needed."""
    source = install.add(refresh_every=60.0)
    install.work()
    run = install.again(source).run_id
    install.pass_time(67.0)
    swept = install.runtime.engine.sweep()
    assert swept.other["looks"] == 1
    assert install.again(source).run_id != run


def test_a_source_on_demand_is_never_due(small):
    """Without an interval there is no next look."""
    source = small.add()
    small.work()
    assert small.again(source).next_at is None
    small.write("b.txt", "Bananas are yellow.")
    small.pass_time(1e9)
    assert small.sources.start_due() == 0


def test_while_a_look_runs_no_other_is_requested(install):
    """A look that takes longer than its interval is no duplicate, and nothing is counted as refused."""
    source = install.add(refresh_every=60.0)
    claim = install.claim()
    install.pass_time(100.0)
    assert install.sources.start_due() == 0
    assert install.again(source).run_id == claim.run_id
    assert install.sources.start_due() == 0


def test_after_failures_the_next_look_waits_longer(small, monkeypatch):
    """The wait doubles with every failure in a row, up to a bound, and is short again after a success."""
    flaky = FlakySource(2, breaks_after=1)
    flaky.use(monkeypatch)
    source = small.sources.add(WISH, "shelf", "flaky", {}, refresh_every=600.0)[0]
    small.begin()
    waits = []
    for _ in range(3):
        source = small.look(source)
        waits.append((source.next_at or 0.0) - (source.looked_at or 0.0))
    assert source.failures == 4
    assert [600 * 4 <= waits[0] <= 600 * 4.5, 600 * 16 <= waits[2] <= 600 * 17.7] == [True, True]
    assert look.delay_of(600.0, 50, jitter=0.0) == look.LONGEST_WAIT
    flaky.breaks_after = None
    source = small.look(source)
    assert source.failures == 0
    assert 600 <= (source.next_at or 0.0) - (source.looked_at or 0.0) <= 660.1


def test_the_source_that_waited_longest_is_looked_at_first_of_any_tenant(install, monkeypatch):
    """Sources of many tenants are served in the order in which they fell due, in bounded turns."""
    FlakySource(0).use(monkeypatch)
    monkeypatch.setattr("holdfast.service.sources.PER_TURN", 3)
    for number in range(5):
        tenant = RequestContext(f"t{number}")
        install.services.collections.make(tenant, "shelf")
        added = install.sources.add(tenant, "shelf", "flaky", {}, refresh_every=60.0)[0]
        at = update(sources_table).where(sources_table.c.id == added.id).values(next_at=5.0 - number)
        install.work()
        install.db.write("by_hand", lambda tx, at=at: tx.execute(at))
    assert [install.sources.start_due() for _ in range(3)] == [3, 2, 0]


@pytest.mark.parametrize("change", [{"refresh_every": None}, {"refresh_every": 3600.0}])
def test_another_interval_counts_from_the_last_look(small, change):
    """A source that was looked at just now is not due at once, and one on demand is never due."""
    source = small.add(refresh_every=60.0)
    small.work()
    source = small.sources.change(WISH, small.again(source), **change)
    every = change["refresh_every"]
    expected = None if every is None else (source.looked_at or 0.0) + every
    assert source.next_at == expected
