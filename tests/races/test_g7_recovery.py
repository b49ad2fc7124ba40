"""G7: a dead worker's task runs elsewhere within its lease and one sweep; a live one is never called dead."""

import contextlib
import threading
import time
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import make_url, text, true

from holdfast.core import decide
from holdfast.core.records import Chunk, Fenced, Slice, Spent
from holdfast.core.states import Disposition, Loss
from holdfast.engine import events, sweep
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.kinds import Kind
from holdfast.engine.sweep import SweepRules
from holdfast.leases.base import LeaseTerms
from holdfast.leases.redis import RedisLeases, connect
from holdfast.store.base import dialect, stalled_sessions
from holdfast.store.money import budgets
from holdfast.store.protocol import carriers, claims, duties, losses, tasks
from holdfast.store.views import reads
from tests.races import actor
from tests.races.arena import DEADLINE, eventually

pytestmark = pytest.mark.g7

SWEEP = SweepRules(interval=0.2, tidy_every=60.0)
SLACK = 3.0  # seconds that a machine with other things to do may take for a few statements
STUCK = decide.SilenceLimits(queued=1.0, running=1.0)


class Survivor:
    """A worker of this process that works and sweeps until it is told to stop."""

    def __init__(self, arena, meter, *, redis_url="", terms=actor.SHORT, kinds=actor.KINDS):
        self._part = actor.Part(
            arena.url,
            meter.base_url,
            keyed=meter.honour_keys,
            terms=terms,
            rules=SWEEP,
            redis_url=redis_url,
            owner="survivor",
        )
        self.provider = actor.client(self._part)
        self.engine = actor.engine(self._part, self.provider, kinds=kinds)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)

    def _live(self):
        with self.engine:
            while not self._stop.wait(0.02):
                self.engine.work_off()
                self.engine.sweep()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(DEADLINE)
        self.provider.close()
        self.engine.db.close()
        assert not self._thread.is_alive()


def noted(arena, verb, owner=None):
    """The journal rows of a verb, by whom."""
    return [row for row in arena.rows("journal", verb=verb) if owner is None or row.actor == owner]


@pytest.mark.chaos
def test_a_dead_holders_task_runs_elsewhere_within_its_lease_and_one_sweep(arena, keyed_meter):
    """Killed in its second slice: claimed again in time; the finished slice and the paid word are kept.

    Nobody can tell that it has died: it was on another machine.
    """
    slices = [["one"], ["two", "three"]]
    arena.ask(pipeline="index@1", options={"slices": slices})
    part = actor.Part(arena.url, keyed_meter.base_url, terms=actor.SHORT, at="stage.committed", nth=2)
    victim = actor.Process(part).go()
    victim.expect("at")
    victim.dies()
    died_at = arena.now()
    arena.set("carriers", {"process": "elsewhere"})
    [held] = arena.rows("tasks", state="running")
    with Survivor(arena, keyed_meter):
        eventually(lambda: arena.head().status == "success")
    [again] = noted(arena, "claim", "survivor")
    assert again.at - died_at <= actor.SHORT.ttl + SWEEP.interval + SLACK
    assert again.at - held.lease_until <= SWEEP.interval + SLACK
    assert again.at > held.lease_until
    assert (again.task_id, again.epoch) == (held.id, held.epoch + 2)
    assert keyed_meter.totals().charges == 3
    assert arena.texts() == ["1:one:128", "1:two:128", "1:three:128"]


@pytest.mark.chaos
def test_the_same_story_with_leases_in_redis(arena, keyed_meter, redis_url):
    """The keeper is another, the promise the same: the dead one's key runs out, the sweep asks Redis."""
    arena.ask(pipeline="index@1", options={"words": ["one", "two"]})
    part = actor.Part(
        arena.url, keyed_meter.base_url, terms=actor.SHORT, redis_url=redis_url, at="stage.committed"
    )
    victim = actor.Process(part).go()
    victim.expect("at")
    victim.dies()
    died_at = arena.now()
    with Survivor(arena, keyed_meter, redis_url=redis_url):
        eventually(lambda: arena.head().status == "success")
    [again] = noted(arena, "claim", "survivor")
    assert again.at - died_at <= actor.SHORT.ttl + SWEEP.interval + SLACK
    assert keyed_meter.totals().charges == 2


