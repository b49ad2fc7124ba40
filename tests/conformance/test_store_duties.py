"""What the sweep finds and puts right."""

import pytest
from sqlalchemy import select, update

from holdfast.core import decide
from holdfast.core.records import Fenced, Landed, Spent
from holdfast.core.states import Lane, Loss, Status, TaskState
from holdfast.store.base.schema import duties as duty_rows
from holdfast.store.base.schema import runs
from holdfast.store.protocol import duties, duty_schedule, losses
from holdfast.store.protocol import tasks as fenced
from holdfast.store.views import reads

PULSE = duty_schedule.pulse_of({})


@pytest.mark.g7
def test_a_dead_workers_task_is_due_again_and_finished_slices_are_kept(world):
    """Only the slice of the dead worker runs again, under a new epoch."""
    done, dead = world.sliced()
    fenced.finish(world.db, done, spent=Spent())
    world.lapse(dead)
    assert duties.expire(world.db, cap=3) == {Lane.BULK: 1}
    again = world.claim(owner="next")
    assert (again.task_id, again.epoch, again.attempts) == (dead.task_id, dead.epoch + 2, 0)
    assert world.task(dead).losses == 1
    assert world.task(done).state == TaskState.DONE
    assert fenced.finish(world.db, again, spent=Spent()) == Landed(published=True)


@pytest.mark.g7
def test_a_living_lease_is_not_expired(world):
    """Slow is not dead."""
    world.start()
    assert duties.expire(world.db, cap=3) == {}


@pytest.mark.g7
def test_a_lease_that_lives_elsewhere_is_spared(world):
    """Another lease backend is asked before anybody is called dead."""
    claim = world.start()
    world.lapse(claim)
    assert duties.expire(world.db, cap=3, alive=lambda pairs: {task_id for task_id, _ in pairs}) == {}
    assert world.task(claim).state == TaskState.RUNNING


