"""G1: at most one generation of a (kind, subject) is current, whoever asks, finishes or deletes at once."""

import pytest

from holdfast.core import decide
from holdfast.core.records import Ask, Fenced, Landed, Slice, Spent
from holdfast.core.states import Disposition, Status
from holdfast.store.protocol import requests, tasks
from tests.races import actor
from tests.races.arena import SUBJECT, eventually

pytestmark = pytest.mark.g1

STUCK = decide.SilenceLimits(queued=1.0, running=1.0)


def live_runs(arena):
    return [row.id for row in arena.rows("runs") if row.status in {"queued", "running"}]


def test_of_many_threads_that_ask_at_once_one_is_accepted(arena):
    """Eight requests for a subject nobody knew: one generation, and all the others are told of it."""
    answers = arena.race(*[arena.ask] * 8)
    [winner] = [one for one in answers if one.disposition is Disposition.ACCEPTED]
    others = [one for one in answers if one is not winner]
    assert {one.disposition for one in others} == {Disposition.DUPLICATE}
    assert {(one.run_id, one.generation) for one in others} == {(winner.run_id, 1)}
    assert live_runs(arena) == [winner.run_id]
    assert arena.count("tasks") == 1


def test_of_many_processes_that_ask_at_once_one_is_accepted(arena):
    """Eight processes, each with its own connection: the same single winner."""
    asks = [Ask(kind="index", subject=SUBJECT, content="a", actor=f"process {n}") for n in range(8)]
    crowd = [actor.Process(actor.Part(arena.url, ask=ask)) for ask in asks]
    for process in crowd:
        process.ready()
    for process in crowd:
        process.go()
    answers = [process.expect("answer") for process in crowd]
    for process in crowd:
        process.ends()
    assert sorted(disposition for disposition, _, _ in answers) == ["accepted"] + ["duplicate"] * 7
    assert len({run_id for _, _, run_id in answers}) == 1
    assert arena.head().generation == 1


def test_two_changed_contents_at_once_make_two_generations_and_one_winner(arena):
    """Both are for something new, so both supersede: the second waits for the first and stands above it."""
    arena.ask("a")
    first = arena.start(lambda: arena.ask("b"), stop_at="request.commit").stands()
    second = arena.start(lambda: arena.ask("c"))
    arena.waits(second)
    answers = [first.result(), second.result()]
    assert {one.disposition for one in answers} == {Disposition.SUPERSEDING}
    assert [one.generation for one in answers] == [2, 3]
    assert live_runs(arena) == [answers[1].run_id]
    assert sorted(row.status for row in arena.rows("runs")) == ["queued", "superseded", "superseded"]
    assert sorted(row.state for row in arena.rows("tasks")) == ["closed", "closed", "queued"]


def test_the_same_changed_content_twice_at_once_supersedes_once(arena):
    """Compared with what was last requested: the second request for B is a duplicate of the first."""
    arena.ask("a")
    answers = arena.race(lambda: arena.ask("b"), lambda: arena.ask("b"))
    items = sorted(one.disposition.value for one in answers)
    assert items == ["duplicate", "superseding"]
    assert arena.head().generation == 2


def test_a_finish_that_commits_first_is_published_and_then_superseded(arena):
    """The request waits for the finisher's lock, then sees what it left: success with other content."""
    claim = arena.taken("a")
    finisher = arena.start(lambda: tasks.finish(arena.db, claim, spent=Spent()), stop_at="finish.commit")
    finisher.stands()
    asker = arena.start(lambda: arena.ask("b"))
    arena.waits(asker)
    assert not asker.over
    assert finisher.result() == Landed(published=True)
    assert asker.result().disposition is Disposition.SUPERSEDING
    head = arena.head()
    assert (head.generation, head.published_generation, head.status) == (2, 1, Status.QUEUED)
    assert arena.status(claim.run_id) == "success"


def test_a_request_that_commits_first_leaves_the_finish_of_the_old_run_nothing(arena):
    """The finish waits for the asker's lock, then finds its run superseded and publishes nothing."""
    claim = arena.taken("a")
    asker = arena.start(lambda: arena.ask("b"), stop_at="request.commit").stands()
    finisher = arena.start(lambda: tasks.finish(arena.db, claim, spent=Spent()))
    arena.waits(finisher)
    assert asker.result().disposition is Disposition.SUPERSEDING
    assert isinstance(finisher.result(), Fenced)
    head = arena.head()
    assert (head.generation, head.published_generation, head.visible) == (2, 0, False)