def test_a_database_lease_that_ran_out_is_not_expired_while_redis_says_it_lives(arena, redis_url):
    """With leases in Redis the row's own time means nothing: the sweep asks before it takes."""
    client = connect(redis_url)
    with closing(client):
        leases = RedisLeases(client, LeaseTerms(60.0, 20.0, 5.0))
        claim = arena.taken()
        assert leases.open(claim)
        arena.run_out(claim)
        assert not duties.expire(arena.db, cap=9, alive=leases.alive)
        leases.close(claim)
        assert duties.expire(arena.db, cap=9, alive=leases.alive)


def test_a_slow_holder_that_renews_is_never_called_dead(arena, keyed_meter):
    """Longer than its lease without a write: neither a sweep nor a request takes it away."""
    gate = threading.Event()
    slow = Kind("slow", lambda work: {"waited": gate.wait(DEADLINE)})
    terms = LeaseTerms(2.0, 0.15, 0.2)  # a machine that stands still for a second does not end it
    arena.ask(kind="slow", pipeline="slow@1")
    with Survivor(arena, keyed_meter, terms=terms, kinds=(slow,)) as holder:
        try:
            eventually(lambda: arena.count("tasks", state="running"))
            began = arena.now()
            while arena.now() - began < 1.1 * terms.ttl:
                beats = holder.engine.watchdog.beats
                eventually(lambda beats=beats: holder.engine.watchdog.beats > beats)
                assert not duties.expire(arena.db, cap=9)
                assert arena.ask(kind="slow", pipeline="slow@1").disposition is Disposition.DUPLICATE
        finally:
            gate.set()
        eventually(lambda: arena.head(kind="slow").status == "success")
    assert len(noted(arena, "claim")) == 1
    assert noted(arena, "expire") == []


def test_a_clock_that_is_years_off_makes_no_lease_run_out(arena, monkeypatch):
    """The database clock rules: a sweeper whose own is fast takes nothing from the living."""
    claim = arena.taken(ttl=60.0)
    monkeypatch.setattr(time, "time", lambda real=time.time: real() + 1e8)
    assert not duties.expire(arena.db, cap=9)
    assert claims.renew(arena.db, claim, 60.0)
    assert arena.ask().disposition is Disposition.DUPLICATE


def test_a_queue_that_is_merely_long_is_not_dead(arena):
    """Queued for an hour in a lane that still moves is a duplicate; in one that stands still, a takeover."""
    arena.ask()
    arena.set("runs", {"queued_at": 1.0})
    arena.ask("x", "document:2", priority=0)
    arena.claim()
    assert arena.ask(patience=STUCK).disposition is Disposition.DUPLICATE
    arena.set("turns", {"last_served": 1.0})
    arena.set("tasks", {"signed_at": 1.0})
    assert arena.ask(patience=STUCK).disposition is Disposition.TAKEOVER


@pytest.mark.parametrize("reason", ["budget", "rate", "intent", "parked"])
def test_a_task_that_waits_its_turn_is_not_dead(arena, reason):
    """A wait is a sign of life, however long it lasts."""
    claim = arena.taken()
    claims.put_back(arena.db, claim, reason=reason, delay=3600.0)
    arena.set("runs", {"queued_at": 1.0, "started_at": 1.0})
    arena.set("turns", {"last_served": 1.0})
    arena.set("tasks", {"signed_at": 1.0})
    assert arena.ask(patience=STUCK).disposition is Disposition.DUPLICATE
    assert not duties.expire(arena.db, cap=9)


