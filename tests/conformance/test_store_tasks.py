"""The fence, and the writes behind it."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event, exc, func, select, text, update

from holdfast.core.records import Chunk, Fenced, Landed, Slice, Spent
from holdfast.core.states import Status, TaskState
from holdfast.store.base import rows
from holdfast.store.base.schema import chunks, collections, heads, lines, runs, tasks
from holdfast.store.protocol import claims, duties, requests, run_logs
from holdfast.store.protocol import tasks as fenced
from holdfast.store.views import reads
from tests.conformance.conftest import build

WRITES = {
    "stage": lambda db, claim: fenced.stage(db, claim, [Chunk(7, "late")]),
    "advance": lambda db, claim: fenced.advance(db, claim, fenced.Report(9, 9, lines=[("l9", "late")])),
    "plan": lambda db, claim: fenced.plan(db, claim, [Slice()], Spent()),
    "finish": lambda db, claim: fenced.finish(db, claim, spent=Spent(paid=5), staged=1),
    "fail": lambda db, claim: fenced.fail(db, claim, code="late", message="late"),
}


def overtake(world, claim, how):
    """Something makes the claim stale; answers the reason its writes are refused with."""
    match how:
        case "superseded":
            world.request(content="b")
            return "run_superseded"
        case "cancelled":
            requests.cancel(world.db, claim.head_id)
            return "run_cancelled"
        case "deleted":
            requests.delete(world.db, "default", claim.subject)
            return "run_superseded"
        case "expired":
            world.lapse(claim)
            duties.expire(world.db, cap=3)
            return "stale_epoch"
        case "taken":
            world.lapse(claim)
            duties.expire(world.db, cap=3)
            assert world.claim(owner="next") is not None
            return "stale_epoch"
        case "released":
            claims.release(world.db, claim, "drain")
            return "stale_epoch"
        case "finished":
            fenced.finish(world.db, claim, spent=Spent())
            return "run_success"
    raise AssertionError(how)


def test_chunks_travel_together(world):
    """Any number is kept whole and in order, many in one statement: each has a price."""
    world.request()
    claim, said = world.claim(), []
    event.listen(world.db.engine, "before_cursor_execute", lambda *told: said.append(told[2]))
    batch = [Chunk(at, f"text {at}", at % 3, f"key {at}", {"at": at} if at else {}, "w") for at in range(60)]
    assert fenced.stage(world.db, claim, batch[:10]) == Landed()
    assert len([each for each in said if each.startswith("INSERT INTO holdfast_chunks")]) == 1
    landed = fenced.finish(world.db, claim, spent=Spent(), staged=60, batch=batch[10:])
    assert landed == Landed(published=True)
    assert len([each for each in said if each.startswith("INSERT INTO holdfast_chunks")]) == 3
    columns = (chunks.c.position, chunks.c.text, chunks.c.page, chunks.c.call_key, chunks.c.data)
    records = world.rows(select(*columns, chunks.c.words).order_by(chunks.c.id))
    items = [(at, f"text {at}", at % 3, f"key {at}", {"at": at} if at else None, "w") for at in range(60)]
    assert [tuple(row) for row in records] == items


@pytest.mark.g2
@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize(
    "how", ["superseded", "cancelled", "deleted", "expired", "taken", "released", "finished"]
)
def test_a_stale_worker_writes_nothing_but_its_refusal(world, verb, how):
    """Frozen, overtaken and thawed: every write is refused with its reason, and only the journal grows."""
    claim = world.start()
    reason = overtake(world, claim, how)
    before, noted = world.picture(), world.journal()
    assert WRITES[verb](world.db, claim) == Fenced(reason)
    assert world.journal() == [*noted, (verb, f"fenced_out:{reason}")]
    after = world.picture()
    assert {**after, "journal": []} == {**before, "journal": []}


@pytest.mark.g2
def test_a_lease_that_ran_out_does_not_stop_a_write_that_nobody_overtook(world):
    """The lease says who should work; the fence alone says who may write."""
    claim = world.start()
    world.lapse(claim)
    assert fenced.finish(world.db, claim, spent=Spent()) == Landed(published=True)


@pytest.mark.g3
def test_staged_chunks_are_invisible_until_published_and_then_all_at_once(world):
    """The old generation answers until the new one is whole."""
    world.publish()
    one, two = world.sliced(content="b")
    fenced.stage(world.db, one, [Chunk(0, "b1")])
    fenced.stage(world.db, two, [Chunk(0, "b2")])
    assert fenced.finish(world.db, one, spent=Spent(), staged=1) == Landed(published=False)
    assert world.texts(one.head_id) == ["a-1-0"]
    assert fenced.finish(world.db, two, spent=Spent(), staged=1) == Landed(published=True)
    assert world.texts(one.head_id) == ["b1", "b2"]


@pytest.mark.g3
def test_a_failed_run_leaves_the_old_generation_in_place(world):
    """The head shows failed, and what was published still answers."""
    world.publish()
    one, two = world.sliced(content="b")
    fenced.stage(world.db, one, [Chunk(0, "b1")])
    assert fenced.fail(world.db, one, code="work_failed", message="no") == Landed()
    assert (world.head().status, world.head().visible) == (Status.FAILED, True)
    assert world.texts(one.head_id) == ["a-1-0"]
    assert fenced.finish(world.db, two, spent=Spent()) == Fenced("run_failed")
    run = reads.run(world.db, one.run_id)
    assert (run.run.status, run.run.error_code) == (Status.FAILED, "work_failed")


@pytest.mark.g2
def test_a_new_holder_replaces_what_the_old_one_staged(world):
    """Chunks of an older epoch of the slice are deleted, so nothing of a dead worker is published."""
    dead = world.start()
    fenced.stage(world.db, dead, [Chunk(0, "old"), Chunk(1, "old too")])
    world.lapse(dead)
    duties.expire(world.db, cap=3)
    claim = world.claim(owner="next")
    fenced.stage(world.db, claim, [Chunk(0, "new")])
    fenced.finish(world.db, claim, spent=Spent(), staged=1)
    assert world.texts(claim.head_id) == ["new"]


@pytest.mark.g2
def test_a_new_holder_that_stages_nothing_still_clears_the_slice(world):
    """The finish deletes an older epoch's leftovers, too."""
    dead = world.start()
    fenced.stage(world.db, dead, [Chunk(0, "old")])
    claims.release(world.db, dead, "drain")
    fenced.finish(world.db, world.claim(), spent=Spent())
    assert world.count(chunks) == 0


