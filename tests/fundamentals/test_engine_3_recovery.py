"""Workers die, hang, wait and are stopped. Whatever happens, what was accepted is carried to its end."""

import pytest
from sqlalchemy import select

from holdfast.core.errors import MustWaitError
from holdfast.core.records import Chunk, Slice
from holdfast.core.states import Disposition, Loss, Status, TaskState
from holdfast.engine.events import Ending
from holdfast.engine.kinds import Kind
from holdfast.store.base.schema import tasks as task_table
from holdfast.store.protocol import losses, tasks

INDEX = Kind("index", lambda work: work.stage([Chunk(0, work.content)]))


def attempts(story, run_id):
    return [task.attempts for task in story.tasks(run_id)]


@pytest.mark.g4
@pytest.mark.g7
def test_a_dead_workers_task_is_due_again_when_its_lease_has_run_out(story):
    """The sweep finds it, wakes the lane, and another worker does it."""
    engine = story.engine(INDEX)
    engine.request(story.ask())
    story.dead_worker(engine)
    assert engine.work_off() == []
    story.pass_time(engine.leases.terms.ttl + 1)
    assert engine.sweep().due == {"bulk": 1}
    assert story.sender.lanes["bulk"] == 2
    assert [done.ending for done in engine.work_off()] == [Ending.PUBLISHED]


@pytest.mark.g7
def test_a_lease_that_lives_is_left_alone(story):
    """A slow worker is not a dead one: until its lease runs out, nobody takes its task."""
    engine = story.engine(INDEX)
    engine.request(story.ask())
    story.dead_worker(engine)
    story.pass_time(engine.leases.terms.ttl - 2)
    assert engine.sweep().due == {}
    assert engine.work_off() == []


@pytest.mark.g7
def test_finished_slices_are_kept_when_a_worker_dies(story):
    """Only the slice that was in the dead worker's hands is done again."""
    done = []

    def slow(work):
        done.append(work.payload["n"])

    engine = story.engine(Kind("index", slow, plan=lambda work: [Slice({"n": 1}), Slice({"n": 2})]))
    engine.request(story.ask())
    engine.work_off(most=2)
    assert story.dead_worker(engine).payload == {"n": 2}
    story.pass_time(60)
    engine.sweep()
    engine.work_off()
    assert done == [1, 2]


@pytest.mark.g2
def test_the_dead_worker_comes_back_and_writes_nothing(story):
    """Frozen, replaced and thawed: every write of the old holder is refused."""
    engine = story.engine(INDEX)
    engine.request(story.ask())
    frozen = story.dead_worker(engine)
    story.pass_time(60)
    engine.sweep()
    engine.work_off()
    late = tasks.stage(story.db, frozen, [Chunk(7, "late")])
    assert late.reason == "run_success"
    assert story.texts() == ["a"]


@pytest.mark.g4
def test_work_that_kills_its_workers_is_given_up(story):
    """Three deaths of the process that ran it, with nothing to show, fail the run: poison goes no further."""
    engine = story.engine(INDEX)
    run_id = engine.request(story.ask()).run_id
    for died in (1, 2, 3):
        claim = story.dead_worker(engine)
        output = {"loss": Loss.PROCESS_DIED, "caps": engine.parts.rules.caps}
        due = losses.lose(story.db, claim.task_id, claim.epoch, **output)
        assert (due, attempts(story, run_id)) == (({"bulk": 1}, [died]) if died < 3 else ({}, [2]))
    ended = story.run(run_id)
    assert (ended.status, ended.error_code) == (Status.FAILED, "abandoned")
    assert engine.request(story.ask()).reason == "after_failed"


@pytest.mark.g4
def test_a_storm_in_which_whole_workers_disappear_is_waited_out(story):
    """Nobody saw why: the task is tried again, after a growing wait from the fourth time on, up to a cap."""
    engine = story.engine(INDEX)
    run_id = engine.request(story.ask()).run_id
    waits = []
    for _ in range(19):
        story.dead_worker(engine)
        story.pass_time(60)
        engine.sweep()
        waits.append(story.tasks(run_id)[0].waiting_for)
        story.pass_time(61)
        engine.sweep()
    assert waits == [None] * 3 + ["recovery"] * 16
    assert attempts(story, run_id) == [0]
    story.dead_worker(engine)
    story.pass_time(60)
    engine.sweep()
    assert story.run(run_id).error_code == "abandoned"