def test_slices_that_stand_in_a_busy_lane_are_not_dead(arena):
    """One slice is done, the others queue behind other people's work: the run lives."""
    tasks.plan(arena.db, arena.taken(), [Slice(), Slice()], Spent())
    arena.set("runs", {"queued_at": 1.0, "started_at": 1.0})
    arena.set("tasks", {"signed_at": 1.0, "claimed_at": 1.0})
    assert arena.ask(patience=STUCK).disposition is Disposition.DUPLICATE


def test_the_sweep_takes_only_what_ran_out(arena):
    """Of two holders one is dead: only its task is due again, and only its epoch has risen."""
    dead, live = arena.taken(subject="document:1"), arena.taken(subject="document:2")
    arena.run_out(dead)
    assert duties.expire(arena.db, cap=9) == {"bulk": 1}
    result = {row.id: (row.state, row.epoch) for row in arena.rows("tasks")}
    assert result == {dead.task_id: ("queued", 2), live.task_id: ("running", 1)}


def test_a_claimer_that_stands_still_does_not_hide_the_work_of_other_tenants(pg_arena):
    """The best task is locked by a claim that stands before its commit: the next tenant's task is served."""
    for tenant in ("anna", "bert"):
        pg_arena.ask(tenant=tenant)
    first = pg_arena.start(lambda: pg_arena.claim(owner="slow"), stop_at="claim.commit").stands()
    assert pg_arena.claim(owner="quick").tenant == "bert"
    assert first.result().tenant == "anna"


def test_a_renewal_inside_its_transaction_is_not_swept_away(pg_arena):
    """The renewal stands before its commit on a lease that has just run out: the sweep passes it by."""
    claim = pg_arena.taken(ttl=1.0)
    holder = pg_arena.start(lambda: claims.renew(pg_arena.db, claim, 60.0), stop_at="renew.commit").stands()
    eventually(lambda: pg_arena.now() > claim.lease_until)
    assert not duties.expire(pg_arena.db, cap=9)
    assert holder.result() is True
    assert not duties.expire(pg_arena.db, cap=9)


def test_of_two_sweepers_at_once_one_takes_the_task_and_counts_one_loss(arena):
    """The second finds nothing: the epoch rises once, the loss is counted once."""
    claim = arena.taken()
    arena.run_out(claim)
    result = arena.race(*[lambda: duties.expire(arena.db, cap=9)] * 3)
    assert sorted(sum(one.values()) for one in result) == [0, 0, 1]
    [task] = arena.rows("tasks")
    assert (task.epoch, task.losses) == (2, 1)


def test_a_death_after_progress_is_not_counted_against_the_task(arena):
    """Bad luck is not poison: only a death with nothing to show for it is an attempt."""
    claim = arena.taken()
    for _ in range(5):
        tasks.advance(arena.db, claim, tasks.Report(claim.epoch, 99))
        claim = arena.take_over(claim)
    assert arena.rows("tasks")[0].attempts == 0


def test_poison_ends_as_abandoned_and_the_old_generation_answers(arena):
    """Three deaths in a row with nothing to show: the run fails and says why."""
    first = arena.taken("a")
    tasks.stage(arena.db, first, [Chunk(0, "old")])
    tasks.finish(arena.db, first, spent=Spent(), staged=1)
    arena.ask("b")
    for _ in range(3):
        arena.run_out(arena.claim())
        duties.expire(arena.db, cap=3)
    run = reads.run(arena.db, arena.head().run_id).run
    assert (run.status, run.error_code) == ("failed", "abandoned")
    assert arena.texts() == ["old"]