@pytest.mark.g7
def test_dead_tasks_behind_many_that_live_elsewhere_are_found(world, monkeypatch):
    """The oldest leases may all be alive in Redis: a sweep looks past them, and the next one goes on."""
    monkeypatch.setattr(duties, "BATCH", 2)
    monkeypatch.setattr(duties, "MOST_PAGES", 2)
    claims = [world.start(subject=f"document:{number}") for number in range(7)]
    for number, claim in enumerate(claims):
        world.set_task(claim, lease_until=1.0 + number // 3)  # several of the same moment
    living = {claim.task_id for claim in claims[:6]}
    cursor = duties.ExpiryCursor()
    alive = lambda pairs: {task_id for task_id, _ in pairs} & living
    woken = [duties.expire(world.db, cap=3, alive=alive, cursor=cursor) for _ in range(3)]
    assert woken == [{}, {Lane.BULK: 1}, {}]
    assert [world.task(claim).state for claim in claims] == [TaskState.RUNNING] * 6 + [TaskState.QUEUED]
    living.clear()
    assert sum(duties.expire(world.db, cap=3, alive=alive, cursor=cursor)[Lane.BULK] for _ in range(3)) == 6


@pytest.mark.g4
def test_a_task_that_dies_too_often_with_nothing_to_show_fails_its_run(world):
    """After the cap the run is abandoned: a terminal state, with a reason to act on."""
    world.request()
    for _ in range(3):
        claim = world.claim()
        world.lapse(claim)
        duties.expire(world.db, cap=3)
    run = reads.run(world.db, claim.run_id).run
    assert (run.status, run.error_code) == (Status.FAILED, "abandoned")
    assert (world.head().status, world.task(claim).state) == (Status.FAILED, TaskState.FAILED)
    assert world.claim() is None


@pytest.mark.g2
def test_abandon_looks_again_under_the_lock(world):
    """A worker that finished while the sweep was deciding is not abandoned."""
    claim = world.start()
    world.lapse(claim)
    row = world.row(select(*losses.LOST_COLUMNS))
    fenced.finish(world.db, claim, spent=Spent())
    assert not losses.abandon(world.db, row, Loss.LEASE_EXPIRED, decide.Caps())
    assert world.head().status is Status.SUCCESS


@pytest.mark.g4
def test_a_stranded_run_whose_slices_are_all_done_is_published(world):
    """A live run with no open task ends: whole, so it is published."""
    one, two = world.sliced(collection="books")
    fenced.finish(world.db, one, spent=Spent())
    world.set_task(two, state="done", lease_until=0.0)
    assert duties.mend_stranded(world.db, lambda _kind: False) == 1
    assert (world.head().status, world.head().visible) == (Status.SUCCESS, True)
    assert ("publish", "mended") in world.journal()
    assert duties.mend_stranded(world.db, lambda _kind: False) == 0


@pytest.mark.g4
def test_a_stranded_run_that_is_not_whole_fails(world):
    """A live run with no open task ends: not whole, so it fails and may be asked for again."""
    one, two = world.sliced()
    world.set_task(one, state="done")
    world.set_task(two, state="closed")
    assert duties.mend_stranded(world.db, lambda _kind: False) == 1
    assert reads.run(world.db, one.run_id).run.error_code == "stranded"
    assert world.request().created


def test_a_run_with_work_left_is_not_mended(world):
    """Queued, waiting or running slices are work left."""
    world.sliced()
    assert duties.mend_stranded(world.db, lambda _kind: False) == 0


def test_due_work_is_counted_per_lane_up_to_a_bound(world):
    """As many wake-ups as tasks are due, but no more than the bound."""
    for number in range(4):
        world.request(subject=f"document:{number}")
    world.request(subject="document:9", lane=Lane.INTERACTIVE)
    assert duties.forgotten(world.db, list(Lane), 3) == {Lane.BULK: 3, Lane.INTERACTIVE: 1}


def test_a_duty_is_won_by_one_sweeper_per_turn(world):
    """Compare-and-set on its next time; before that nobody wins it."""
    duty_schedule.enrol(world.db, {"expire": 60.0, "mend": 60.0})
    due = lambda: {name for name, each in duty_schedule.pulse(world.db, PULSE).items() if each.is_due}
    assert due() == {"expire", "mend"}
    terms = {"every": 60.0, "grace_after": 30.0, "grace": 12.0}
    assert duty_schedule.win(world.db, "expire", **terms).last_at == 0.0
    assert duty_schedule.win(world.db, "expire", **terms) is None
    assert duty_schedule.win(world.db, "unknown", **terms) is None
    assert due() == {"mend"}


@pytest.mark.g7
def test_after_an_outage_leases_get_a_grace(world):
    """A duty that nobody could do for long means the database was unreachable, not that every worker died."""
    duty_schedule.enrol(world.db, {"expire": 2.0})
    terms = {"every": 0.0, "grace_after": 30.0, "grace": 12.0}
    first = duty_schedule.win(world.db, "expire", **terms)
    assert first.grace_until == 0.0
    world.write(update(duty_rows).values(last_at=first.now - 100, next_at=1.0))
    after = duty_schedule.win(world.db, "expire", **terms)
    assert after.grace_until == pytest.approx(after.now + 12.0)


def test_the_next_change_is_the_end_of_a_wait_or_of_a_lease(world):
    """Nothing waits, nothing changes; a lease of a minute ends within the minute."""
    assert duties.next_change(world.db) is None
    world.start()
    assert 0 < duties.next_change(world.db) <= 60.0


@pytest.mark.g1
def test_a_superseded_run_is_never_mended(world):
    """The sweep finds live runs only."""
    one, _two = world.sliced()
    world.request(content="b")
    assert duties.mend_stranded(world.db, lambda _kind: False) == 0
    assert world.row(select(runs.c.status).where(runs.c.id == one.run_id)).status == Status.SUPERSEDED
    assert fenced.finish(world.db, one, spent=Spent()) == Fenced("run_superseded")
