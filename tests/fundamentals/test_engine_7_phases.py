"""A kind with phases: when all slices are done its next phase is planned, and an empty plan publishes."""

import pytest

from holdfast.core.errors import WorkError
from holdfast.core.records import Chunk, Slice
from holdfast.core.states import Status
from holdfast.engine.events import Ending
from holdfast.engine.execute import MOST_PHASES
from holdfast.engine.kinds import Kind
from holdfast.service import explanations
from holdfast.store.protocol import claims
from holdfast.store.views import events, reads
from holdfast.web import display


def letters(work):
    return [Slice({"text": letter}) for letter in work.content]


def pairs(work):
    """Neighbours are joined, phase by phase, until one text is left."""
    texts = [part.result["text"] for part in work.earlier(work.phase - 1)]
    joined = [f"({''.join(texts[at : at + 2])})" for at in range(0, len(texts), 2)]
    return [Slice({"text": text}) for text in joined] if len(texts) > 1 else []


def keep(work):
    work.stage([Chunk(0, work.payload["text"])])
    work.progress(1, 1, unit="texts")
    return {"text": work.payload["text"]}


TREE = Kind("index", keep, plan=letters, plan_next=pairs)
FINISHED, PLANNED, PUBLISHED = Ending.FINISHED, Ending.PLANNED, Ending.PUBLISHED