def test_a_holder_that_only_waited_for_anothers_order_counts_for_nothing(arena):
    """It held the task, waited and was lost: that says nothing, neither by lease nor by its parent's word."""
    claim = arena.taken()
    for output in (False, True, False):
        claims.note_wait(arena.db, claim, waits=True)
        if output:
            losses.lose(arena.db, claim.task_id, claim.epoch, loss=Loss.PROCESS_DIED, caps=decide.Caps(1, 1))
        else:
            arena.run_out(claim)
            duties.expire(arena.db, cap=1)
        claim = arena.claim()
    assert [(row.attempts, row.losses) for row in arena.rows("tasks")] == [(0, 0)]
    arena.run_out(claim)
    duties.expire(arena.db, cap=9)
    assert arena.rows("tasks")[0].losses == 1


def test_a_death_that_is_told_late_takes_nothing_from_the_next_holder(arena):
    """The parent could not reach the database for a while; its word names the epoch that it speaks of."""
    claim = arena.taken()
    heir = arena.take_over(claim)
    output = {"loss": Loss.PROCESS_DIED, "caps": decide.Caps(1, 1)}
    assert losses.lose(arena.db, claim.task_id, claim.epoch, **output) == {}
    assert claims.renew(arena.db, heir, 60.0)
    assert arena.status(heir.run_id) == "running"


def test_of_a_parent_and_a_sweeper_that_see_a_death_at_once_one_counts_it(arena):
    """The epoch rises once, whoever is first."""
    claim = arena.taken()
    arena.run_out(claim)
    output = {"loss": Loss.PROCESS_DIED, "caps": decide.Caps()}
    result = arena.race(
        lambda: losses.lose(arena.db, claim.task_id, claim.epoch, **output),
        lambda: duties.expire(arena.db, cap=9),
    )
    assert sorted(sum(one.values()) for one in result) == [0, 1]
    [task] = arena.rows("tasks")
    assert (task.epoch, task.attempts + task.losses) == (2, 1)


def test_a_dead_process_is_left_to_its_parent_while_that_one_lives(arena):
    """Only the parent knows that the process died alone; when it is gone as well, the whole worker is."""
    carriers.keep(arena.db, "c", name="worker", process="child", parent="parent", ttl=60.0)
    arena.ask()
    claim = arena.claim(carrier="c")
    assert losses.expire_dead(arena.db, {"child"}.__contains__, decide.Caps()) == {}
    assert losses.expire_dead(arena.db, {"parent"}.__contains__, decide.Caps()) == {}
    assert losses.expire_dead(arena.db, {"child", "parent"}.__contains__, decide.Caps()) == {"bulk": 1}
    assert arena.claim().epoch == claim.epoch + 2
    assert [(row.attempts, row.losses) for row in arena.rows("tasks")] == [(0, 1)]


def test_a_renewal_that_meets_the_end_of_its_task_is_no_lost_lease(arena, keyed_meter):
    """It was refused because the task is done: nobody is told of a lost lease, and nothing is lost."""
    arena.ask(pipeline="index@1", options={"words": ["one"]})
    part = actor.Part(arena.url, keyed_meter.base_url)
    items = []
    with closing(actor.client(part)) as provider:
        engine = actor.engine(part, provider, tell=items.append)
        worker = arena.start(engine.work_off, stop_at="finish.committed").stands()
        engine.watchdog.beat()
        [done] = worker.result()
        engine.db.close()
    assert done.ending == "published"
    assert [one for one in items if isinstance(one, events.Renewed) and not one.granted] == []


def test_draining_settles_what_is_in_flight_and_hands_over_without_paying_twice(arena, unkeyed_meter):
    """The order open at the signal is answered and kept; the next worker pays only for the rest."""
    arena.ask(pipeline="index@1", options={"words": ["one", "two"]})
    part = actor.Part(arena.url, unkeyed_meter.base_url, keyed=False)
    unkeyed_meter.hold("after")
    with closing(actor.client(part)) as provider:
        leaving, staying = (actor.engine(part, provider) for _ in range(2))
        worker = arena.start(leaving.work_off)
        unkeyed_meter.wait_open(1, charged=True)
        leaving.drain()
        unkeyed_meter.release()
        [handed] = worker.result()
        assert (handed.ending, handed.reason) == ("released", "draining")
        assert arena.rows("calls")[0].state == "settled"
        [done] = staying.work_off()
        assert (done.ending, done.claim.attempts) == ("published", 0)
        leaving.db.close()
        staying.db.close()
    assert unkeyed_meter.totals().exchanges == 2
    assert unkeyed_meter.totals().excess == 0
    assert isinstance(tasks.finish(arena.db, handed.claim, spent=Spent()), Fenced)


