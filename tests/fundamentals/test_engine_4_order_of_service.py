"""Which task is next, who is woken for it, and which delivery must not run."""

import pytest
from sqlalchemy import select

from holdfast import faults
from holdfast.core.errors import MustWaitError
from holdfast.core.records import Slice
from holdfast.core.states import Skip, Status
from holdfast.engine import wakeups
from holdfast.engine.events import Ending
from holdfast.engine.kinds import Kind
from holdfast.engine.sweep import SweepRules
from holdfast.store.base.schema import tasks

INDEX = Kind("index", lambda work: None)


def served(engine, **lanes):
    return [done.claim.subject.removeprefix("document:") for done in engine.work_off(**lanes)]


def test_lanes_then_priority_then_age(story):
    """Interactive before bulk before follow-up; within a lane 0 first; then first come, first served."""
    engine = story.engine(INDEX)
    for name, lane, priority in [
        ("d", "bulk", 5),
        ("f", "follow-up", 0),
        ("e", "bulk", 5),
        ("c", "bulk", 0),
        ("b", "interactive", 9),
        ("a", "interactive", 1),
    ]:
        engine.request(story.ask(f"document:{name}", lane=lane, priority=priority))
    assert served(engine) == ["a", "b", "c", "d", "e", "f"]


def test_a_worker_serves_only_its_lanes(story):
    """Lanes are kept apart by asking for them, whatever is more urgent elsewhere."""
    engine = story.engine(INDEX)
    engine.request(story.ask("document:bulk"))
    engine.request(story.ask("document:interactive", lane="interactive"))
    assert served(engine, lanes=["bulk"]) == ["bulk"]


def test_a_tenant_with_many_documents_does_not_starve_the_others(story):
    """Of equal urgency, the tenant that was served longest ago is next."""
    engine = story.engine(INDEX)
    for tenant, number in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5)]:
        engine.request(story.ask(f"document:{number}", tenant=tenant))
    assert served(engine)[:3] == ["1", "4", "5"]


def test_a_document_may_jump_the_queue(story):
    """A request that comes last with priority 0 is served next, on any broker."""
    engine = story.engine(INDEX)
    for number in range(5):
        engine.request(story.ask(f"document:{number}"))
    engine.request(story.ask("document:urgent", priority=0))
    assert served(engine)[0] == "urgent"


def test_a_request_wakes_its_lane_after_its_commit(story):
    """A wake-up sent before the commit could find nothing; sent after it, it always finds the task."""
    engine = story.engine(INDEX)
    before = []
    with faults.armed(lambda name: before.append((name, dict(story.sender.lanes)))):
        engine.request(story.ask(lane="interactive"))
    assert before == [("request.commit", {}), ("request.committed", {})]
    assert story.sender.lanes == {"interactive": 1}


@pytest.mark.g6
def test_a_refused_request_wakes_nobody(story):
    """Duplicates cost one short transaction and no message."""
    engine = story.engine(INDEX)
    for _ in range(3):
        engine.request(story.ask())
    assert story.sender.lanes == {"bulk": 1}


def test_wake_ups_are_bounded(story):
    """A thousand slices need no thousand messages: each worker goes on while there is work."""
    engine = story.engine(Kind("index", lambda work: None, plan=lambda work: [Slice()] * 50))
    engine.request(story.ask())
    engine.work_off(most=1)
    assert story.sender.lanes == {"bulk": 1 + wakeups.MOST_AT_ONCE}


class Down(wakeups.Recorder):
    def wake(self, lane):
        raise ConnectionRefusedError("no broker")

    def wake_task(self, task_id, lane):
        self.wake(lane)


@pytest.mark.g4
def test_a_broker_that_is_down_loses_nothing(story):
    """The request is accepted all the same, and the sweep wakes for it when the broker is back."""
    assert story.engine(INDEX, sender=Down()).request(story.ask()).created
    engine = story.engine(INDEX)
    assert engine.sweep().due == {"bulk": 1}
    assert story.sender.lanes == {"bulk": 1}


