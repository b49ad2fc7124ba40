"""Actions and follow-ups: each once per (action, document, generation), whoever comes first."""

import threading
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from holdfast.core.errors import BadRequestError
from holdfast.core.records import Fenced, Landed, Spent
from holdfast.core.states import Lane, Status
from holdfast.store.base.schema import actions as action_rows
from holdfast.store.base.schema import collections, follow_ups, runs
from holdfast.store.follow_ups import actions
from holdfast.store.library import imports
from holdfast.store.protocol import requests
from holdfast.store.protocol import tasks as fenced
from tests.conformance.conftest import build


def add(world, token=None, collection="books", kind="extract"):
    about = {"tenant": "default", "collection": collection, "kind": kind, "options": {"n": 1}, "pipeline": ""}
    return actions.add_action(world.db, token=token, **about)


def followed(world):
    """(kind, subject, content) of every follow-up run, oldest first."""
    query = select(runs).where(runs.c.lane == Lane.FOLLOW_UP).order_by(runs.c.subject, runs.c.generation)
    return [(row.kind, row.subject, row.content) for row in world.rows(query)]


def test_a_publication_creates_the_follow_ups_of_its_collection(world):
    """One run per active action, created in the publishing transaction, in the follow-up lane."""
    action = add(world)
    add(world, collection="papers")
    claim = world.publish(collection="books")
    assert followed(world) == [("extract", f"document:1#action:{action}", "document:1@1")]
    assert world.row(select(follow_ups)).head_id == claim.head_id


def test_a_failed_document_and_a_job_on_the_collection_are_not_followed_up(world):
    """Follow-ups are for documents that become ready, and for nothing else."""
    add(world)
    fenced.fail(world.db, world.start(collection="books"), code="work_failed", message="no")
    world.publish(kind="qa", subject="collection:books", collection="books")
    assert followed(world) == []


def test_each_generation_is_followed_up_once_and_supersedes_the_older_follow_up(world):
    """Generation 2 makes a new follow-up; that of generation 1, still queued, is superseded."""
    action = add(world)
    world.publish(collection="books")
    world.publish(collection="books", content="b")
    subject = f"document:1#action:{action}"
    assert [content for _, _, content in followed(world)] == ["document:1@1", "document:1@2"]
    states = [row.status for row in world.rows(select(runs).where(runs.c.subject == subject))]
    assert sorted(states) == [Status.QUEUED, Status.SUPERSEDED]


def test_a_new_action_visits_every_ready_document(world):
    """Ready documents are followed up at once, others when they become ready."""
    world.publish(collection="books")
    running = world.start(subject="document:2", collection="books")
    world.publish(subject="document:3", collection="papers")
    action = add(world)
    assert [subject for _, subject, _ in followed(world)] == [f"document:1#action:{action}"]
    fenced.finish(world.db, running, spent=Spent())
    assert len(followed(world)) == 2


def test_a_visit_may_be_done_again_and_goes_on_where_it_stopped(world, monkeypatch):
    """Pages of heads; what is found done is left, what was missed is made."""
    monkeypatch.setattr(actions, "TO_VISIT", actions.TO_VISIT.limit(2))
    for number in range(5):
        world.publish(subject=f"document:{number}", collection="books")
    action = add(world, token="t")
    world.write(follow_ups.delete().where(follow_ups.c.head_id == world.head("document:3").id))
    assert add(world, token="t") == action
    assert (world.count(action_rows), world.count(follow_ups)) == (1, 5)
    assert actions.visit(world.db, action) == 0


def test_a_token_belongs_to_its_tenant(world):
    """Two tenants that draw the same token have an action each."""
    first = add(world, token="t")
    about = {"collection": "books", "kind": "extract", "options": {}, "pipeline": ""}
    assert actions.add_action(world.db, tenant="other", token="t", **about) != first


