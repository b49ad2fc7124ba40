"""The phases of a run: begun once, by whoever may write, with what the earlier ones have left."""

import pytest
from sqlalchemy import exc, select, update

from holdfast.core.records import Chunk, Fenced, Landed, Slice, Spent
from holdfast.core.states import Status, TaskState
from holdfast.store.base.schema import runs, tasks
from holdfast.store.protocol import claims, duties, phases, requests
from holdfast.store.protocol import tasks as fenced
from holdfast.store.views import reads


def go_on(world, claim, **more):
    return fenced.finish(world.db, claim, spent=Spent(), goes_on=True, **more)


def second_phase(world):
    """The planning task of a second phase is held; the first had two slices, with a chunk each."""
    for claim in world.sliced():
        fenced.stage(world.db, claim, [Chunk(0, f"text {claim.ordinal}", data={"n": claim.ordinal})])
        go_on(world, claim, staged=1, result={"n": claim.ordinal})
    return world.claim(owner="planner")


@pytest.mark.g3
def test_the_last_finisher_of_a_phase_queues_the_plan_of_the_next(world):
    """The first one only finishes; the last one inserts one task, and publishes nothing."""
    one, two = world.sliced()
    assert go_on(world, one) == Landed()
    assert go_on(world, two) == Landed(goes_on=True)
    assert (world.head().status, world.head().visible) == (Status.RUNNING, False)
    plan = world.claim()
    assert (plan.ordinal, plan.phase, plan.plans) == (3, 1, True)
    assert (plan.lane, plan.priority, plan.pipeline) == (one.lane, one.priority, one.pipeline)
    ages = {row.age for row in world.rows(select(tasks.c.age))}
    assert len(ages) == 1
    assert ("finish", "phase_done") in world.journal()


def test_slices_of_a_later_phase_are_numbered_on(world):
    """What they stage never collides with what the first phase has staged."""
    plan = second_phase(world)
    assert fenced.plan(world.db, plan, [Slice({"a": 1}), Slice()], Spent()) == Landed()
    rows = world.rows(select(tasks.c.ordinal, tasks.c.phase, tasks.c.state).order_by(tasks.c.ordinal))
    assert [(row.ordinal, row.phase) for row in rows] == [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (5, 1)]
    claim = world.claim()
    assert (claim.ordinal, claim.phase, claim.plans, claim.payload) == (4, 1, False, {"a": 1})
    assert world.row(select(runs.c.slices, runs.c.phase)) == (5, 1)


@pytest.mark.g3
def test_an_empty_plan_publishes_all_phases(world):
    """The run ends in the phase that had work, with the result of its last slice."""
    plan = second_phase(world)
    assert fenced.finish(world.db, plan, spent=Spent()) == Landed(published=True)
    assert world.texts(plan.head_id) == ["text 1", "text 2"]
    detail = reads.run(world.db, plan.run_id)
    assert (detail.run.status, detail.run.phase, detail.result) == (Status.SUCCESS, 0, {"n": 2})


@pytest.mark.g2
def test_a_phase_is_begun_by_whoever_may_write_alone(world):
    """A worker that lost the last slice inserts nothing."""
    one, two = world.sliced()
    go_on(world, one)
    claims.release(world.db, two, "test")
    assert go_on(world, two) == Fenced("stale_epoch")
    assert world.count(tasks, tasks.c.phase > 0) == 0


@pytest.mark.g2
def test_a_phase_cannot_be_begun_twice(world):
    """Whoever tried it would insert the same number again, which the database refuses."""
    plan = second_phase(world)
    values = phases.next_values(reads.run(world.db, plan.run_id).run, 2, 0.0) | {"b_run": plan.run_id}
    with pytest.raises(exc.IntegrityError, match=r"(?i)one_task_per_slice|run_id.*ordinal"):
        world.db.write("by_hand", lambda tx: tx.execute(phases.INSERT_PLANNING, values))


