"""G6: what must not run is refused in one short transaction, before anything is spent, and is noted."""

from contextlib import contextmanager

import pytest
from sqlalchemy import event

from holdfast.core.records import Claim, Landed, Skipped, Spent
from holdfast.core.states import Disposition, Skip
from holdfast.store.follow_ups import actions, webhook_tests
from holdfast.store.money import budgets
from holdfast.store.protocol import claims, requests, tasks
from tests.races.arena import SUBJECT

pytestmark = pytest.mark.g6

MOST_STATEMENTS = 6
RULES = claims.LockHeld(attempt_cap=3, delay=15.0, times=2)


@contextmanager
def counted(arena):
    """The statements of the block, without the opening of transactions, and its commits."""
    said, commits = [], []

    def note(_connection, _cursor, statement, *_):
        if not statement.startswith("BEGIN"):
            said.append(statement)

    def count(connection):
        commits.append(connection)

    engine = arena.db.engine
    event.listen(engine, "before_cursor_execute", note)
    event.listen(engine, "commit", count)
    try:
        yield said, commits
    finally:
        event.remove(engine, "before_cursor_execute", note)
        event.remove(engine, "commit", count)


def quickly(arena, ask):
    """The answer of a request that took one short transaction."""
    with counted(arena) as (said, commits):
        answer = ask()
    assert len(commits) == 1
    assert len(said) <= MOST_STATEMENTS, said
    return answer


def nothing_new(arena, before):
    """No generation, no task, no order, no reservation came of it."""
    assert arena.picture() == before


def test_a_duplicate_is_refused_in_one_short_transaction_and_names_what_runs(arena):
    """Queued or running: the answer carries the run, its generation and its status."""
    first = arena.ask()
    for status in ("queued", "running"):
        if status == "running":
            arena.claim()
        before = arena.picture()
        answer = quickly(arena, arena.ask)
        assert answer.disposition is Disposition.DUPLICATE
        assert (answer.run_id, answer.generation, answer.status) == (first.run_id, 1, status)
        nothing_new(arena, before)
    refusals = [reason for verb, reason in arena.verbs() if verb == "request"]
    assert refusals == ["accepted:never_done", "duplicate:in_progress", "duplicate:in_progress"]


def test_a_duplicate_is_refused_as_quickly_beside_a_run_of_a_thousand_slices(arena):
    """What a refusal costs does not grow with what it refuses for."""
    tasks.plan(arena.db, arena.taken(), [tasks.Slice({}) for _ in range(1000)], Spent())
    assert quickly(arena, arena.ask).disposition is Disposition.DUPLICATE


def test_every_one_of_many_duplicates_at_once_is_in_the_journal(arena):
    """None is lost in the crowd: the bill can say what was saved."""
    arena.race(*[arena.ask] * 6)
    refusals = [reason for verb, reason in arena.verbs() if verb == "request"]
    assert sorted(refusals) == ["accepted:never_done"] + ["duplicate:in_progress"] * 5


def test_the_same_again_after_success_is_unchanged(arena):
    """Nothing is done for what is done; `force` is the way to say it is meant."""
    tasks.finish(arena.db, arena.taken(), spent=Spent())
    before = arena.picture()
    answer = quickly(arena, arena.ask)
    assert (answer.disposition, answer.generation) == (Disposition.UNCHANGED, 1)
    nothing_new(arena, before)
    assert arena.ask(force=True).disposition is Disposition.ACCEPTED


def test_a_request_over_budget_is_refused_before_anything_is_spent(arena):
    """No generation, no task and no order; the reason names the budget."""
    budgets.set_budget(arena.db, "default", "tenant", hard=0)
    answer = quickly(arena, arena.ask)
    assert (answer.disposition, answer.reason) == (Disposition.REFUSED, "over_budget:tenant")
    assert (arena.count("runs"), arena.count("tasks"), arena.count("orders")) == (0, 0, 0)
    assert arena.verbs()[1:] == [("request", "refused:over_budget:tenant")]