def test_a_removed_action_makes_no_new_follow_up(world):
    """Those that have not ended are cancelled, also when the removal was interrupted before that."""
    action = add(world)
    world.publish(collection="books")
    assert actions.remove_action(world.db, "other", action) == Fenced("unknown")
    assert world.count(runs, runs.c.status == Status.CANCELLED) == 0
    assert actions.remove_action(world.db, "default", action) == Landed()
    assert world.count(runs, runs.c.status == Status.CANCELLED) == 1
    assert actions.remove_action(world.db, "default", action) == Fenced("unknown")
    world.publish(collection="books", content="b")
    assert len(followed(world)) == 1
    assert actions.visit(world.db, action) == 0


def test_a_removed_action_may_be_added_anew(world):
    """It is another action: what is ready is followed up again."""
    world.publish(collection="books")
    first = add(world, token="t")
    actions.remove_action(world.db, "default", first)
    second = add(world, token="t")
    assert second != first
    assert len(followed(world)) == 2


def test_a_long_visit_is_done_in_steps_and_goes_on_where_it_stopped(world):
    """An action that may only look at two documents is known to have more to see."""
    for number in range(5):
        world.publish(subject=f"document:{number}", collection="books")
    about = {"tenant": "default", "collection": "books", "kind": "extract", "options": {}, "pipeline": ""}
    action = actions.add_action(world.db, most=2, **about)
    assert (len(followed(world)), actions.unvisited(world.db, 10)) == (2, [action])
    assert actions.visit(world.db, action, 2) == 2
    assert actions.visit(world.db, action, 2) == 1
    assert (len(followed(world)), actions.unvisited(world.db, 10)) == (5, [])


def test_all_actions_of_a_collection_are_removed_with_it(world):
    """Those of other collections and tenants stay."""
    add(world)
    add(world)
    other = add(world, collection="papers")
    assert actions.remove_all(world.db, "default", "books") == 2
    assert [row.id for row in world.rows(select(action_rows).where(action_rows.c.active))] == [other]


def test_what_a_removed_action_has_under_way_is_ended_in_steps(world):
    """Some at once and the rest later, however many there are; then nobody looks at it again."""
    action = add(world)
    for number in range(5):
        world.publish(subject=f"document:{number}", collection="books")

    def live():
        return world.count(runs, runs.c.lane == Lane.FOLLOW_UP, runs.c.status == Status.QUEUED)

    assert actions.remove_action(world.db, "default", action, most=2) == Landed()
    assert (live(), actions.unended(world.db, 10)) == (3, [(action, "default")])
    assert actions.remove_action(world.db, "other", action) == Fenced("unknown")
    assert actions.cancel_follow_ups(world.db, "default", action, most=2) == 2
    assert actions.unended(world.db, 10) == [(action, "default")]
    assert actions.cancel_follow_ups(world.db, "default", action, most=2) == 1
    assert (live(), actions.unended(world.db, 10)) == (0, [])


def test_an_action_of_a_wrong_form_is_refused(world):
    """The kind must be one that could be requested."""
    with pytest.raises(BadRequestError, match="kind"):
        add(world, kind="Not A Kind")
    assert world.count(action_rows) == 0


def test_an_imported_document_is_followed_up_only_when_it_was_indexed_here(world):
    """It has no chunks to work on until then."""
    imports.import_documents(world.db, [(1, True)], tenant="default", collection="books")
    add(world)
    assert followed(world) == []
    world.publish(collection="books", force=True)
    assert len(followed(world)) == 1


@pytest.mark.g3
def test_moving_a_ready_document_tells_both_collections_and_follows_it_up_there(world):
    """Readers of both collections see a new publish_seq; the new collection's actions fire once."""
    add(world, collection="papers")
    head_id = world.publish(collection="books").head_id
    assert actions.move(world.db, head_id, "papers") == Landed()
    assert world.head().collection == "papers"
    seqs = {row.id: row.publish_seq for row in world.rows(select(collections))}
    assert seqs == {"books": 2, "papers": 1}
    assert len(followed(world)) == 1
    actions.move(world.db, head_id, "books")
    actions.move(world.db, head_id, "papers")
    assert len(followed(world)) == 1


