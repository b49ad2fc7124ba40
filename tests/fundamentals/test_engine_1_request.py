"""You ask; the engine answers with a disposition. Nothing is done yet, and nothing is ever done twice."""

import dataclasses

import pytest

from holdfast.core import decide
from holdfast.core.errors import WorkError
from holdfast.core.records import Chunk
from holdfast.core.states import Disposition, Status
from holdfast.engine.events import Ending
from holdfast.engine.kinds import Kind
from holdfast.store.money import budgets


def copy(work):
    work.stage([Chunk(0, work.content)])


INDEX = Kind("index", copy)


def test_a_first_request_is_accepted_and_queued(story):
    """The answer names the new run and its generation; the work itself waits for a worker."""
    answer = story.engine(INDEX).request(story.ask())
    assert (answer.disposition, answer.reason) == (Disposition.ACCEPTED, "never_done")
    assert (answer.generation, answer.status) == (1, Status.QUEUED)
    assert story.run(answer.run_id).status is Status.QUEUED
    assert story.texts() == []


@pytest.mark.g6
def test_asking_twice_is_a_duplicate_that_names_the_run(story):
    """A double click makes no second run: it is told which one is under way, and the journal counts it."""
    engine = story.engine(INDEX)
    first, second = engine.request(story.ask()), engine.request(story.ask())
    assert second.disposition is Disposition.DUPLICATE
    assert (second.run_id, second.generation, second.status) == (first.run_id, 1, Status.QUEUED)
    assert story.journal("request") == ["accepted:never_done", "duplicate:in_progress"]
    assert len(engine.work_off()) == 1


@pytest.mark.g6
def test_what_is_done_and_did_not_change_is_not_done_again(story):
    """The same content and options after a success are `unchanged`."""
    engine = story.engine(INDEX)
    engine.request(story.ask(options={"size": 512}))
    engine.work_off()
    again = engine.request(story.ask(options={"size": 512}))
    assert (again.disposition, again.status) == (Disposition.UNCHANGED, Status.SUCCESS)
    assert engine.work_off() == []


def test_force_does_it_again_all_the_same(story):
    """`force` turns `unchanged` into a new generation, and does nothing to a duplicate."""
    engine = story.engine(INDEX)
    engine.request(story.ask())
    assert engine.request(story.ask(force=True)).disposition is Disposition.DUPLICATE
    engine.work_off()
    forced = engine.request(story.ask(force=True))
    assert (forced.disposition, forced.reason, forced.generation) == (Disposition.ACCEPTED, "forced", 2)


@pytest.mark.g1
@pytest.mark.parametrize("change", [{"content": "b"}, {"options": {"size": 256}}])
def test_a_change_supersedes_what_is_queued(story, change):
    """New content or options make a new generation at once; the older run will never be done."""
    engine = story.engine(INDEX)
    old = engine.request(story.ask())
    new = engine.request(story.ask(**change))
    assert (new.disposition, new.generation) == (Disposition.SUPERSEDING, 2)
    assert story.run(old.run_id).status is Status.SUPERSEDED
    assert [done.claim.generation for done in engine.work_off()] == [2]


@pytest.mark.g1
@pytest.mark.g2
def test_a_change_supersedes_what_is_running(story):
    """The older worker is refused at its next write, and what it had staged is never seen."""

    def slow(work):
        copy(work)
        if work.content == "a":
            engine.request(story.ask(content="b"))
            work.progress(1, 1)

    engine = story.engine(Kind("index", slow))
    engine.request(story.ask())
    assert [done.ending for done in engine.work_off()] == [Ending.FENCED_OUT, Ending.PUBLISHED]
    assert story.texts() == ["b"]
    assert "fenced_out:run_superseded" in story.journal("advance")


