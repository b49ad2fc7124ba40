"""Every write transition survives the loss of its connection: before its COMMIT, and before the answer to it.

One table of transitions, each told twice from an empty database: once undisturbed, once with the connection
lost at that moment. The rows and the answer must be the same: nothing done twice, nothing forgotten.
"""

import dataclasses
import re
from pathlib import Path

import pytest
from sqlalchemy import select, update

from holdfast import faults
from holdfast.core import decide
from holdfast.core.records import Chunk, Fenced, Landed, Slice, Spent
from holdfast.core.states import Disposition, Lane, Loss, Status
from holdfast.store.base import rows
from holdfast.store.base.schema import deliveries, journal, runs, tasks
from holdfast.store.follow_ups import actions, agent_findings, delivery_attempts, webhook_tests
from holdfast.store.library import imports
from holdfast.store.protocol import claims, duties, duty_schedule, losses, prune, requests
from holdfast.store.protocol import tasks as fenced
from holdfast.store.views import reads
from tests.conformance.conftest import PATIENCE, cut

RULES = claims.LockHeld(attempt_cap=3)
NAMED = {"pipelines": [""], "owner": "other", "token": "t2", "ttl": 60.0, "rules": RULES}
DUTY = {"every": 60.0, "grace_after": 30.0, "grace": 12.0}
EXTRACT = {"tenant": "default", "collection": "books", "kind": "extract", "options": {}, "pipeline": ""}


def ask_again(world, **changes):
    ask, run_id = world.ask(**changes), world.db.token()
    return lambda: requests.request(world.db, ask, run_id=run_id, patience=PATIENCE)


def first_request(world):
    return ask_again(world)


def duplicate_request(world):
    world.request()
    return ask_again(world)


def superseding_request(world):
    world.sliced()
    return ask_again(world, content="b")


def takeover_request(world):
    world.request()
    world.write(update(runs).values(queued_at=1.0))
    return ask_again(world)


def cancel(world):
    head_id = world.start().head_id
    return lambda: requests.cancel(world.db, head_id)


def delete(world):
    world.publish(collection="books")
    return lambda: len(requests.delete(world.db, "default", "document:1"))


def claim_best(world):
    world.request()
    world.request(subject="document:2")
    return world.claim


def claim_named(world):
    task_id = world.sliced()[0].task_id
    world.write(update(tasks).where(tasks.c.id == task_id).values(lease_until=1.0))
    return lambda: claims.claim_named(world.db, task_id, **NAMED)


def skip_named(world):
    task_id = world.start().task_id
    return lambda: claims.claim_named(world.db, task_id, **NAMED)


def renew(world):
    claim = world.start()
    return lambda: claims.renew(world.db, claim, 60.0)


def sign(world):
    claim = world.start()
    return lambda: claims.sign(world.db, claim)


def release(world):
    claim = world.start()
    return lambda: claims.release(world.db, claim, "drain")


def put_back(world):
    claim = world.start()
    return lambda: claims.put_back(world.db, claim, reason="rate", delay=60.0)


def stage(world):
    claim = world.start()
    return lambda: fenced.stage(world.db, claim, [Chunk(n, str(n)) for n in range(3)])


def stage_too_late(world):
    claim = world.start()
    world.request(content="b")
    return lambda: fenced.stage(world.db, claim, [Chunk(0, "late")])


def say(world):
    claim = world.start()
    return lambda: fenced.say(world.db, claim, [("l1", "one")])


def advance(world):
    claim = world.start()
    return lambda: fenced.advance(world.db, claim, fenced.Report(1, 2, "pages", lines=[("l1", "one")]))


def plan(world):
    claim = world.start()
    return lambda: fenced.plan(world.db, claim, [Slice(), Slice()], Spent(paid=2))


def finish_slice(world):
    claim = world.sliced()[0]
    return lambda: fenced.finish(world.db, claim, spent=Spent(paid=1), staged=0)


def finish_and_publish(world):
    actions.add_action(world.db, **EXTRACT)
    claim = world.start(collection="books")
    return lambda: fenced.finish(world.db, claim, spent=Spent(paid=1), result={"n": 1})


def called_back(world):
    return world.start(callback={"url": "http://receiver.example"})