def test_a_document_moved_while_it_runs_is_published_into_its_new_collection(world):
    """The publication reads the head under its lock."""
    action = add(world, collection="papers")
    claim = world.start(collection="books")
    actions.move(world.db, claim.head_id, "papers")
    assert followed(world) == []
    fenced.finish(world.db, claim, spent=Spent())
    assert followed(world) == [("extract", f"document:1#action:{action}", "document:1@1")]


@pytest.mark.parametrize("what", ["unknown", "deleted"])
def test_what_is_not_there_cannot_be_moved(world, what):
    """Refused with the reason, and nothing changes."""
    head_id = world.publish(collection="books").head_id
    requests.delete(world.db, "default", "document:1")
    assert actions.move(world.db, 99 if what == "unknown" else head_id, "papers") == Fenced(what)


@pytest.fixture
def side_by_side(postgresql_url):
    """Two processes' worth of the store on PostgreSQL; on SQLite one writer at a time makes the race void."""
    here, there = build(postgresql_url), build(postgresql_url)
    with ThreadPoolExecutor(1) as pool:
        yield here, there, pool
    here.db.close()
    there.db.close()


@pytest.mark.g4
@pytest.mark.postgresql
def test_an_action_added_while_a_document_is_publishing_misses_nothing(side_by_side, monkeypatch):
    """The publication read no action, the visit saw nothing visible yet: still one follow-up."""
    here, there, pool = side_by_side
    listed, page = threading.Event(), actions._page
    monkeypatch.setattr(actions, "_page", lambda *given: [page(*given), listed.set()][0])
    claim, adding = here.start(collection="books"), []

    def while_publishing(_tx):
        adding.append(pool.submit(add, there))
        assert listed.wait(30)

    fenced.finish(here.db, claim, spent=Spent(), publish=while_publishing)
    action = adding[0].result(30)
    assert followed(here) == [("extract", f"document:1#action:{action}", "document:1@1")]


@pytest.mark.g1
@pytest.mark.postgresql
def test_an_action_removed_while_a_document_is_publishing_leaves_nothing_running(side_by_side):
    """The publication has read the actions and is about to fire: the removal waits, then cancels that."""
    here, there, pool = side_by_side
    action = add(here)
    claim, removing, draw = here.start(collection="books"), [], here.db.token

    def before_it_fires():
        here.db.token = draw
        removing.append(pool.submit(actions.remove_action, there.db, "default", action))
        futures.wait(removing, timeout=0.5)  # one that did not wait would be over by now
        return draw()

    here.db.token = before_it_fires
    fenced.finish(here.db, claim, spent=Spent())
    assert removing[0].result(30) == Landed()
    assert here.count(runs, runs.c.status == Status.QUEUED) == 0
    assert here.count(runs, runs.c.status == Status.CANCELLED) == 1


@pytest.mark.g1
@pytest.mark.postgresql
def test_a_delete_beside_a_publication_finds_the_follow_up_it_made(side_by_side, monkeypatch):
    """The delete listed the heads before the follow-up existed; still nothing of the subject runs on."""
    here, there, pool = side_by_side
    add(here)
    listed, delete_head = threading.Event(), requests._delete_head
    monkeypatch.setattr(requests, "_delete_head", lambda *given: [listed.set(), delete_head(*given)][1])
    claim, deleting = here.start(collection="books"), []

    def while_publishing(_tx):
        deleting.append(pool.submit(requests.delete, there.db, "default", "document:1"))
        assert listed.wait(30)

    fenced.finish(here.db, claim, spent=Spent(), publish=while_publishing)
    assert len(deleting[0].result(30)) == 2
    assert here.claim() is None
    assert here.count(runs, runs.c.status == Status.QUEUED) == 0