def test_a_request_for_a_generation_that_is_gone_is_refused(arena):
    """If-Match of two who edit at once: the second one learns that the first was there."""
    arena.ask("a")
    answers = arena.race(*[lambda n=n: arena.ask(f"b{n}", expect_generation=1) for n in range(4)])
    items = sorted(one.disposition.value for one in answers)
    assert items == ["refused"] * 3 + ["superseding"]
    assert {one.reason for one in answers if not one.created} == {"generation_mismatch"}


def deliver(arena, claim, rules=RULES):
    token = arena.db.token()
    return claims.claim_named(
        arena.db, claim.task_id, pipelines=[""], owner="other", token=token, ttl=60.0, rules=rules
    )


def test_a_delivery_of_a_held_task_never_harms_the_live_run(arena):
    """`lock_held`, a limited number of times to look again, then dropped; the holder never notices."""
    claim = arena.taken()
    skips = [deliver(arena, claim) for _ in range(4)]
    assert skips[:2] == [Skipped(Skip.LOCK_HELD, 15.0)] * 2
    assert skips[2:] == [Skipped(Skip.LOCK_HELD, None)] * 2
    assert (arena.status(claim.run_id), arena.head().status) == ("running", "running")
    assert arena.rows("tasks")[0].token == claim.token
    assert tasks.finish(arena.db, claim, spent=Spent()).published


def test_deliveries_that_must_not_run_say_why(arena):
    """Each reason is the true one, and is counted in the journal."""
    gone = arena.taken("a", "document:1")
    arena.ask("b", "document:1")
    done = arena.taken("a", "document:2")
    tasks.finish(arena.db, done, spent=Spent())
    stopped = arena.taken("a", "document:3")
    requests.cancel(arena.db, stopped.head_id)
    items = [deliver(arena, claim).reason for claim in (gone, done, stopped)]
    assert items == [Skip.STALE_GENERATION, Skip.FINISHED, Skip.CANCELLED]
    assert [reason for verb, reason in arena.verbs() if verb == "skip"] == [reason.value for reason in items]


def test_of_two_deliveries_of_one_task_at_once_one_runs(arena):
    """A redelivery storm: one holder, and the rest are told that the lock is held."""
    arena.ask()
    [task] = arena.rows("tasks")

    def delivery():
        token = arena.db.token()
        return claims.claim_named(
            arena.db, task.id, pipelines=[""], owner="other", token=token, ttl=60.0, rules=RULES
        )

    answers = arena.race(*[delivery] * 6)
    assert sum(isinstance(one, Claim) for one in answers) == 1
    assert {one.reason for one in answers if isinstance(one, Skipped)} == {Skip.LOCK_HELD}
    assert arena.head(SUBJECT).status == "running"


def test_a_delivery_that_waits_while_its_run_is_superseded_does_not_run(arena):
    """The request stands before its commit, the delivery waits for the task: it finds it closed."""
    claim = arena.taken()
    arena.run_out(claim)
    asker = arena.start(lambda: arena.ask("b"), stop_at="request.commit").stands()
    delivery = arena.start(lambda: deliver(arena, claim))
    arena.waits(delivery)
    asker.result()
    assert isinstance(delivery.result(), Skipped)
    assert arena.rows("tasks", id=claim.task_id)[0].state == "closed"


def test_of_two_clicks_on_the_test_of_a_webhook_one_sends(arena):
    """The second is about to look while the first has not committed: it waits, and names the first one's."""
    webhook = {"kind": "webhook", "pipeline": "", "options": {"url": "http://receiver.example"}}
    where = {"tenant": "default", "collection": "books"}
    where["action_id"] = actions.add_action(arena.db, **where, **webhook)

    def click(event_id):
        return lambda: webhook_tests.send_test(arena.db, **where, event_id=event_id)

    first = arena.start(click("e1"), stop_at="send_test.commit").stands()
    second = arena.start(click("e2"))
    arena.waits(second)
    assert (first.result(), second.result()) == (Landed(), "e1")
    assert [row.id for row in arena.rows("deliveries")] == ["e1"]
    assert arena.race(*(click(f"e{number}") for number in range(3, 9))) == ["e1"] * 6