def finish_and_call_back(world):
    claim = called_back(world)
    return lambda: fenced.finish(world.db, claim, spent=Spent())


def fail_and_call_back(world):
    claim = called_back(world)
    return lambda: fenced.fail(world.db, claim, code="work_failed", message="no")


def cancel_and_call_back(world):
    claim = called_back(world)
    return lambda: requests.cancel(world.db, claim.head_id)


def supersede_and_call_back(world):
    called_back(world)
    return lambda: world.request(content="b")


def fail(world):
    claim = world.sliced()[0]
    return lambda: fenced.fail(world.db, claim, code="work_failed", message="no")


def win(world):
    duty_schedule.enrol(world.db, {"expire": 2.0})
    return lambda: duty_schedule.win(world.db, "expire", **DUTY) is not None


def enrol(world):
    return lambda: duty_schedule.enrol(world.db, {"expire": 2.0, "mend": 30.0})


def time_anew(world):
    world.start()
    duty_schedule.enrol(world.db, {"expire": 60.0})
    return lambda: duty_schedule.time_anew(world.db, 12.0)


def note_success(world):
    duty_schedule.enrol(world.db, {"expire": 2.0, "mend": 30.0})
    return lambda: duty_schedule.note_success(world.db, ["expire", "mend"])


def note_failure(world):
    duty_schedule.enrol(world.db, {"expire": 2.0})
    return lambda: duty_schedule.note_failure(world.db, "expire", 3, "it took too long")


def expire(world):
    for claim in world.sliced():
        world.lapse(claim)
    return lambda: duties.expire(world.db, cap=3)


def abandon(world):
    claim = world.start()
    world.set_task(claim, losses=19, lease_until=1.0)
    row = world.row(select(*losses.LOST_COLUMNS))
    return lambda: losses.abandon(world.db, row, Loss.LEASE_EXPIRED, decide.Caps())


def process_died(world):
    claim = world.start()
    return lambda: losses.lose(
        world.db, claim.task_id, claim.epoch, loss=Loss.PROCESS_DIED, caps=decide.Caps(), process="p"
    )


def wait_for_another(world):
    claim = world.start()
    return lambda: claims.note_wait(world.db, claim, waits=True)


def fall_due(world):
    claim = world.start()
    claims.put_back(world.db, claim, reason="rate", delay=0.0)
    return lambda: duties.fall_due(world.db)


def look_again(world):
    world.set_task(world.start(), look_again_at=1.0)
    return lambda: len(duties.look_again(world.db))


def mend_whole(world):
    for claim in world.sliced():
        world.set_task(claim, state="done")
    return lambda: duties.mend_stranded(world.db, lambda _kind: False)


def mend_broken(world):
    for claim in world.sliced():
        world.set_task(claim, state="closed")
    return lambda: duties.mend_stranded(world.db, lambda _kind: False)


def add_action(world):
    world.publish(collection="books")
    return lambda: actions.add_action(world.db, **EXTRACT) > 0


def remove_action(world):
    action_id = actions.add_action(world.db, **EXTRACT)
    return lambda: actions.remove_action(world.db, "default", action_id)


def move(world):
    actions.add_action(world.db, **EXTRACT)
    head_id = world.publish(collection="papers").head_id
    return lambda: actions.move(world.db, head_id, "books")


def delivery(world):
    """The claim of a delivery, and its event's id."""
    webhook = {"kind": "webhook", "pipeline": "", "options": {"url": "http://receiver.example"}}
    actions.add_action(world.db, tenant="default", collection="books", **webhook)
    world.publish(collection="books")
    world.write(tasks.update().values(pipeline=""))
    claim = world.claim()
    return claim, claim.subject.removeprefix("delivery:")


def send_test(world):
    webhook = {"kind": "webhook", "pipeline": "", "options": {"url": "http://receiver.example"}}
    action_id = actions.add_action(world.db, tenant="default", collection="books", **webhook)
    where = {"tenant": "default", "collection": "books", "action_id": action_id}
    return lambda: webhook_tests.send_test(world.db, **where, event_id="e")


def trying(world):
    claim, event = delivery(world)
    return lambda: delivery_attempts.trying(world.db, claim, event, 1)


