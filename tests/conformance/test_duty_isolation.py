"""A duty of the sweep that is slow, fails or never ends holds up no other, and everybody can see it."""

import threading
import time

import pytest
from sqlalchemy import func, literal, select, text

from holdfast.chaos.waiting import until
from holdfast.core.errors import StoreTimeoutError
from holdfast.engine.duty_threads import DutyThreads
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.sweep import Duty, SweepRules
from holdfast.store.base import dialect, time_limits
from holdfast.store.base.schema import duties, tasks
from holdfast.store.protocol import duty_schedule

ENDLESS = {
    True: select(func.pg_sleep(600)),
    False: text("WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g) SELECT max(n) FROM g"),
}
ONE = select(literal(1).label("one"))
RULES = SweepRules(interval=0.0, tidy_every=0.0)


@pytest.fixture
def endless(world):
    """A look at the database that would take for ever."""
    return lambda: world.db.look(ENDLESS[world.db.postgresql])


def engine(world, *beside, **rules):
    return Engine(world.db, EngineDependencies(rules=RULES, duties=beside))


def health(world, name):
    return next(each for each in duty_schedule.health(world.db) if each.name == name)


@pytest.mark.parametrize("way", ["look", "read", "write"])
def test_a_statement_is_stopped_when_the_time_is_over(world, way):
    """In the middle of it, on both databases; the connection is good for the next one."""
    forever, began = ENDLESS[world.db.postgresql], time.monotonic()
    ways = {
        "look": lambda: world.db.look(forever),
        "read": lambda: world.db.read(lambda tx: tx.all(forever)),
        "write": lambda: world.db.write("by_hand", lambda tx: tx.all(forever)),
    }
    with pytest.raises(StoreTimeoutError), time_limits.time_limit(0.3):
        ways[way]()
    assert time.monotonic() - began < 60
    assert world.row(ONE).one == 1
    assert not world.db.was_away(60.0)


def test_a_duty_that_takes_too_long_is_stopped_and_the_others_have_their_turn(world, endless):
    """The leases of the dead are expired in the same round, and the slow one is told of."""
    claim = world.start()
    world.lapse(claim)
    later = []
    slow = Duty("slow", 0.0, endless, limit=0.3)
    swept = engine(world, slow, Duty("later", 0.0, lambda: later.append(1) or 1)).sweep()
    assert (swept.failed, swept.due, later) == (("slow",), {"bulk": 1}, [1])
    assert (health(world, "slow").failures, health(world, "slow").succeeded) == (1, None)
    assert "longer than 0.3 s" in health(world, "slow").error
    assert (health(world, "later").failures, health(world, "later").lag) == (0, 0.0)


def test_a_duty_that_fails_is_told_of_until_it_succeeds(world):
    """Each failure counts; a success takes them back."""
    broken = [True]

    def work():
        if broken[0]:
            raise KeyError("a bad row")
        return 3

    sweeping = engine(world, Duty("work", 0.0, work))
    assert [sweeping.sweep().failed for _ in range(2)] == [("work",)] * 2
    output = health(world, "work")
    assert (output.failures, output.error, output.failed < 60) == (2, "KeyError: 'a bad row'", True)
    broken.clear()
    broken.append(False)
    assert sweeping.sweep().other["work"] == 3
    assert (health(world, "work").failures, health(world, "work").error) == (0, "")


def test_a_duty_that_never_ends_is_left_behind(world):
    """It waits for no database, so nothing can stop it: the others go on, and it is not begun again."""
    gate, begun, done = threading.Event(), [], []
    stuck = Duty("stuck", 0.0, lambda: begun.append(1) or gate.wait(60) or 0, limit=0.1)
    sweeping = engine(world, stuck, Duty("other", 0.0, lambda: done.append(1) or 1))
    sweeping.sweeper.apart = DutyThreads(sweeping.sweeper.overran, slack=0.1)
    sweeping.sweep()
    until(lambda: done, 30, "the other duty has no turn")
    until(lambda: sweeping.sweep() and len(done) > 1, 30, "the other duty has no second turn")
    until(lambda: health(world, "stuck").failures, 30, "nobody is told")
    assert begun == [1]
    gate.set()
    assert sweeping.sweeper.apart.stop(timeout=30)


def test_duties_that_wait_for_their_turn_do_not_begin_when_it_is_told_to_stop():
    """Only what has begun is waited for, so that a worker ends at once however long the line was."""
    gate, begun = threading.Event(), []
    apart = DutyThreads(lambda *_: None)
    apart.submit("first", 30.0, lambda: begun.append("first") or gate.wait(60))
    until(lambda: begun, 30, "the first duty has no turn")
    apart.submit("second", 30.0, lambda: begun.append("second"))
    assert not apart.stop(timeout=0.0)
    gate.set()
    assert apart.stop(timeout=30)
    assert begun == ["first"]


def test_a_clock_that_is_set_back_keeps_no_duty_waiting_and_no_lease_alive(world):
    """It shows the time of an hour ago: all duties have their turn, and a dead holder loses its task soon."""
    world.start()
    sweeping = Engine(world.db, EngineDependencies(rules=SweepRules(interval=60.0, tidy_every=60.0)))
    sweeping.sweep()
    for name in ("next_at", "last_at", "succeeded_at", "enrolled_at"):
        world.write(duties.update().values({name: duties.c[name] + 3600.0}))
    world.write(tasks.update().values(lease_until=tasks.c.lease_until + 3600.0))
    assert "budgets" in sweeping.sweep().won
    assert all(each.succeeded >= 0.0 for each in duty_schedule.health(world.db))
    left = world.row(select((tasks.c.lease_until - dialect.now()).label("seconds"))).seconds
    assert left <= sweeping.sweeper._leases.terms.ttl
    assert sweeping.sweep().won == ()


def test_at_rest_a_round_is_one_statement_and_every_duty_is_on_time(world):
    """What has nothing to do has succeeded; that is noted now and then, and not in every round."""
    sweeping = engine(world)
    sweeping.sweep()
    assert {each.name for each in duty_schedule.health(world.db)} == {
        each.name for each in sweeping.sweeper.duties
    }
    assert max(each.lag for each in duty_schedule.health(world.db)) == 0.0
    assert all(each.succeeded < 60 for each in duty_schedule.health(world.db))
