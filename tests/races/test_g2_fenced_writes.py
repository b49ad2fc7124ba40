"""G2: whoever lost its run, its generation or its epoch writes nothing, however late it wakes.

Each fenced write meets each event that takes the right to write away, in both orders: the event has committed
before the write begins (frozen just before it), and the event stands before its commit while the write waits
for its lock (frozen inside it, where a sub-select would still see the old rows).
"""

import pytest

from holdfast.core.records import Chunk, Fenced, Landed, Slice, Spent
from holdfast.store.money import calls, orders
from holdfast.store.protocol import claims, duties, requests, tasks
from tests.races import actor
from tests.races.arena import eventually

pytestmark = pytest.mark.g2


def late_send(arena, claim):
    return calls.send(arena.db, claim, arena.intended[claim.task_id])


def late_resend(arena, claim):
    return calls.resend(arena.db, claim, arena.intended[claim.task_id].id, arena.db.token())


WRITES = {
    "stage": lambda arena, claim: tasks.stage(arena.db, claim, [Chunk(7, "late")]),
    "advance": lambda arena, claim: tasks.advance(
        arena.db, claim, tasks.Report(9, 9, lines=[("l9", "late")])
    ),
    "plan": lambda arena, claim: tasks.plan(arena.db, claim, [Slice(), Slice()], Spent()),
    "finish": lambda arena, claim: tasks.finish(arena.db, claim, spent=Spent(paid=5), staged=1),
    "fail": lambda arena, claim: tasks.fail(arena.db, claim, code="late", message="late"),
    "send": late_send,
    "resend": late_resend,
    "send_at_once": lambda arena, claim: arena.send_at_once(claim, f"{claim.subject}/x"),
}

EVENTS = {
    "expire": lambda arena, claim: duties.expire(arena.db, cap=99),
    "request": lambda arena, claim: arena.ask("b", claim.subject),
    "cancel": lambda arena, claim: requests.cancel(arena.db, claim.head_id),
    "delete": lambda arena, claim: requests.delete(arena.db, "default", claim.subject),
    "release": lambda arena, claim: claims.release(arena.db, claim, "drained"),
    "put_back": lambda arena, claim: claims.put_back(arena.db, claim, reason="rate", delay=60.0),
}


def prepared(arena, write, subject):
    """A claim in the middle of its work, ready for `write`."""
    claim = arena.taken("a", subject, ttl=60.0)
    tasks.stage(arena.db, claim, [Chunk(0, "early")])
    if write in {"send", "resend"}:
        order = arena.intend(claim, f"{subject}/x", f"{subject}/y")
        arena.intended = {claim.task_id: order}
        if write == "resend":
            marked = calls.send(arena.db, claim, order)
            orders.doubt(arena.db, order.id, marked.sends, reason="cut")
    return claim


@pytest.mark.parametrize("write", WRITES)
def test_a_write_after_the_right_to_it_was_taken_changes_nothing(arena, write):
    """Frozen just before its write and thawed after the event: fenced out, and every row is as it was."""
    events = EVENTS | {"take over": lambda arena, claim: arena.take_over(claim)}
    for number, (event, happen) in enumerate(events.items()):
        claim = prepared(arena, write, f"document:{number}")
        arena.run_out(claim)
        happen(arena, claim)
        before = arena.picture()
        assert isinstance(WRITES[write](arena, claim), Fenced), event
        assert arena.picture() == before, event


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_waits_while_the_right_to_it_is_taken_changes_nothing(arena, write):
    """The event stands before its commit; the write began on the old rows and is judged by the new ones."""
    for number, (event, happen) in enumerate(EVENTS.items()):
        claim = prepared(arena, write, f"document:{number}")
        arena.run_out(claim)
        taker = arena.start(
            lambda claim=claim, happen=happen: happen(arena, claim), stop_at=f"{event}.commit"
        )
        taker.stands()
        writer = arena.start(lambda claim=claim: WRITES[write](arena, claim))
        arena.waits(writer)
        taker.result()
        expected = arena.rows("tasks", id=claim.task_id)[0].epoch
        assert isinstance(writer.result(), Fenced), event
        [task] = arena.rows("tasks", id=claim.task_id)
        assert (task.epoch, task.done) == (expected, 0), event
        assert arena.count("tasks", run_id=claim.run_id) == 1, event
        assert [row.text for row in arena.rows("chunks", head_id=claim.head_id)] == ["early"], event
        assert arena.head(claim.subject).visible is False, event
        assert "sent" not in {row.state for row in arena.rows("orders", task_id=claim.task_id)}, event


