"""Request, cancel, delete: what makes and what ends a generation."""

import pytest
from sqlalchemy import select, update

from holdfast.core.records import Fenced, Landed, Slice, Spent
from holdfast.core.states import Disposition, Status, TaskState
from holdfast.store.base.schema import budgets, collections, runs, tasks, turns
from holdfast.store.protocol import claims, requests
from holdfast.store.protocol import tasks as fenced

pytestmark = pytest.mark.timeout(60)


@pytest.mark.g1
def test_the_first_request_makes_generation_one_with_one_queued_plan_task(world):
    """Nothing asked yet: the request is accepted, and its plan task is due at once."""
    answer = world.request()
    assert (answer.disposition, answer.generation, answer.status) == (Disposition.ACCEPTED, 1, Status.QUEUED)
    task = world.row(select(tasks))
    assert (task.run_id, task.ordinal, task.state, task.epoch) == (answer.run_id, 0, TaskState.QUEUED, 0)
    assert world.head().status is Status.QUEUED


@pytest.mark.g6
def test_a_duplicate_is_refused_names_the_active_run_and_is_counted(world):
    """Asking twice for the same makes one run; the second answer points at it and leaves a journal row."""
    first, second = world.request(), world.request()
    assert (second.disposition, second.run_id) == (Disposition.DUPLICATE, first.run_id)
    assert world.count(runs) == 1
    assert world.journal("request")[-1] == ("request", "duplicate:in_progress")


@pytest.mark.g1
def test_changed_content_supersedes_closes_the_tasks_and_raises_their_epochs(world):
    """The older run is stale the moment the newer request commits, and its holder is fenced out."""
    held, other = world.sliced()
    answer = world.request(content="b")
    assert (answer.disposition, answer.generation) == (Disposition.SUPERSEDING, 2)
    for claim in (held, other):
        task = world.task(claim)
        assert (task.state, task.epoch, task.token) == (TaskState.CLOSED, claim.epoch + 1, None)
    assert world.row(select(runs.c.status).where(runs.c.id == held.run_id)).status == Status.SUPERSEDED
    assert fenced.finish(world.db, held, spent=Spent()) == Fenced("run_superseded")


@pytest.mark.g1
def test_content_is_compared_with_what_was_last_asked_for_not_with_what_is_published(world):
    """A is published, B runs: a second request for B is a duplicate, one for A supersedes B."""
    world.publish()
    assert world.request(content="b").disposition is Disposition.SUPERSEDING
    assert world.request(content="b").disposition is Disposition.DUPLICATE
    assert world.request(content="a").disposition is Disposition.SUPERSEDING


def test_the_same_content_after_success_is_unchanged_unless_forced(world):
    """Done is done; force makes a new generation of the same."""
    world.publish()
    assert world.request().disposition is Disposition.UNCHANGED
    forced = world.request(force=True)
    assert (forced.disposition, forced.generation) == (Disposition.ACCEPTED, 2)


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_what_failed_or_was_cancelled_may_be_asked_for_again(world, end):
    """The same content is accepted again once its run ended without success."""
    claim = world.start()
    if end == "failed":
        fenced.fail(world.db, claim, code="work_failed", message="no")
    else:
        requests.cancel(world.db, claim.head_id)
    again = world.request()
    assert (again.disposition, again.reason) == (Disposition.ACCEPTED, f"after_{end}")


@pytest.mark.g7
def test_takeover_of_a_stuck_queued_run_keeps_its_place_in_the_queue(world):
    """Queued for too long in a lane that claims nothing: a new generation, as old as the first."""
    world.request()
    world.write(update(runs).values(queued_at=10.0))
    world.write(update(tasks).values(age=10.0, signed_at=0.0))
    world.request(subject="document:2")
    answer = world.request()
    assert (answer.disposition, answer.reason) == (Disposition.TAKEOVER, "stuck_queued")
    assert world.claim().generation == 2
    assert world.row(select(tasks.c.age).where(tasks.c.run_id == answer.run_id)).age == 10.0


@pytest.mark.g7
def test_a_saturated_lane_is_alive(world):
    """However long a run is queued, while its lane still claims it is not stuck."""
    world.request()
    world.write(update(runs).values(queued_at=10.0))
    world.write(update(turns).values(last_served=requests.now()))
    assert world.request().disposition is Disposition.DUPLICATE


@pytest.mark.g7
def test_slices_that_queue_in_a_busy_lane_are_not_taken_over(world):
    """A planned run whose slices wait for their turn shows no sign of its own: the lane's claims are one."""
    plan = world.start()
    fenced.plan(world.db, plan, [Slice(), Slice()], Spent())
    world.write(update(runs).values(queued_at=10.0, started_at=11.0))
    world.write(update(tasks).values(signed_at=12.0))
    assert world.request().disposition is Disposition.DUPLICATE
    world.write(update(turns).values(last_served=12.0))
    assert world.request().disposition is Disposition.TAKEOVER