@pytest.mark.g2
def test_the_right_to_a_slice_of_one_phase_is_none_in_the_next(world):
    """A finished slice of the first phase is fenced out of everything, whatever the run does now."""
    one, two = world.sliced()
    go_on(world, one)
    go_on(world, two)
    plan = world.claim(owner="planner")
    assert fenced.stage(world.db, two, [Chunk(9, "late")]) == Fenced("task_done")
    assert go_on(world, two) == Fenced("task_done")
    assert fenced.finish(world.db, plan, spent=Spent()) == Landed(published=True)
    assert world.texts(two.head_id) == []


def test_the_earlier_phases_are_read_under_the_claim(world):
    """Their slices in order with results and chunks, without the plan; nothing once the claim is lost."""
    plan = second_phase(world)
    earlier = phases.earlier(world.db, plan)
    assert [(part.phase, part.number, part.result, part.chunks) for part in earlier] == [
        (0, 1, {"n": 1}, 1),
        (0, 2, {"n": 2}, 1),
    ]
    chunks = phases.earlier_chunks(world.db, plan, 2, (0, -1))
    assert [(number, chunk.text, chunk.data) for number, chunk in chunks] == [
        (1, "text 1", {"n": 1}),
        (2, "text 2", {"n": 2}),
    ]
    assert phases.earlier_chunks(world.db, plan, 2, (2, 0)) == []
    requests.cancel(world.db, plan.head_id)
    assert phases.earlier(world.db, plan) is None
    assert phases.earlier_chunks(world.db, plan, 2, (0, -1)) is None


@pytest.mark.g4
@pytest.mark.parametrize("moment", ["commit", "committed"])
def test_a_lost_connection_changes_nothing_about_the_end_of_a_phase(world, lose, moment):
    """Lost before the COMMIT or before the answer to it: the next phase is begun once, and that is told."""
    one, two = world.sliced()
    go_on(world, one)
    with lose(f"next_phase.{moment}"):
        assert go_on(world, two) == Landed(goes_on=True)
    assert world.count(tasks, tasks.c.phase == 1, tasks.c.state == TaskState.QUEUED) == 1


def stranded(world):
    """All slices are done, and whoever finished the last one has not gone on."""
    one, two = world.sliced(collection="books")
    go_on(world, one)
    world.set_task(two, state="done", lease_until=0.0)
    return two


@pytest.mark.g4
@pytest.mark.parametrize("moment", ["", "mend.commit", "mend.committed"])
def test_a_stranded_run_whose_kind_goes_on_is_planned_further(world, lose, moment):
    """The sweep neither publishes nor fails what may have a further phase; it queues its plan, once."""
    claim = stranded(world)
    with lose(moment):
        assert duties.mend_stranded(world.db, lambda kind: kind == "index") == 1
    assert duties.mend_stranded(world.db, lambda _kind: True) == 0
    assert (world.head().status, world.head().visible) == (Status.RUNNING, False)
    assert ("finish", "mended") in world.journal()
    plan = world.claim()
    assert (plan.run_id, plan.ordinal, plan.phase, plan.plans) == (claim.run_id, 3, 1, True)
    assert fenced.finish(world.db, plan, spent=Spent()) == Landed(published=True)


@pytest.mark.g4
def test_a_stranded_run_whose_plan_did_the_work_itself_goes_on_after_it(world):
    """The task that planned the second phase did its one slice: the next one has the number after it."""
    plan = second_phase(world)
    world.set_task(plan, state="done", lease_until=0.0)
    assert duties.mend_stranded(world.db, lambda _kind: True) == 1
    again = world.claim()
    assert (again.ordinal, again.phase, again.plans) == (plan.ordinal + 1, 2, True)


@pytest.mark.g4
def test_a_stranded_run_that_is_not_whole_fails_in_any_phase(world):
    """A later phase is begun only after a whole one."""
    plan = second_phase(world)
    world.write(update(tasks).where(tasks.c.id == plan.task_id).values(state="closed"))
    assert duties.mend_stranded(world.db, lambda _kind: True) == 1
    assert reads.run(world.db, plan.run_id).run.error_code == "stranded"