WAITING = text(
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'ClientRead'"
    " AND xact_start IS NOT NULL AND state_change < clock_timestamp() - make_interval(secs => :seconds)"
)


@contextlib.contextmanager
def frozen(arena, statement, values=(), *, between=False):
    """A session of ours is left in the middle of a hand-over, after the statement or after its answer."""
    url = make_url(arena.url).set(drivername="postgresql").render_as_string(hide_password=False)
    session = psycopg.connect(url, autocommit=True, application_name=dialect.APPLICATION)
    session.execute("SET idle_in_transaction_session_timeout = 200")
    with contextlib.suppress(psycopg.OperationalError), session as left, left.pipeline() as handed_over:
        left.execute("BEGIN")
        left.execute(statement, values)
        if between:
            handed_over.sync()
        left.pgconn.send_flush_request()
        left.pgconn.flush()
        eventually(lambda: arena.db.look(WAITING, {"seconds": 0.5}))
        yield


@pytest.mark.parametrize("moment", ["in_the_first", "after_the_first"])
def test_a_process_frozen_while_it_hands_over_several_statements_keeps_nothing(pg_arena, moment):
    """The server's own clock has stopped, so the sweep ends its session; others' are left alone."""
    claim = pg_arena.taken(ttl=0.05)
    locked = "SELECT id FROM holdfast_tasks WHERE id = %s FOR UPDATE"
    with frozen(pg_arena, locked, [claim.task_id], between=moment == "after_the_first"):
        assert not duties.expire(pg_arena.db, cap=3)
        assert stalled_sessions.end(pg_arena.db, after=60.0) == 0
        assert stalled_sessions.end(pg_arena.db, after=0.5) == 1
        eventually(lambda: duties.expire(pg_arena.db, cap=3))
    assert pg_arena.claim().task_id == claim.task_id


def test_a_sweep_that_meets_a_row_of_a_frozen_session_goes_on_and_ends_it(pg_arena, monkeypatch):
    """The only sweeper of all does not wait for what it alone can free: a later round frees it."""
    budgets.set_budget(pg_arena.db, tenant="default", scope="tenant", hard=1000)
    monkeypatch.setattr(stalled_sessions, "waiting", lambda _db: true())
    engine = Engine(pg_arena.db, EngineDependencies(rules=SweepRules(interval=0.0, tidy_every=0.0)))
    long, ended = iter((60.0, 0.5)), []
    end = stalled_sessions.end
    monkeypatch.setattr(sweep, "ROW_WAIT", 0.2)
    monkeypatch.setattr(
        stalled_sessions, "end", lambda db: ended.append(end(db, after=next(long))) or ended[-1]
    )
    with frozen(pg_arena, "SELECT * FROM holdfast_budgets FOR UPDATE"):
        rounds = [pg_arena.start(engine.sweep).result()]
        (duty,) = pg_arena.rows("duties", name="budgets")
        assert "is locked by someone else" in duty.error  # it did not wait until all its time was over
        rounds.append(pg_arena.start(engine.sweep).result())
        assert [swept.won[0] for swept in rounds] == ["sessions"] * 2
        assert rounds[0].failed == ("budgets",)
        assert ended == [0, 1]
        assert eventually(lambda: budgets.recompute(pg_arena.db) == 0)
    assert not pg_arena.db.was_away(60.0)