def test_of_two_who_would_take_over_a_stuck_run_one_does(arena):
    """Both find the run silent; the second to get the lock finds the first one's fresh generation."""
    claim = arena.taken("a")
    arena.set("tasks", {"lease_until": 1.0, "signed_at": 1.0, "claimed_at": 1.0}, id=claim.task_id)
    arena.set("runs", {"queued_at": 1.0, "started_at": 1.0}, id=claim.run_id)
    arena.set("turns", {"last_served": 1.0})
    answers = arena.race(*[lambda: arena.ask("a", patience=STUCK)] * 4)
    items = sorted(one.disposition.value for one in answers)
    assert items == ["duplicate"] * 3 + ["takeover"]
    assert arena.head().generation == 2
    assert isinstance(tasks.finish(arena.db, claim, spent=Spent()), Fenced)


def test_a_live_lease_is_never_taken_over_however_long_the_run_is_silent(arena):
    """The holder renews and does nothing else: asking again is a duplicate, not a takeover."""
    claim = arena.taken("a")
    arena.set("tasks", {"signed_at": 1.0, "claimed_at": 1.0}, id=claim.task_id)
    arena.set("runs", {"queued_at": 1.0, "started_at": 1.0}, id=claim.run_id)
    arena.set("turns", {"last_served": 1.0})
    assert arena.ask("a", patience=STUCK).disposition is Disposition.DUPLICATE


@pytest.mark.parametrize("first", ["finish", "delete"])
def test_after_a_delete_and_a_finish_at_once_nothing_is_visible(arena, first):
    """Whichever commits first: the delete is the later generation, and what was deleted stays so."""
    claim = arena.taken("a")
    plays = {
        "finish": lambda: tasks.finish(arena.db, claim, spent=Spent()),
        "delete": lambda: requests.delete(arena.db, "default", SUBJECT),
    }
    second = {"finish": "delete", "delete": "finish"}[first]
    one = arena.start(plays[first], stop_at=f"{first}.commit").stands()
    other = arena.start(plays[second])
    arena.waits(other)
    answers = {first: one.result(), second: other.result()}
    head = arena.head()
    assert answers["delete"] == [head.id]
    assert isinstance(answers["finish"], Landed if first == "finish" else Fenced)
    assert (head.generation, head.visible, head.deleted, head.status) == (2, False, True, Status.IDLE)
    assert arena.texts() == []


def test_generations_never_restart_after_a_delete(arena):
    """Deleting is a generation: what is asked for next stands above it, and old work below it for ever."""
    old = arena.taken("a")
    requests.delete(arena.db, "default", SUBJECT)
    again = arena.ask("a")
    assert (again.disposition, again.generation) == (Disposition.ACCEPTED, 3)
    assert isinstance(tasks.finish(arena.db, old, spent=Spent()), Fenced)
    new = arena.claim()
    assert tasks.finish(arena.db, new, spent=Spent()) == Landed(published=True)
    assert arena.head().published_generation == 3


def test_of_two_who_delete_at_once_one_makes_the_generation(arena):
    """The second finds it deleted and leaves it as it is."""
    arena.taken("a")
    answers = arena.race(*[lambda: requests.delete(arena.db, "default", SUBJECT)] * 2)
    assert sorted(map(len, answers)) == [0, 1]
    assert arena.head().generation == 2


def test_a_task_on_its_way_to_one_worker_is_not_given_to_another(arena):
    """While a claim stands before its commit, another worker gets the next slice and does not wait for it."""
    tasks.plan(arena.db, arena.taken(), [Slice(), Slice()], Spent())
    first = arena.start(arena.try_claim, stop_at="claim.commit").stands()
    second = arena.start(arena.try_claim)
    if arena.db.postgresql:
        eventually(lambda: second.over)
    won = [first.result(), second.result()]
    assert [claim.ordinal for claim in won] == [1, 2]
    assert [claim.epoch for claim in won] == [1, 1]
    assert arena.try_claim() is None


def test_a_request_and_a_cancel_at_once_leave_one_story(arena):
    """A cancel that names its run never ends the run that superseded it."""
    claim = arena.taken("a")
    asker = arena.start(lambda: arena.ask("b"), stop_at="request.commit").stands()
    canceller = arena.start(lambda: requests.cancel(arena.db, claim.head_id, run_id=claim.run_id))
    arena.waits(canceller)
    new = asker.result()
    assert canceller.result() == Fenced("not_current")
    assert live_runs(arena) == [new.run_id]