def missed(world):
    claim, event = delivery(world)
    return lambda: delivery_attempts.missed(world.db, claim, event, status=500, error="no")


def send_again(world):
    claim, event = delivery(world)
    fenced.finish(world.db, claim, spent=Spent())
    return lambda: delivery_attempts.resend(world.db, "default", event, run_id="r")


def hurry(world):
    claim, event = delivery(world)
    claims.put_back(world.db, claim, reason="delivery", delay=900.0)
    return lambda: delivery_attempts.resend(world.db, "default", event, run_id="r")


def keep_finding(world):
    claim = world.start()
    return lambda: agent_findings.keep(world.db, claim, 1, "found")


def bring_in(world):
    items = [(1, True), (2, False), (3, True)]
    return lambda: imports.import_documents(world.db, items, tenant="default", collection="books")


def prune_chunks(world):
    world.publish(chunks=3)
    world.publish(content="b")
    return lambda: prune.prune_generations(world.db) and None


TRANSITIONS = {
    "request": (
        first_request,
        duplicate_request,
        superseding_request,
        takeover_request,
        supersede_and_call_back,
    ),
    "cancel": (cancel, cancel_and_call_back),
    "delete": (delete,),
    "claim": (claim_best, claim_named, skip_named),
    "renew": (renew,),
    "sign": (sign,),
    "release": (release,),
    "put_back": (put_back,),
    "stage": (stage, stage_too_late),
    "advance": (advance,),
    "say": (say,),
    "plan": (plan,),
    "finish": (finish_slice, finish_and_publish, finish_and_call_back),
    "fail": (fail, fail_and_call_back),
    "win": (win,),
    "enrol": (enrol,),
    "note_success": (note_success,),
    "time_anew": (time_anew,),
    "note_failure": (note_failure,),
    "expire": (expire,),
    "abandon": (abandon,),
    "lose": (process_died,),
    "note_wait": (wait_for_another,),
    "fall_due": (fall_due,),
    "look_again": (look_again,),
    "mend": (mend_whole, mend_broken),
    "add_action": (add_action,),
    "visit": (add_action,),
    "visited": (add_action,),
    "send_test": (send_test,),
    "trying": (trying,),
    "missed": (missed,),
    "resend": (send_again, hurry),
    "keep_finding": (keep_finding,),
    "remove_action": (remove_action,),
    "seen_to": (remove_action,),
    "move": (move,),
    "import": (bring_in,),
    "prune": (prune_chunks,),
}
HIDDEN = {"head_id", "run_id", "task_id", "token", "lease_until"}


def plain(answer):
    """An answer without the ids and times that differ between two equal histories."""
    if dataclasses.is_dataclass(answer):
        fields = dataclasses.asdict(answer)
        return {name: value for name, value in fields.items() if name not in HIDDEN}
    return answer


