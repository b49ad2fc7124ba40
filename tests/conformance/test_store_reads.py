"""What people look at: one moment, nothing written."""

import pytest

from holdfast.core.records import Chunk, Spent
from holdfast.core.states import Lane, Status
from holdfast.store.protocol import claims, requests
from holdfast.store.protocol import tasks as fenced
from holdfast.store.views import reads


def test_a_head_is_read_by_its_name(world):
    """None for a head that was never requested."""
    claim = world.start()
    assert world.head().id == claim.head_id
    assert reads.head(world.db, "other", "index", "document:1") is None


def test_the_runs_of_a_head_come_newest_first_with_what_was_asked(world):
    """Each generation, why it was made and by whom."""
    claim = world.publish(actor="ann")
    world.request(content="b", actor="bob", options={"size": 1})
    newest, oldest = reads.runs_of(world.db, claim.head_id)
    assert (newest.run.generation, newest.reason, newest.actor) == (2, "changed", "bob")
    assert (oldest.run.status, oldest.content, newest.options) == (Status.SUCCESS, "a", {"size": 1})
    assert reads.runs_of(world.db, claim.head_id, limit=1) == (newest,)
    assert reads.run(world.db, newest.run.id) == newest
    assert reads.run(world.db, "unknown") is None


def test_progress_is_derived_from_the_slices(world):
    """Counts, stages and chunks are sums over the tasks, payments are by the bill; a plan is no progress."""
    one, two = world.sliced()
    half = fenced.Report(5, 10, "pages", {"parse": (5, 10)}, [("l1", "halfway")])
    fenced.advance(world.db, one, half)
    fenced.advance(world.db, two, fenced.Report(10, 10, "pages", {"parse": (10, 10)}))
    fenced.finish(world.db, two, spent=Spent(1, 2, 3, 4, 5), staged=7)
    seen = reads.progress_of(world.db, one.run_id)
    assert (seen.rolled.share, seen.rolled.done, seen.rolled.total) == (0.75, 15, 20)
    assert (seen.unit, seen.stages, seen.chunks) == ("pages", {"parse": (15, 20)}, 7)
    assert seen.spent == Spent(paid_calls=0, reused_calls=2, tokens=0, paid=0, saved=5)
    assert [line.text for line in seen.lines] == ["halfway"]


def test_progress_of_a_document_of_one_slice_is_that_of_its_plan_task(world):
    """Done by the plan task itself, it is complete when that is done."""
    claim = world.start()
    assert reads.progress_of(world.db, claim.run_id).rolled.share == 0.0
    fenced.finish(world.db, claim, spent=Spent())
    assert reads.progress_of(world.db, claim.run_id).rolled.complete
    assert reads.progress_of(world.db, "unknown") is None


@pytest.mark.g3
def test_only_the_published_generation_is_visible_and_it_comes_in_pages(world):
    """Ordered by slice and position; a page names its generation."""
    claim = world.publish(chunks=5)
    later = world.start(content="b")
    fenced.stage(world.db, later, [Chunk(0, "b")])
    first = reads.visible_chunks(world.db, claim.head_id, limit=3)
    last = first.chunks[-1]
    rest = reads.visible_chunks(world.db, claim.head_id, after=(last.slice, last.chunk.position))
    texts = [one.chunk.text for page in (first, rest) for one in page.chunks]
    assert texts == [f"a-1-{n}" for n in range(5)]
    assert (first.generation, rest.generation) == (1, 1)


@pytest.mark.g3
def test_what_was_never_published_or_was_deleted_shows_nothing(world):
    """None, not an empty document."""
    claim = world.start()
    assert reads.visible_chunks(world.db, claim.head_id) is None
    fenced.finish(world.db, claim, spent=Spent())
    assert reads.visible_chunks(world.db, claim.head_id).chunks == ()
    requests.delete(world.db, "default", "document:1")
    assert reads.visible_chunks(world.db, claim.head_id) is None


@pytest.mark.g6
def test_the_story_of_a_head_tells_every_decision(world):
    """Who asked, what was refused, who held it, what became of it."""
    claim = world.start(actor="ann")
    world.request(actor="bob")
    fenced.finish(world.db, claim, spent=Spent())
    story = reads.story(world.db, claim.head_id)
    assert [(noted.verb, noted.reason, noted.actor) for noted in story.journal] == [
        ("request", "accepted:never_done", "ann"),
        ("claim", "due", "worker"),
        ("request", "duplicate:in_progress", "bob"),
        ("publish", "all_slices_done", "worker"),
    ]
    assert story.head == world.head()
    assert [one.run.id for one in story.runs] == [claim.run_id]
    assert [one.task.id for one in story.tasks[claim.run_id]] == [claim.task_id]
    assert reads.story(world.db, 99) is None


def test_lanes_count_their_open_work(world):
    """Queued, waiting and running per lane, and how long the oldest has queued."""
    waiting = world.start()
    claims.put_back(world.db, waiting, reason="rate", delay=60.0)
    world.start(subject="document:2", lane=Lane.INTERACTIVE)
    for number in (3, 4):
        world.request(subject=f"document:{number}")
    seen = reads.lanes(world.db)
    bulk, interactive = seen[Lane.BULK], seen[Lane.INTERACTIVE]
    assert (bulk.queued, bulk.waiting, bulk.running) == (2, 1, 0)
    assert (interactive.queued, interactive.running) == (0, 1)
    assert 0 <= bulk.oldest < 60


def test_reading_writes_nothing(world):
    """Every table is as it was."""
    claim = world.sliced()[0]
    before = world.picture()
    reads.story(world.db, claim.head_id)
    reads.progress_of(world.db, claim.run_id)
    reads.visible_chunks(world.db, claim.head_id)
    reads.lanes(world.db)
    assert world.picture() == before