def test_a_failure_can_be_tried_again(story):
    """After a failure the same request is accepted; `again` repeats the last one without its details."""
    broken = [WorkError("no text in this file", code="empty_document")]

    def fail_once(work):
        if broken:
            raise broken.pop()
        copy(work)

    engine = story.engine(Kind("index", fail_once))
    first = engine.request(story.ask(options={"size": 1}, lane="interactive", priority=2))
    engine.work_off()
    assert story.run(first.run_id).error_code == "empty_document"
    second = engine.again("default", "index", "document:1", actor="ann")
    assert (second.disposition, second.reason) == (Disposition.ACCEPTED, "after_failed")
    assert dataclasses.replace(story.run(second.run_id), id="", status=None).priority == 2
    assert engine.work_off()[0].claim.options == {"size": 1}


@pytest.mark.g6
def test_nobody_can_ask_again_for_what_was_never_asked(story):
    """`again` for an unknown subject is refused, not invented."""
    answer = story.engine(INDEX).again("default", "index", "document:9")
    assert (answer.disposition, answer.reason) == (Disposition.REFUSED, "unknown_subject")


@pytest.mark.g6
def test_a_request_may_insist_on_the_generation_it_saw(story):
    """Two editors: the one whose view is old is refused, and nothing of the other's is lost."""
    engine = story.engine(INDEX)
    engine.request(story.ask())
    engine.work_off()
    assert engine.request(story.ask(content="b", expect_generation=1)).created
    late = engine.request(story.ask(content="c", expect_generation=1))
    assert (late.disposition, late.reason) == (Disposition.REFUSED, "generation_mismatch")
    assert late.generation == 2


@pytest.mark.g6
def test_a_tenant_without_money_is_refused_before_anything_starts(story):
    """A budget that is used up refuses new work; raising it lets the same request in."""
    engine = story.engine(INDEX)
    budgets.set_budget(story.db, "default", "tenant", hard=0)
    broke = engine.request(story.ask())
    assert (broke.disposition, broke.reason) == (Disposition.REFUSED, "over_budget:tenant")
    assert engine.work_off() == []
    budgets.set_budget(story.db, "default", "tenant", hard=1)
    assert engine.request(story.ask()).created


PATIENCE = decide.SilenceLimits(queued=600.0, running=2700.0)


@pytest.mark.g4
def test_a_request_takes_over_what_nobody_has_touched_for_too_long(story):
    """Queued for ten minutes in a lane where nothing moves: the new generation keeps the old place."""
    engine = story.engine(INDEX, patience=PATIENCE)
    old = engine.request(story.ask())
    story.pass_time(601)
    behind = engine.request(story.ask("document:2"))
    new = engine.request(story.ask())
    assert (new.disposition, new.reason) == (Disposition.TAKEOVER, "stuck_queued")
    assert story.run(old.run_id).status is Status.SUPERSEDED
    assert [done.claim.run_id for done in engine.work_off()] == [new.run_id, behind.run_id]


@pytest.mark.g7
def test_a_long_queue_is_not_a_dead_one(story):
    """While workers claim anything in the lane, waiting longer than the patience is only waiting."""
    engine = story.engine(INDEX, patience=PATIENCE)
    engine.request(story.ask())
    story.pass_time(601)
    engine.request(story.ask("document:2", priority=0))
    assert engine.work_off(most=1)[0].claim.subject == "document:2"
    assert engine.request(story.ask()).disposition is Disposition.DUPLICATE


@pytest.mark.g4
def test_a_request_takes_over_a_run_whose_worker_fell_silent(story):
    """Running without lease or sign of life for 45 minutes; until then it is a duplicate."""
    engine = story.engine(INDEX, patience=PATIENCE)
    engine.request(story.ask())
    story.dead_worker(engine)
    story.pass_time(2600)
    assert engine.request(story.ask()).disposition is Disposition.DUPLICATE
    story.pass_time(101)
    answer = engine.request(story.ask())
    assert (answer.disposition, answer.reason) == (Disposition.TAKEOVER, "stuck_running")
