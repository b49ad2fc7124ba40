"""Prune: what nobody can need goes, in bounded batches; what somebody may need stays."""

import pytest
from sqlalchemy import select, update

from holdfast.core.records import Chunk, Spent
from holdfast.store.base.schema import chunks, journal, lines, runs, tasks
from holdfast.store.library import imports
from holdfast.store.protocol import prune, requests
from holdfast.store.protocol import tasks as fenced


def generations(world):
    return sorted({row.generation for row in world.rows(select(chunks.c.generation))})


def staged(world, content):
    """A claim of a new generation with one chunk staged."""
    claim = world.start(content=content)
    fenced.stage(world.db, claim, [Chunk(0, content)])
    return claim


@pytest.mark.g3
def test_generations_below_the_published_one_are_pruned(world):
    """Only the visible one is left, and it still answers."""
    for content in "abc":
        head_id = world.publish(chunks=2, content=content).head_id
    assert prune.prune_generations(world.db) == 4
    assert generations(world) == [3]
    assert world.texts(head_id) == ["c-3-0", "c-3-1"]
    assert prune.prune_generations(world.db) == 0
    assert world.count(runs, ~runs.c.pruned) == 0


@pytest.mark.g3
@pytest.mark.parametrize("end", ["failed", "cancelled", "superseded"])
def test_what_an_unpublished_end_left_behind_is_pruned_and_the_published_stays(world, end):
    """The chunks of the failed, cancelled or superseded run go; those that answer stay."""
    world.publish()
    claim = staged(world, "b")
    match end:
        case "failed":
            fenced.fail(world.db, claim, code="work_failed", message="no")
        case "cancelled":
            requests.cancel(world.db, claim.head_id)
        case "superseded":
            claim = staged(world, "c")
    assert prune.prune_generations(world.db) == 1
    assert generations(world) == ([1, 3] if end == "superseded" else [1])
    assert world.texts(claim.head_id) == ["a-1-0"]


@pytest.mark.g3
def test_the_generation_of_a_live_run_is_never_pruned(world):
    """A staged, unpublished, living generation may still be published."""
    claim = staged(world, "b")
    assert prune.prune_generations(world.db) == 0
    fenced.finish(world.db, claim, spent=Spent(), staged=1)
    assert world.texts(claim.head_id) == ["b"]


def test_a_deleted_document_leaves_no_chunks(world):
    """Deleting is a generation with nothing in it: all below it goes."""
    world.publish(chunks=3)
    requests.delete(world.db, "default", "document:1")
    assert prune.prune_generations(world.db) == 3
    assert generations(world) == []


def test_pruning_is_bounded_and_goes_on_next_time(world):
    """At most a batch at once; a run is done with when its last chunk is gone."""
    world.publish(chunks=5)
    world.publish(content="b")
    assert [prune.prune_generations(world.db, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert generations(world) == [2]
    assert (
        sum(row.data["chunks"] for row in world.rows(select(journal).where(journal.c.verb == "prune"))) == 5
    )


def test_history_keeps_the_latest_and_the_published_run_whatever_their_age(world):
    """Older runs go with their tasks and lines; the ones that explain what is, stay."""
    world.publish()
    world.publish(content="b")
    claim = world.start(content="c")
    fenced.advance(world.db, claim, fenced.Report(1, 2, lines=[("l1", "one")]))
    fenced.fail(world.db, claim, code="work_failed", message="no")
    claim = world.start(content="d")
    fenced.fail(world.db, claim, code="work_failed", message="no")
    prune.prune_generations(world.db)
    assert prune.prune_history(world.db, 3600.0) == 0
    world.write(update(runs).values(finished_at=1.0))
    assert prune.prune_history(world.db, 3600.0) == 2
    assert [row.generation for row in world.rows(select(runs).order_by(runs.c.generation))] == [2, 4]
    assert (world.count(tasks), world.count(lines)) == (2, 0)
    assert world.request(content="d").reason == "after_failed"


def test_history_is_not_pruned_before_its_chunks(world):
    """A run whose leftovers are still there is what finds them."""
    world.publish()
    world.publish(content="b")
    world.write(update(runs).values(finished_at=1.0))
    assert prune.prune_history(world.db, 3600.0) == 0
    assert prune.prune_generations(world.db) == 1


def test_old_journal_rows_go_from_the_front_in_batches(world):
    """The oldest rows first, only those past the retention."""
    for number in range(4):
        world.request(subject=f"document:{number}")
    ids = [row.id for row in world.rows(select(journal.c.id).order_by(journal.c.id))]
    world.write(update(journal).where(journal.c.id <= ids[2]).values(at=1.0))
    assert [prune.prune_history(world.db, 3600.0, 2) for _ in range(3)] == [2, 1, 0]
    assert world.rows(select(journal.c.id)) == [(ids[3],)]


def test_an_imported_run_has_nothing_to_prune(world):
    """Its run is born pruned, and becomes past when a later one takes its place."""
    imports.import_documents(world.db, [(1, True)], tenant="default")
    assert world.rows(select(prune.UNPRUNED.subquery()).params(limit=9)) == []
    world.publish(force=True)
    prune.prune_generations(world.db)
    past = {row.generation: row.past for row in world.rows(select(runs))}
    assert past == {1: True, 2: False}


@pytest.mark.g2
def test_a_worker_of_a_pruned_run_is_fenced_out(world):
    """Thawed after its run's history is gone: its task does not exist, and it writes nothing."""
    stale = world.start()
    world.publish(content="b")
    prune.prune_generations(world.db)
    world.write(update(runs).values(finished_at=1.0))
    prune.prune_history(world.db, 3600.0)
    assert fenced.finish(world.db, stale, spent=Spent()).reason == "gone"