def test_phases_follow_one_another_until_one_is_empty(story):
    """Four texts, two pairs, one pair of pairs; then nothing is left to be planned, and all is visible."""
    engine = story.engine(TREE)
    run_id = engine.request(story.ask(content="abcd")).run_id
    endings = [done.ending for done in engine.work_off()]
    assert endings == [PLANNED, *[FINISHED] * 4, PLANNED, *[FINISHED] * 2, FINISHED, PUBLISHED]
    assert [(task.ordinal, task.phase) for task in story.tasks(run_id)] == [
        (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (6, 1), (7, 1), (8, 2), (9, 3),
    ]  # fmt: skip
    assert story.texts() == ["a", "b", "c", "d", "(ab)", "(cd)", "((ab)(cd))"]


def test_the_result_of_a_run_is_that_of_its_last_phase(story):
    """The empty plan at the end was no phase: the run ends in the one before it."""
    engine = story.engine(TREE)
    run_id = engine.request(story.ask(content="abcd")).run_id
    engine.work_off()
    detail = reads.run(story.db, run_id)
    assert (detail.run.phase, detail.result) == (2, {"text": "((ab)(cd))"})


def test_an_empty_second_phase_publishes_the_first(story):
    """One text has no neighbour: the plan of the second phase finds nothing to do."""
    engine = story.engine(TREE)
    run_id = engine.request(story.ask(content="a")).run_id
    assert [done.ending for done in engine.work_off()] == [FINISHED, PUBLISHED]
    assert (story.texts(), story.run(run_id).phase) == (["a"], 0)
    assert story.run(run_id).status is Status.SUCCESS


@pytest.mark.g3
def test_nothing_is_visible_between_phases(story):
    """All slices of the first phase are done, and the old generation still answers."""
    engine = story.engine(TREE)
    engine.request(story.ask(content="x"))
    engine.work_off()
    engine.request(story.ask(content="ab"))
    engine.work_off(most=3)
    assert (story.texts(), story.open_tasks()) == (["x"], 1)
    engine.work_off()
    assert story.texts() == ["a", "b", "(ab)"]


def test_a_later_phase_reads_what_the_earlier_ones_staged(story):
    """Page by page and in order, one phase or all of them; a slice may as well as a plan."""
    seen = []

    def look(work):
        if work.phase == 2:
            seen.append([[chunk.text for chunk in work.earlier_chunks(phase)] for phase in (None, 0, 1)])
            seen.append([(part.phase, part.number, part.chunks) for part in work.earlier()])
        return keep(work)

    engine = story.engine(Kind("index", look, plan=letters, plan_next=pairs))
    engine.request(story.ask(content="abc"))
    engine.work_off()
    assert seen[0] == [["a", "b", "c", "(ab)", "(c)"], ["a", "b", "c"], ["(ab)", "(c)"]]
    assert seen[1] == [(0, 1, 1), (0, 2, 1), (0, 3, 1), (1, 5, 1), (1, 6, 1)]


def test_progress_is_that_of_the_phase_and_says_which(story):
    """Five texts are done; of the three of the next phase none is, and nothing says five of eight."""
    engine = story.engine(TREE)
    run_id = engine.request(story.ask(content="abcde")).run_id
    engine.work_off(most=7)
    for seen in (reads.progress_of(story.db, run_id), events.standings(story.db, [run_id])[run_id]):
        assert (seen.run.phase, seen.rolled.parts_done, seen.rolled.parts) == (1, 0, 3)
    engine.work_off()
    done = reads.progress_of(story.db, run_id)
    assert (done.rolled.share, done.rolled.done, done.rolled.total) == (1.0, 1, 1)


def test_the_bar_never_falls_when_a_phase_begins(story):
    """Each phase is taken to do half of the work that is left; at the end all of it is done."""
    engine = story.engine(TREE)
    run_id = engine.request(story.ask(content="abcde")).run_id
    shares = []
    while True:
        by_events = events.standings(story.db, [run_id], engine.registry.phase_shares)[run_id]
        shares.append(by_events.rolled.share)
        alike = reads.progress_of(story.db, run_id, phase_shares=engine.registry.phase_shares)
        assert alike.rolled == by_events.rolled
        if by_events.run.status is Status.SUCCESS:
            break
        engine.work_off(most=1)
    assert shares == sorted(shares)
    assert shares[:4] == [0, 0, 0.1, 0.2]
    assert {0.5, 0.75, 0.875} < set(shares)
    assert shares[-1] == 1


def test_people_are_shown_the_phase(story):
    """In the history the plan of a phase has a name of its own; in the web UI the counts say their phase."""
    engine = story.engine(TREE)
    run_id = engine.request(story.ask(content="abcd")).run_id
    engine.work_off(most=7)
    history = reads.story(story.db, story.head().id)
    names = explanations.names(history)
    sentences = [explanations.of(noted, names) for noted in history.journal]
    assert "worker finished slice 4, the last of its phase" in sentences
    assert "worker started the plan of phase 2 (epoch 1)" in sentences
    assert "worker planned 2 slices of phase 2" in sentences
    assert sentences[-1] == "worker finished slice 6 of phase 2"
    counts = display.counted(events.standings(story.db, [run_id])[run_id])
    assert counts == "phase 2 · 1 of 2 parts · 1 texts so far"


@pytest.mark.g4
def test_whoever_is_idle_is_woken_for_the_next_phase(story):
    """The planning task of the next phase is due as any other is."""
    engine = story.engine(TREE)
    engine.request(story.ask(content="ab"))
    engine.work_off(most=2)
    before = story.sender.lanes["bulk"]
    engine.work_off(most=1)
    assert (story.sender.lanes["bulk"], story.open_tasks()) == (before + 1, 1)


@pytest.mark.g4
def test_a_dead_planner_of_the_second_phase_is_replaced(story):
    """It is a task under a lease as any other: the sweep gives it to the next worker."""
    engine = story.engine(TREE)
    engine.request(story.ask(content="ab"))
    engine.work_off(most=3)
    story.dead_worker(engine)
    story.pass_time(60)
    engine.sweep()
    engine.work_off()
    assert story.texts() == ["a", "b", "(ab)"]


@pytest.mark.g4
def test_a_worker_that_stops_hands_the_plan_of_a_phase_back(story):
    """Draining between phases loses nothing: the planning task is queued again."""

    def stop(work):
        first.drain()
        work.check()

    first = story.engine(Kind("index", keep, plan=letters, plan_next=stop))
    first.request(story.ask(content="ab"))
    assert first.work_off()[-1].ending is Ending.RELEASED
    story.engine(TREE).work_off()
    assert story.texts() == ["a", "b", "(ab)"]


@pytest.mark.g1
@pytest.mark.parametrize("how", ["cancel", "supersede", "delete"])
def test_a_run_between_phases_can_be_ended(story, how):
    """Its planning task is closed with it, and nothing of the run is ever seen."""
    engine = story.engine(TREE)
    run_id = engine.request(story.ask(content="ab")).run_id
    engine.work_off(most=3)
    if how == "cancel":
        engine.cancel(story.head().id)
    elif how == "supersede":
        engine.request(story.ask(content="x"))
    else:
        engine.delete("default", "document:1")
    assert [task.state for task in story.tasks(run_id)][-1] == "closed"
    engine.work_off()
    assert story.texts() == (["x"] if how == "supersede" else [])


@pytest.mark.g5
def test_a_failed_phase_fails_the_run_and_a_retry_begins_with_the_first(story):
    """What was published before stays; the next generation plans all phases again."""
    broken = []

    def plan_next(work):
        if not broken:
            broken.append(work.phase)
            raise WorkError("nothing to join them with", code="no_glue")
        return pairs(work)

    engine = story.engine(Kind("index", keep, plan=letters, plan_next=plan_next))
    run_id = engine.request(story.ask(content="ab")).run_id
    engine.work_off()
    assert (story.run(run_id).status, story.run(run_id).error_code) == (Status.FAILED, "no_glue")
    engine.again("default", "index", "document:1")
    engine.work_off()
    assert story.texts() == ["a", "b", "(ab)"]


def test_a_kind_that_never_stops_planning_fails(story):
    """A plan that always finds one more slice would never publish."""
    engine = story.engine(Kind("index", keep, plan=letters, plan_next=lambda _work: [Slice({"text": "x"})]))
    run_id = engine.request(story.ask(content="a")).run_id
    engine.work_off(most=MOST_PHASES + 2)
    run = story.run(run_id)
    assert (run.error_code, "empty list" in run.error_message) == ("bad_plan", True)


@pytest.mark.g2
def test_a_worker_that_lost_its_task_reads_nothing_of_earlier_phases(story):
    """Its run may have been superseded and pruned: a part of what was staged is never given for all of it."""
    engine, seen = story.engine(TREE), []

    def lose(work):
        claims.release(story.db, work.claim, "taken away")
        seen.extend(work.earlier())
        return pairs(work)

    loser = story.engine(Kind("index", keep, plan=letters, plan_next=lose))
    engine.request(story.ask(content="ab"))
    engine.work_off(most=3)
    assert [done.ending for done in loser.work_off(most=1)] == [Ending.FENCED_OUT]
    assert seen == []
    engine.work_off()
    assert story.texts() == ["a", "b", "(ab)"]
