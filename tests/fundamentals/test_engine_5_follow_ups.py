"""What a collection is told to do with each document is done once per document and generation."""

import pytest

from holdfast.core.records import Chunk
from holdfast.core.states import Status
from holdfast.engine.kinds import Kind
from holdfast.store.follow_ups import actions

INDEX = Kind("index", lambda work: work.stage([Chunk(0, work.content)]))


class Extract:
    """A follow-up that remembers what it was asked to do."""

    def __init__(self):
        self.seen = []
        self.kind = Kind("extract", lambda work: self.seen.append(work.content))


def add(story, **changes):
    details = {"tenant": "default", "collection": "books", "kind": "extract", "options": {}}
    return actions.add_action(story.db, **details | {"pipeline": "extract@1"} | changes)


@pytest.fixture
def extract():
    return Extract()


@pytest.fixture
def engine(story, extract):
    return story.engine(INDEX, extract.kind)


def test_a_document_that_becomes_ready_is_followed_up(story, engine, extract):
    """The follow-up is queued in the publishing transaction, in a lane of its own."""
    action = add(story)
    engine.request(story.ask(collection="books"))
    index, follow_up = engine.work_off()
    assert extract.seen == ["document:1@1"]
    assert follow_up.claim.subject == f"document:1#action:{action}"
    assert (index.claim.lane, follow_up.claim.lane) == ("bulk", "follow-up")
    assert story.sender.lanes["follow-up"] == 1


def test_nobody_is_woken_where_nothing_is_to_follow(story, engine):
    """A document of a collection without actions becomes ready, and the lane of follow-ups hears nothing."""
    engine.request(story.ask(collection="books"))
    engine.work_off()
    assert story.head("document:1", "index").status is Status.SUCCESS
    assert story.sender.lanes["follow-up"] == 0


def test_each_generation_is_followed_up_once(story, engine, extract):
    """A new generation is a new occasion; the same one is not, however often the action is looked at."""
    action = add(story)
    for content in ("a", "b"):
        engine.request(story.ask(content=content, collection="books"))
        engine.work_off()
    assert extract.seen == ["document:1@1", "document:1@2"]
    assert actions.visit(story.db, action) == 0
    assert engine.work_off() == []


def test_a_new_action_looks_at_what_is_ready_already(story, engine, extract):
    """Adding an action follows up every ready document; asking again with its token adds nothing."""
    engine.request(story.ask(collection="books"))
    engine.request(story.ask("document:2", collection="other"))
    engine.work_off()
    assert add(story, token="once") == add(story, token="once")
    engine.work_off()
    assert extract.seen == ["document:1@1"]


def test_a_failed_document_is_not_followed_up(story, extract):
    """Actions fire for what is ready, never for what failed."""

    def fail(work):
        raise ValueError("broken")

    add(story)
    engine = story.engine(Kind("index", fail), extract.kind)
    engine.request(story.ask(collection="books"))
    engine.work_off()
    assert extract.seen == []


def test_a_removed_action_makes_no_more_follow_ups(story, engine, extract):
    """What becomes ready later is left alone, and what waits because of it is cancelled."""
    action = add(story)
    engine.request(story.ask(collection="books"))
    engine.work_off(most=1)
    actions.remove_action(story.db, "default", action)
    engine.request(story.ask("document:2", collection="books"))
    engine.work_off()
    assert extract.seen == []
    assert story.head(f"document:1#action:{action}", "extract").status is Status.IDLE


@pytest.mark.g1
def test_a_newer_follow_up_supersedes_the_older(story, engine, extract):
    """Two generations published before the follow-up ran: only the newer is done."""
    add(story)
    for content in ("a", "b"):
        engine.request(story.ask(content=content, collection="books"))
        engine.work_off(lanes=["bulk"])
    engine.work_off()
    assert extract.seen == ["document:1@2"]


@pytest.mark.g1
def test_deleting_a_document_ends_its_follow_ups(story, engine, extract):
    """Delete is for every kind of the subject: a follow-up that waits is never begun."""
    action = add(story)
    engine.request(story.ask(collection="books"))
    engine.work_off(lanes=["bulk"])
    assert len(engine.delete("default", "document:1")) == 2
    assert engine.work_off() == []
    assert extract.seen == []
    assert story.head(f"document:1#action:{action}", "extract").status is Status.IDLE
