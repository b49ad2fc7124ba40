"""An event reaches its address after the commit that made it true: signed, at least once, under one id."""

import dataclasses
import hashlib
import hmac
import json

import pytest

from holdfast.core.records import Ask, Landed
from holdfast.core.states import Status
from holdfast.store.follow_ups import actions, delivery_attempts
from holdfast.store.protocol import prune
from holdfast.store.views import reads
from tests.webhooks.conftest import SECRET


def test_a_document_that_becomes_ready_is_told_of(office, receiver):
    """The event names the document, its generation and the action; headers carry its id."""
    action = office.hook(receiver.url, name="tell us")
    run = office.ask().run_id
    office.work()
    (came,) = receiver.came
    said = came.event
    assert said["event"] == came.headers["holdfast-event"] == "document.ready"
    assert said["id"] == came.id == came.headers["idempotency-key"]
    assert said["document"] == {"id": "1", "collection": "books", "generation": 1, "run_id": run}
    assert said["action"] == {"id": action, "name": "tell us"}
    assert [(each.state, each.tries, each.last_status) for each in office.sent()] == [("delivered", 1, 200)]


def test_a_delivery_is_signed_over_its_time_and_its_body(small, receiver):
    """Whoever has the secret can tell that nothing was changed, and how old it is."""
    small.hook(receiver.url)
    small.ask()
    small.work()
    (came,) = receiver.came
    at, signature = (part.partition("=")[2] for part in came.headers["holdfast-signature"].split(","))
    expected = hmac.new(SECRET.encode(), f"{at}.".encode() + came.body, hashlib.sha256).hexdigest()
    assert signature == expected


@pytest.mark.g3
def test_nothing_is_sent_before_the_document_is_ready(office, receiver):
    """When the event arrives, a reader sees the generation it names."""
    seen = []

    def look(came):
        head = reads.head(office.db, "default", "index", "document:1")
        seen.append((head.published_generation, came.event["document"]["generation"]))

    receiver.look = look
    office.hook(receiver.url)
    office.ask()
    office.work()
    assert seen == [(1, 1)]


def test_each_generation_is_an_event_of_its_own(office, receiver):
    """Two publications before anybody delivers: both are told, in any order, neither supersedes the other."""
    office.hook(receiver.url)
    for content in ("a", "b"):
        office.ask(content)
        office.engine.work_off(lanes=["bulk"])
    assert receiver.came == []
    office.work()
    assert sorted(each.event["document"]["generation"] for each in receiver.came) == [1, 2]
    assert len(set(receiver.ids())) == 2


def test_a_failed_document_is_not_told_of(office, receiver):
    """Nor is one that was ready before and is indexed again in vain."""
    office.hook(receiver.url)
    office.ask("fail")
    office.work()
    assert (receiver.came, office.sent()) == ([], [])


def test_a_new_action_tells_of_what_is_ready_already_and_once(office, receiver):
    """Whoever adds the same action again, by its token, tells nobody twice."""
    office.ask()
    office.work()
    assert office.hook(receiver.url, token="t") == office.hook(receiver.url, token="t")
    office.work()
    assert len(receiver.came) == 1


def test_two_tenants_are_told_apart(office, receiver):
    """Each sees its own deliveries, and neither can send the other's again."""
    for tenant in ("one", "two"):
        office.hook(f"{receiver.url}/{tenant}", tenant=tenant)
        office.ask(tenant=tenant)
    office.work()
    assert sorted(each.path for each in receiver.came) == ["/hook/one", "/hook/two"]
    (theirs,) = office.sent("two")
    assert [each.url for each in office.sent("one")] == [f"{receiver.url}/one"]
    assert delivery_attempts.one(office.db, "one", theirs.id) is None
    assert delivery_attempts.resend(office.db, "one", theirs.id, run_id="x").reason == "unknown"


def test_a_removed_action_sends_no_more(office, receiver):
    """What it had under way is cancelled, and what becomes ready later is not told of."""
    action = office.hook(receiver.url)
    office.ask()
    office.engine.work_off(lanes=["bulk"])
    actions.remove_action(office.db, "default", action)
    office.ask("b", "document:2")
    office.work()
    assert receiver.came == []
    assert [each.state for each in office.sent()] == ["cancelled"]