def test_a_superseded_run_does_not_publish_while_it_waits_for_the_lock(pg_arena):
    """READ COMMITTED: a test beside the write sees the rows from before the wait; a locked row does not."""
    claim = pg_arena.taken("a")
    tasks.stage(pg_arena.db, claim, [Chunk(0, "old")])
    asker = pg_arena.start(lambda: pg_arena.ask("b"), stop_at="request.commit").stands()
    finisher = pg_arena.start(lambda: tasks.finish(pg_arena.db, claim, spent=Spent(), staged=1))
    pg_arena.waits(finisher)
    assert not finisher.over
    asker.result()
    assert isinstance(finisher.result(), Fenced)
    assert pg_arena.texts() == []
    assert pg_arena.head().published_generation == 0


@pytest.mark.parametrize("write", ["stage", "advance", "send"])
def test_writes_of_two_slices_do_not_wait_for_each_other(pg_arena, write):
    """They share the head: a slow batch of one slice holds up no other."""
    plan = pg_arena.taken("a")
    tasks.plan(pg_arena.db, plan, [Slice(), Slice()], Spent())
    one, two = pg_arena.claim(), pg_arena.claim()
    slow = pg_arena.start(
        lambda: tasks.stage(pg_arena.db, one, [Chunk(0, "x")]), stop_at="stage.commit"
    ).stands()
    pg_arena.intended = {two.task_id: pg_arena.intend(two, "y")}
    assert not isinstance(WRITES[write](pg_arena, two), Fenced)
    assert slow.result() == Landed()


LEGS = {
    "run": ("runs", {"status": "cancelled"}),
    "generation": ("heads", {"generation": 2}),
    "epoch": ("tasks", {"epoch": 9}),
    "token": ("tasks", {"token": "another"}),
    "state": ("tasks", {"state": "queued"}),
}


@pytest.mark.parametrize("leg", LEGS)
def test_each_leg_of_the_fence_refuses_every_write_alone(arena, leg):
    """Run live, generation current, epoch and token mine, task running: each is enough to stop a write."""
    table, values = LEGS[leg]
    for number, write in enumerate(WRITES):
        claim = prepared(arena, write, f"document:{number}")
        where = {"runs": claim.run_id, "heads": claim.head_id, "tasks": claim.task_id}[table]
        arena.set(table, values, id=where)
        before = arena.picture()
        assert isinstance(WRITES[write](arena, claim), Fenced), write
        assert arena.picture() == before, write


def test_a_refused_write_is_in_the_journal(arena):
    """The proof that the fence was needed: who, which epoch and why."""
    old = arena.taken()
    arena.take_over(old)
    tasks.finish(arena.db, old, spent=Spent())
    assert ("finish", "fenced_out:stale_epoch") in arena.verbs(old.head_id)


def test_the_epoch_rises_at_every_change_of_holder_also_to_nobody(arena):
    """Claim, release, put back, expire: each makes the epochs before it stale for ever."""
    arena.ask()
    epochs = []
    let_go = {
        "release": lambda claim: claims.release(arena.db, claim, "drained"),
        "put_back": lambda claim: claims.put_back(arena.db, claim, reason="rate", delay=0.0),
        "expire": arena.expire,
    }
    for end in let_go.values():
        claim = arena.claim()
        end(claim)
        epochs += [claim.epoch, arena.rows("tasks")[0].epoch]
        duties.fall_due(arena.db)
    assert epochs == [1, 2, 3, 4, 5, 6]


def test_a_release_never_counts_as_an_attempt(arena):
    """A deploy, a wait for money or for another's intent is no sign of poison."""
    arena.ask()
    for _ in range(3):
        claims.release(arena.db, arena.claim(), "draining")
        claims.put_back(arena.db, arena.claim(), reason="budget", delay=0.0)
        eventually(lambda: duties.fall_due(arena.db))
    assert arena.rows("tasks")[0].attempts == 0