@pytest.mark.g4
def test_bad_luck_is_not_poison(story):
    """A worker that made progress before it died costs no attempt, however often it happens."""
    engine = story.engine(INDEX)
    run_id = engine.request(story.ask()).run_id
    for done in range(1, 6):
        claim = story.dead_worker(engine)
        tasks.advance(story.db, claim, tasks.Report(done, 9))
        story.pass_time(60)
        engine.sweep()
    assert attempts(story, run_id) == [0]
    assert [done.ending for done in engine.work_off()] == [Ending.PUBLISHED]


@pytest.mark.g7
def test_after_an_outage_the_sweep_gives_every_lease_one_more_term(story, monkeypatch):
    """Nobody could renew while the database was unreachable, so the first sweep calls nobody dead."""
    engine = story.engine(INDEX)
    engine.request(story.ask())
    engine.sweep()
    story.dead_worker(engine)
    story.pass_time(60, without_sweep=True)
    with monkeypatch.context() as patch:
        patch.setattr(story.db, "was_away", lambda within: True)
        assert engine.sweep().due == {}
    story.pass_time(engine.leases.terms.ttl, without_sweep=True)
    assert engine.sweep().due == {"bulk": 1}


@pytest.mark.g7
def test_after_a_night_without_workers_there_is_no_grace(story):
    """The database was there all along: leases that ran out belong to nobody."""
    engine = story.engine(INDEX)
    engine.request(story.ask())
    engine.sweep()
    story.dead_worker(engine)
    story.pass_time(30_000, without_sweep=True)
    assert engine.sweep().due == {"bulk": 1}


@pytest.mark.g4
def test_what_must_wait_is_put_back_and_due_again(story):
    """A wait is no failure and no attempt; when it is over, the sweep makes the task due."""
    waits = [MustWaitError("the provider is busy", reason="rate", delay=60.0)]

    def busy_once(work):
        if waits:
            raise waits.pop()

    engine = story.engine(Kind("index", busy_once))
    run_id = engine.request(story.ask()).run_id
    assert [done.ending for done in engine.work_off()] == [Ending.PUT_BACK]
    (waiting,) = story.tasks(run_id)
    assert (waiting.state, waiting.waiting_for) == (TaskState.WAITING, "rate")
    assert engine.sweep().due == {}
    story.pass_time(61)
    assert engine.sweep().due == {"bulk": 1}
    assert [done.ending for done in engine.work_off()] == [Ending.PUBLISHED]
    assert attempts(story, run_id) == [0]


@pytest.mark.g7
def test_a_wait_is_a_sign_of_life(story):
    """However long it waits for its budget, nobody may take it over."""

    def broke(work):
        raise MustWaitError("no money", reason="budget", delay=1e6)

    engine = story.engine(Kind("index", broke))
    engine.request(story.ask())
    engine.work_off()
    story.pass_time(90_000)
    assert engine.request(story.ask()).disposition is Disposition.DUPLICATE


@pytest.mark.g7
def test_a_worker_that_is_stopped_hands_its_task_back_at_once(story):
    """Drain: the next check ends the work, the task is queued again, and another worker goes on now."""

    def long(work):
        stopping.drain()
        work.check()

    stopping = story.engine(Kind("index", long))
    run_id = stopping.request(story.ask()).run_id
    (done,) = stopping.work_off()
    assert (done.ending, done.reason) == (Ending.RELEASED, "draining")
    assert stopping.work_off() == []
    assert story.sender.lanes["bulk"] == 2
    assert [done.ending for done in story.engine(INDEX).work_off()] == [Ending.PUBLISHED]
    assert attempts(story, run_id) == [0]


@pytest.mark.g2
def test_the_epoch_rises_at_every_change_of_holder(story):
    """Also to nobody: a claim, a lost lease and a hand-back each make all older claims worthless."""
    engine = story.engine(INDEX)
    engine.request(story.ask())
    epochs = []
    for _ in range(2):
        epochs.append(story.dead_worker(engine).epoch)
        story.pass_time(60)
        engine.sweep()
    query = select(task_table.c.epoch)
    epochs.append(story.db.read(lambda tx: tx.one(query)).epoch)
    assert epochs == [1, 3, 4]


@pytest.mark.g4
def test_inline_mode_does_everything_right_here(story):
    """`run_until_idle` needs no other process: work, waits and sweeps until nothing is left."""
    waits = [MustWaitError("in a moment", reason="rate", delay=0.01)]

    def busy_once(work):
        if waits:
            raise waits.pop()

    engine = story.engine(Kind("index", busy_once, plan=lambda work: [Slice(), Slice()]))
    run_id = engine.request(story.ask()).run_id
    endings = [done.ending for done in engine.run_until_idle()]
    assert (endings[0], endings[-1]) == (Ending.PLANNED, Ending.PUBLISHED)
    assert story.run(run_id).status is Status.SUCCESS