def test_a_person_sends_an_event_again_and_it_is_the_same_event(office, receiver):
    """The same id and the same bytes; the receiver can tell that it has it."""
    office.hook(receiver.url)
    office.ask()
    office.work()
    (done,) = office.sent()
    assert delivery_attempts.resend(office.db, "default", done.id, run_id=office.db.token()) == Landed()
    office.work()
    first, second = receiver.came
    assert (first.id, first.body) == (second.id, second.body)
    assert [each.state for each in office.sent()] == ["delivered"]


ENDINGS = {
    "job.succeeded": lambda office, _run: office.work(),
    "job.failed": lambda office, _run: office.work(),
    "job.cancelled": lambda office, head: office.engine.cancel(head),
    "job.superseded": lambda office, _run: office.engine.request(
        Ask("job", "document:1", content="newer", collection="books")
    ),
    "deleted": lambda office, _run: office.engine.delete("default", "document:1"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_end_of_a_run_is_told_to_whoever_asked_for_it(office, receiver, ending):
    """Succeeded, failed, cancelled, superseded or deleted: one event, and the work is free by then."""
    event = "job.superseded" if ending == "deleted" else ending
    free = []

    def look(came):
        if came.event["event"] == event:
            head = reads.head(office.db, "default", "job", "document:1")
            free.append(head.run_id != came.event["job"]["id"] or head.status not in ("queued", "running"))

    receiver.look = look
    content = "fail" if ending == "job.failed" else "a"
    callback = {"url": receiver.url, "secret": SECRET}
    ask = Ask("job", "document:1", content=content, collection="books", callback=callback)
    answer = office.engine.request(ask)
    ENDINGS[ending](office, answer.head_id)
    office.work()
    items = [each.event for each in receiver.came]
    assert [(each["event"], each["job"]["id"]) for each in items] == [(event, answer.run_id)]
    assert free == [True]
    assert (items[0]["job"]["error"] is None) == (event == "job.succeeded")


@pytest.mark.parametrize("ending", ENDINGS)
def test_whoever_delivers_is_woken_by_the_end_itself(small, ending):
    """No sweep is needed for it: the wake-up goes out with the commit that ended the run."""
    content = "fail" if ending == "job.failed" else "a"
    callback = {"url": "http://elsewhere.example/told"}
    ask = Ask("job", "document:1", content=content, collection="books", callback=callback)
    answer = small.engine.request(ask)
    worked = ending in ("job.succeeded", "job.failed")
    if worked:
        small.engine.work_off(lanes=["bulk"])
    else:
        ENDINGS[ending](small, answer.head_id)
    assert [each.state for each in small.sent()] == ["pending"]
    assert small.sender.lanes["follow-up"] == 1


def test_a_run_without_a_callback_tells_nobody(small):
    """And a request with another callback is no other request: it is not part of what is to be done."""
    ask = Ask("job", "document:1", content="a", collection="books")
    first = small.engine.request(ask)
    again = small.engine.request(dataclasses.replace(ask, callback={"url": "http://elsewhere.example"}))
    assert (again.disposition, again.run_id) == ("duplicate", first.run_id)
    small.work()
    assert small.sent() == []


def test_a_receiver_may_start_the_next_at_once(office, receiver):
    """The active work is released before the callback is sent."""
    answers = []
    ask = Ask("job", "document:1", content="a", collection="books")

    def look(_came):
        # Of work that is still active this would be a duplicate.
        answers.append(office.engine.request(dataclasses.replace(ask, force=True)))

    receiver.look = look
    office.engine.request(dataclasses.replace(ask, callback={"url": receiver.url}))
    office.work()
    assert [each.disposition for each in answers] == ["accepted"]
    head = reads.head(office.db, "default", "job", "document:1")
    assert (head.status, head.generation) == (Status.SUCCESS, 2)


def test_what_is_kept_is_what_is_sent(small, receiver):
    """The body is frozen when the event becomes true; every try sends these bytes."""
    receiver.script = [500, 500]
    small.hook(receiver.url)
    small.ask()
    small.work()
    bodies = small.bodies()
    assert len(receiver.came) == 3
    assert {came.body for came in receiver.came} == set(bodies.values())
    assert json.loads(receiver.came[0].body)["id"] in bodies


def test_history_takes_deliveries_that_have_ended_along(office, receiver):
    """Those that are under way stay, however old they are."""
    office.hook(receiver.url)
    office.ask()
    office.work()
    office.ask("b")
    office.engine.work_off(lanes=["bulk"])
    prune.prune_history(office.db, -60.0)
    assert [each.state for each in office.sent()] == ["pending"]
    office.work()
    assert [each.state for each in office.sent()] == ["delivered"]