@pytest.mark.g7
@pytest.mark.parametrize("sign", ["lease", "wait", "none"])
def test_a_silent_run_is_taken_over_only_without_lease_and_without_wait(world, sign):
    """A live lease or a wait for budget, rate or a person is a sign of life; nothing at all is not."""
    claim = world.start()
    if sign == "wait":
        claims.put_back(world.db, claim, reason="budget", delay=9.0)
    if sign == "none":
        world.lapse(claim)
    world.write(update(runs).values(queued_at=10.0, started_at=11.0))
    world.write(update(tasks).values(signed_at=12.0))
    expected = Disposition.TAKEOVER if sign == "none" else Disposition.DUPLICATE
    assert world.request().disposition is expected


@pytest.mark.g6
def test_an_expected_generation_that_is_not_current_is_refused(world):
    """If-Match on an older generation changes nothing."""
    world.publish()
    answer = world.request(content="b", expect_generation=0)
    assert (answer.disposition, answer.reason) == (Disposition.REFUSED, "generation_mismatch")
    assert world.head().generation == 1


@pytest.mark.g6
def test_a_request_over_an_exhausted_budget_is_refused_before_anything_is_made(world):
    """A spent budget of the tenant refuses the run that would spend more."""
    row = {"tenant": "default", "scope": "tenant", "hard_limit": 5, "spent": 5}
    world.write(budgets.insert().values(**row))
    answer = world.request()
    assert (answer.disposition, answer.reason) == (Disposition.REFUSED, "over_budget:tenant")
    assert world.count(runs) == 0


@pytest.mark.g3
def test_cancel_keeps_what_is_published_visible(world):
    """After a cancel the head is success again, and the old generation still answers."""
    world.publish()
    claim = world.start(content="b")
    assert requests.cancel(world.db, claim.head_id) == Landed()
    head = world.head()
    assert (head.status, head.published_generation, head.visible) == (Status.SUCCESS, 1, True)
    assert world.texts(head.id) == ["a-1-0"]
    assert fenced.finish(world.db, claim, spent=Spent()) == Fenced("run_cancelled")


def test_cancel_of_what_was_never_done_leaves_the_head_idle(world):
    """Nothing is published: the head is as if nobody had asked, except for its generation."""
    claim = world.start()
    requests.cancel(world.db, claim.head_id)
    assert (world.head().status, world.head().generation) == (Status.IDLE, 1)


@pytest.mark.parametrize(
    ("ended", "reason"), [("unknown", "unknown"), ("other", "not_current"), ("done", "run_success")]
)
def test_cancel_of_what_is_not_running_is_fenced_out(world, ended, reason):
    """Only the live run named, or the live run, can be cancelled."""
    claim = world.publish() if ended == "done" else world.start()
    head_id = 99 if ended == "unknown" else claim.head_id
    run_id = "other" if ended == "other" else None
    assert requests.cancel(world.db, head_id, run_id=run_id) == Fenced(reason)


@pytest.mark.g1
def test_a_queued_task_of_a_cancelled_run_never_starts(world):
    """Cancel while queued: nobody can claim it any more."""
    answer = world.request()
    requests.cancel(world.db, answer.head_id)
    assert world.claim() is None


@pytest.mark.g1
def test_delete_is_a_generation_for_every_kind_and_its_follow_ups(world):
    """Nothing of the subject is visible or running; a neighbour whose id begins alike is untouched."""
    world.publish(collection="books")
    world.publish(kind="qa")
    running = world.start(kind="extract", subject="document:1#action:7")
    world.publish(subject="document:12")
    deleted = requests.delete(world.db, "default", "document:1")
    assert len(deleted) == 3
    head = world.head()
    assert (head.generation, head.published_generation, head.visible, head.deleted) == (2, 2, False, True)
    assert world.texts(head.id) == []
    assert fenced.finish(world.db, running, spent=Spent()) == Fenced("run_superseded")
    assert world.head("document:12").visible


@pytest.mark.g1
def test_generations_are_never_reused_over_delete_cancel_and_failure(world):
    """Whatever ends a generation, the next one is higher; a deleted head goes on counting."""
    seen = [world.publish().generation]
    requests.delete(world.db, "default", "document:1")
    claim = world.start()
    seen.append(claim.generation)
    requests.cancel(world.db, claim.head_id)
    claim = world.start()
    seen.append(claim.generation)
    fenced.fail(world.db, claim, code="work_failed", message="no")
    seen.append(world.publish().generation)
    assert seen == [1, 3, 4, 5]
    assert world.count(runs) == 5


@pytest.mark.g3
def test_deleting_what_is_visible_tells_the_readers_of_its_collection(world):
    """A cache stamped with publish_seq must notice a delete as it notices a publication."""
    world.publish(collection="books")
    before = world.row(select(collections.c.publish_seq)).publish_seq
    requests.delete(world.db, "default", "document:1")
    assert world.row(select(collections.c.publish_seq)).publish_seq == before + 1
    assert requests.delete(world.db, "default", "document:1") == []


def test_a_request_does_not_move_what_is_visible_to_another_collection(world):
    """Only `move` does: it tells the readers of both collections."""
    world.publish(collection="books")
    world.request(content="b", collection="papers")
    assert world.head().collection == "books"
    requests.delete(world.db, "default", "document:1")
    world.request(content="c", collection="papers")
    assert world.head().collection == "papers"