def test_a_renewal_never_takes_back_what_ran_out(arena):
    """A thawed holder's renewal answers no, whether or not somebody else has the task."""
    claim = arena.taken()
    assert claims.renew(arena.db, claim, 60.0)
    arena.run_out(claim)
    assert not claims.renew(arena.db, claim, 60.0)
    new = arena.take_over(claim)
    assert not claims.renew(arena.db, claim, 60.0)
    assert claims.renew(arena.db, new, 60.0)


def test_a_renewal_that_meets_the_sweep_does_not_land_on_what_was_taken(arena):
    """The sweep stands before its commit, the renewal waits for the row: the lease is gone for good."""
    claim = arena.taken()
    arena.run_out(claim)
    sweeper = arena.start(lambda: duties.expire(arena.db, cap=99), stop_at="expire.commit").stands()
    holder = arena.start(lambda: claims.renew(arena.db, claim, 60.0))
    arena.waits(holder)
    sweeper.result()
    assert holder.result() is False
    assert arena.rows("tasks")[0].lease_until == 0.0


def test_what_an_older_epoch_staged_is_gone_before_the_slice_is_published(arena):
    """The first holder staged three chunks and died; the second stages one, and one is seen."""
    old = arena.taken()
    tasks.stage(arena.db, old, [Chunk(n, f"old {n}") for n in range(3)])
    new = arena.take_over(old)
    tasks.stage(arena.db, new, [Chunk(0, "new")])
    assert tasks.finish(arena.db, new, spent=Spent(), staged=1) == Landed(published=True)
    assert arena.texts() == ["new"]


def test_leftovers_are_gone_even_if_the_successor_stages_nothing(arena):
    """A slice that turned out empty publishes nothing of its dead predecessor."""
    old = arena.taken()
    tasks.stage(arena.db, old, [Chunk(0, "old")])
    new = arena.take_over(old)
    assert tasks.finish(arena.db, new, spent=Spent()) == Landed(published=True)
    assert arena.texts() == []


@pytest.mark.parametrize("moment", ["stage.committed", "send.committed", "finish.commit"])
def test_a_process_frozen_and_thawed_after_another_finished_changes_nothing(arena, keyed_meter, moment):
    """SIGSTOP, lease over, another worker publishes, SIGCONT: every row stays as the other left it."""
    if moment == "finish.commit" and not arena.db.postgresql:
        pytest.skip("a process frozen inside a SQLite transaction holds the only write lock there is")
    part = actor.Part(
        arena.url, keyed_meter.base_url, at=moment, do=actor.WAIT, terms=actor.SHORT, idle_limit=300
    )
    arena.ask(pipeline="index@1", options={"words": ["one", "two"]})
    process = actor.Process(part).go()
    assert process.expect("at") == moment
    process.freeze()
    with actor.closing(actor.client(part)) as provider:
        other = actor.engine(actor.Part(arena.url, owner="other"), provider)
        eventually(lambda: "published" in [one.ending for one in other.run_until_idle(patience=0.5)])
        other.db.close()
    before = arena.picture()
    process.go().thaw()
    endings = [ending for ending, _ in process.expect("done")]
    process.ends()
    assert set(endings) <= {"fenced_out", "released"}
    assert arena.picture() == before
    assert keyed_meter.totals().excess == 0


def test_a_process_frozen_before_its_first_byte_sends_nothing_when_it_thaws_too_late(arena, unkeyed_meter):
    """Marked sent, gate passed, frozen past the trust in its lease: the bytes never leave."""
    part = actor.Part(
        arena.url,
        unkeyed_meter.base_url,
        keyed=False,
        at="send.first_byte",
        do=actor.WAIT,
        terms=actor.SHORT,
    )
    arena.ask(pipeline="index@1", options={"words": ["one"]})
    process = actor.Process(part).go()
    process.expect("at")
    process.freeze()
    *earlier, order = arena.rows("orders")  # on a slow machine it may have lost its lease before
    assert order.state == "sent"
    eventually(lambda: duties.expire(arena.db, cap=99))
    requests.cancel(arena.db, arena.head().id)
    process.go().thaw()
    process.expect("done")
    process.ends()
    assert unkeyed_meter.wait_quiet().exchanges == 0
    assert [row.state for row in arena.rows("orders")] == ["void"] * (len(earlier) + 1)