@pytest.mark.g4
@pytest.mark.g2
@pytest.mark.parametrize("moment", ["commit", "committed"])
@pytest.mark.parametrize(
    ("name", "story"),
    [(name, story) for name, stories in TRANSITIONS.items() for story in stories],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_lost_connection_changes_nothing_about_a_transition(world, lose, name, story, moment):
    """Lost before the COMMIT or before the answer to it: the same rows and the same answer."""
    expected = plain(story(world)())
    picture = world.picture()
    world.wipe()
    act = story(world)
    with lose(f"{name}.{moment}") as met:
        answer = plain(act())
    assert met.count(f"{name}.{moment}") >= 2
    assert answer == expected
    assert world.picture() == picture


def test_no_transition_is_left_out_of_the_table():
    """Every name under which these modules write is in the table above."""
    written = set()
    for module in (
        requests,
        claims,
        fenced,
        duties,
        duty_schedule,
        losses,
        actions,
        webhook_tests,
        delivery_attempts,
        agent_findings,
        imports,
        prune,
        rows,
        reads,
    ):
        written |= set(re.findall(r'db\.write\(\s*"([a-z_]+)"', Path(module.__file__).read_text()))
    assert written == set(TRANSITIONS)


def meanwhile(point, act):
    """At the first `point` `act` happens, then the connection is lost: others are quicker than the retry."""
    done = []

    def handler(name):
        if name == point and not done:
            done.append(name)
            act()
            raise cut()

    return faults.armed(handler)


@pytest.mark.g1
def test_a_request_whose_answer_was_lost_and_which_was_superseded_meanwhile_answers_for_itself(world):
    """It made generation 1, another made generation 2: the retry neither makes a third nor fails."""
    act = ask_again(world)
    with meanwhile("request.committed", lambda: world.request(content="b")):
        answer = act()
    assert (answer.disposition, answer.generation) == (Disposition.ACCEPTED, 1)
    assert answer.status is Status.SUPERSEDED
    assert (world.head().generation, world.count(runs)) == (2, 2)


@pytest.mark.g1
def test_a_cancel_whose_answer_was_lost_does_not_cancel_the_next_run(world):
    """Somebody asked again before the retry: that run lives."""
    claim = world.start()
    with meanwhile("cancel.committed", world.request):
        assert requests.cancel(world.db, claim.head_id) == Landed()
    assert (world.head().status, world.head().generation) == (Status.QUEUED, 2)


@pytest.mark.g1
def test_a_delete_whose_answer_was_lost_does_not_delete_what_came_after(world):
    """Somebody uploaded again before the retry: that generation lives."""
    head_id = world.publish().head_id
    with meanwhile("delete.committed", lambda: world.request(content="b")):
        assert requests.delete(world.db, "default", "document:1") == [head_id]
    assert (world.head().status, world.head().deleted) == (Status.QUEUED, False)


def test_a_move_whose_answer_was_lost_does_not_undo_the_next_move(world):
    """Somebody moved it on before the retry: there it stays."""
    head_id = world.publish(collection="books").head_id
    with meanwhile("move.committed", lambda: actions.move(world.db, head_id, "books")):
        assert actions.move(world.db, head_id, "papers") == Landed()
    assert world.head().collection == "books"


@pytest.mark.g2
def test_a_finish_that_never_landed_and_was_superseded_meanwhile_is_fenced_out(world, lose):
    """The connection was lost before the COMMIT, so nothing is published and the worker is told."""
    claim = world.start()
    world.db.pause = lambda _seconds: world.request(content="b")
    with lose("finish.commit"):
        assert fenced.finish(world.db, claim, spent=Spent()) == Fenced("run_superseded")
    assert not world.head().visible


@pytest.mark.g4
def test_a_claim_whose_answer_was_lost_is_found_by_its_token(world):
    """The worker gets the very task it already holds, not a second one."""
    world.request()
    world.request(subject="document:2")
    with meanwhile("claim.committed", lambda: None):
        claim = world.claim()
    assert claim.epoch == 1
    assert world.count(tasks, tasks.c.state == "running") == 1
    assert claims.renew(world.db, claim, 60.0)
    assert claim.lane == Lane.BULK


def test_a_refusal_whose_answer_was_lost_may_be_followed_by_another_and_the_journal_has_both(world):
    """What is answered is what the journal says last (G6)."""
    world.request()
    met = []

    def handler(name):
        met.append(name)
        if name == "request.committed" and met.count(name) == 1:
            with faults.armed(lambda _: None):
                world.request(content="b")  # the generation that was expected is there now, and under way
            raise cut()

    ask = world.ask(content="b", expect_generation=2, actor="me")
    with faults.armed(handler):
        output = requests.request(world.db, ask, run_id="mine", patience=PATIENCE)
    mine = select(journal.c.reason).where(journal.c.actor == "me").order_by(journal.c.id)
    assert [row.reason for row in world.rows(mine)] == [
        "refused:generation_mismatch",
        "duplicate:in_progress",
    ]
    assert output.disposition is Disposition.DUPLICATE


@pytest.mark.g4
def test_a_test_that_was_delivered_before_its_answer_came_is_not_sent_again(world):
    """The retry finds it, though it is no longer on its way."""
    act = send_test(world)

    def deliver():
        world.write(tasks.update().values(pipeline=""))
        fenced.finish(world.db, world.claim(), spent=Spent())

    with meanwhile("send_test.committed", deliver):
        assert act() == Landed()
    assert len(world.rows(select(deliveries.c.id))) == 1