@pytest.mark.g4
def test_planning_queues_every_slice_and_counts_them_in_one_step(world):
    """No half-planned run exists; slices keep the run's age, lane and priority."""
    plan = world.start(priority=2)
    pieces = [Slice({"pages": [1, 2]}, weight=2), Slice({"pages": [3]})]
    assert fenced.plan(world.db, plan, pieces, Spent(paid=3)) == Landed()
    records = world.rows(select(tasks).order_by(tasks.c.ordinal))
    assert [(row.ordinal, row.state, row.weight) for row in records] == [
        (0, "done", 1),
        (1, "queued", 2),
        (2, "queued", 1),
    ]
    assert {(row.age, row.priority, row.lane) for row in records} == {(records[0].age, 2, "bulk")}
    assert world.row(select(runs.c.slices)).slices == 2


def test_progress_only_moves_forward(world):
    """A slice that starts again after a crash never moves the bar back."""
    claim = world.start()
    fenced.advance(world.db, claim, fenced.Report(5, 10, "pages", {"parse": (5, 10)}, [("l1", "half")]))
    fenced.advance(world.db, claim, fenced.Report(2, 8, "pages"))
    task = world.task(claim)
    assert (task.done, task.total, task.unit) == (5, 10, "pages")
    assert world.rows(select(lines.c.text)) == [("half",)]


def test_the_log_of_a_run_is_capped(world):
    """The latest lines are kept: what a run said last is what whoever looks for its fault needs."""
    claim = world.start()
    many = range(run_logs.MOST_LINES + run_logs.SLACK - 1)
    said = [{"run_id": claim.run_id, "id": f"{n:05d}", "at": 1.0, "text": ""} for n in many]
    world.db.write("by_hand", lambda tx: tx.execute(lines.insert(), said))
    for n in (1, 2):
        fenced.advance(world.db, claim, fenced.Report(n, 9, lines=[(f"l{n}", f"line {n}")]))
    assert world.count(lines) == run_logs.MOST_LINES
    records = world.rows(select(lines.c.text).where(lines.c.text != "").order_by(lines.c.at, lines.c.id))
    assert records == [("line 1",), ("line 2",)]


@pytest.mark.g3
def test_publishing_marks_everything_and_runs_the_callers_part_in_the_same_transaction(world):
    """Run, head and collection change together with what the caller writes."""
    claim = world.start(collection="books")

    def mark(tx):
        tx.execute(update(heads).values(fingerprint="by the caller"))

    outcome = fenced.finish(world.db, claim, spent=Spent(1, 2, 3, 4, 5), result={"n": 1}, publish=mark)
    assert outcome == Landed(published=True)
    head = world.head()
    assert (head.status, head.published_generation, head.visible) == (Status.SUCCESS, 1, True)
    assert head.fingerprint == "by the caller"
    assert world.row(select(collections.c.publish_seq)).publish_seq == 1
    task = world.task(claim)
    assert (task.state, task.paid_calls, task.reused_calls, task.tokens, task.paid, task.saved) == (
        TaskState.DONE, 1, 2, 3, 4, 5,
    )  # fmt: skip


@pytest.mark.g3
def test_a_caller_that_raises_while_publishing_publishes_nothing(world):
    """All in that transaction, or nothing of it."""
    claim = world.start()

    def explode(tx):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        fenced.finish(world.db, claim, spent=Spent(), publish=explode)
    assert world.task(claim).state == TaskState.RUNNING
    assert not world.head().visible


@pytest.mark.g1
def test_only_the_newest_generation_is_ever_published(world):
    """Publishing flips upward: after many changes the newest content answers."""
    for content in "abcd":
        world.publish(content=content)
    head = world.head()
    assert (head.generation, head.published_generation) == (4, 4)
    assert world.texts(head.id) == ["d-4-0"]
    assert world.row(select(func.count()).select_from(runs).where(runs.c.status == "success"))[0] == 4


WAITING = text(  # in this database: the server has those of other tests as well
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@pytest.mark.g1
@pytest.mark.postgresql
def test_no_new_sharer_of_a_head_overtakes_whoever_waits_to_change_it(postgresql_url):
    """Workers that stage without a pause would otherwise keep a cancel waiting until they stopped."""
    world = build(postgresql_url)
    claim, head = world.start(), {"head_id": world.head().id}
    with ThreadPoolExecutor(1) as pool, world.db.engine.connect() as staging:
        staging.execute(rows.HEAD_FOR_SHARE, head)
        cancelling = pool.submit(requests.cancel, world.db, claim.head_id)
        deadline = time.monotonic() + 20
        while not world.row(WAITING)[0]:
            assert time.monotonic() < deadline
        with world.db.engine.connect() as late:
            late.execute(text("SET LOCAL lock_timeout = '50ms'"))
            with pytest.raises(exc.OperationalError, match="lock timeout"):
                late.execute(rows.HEAD_FOR_SHARE, head)
        staging.rollback()
        assert cancelling.result(20) == Landed()
    world.db.close()