# Named deliveries: a message that carries the id of its task, as a guarded Celery task has.


def only_task(story, answer):
    return story.tasks(answer.run_id)[0].id


def test_a_delivery_that_names_its_task_runs_it(story):
    """The library's messages carry their task; a delivery claims that one and no other."""
    engine = story.engine(INDEX)
    engine.request(story.ask("document:1"))
    second = engine.request(story.ask("document:2"))
    assert engine.deliver(only_task(story, second)).claim.subject == "document:2"


@pytest.mark.g6
def test_every_reason_to_skip_a_delivery(story):
    """Doubled, late and lost messages meet the task as it is now and say why they must not run."""
    engine = story.engine(INDEX, Kind("wait", wait_long))
    assert engine.deliver(404).reason is Skip.UNKNOWN
    first = engine.request(story.ask())
    task = only_task(story, first)
    engine.deliver(task)
    assert engine.deliver(task).reason is Skip.FINISHED
    second = engine.request(story.ask(content="b"))
    engine.request(story.ask(content="c"))
    assert engine.deliver(only_task(story, second)).reason is Skip.STALE_GENERATION
    engine.cancel(first.head_id)
    cancelled = story.head().run_id
    assert engine.deliver(story.tasks(cancelled)[0].id).reason is Skip.CANCELLED
    waiting = only_task(story, engine.request(story.ask(kind="wait")))
    engine.deliver(waiting)
    assert engine.deliver(waiting).reason is Skip.NOT_DUE
    newer = story.engine(Kind("index", lambda work: None, version=2)).request(story.ask("document:2"))
    assert engine.deliver(only_task(story, newer)).reason is Skip.UNSUPPORTED
    assert len(story.journal("skip")) == 5


def wait_long(work):
    raise MustWaitError("later", reason="rate", delay=600.0)


@pytest.mark.g7
def test_a_delivery_that_finds_its_task_held_is_tried_again_a_few_times(story):
    """`lock_held` notes when to look again, in the database; after its last try the sweep is enough."""
    engine = story.engine(INDEX, lock_held_delay=15.0, lock_held_times=2)
    answer = engine.request(story.ask())
    story.dead_worker(engine)
    task = only_task(story, answer)
    skipped = [engine.deliver(task) for _ in range(3)]
    assert {one.reason for one in skipped} == {Skip.LOCK_HELD}
    assert [one.retry_in for one in skipped] == [15.0, 15.0, None]
    assert story.run(answer.run_id).status is Status.RUNNING
    assert story.tasks(answer.run_id)[0].attempts == 0


@pytest.mark.g7
def test_the_sweep_sends_the_delivery_that_found_a_lock(story):
    """When its time has come the very task is woken, once; a broker that is down is no error."""
    engine = story.engine(INDEX, lock_held_delay=5.0)
    task = only_task(story, engine.request(story.ask()))
    story.dead_worker(engine)
    engine.deliver(task)
    engine.sweep()
    assert story.sender.tasks == []
    story.pass_time(6)
    engine.sweep()
    engine.sweep()
    assert story.sender.tasks == [task]
    engine.deliver(task)
    story.pass_time(6)
    story.engine(INDEX, sender=Down()).sweep()


@pytest.mark.g4
def test_a_delivery_may_take_over_an_expired_lease(story):
    """It need not wait for the sweep; past the cap of losses it is `exhausted` and the sweep ends the run."""
    engine = story.engine(INDEX)
    answer = engine.request(story.ask())
    story.dead_worker(engine)
    story.pass_time(60)
    strict = story.engine(INDEX, rules=SweepRules(interval=0.0, loss_cap=1))
    assert strict.deliver(only_task(story, answer)).reason is Skip.EXHAUSTED
    assert engine.deliver(only_task(story, answer)).ending is Ending.PUBLISHED
    assert story.db.look(select(tasks.c.losses))[0].losses == 1
