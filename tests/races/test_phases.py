"""A run in phases: each is begun once, by whoever may write; a death between them loses and shows nothing."""

from collections import Counter
from contextlib import closing, contextmanager

import pytest

from holdfast import faults
from holdfast.core.records import Chunk, Fenced, Landed, Slice, Spent
from holdfast.core.states import Status
from holdfast.store.protocol import duties, phases, requests, tasks
from tests.races import actor
from tests.races.arena import SUBJECT, eventually

PARTS = [["one", "two"], ["three"]]
# What a process passes while it works, apart from the duties of the sweep.
WORKING = {
    *("claim", "plan", "intend", "send", "settle", "stage", "advance", "finish", "next_phase"),
}


def sliced(arena, number=2, subject=SUBJECT):
    """The claims of all slices of the first phase."""
    plan = arena.taken(subject=subject)
    assert tasks.plan(arena.db, plan, [Slice({"n": n}) for n in range(number)], Spent()) == Landed()
    return [arena.claim() for _ in range(number)]


def finish(arena, claim):
    return tasks.finish(arena.db, claim, spent=Spent(), goes_on=True)


@pytest.mark.g3
def test_of_two_last_finishers_inside_their_transactions_one_begins_the_next_phase(pg_arena):
    """One stands before its commit when the other counts: the next phase is begun once, and never not."""
    one, two = sliced(pg_arena)
    first = pg_arena.start(lambda: finish(pg_arena, one), stop_at="finish.commit").stands()
    second = pg_arena.start(lambda: finish(pg_arena, two))
    pg_arena.waits(second)
    assert [first.result(), second.result()] == [Landed(), Landed(goes_on=True)]
    assert pg_arena.count("tasks", phase=1) == 1
    assert not pg_arena.head().visible


@pytest.mark.g3
def test_of_many_last_finishers_at_once_one_begins_the_next_phase(arena):
    """Four slices end at the same moment, five times over: one planning task each."""
    for round_ in range(5):
        claims = sliced(arena, 4, f"document:{round_}")
        outcomes = arena.race(*[lambda claim=claim: finish(arena, claim) for claim in claims])
        assert sorted(one.goes_on for one in outcomes) == [False, False, False, True]
        assert arena.count("tasks", run_id=claims[0].run_id, phase=1) == 1
    assert arena.count("heads", visible=True) == 0


def between_phases(arena):
    """Claims of the last slice of the first phase, which is done, and of the plan of the second."""
    one, two = sliced(arena)
    tasks.stage(arena.db, one, [Chunk(0, "one")])
    finish(arena, one)
    assert finish(arena, two) == Landed(goes_on=True)
    return two, arena.claim(owner="planner")


STALE = {
    "stage": lambda arena, claim: tasks.stage(arena.db, claim, [Chunk(7, "late")]),
    "plan": lambda arena, claim: tasks.plan(arena.db, claim, [Slice(), Slice()], Spent()),
    "finish": finish,
    "publish": lambda arena, claim: tasks.finish(arena.db, claim, spent=Spent()),
    "fail": lambda arena, claim: tasks.fail(arena.db, claim, code="late", message="late"),
}


@pytest.mark.g2
@pytest.mark.parametrize("late", STALE)
def test_a_stale_holder_of_one_phase_writes_nothing_into_the_next(arena, late):
    """Thawed after its phase was over: every write of it is refused, and changes nothing."""
    old, plan = between_phases(arena)
    before = arena.picture()
    assert isinstance(STALE[late](arena, old), Fenced)
    assert arena.picture() == before
    assert tasks.finish(arena.db, plan, spent=Spent()) == Landed(published=True)
    assert arena.texts() == ["one"]


@pytest.mark.g2
def test_a_last_finisher_that_was_replaced_begins_no_phase(arena):
    """It stands before its transaction, its successor finishes: the one planning task is the successor's."""
    one, two = sliced(arena)
    finish(arena, one)
    successor = arena.take_over(two)
    assert finish(arena, two) == Fenced("stale_epoch")
    assert arena.count("tasks", phase=1) == 0
    assert finish(arena, successor) == Landed(goes_on=True)
    assert arena.count("tasks", phase=1) == 1


@pytest.mark.g2
def test_a_planner_that_was_replaced_plans_nothing(arena):
    """Two workers have planned the same phase: the slices of one are queued, the other is fenced out."""
    _old, plan = between_phases(arena)
    successor = arena.take_over(plan)
    assert tasks.plan(arena.db, successor, [Slice(), Slice()], Spent()) == Landed()
    assert isinstance(tasks.plan(arena.db, plan, [Slice(), Slice(), Slice()], Spent()), Fenced)
    assert isinstance(tasks.finish(arena.db, plan, spent=Spent()), Fenced)
    assert arena.count("tasks", phase=1) == 3
    assert phases.earlier(arena.db, plan) is None


ENDS = {
    "cancel": lambda arena: requests.cancel(arena.db, arena.head().id),
    "supersede": lambda arena: arena.ask("b"),
    "delete": lambda arena: requests.delete(arena.db, "default", SUBJECT),
}


@pytest.mark.g1
@pytest.mark.parametrize("end", ENDS)
def test_a_run_that_ends_beside_its_last_finisher_has_no_next_phase(arena, end):
    """The end stands before its commit, the finisher waits for the head and finds its run over."""
    one, two = sliced(arena)
    finish(arena, one)
    points = {"cancel": "cancel.commit", "supersede": "request.commit", "delete": "delete.commit"}
    ending = arena.start(lambda: ENDS[end](arena), stop_at=points[end]).stands()
    last = arena.start(lambda: finish(arena, two))
    arena.waits(last)
    ending.result()
    assert isinstance(last.result(), Fenced)
    assert arena.count("tasks", phase=1) == 0


@pytest.mark.g4
def test_a_sweep_beside_the_last_finisher_changes_nothing(arena):
    """The finisher stands before its commit: a run between phases is neither published nor failed."""
    one, two = sliced(arena)
    finish(arena, one)
    last = arena.start(lambda: finish(arena, two), stop_at="next_phase.commit").stands()
    sweep = arena.start(lambda: duties.mend_stranded(arena.db, lambda _kind: True))
    assert last.result() == Landed(goes_on=True)
    assert sweep.result() == 0
    assert duties.mend_stranded(arena.db, lambda _kind: True) == 0
    assert (arena.head().status, arena.count("tasks", phase=1)) == (Status.RUNNING, 1)


@contextmanager
def worker(arena, meter):
    part = actor.Part(arena.url, meter.base_url, owner="survivor")
    with closing(actor.client(part)) as provider:
        engine = actor.engine(part, provider)
        try:
            yield engine
        finally:
            engine.db.close()


def accepted(arena, word):
    """A request of two slices and three words, and of two more in a second phase."""
    subject = f"document:{word}"
    slices = [[f"{word} {each}" for each in part] for part in PARTS]
    assert arena.ask(subject=subject, kind="digest", pipeline="digest@1", options={"slices": slices}).created
    return subject


def check_whole(arena, subject):
    """Both phases are visible, whole and once."""
    word, head = subject.removeprefix("document:"), arena.head(subject, "digest")
    assert (head.status, head.published_generation) == (Status.SUCCESS, 1), word
    texts = [text.split(":")[1] for text in arena.texts_of(head)]
    assert texts == [
        *(f"{word} {n}" for n in ("one", "two", "three")),
        f"3 from {word} one",
        f"up to {word} three",
    ]
    assert {row.state for row in arena.rows("tasks", head_id=head.id)} == {"done"}, word
    assert [reason for verb, reason in arena.verbs(head.id) if verb == "publish"] == ["all_slices_done"], word


def way(arena, meter):
    """The fault points from the end of the first phase on, each with how often it was passed before."""
    subject, passed = accepted(arena, "in peace"), []
    with worker(arena, meter) as engine, faults.armed(passed.append):
        engine.run_until_idle()
    check_whole(arena, subject)
    begins = passed.index("next_phase.commit")
    before = Counter(passed[:begins])
    points = [point for point in dict.fromkeys(passed[begins:]) if point.partition(".")[0] in WORKING]
    return {point: before[point] + 1 for point in points}


@pytest.mark.g4
@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.timeout(600)  # dozens of processes are started, however busy the machine is
def test_a_worker_killed_at_any_point_of_a_later_phase_loses_nothing(arena, keyed_meter):
    """One victim for every fault point from the end of the first phase on; each word is paid for once."""
    points = way(arena, keyed_meter)
    assert {"next_phase.commit", "next_phase.committed", "plan.commit", "finish.committed"} <= set(points)
    with worker(arena, keyed_meter) as survivor:
        for point, nth in points.items():
            subject = accepted(arena, point)
            victim = actor.Process(actor.Part(arena.url, keyed_meter.base_url, at=point, nth=nth)).go()
            assert victim.expect("at") == point
            victim.dies()
            for task in arena.rows("tasks", state="running"):
                arena.set("tasks", {"lease_until": 1.0}, id=task.id)
            arena.set("duties", {"next_at": 0.0, "succeeded_at": 0.0})
            survivor.run_until_idle()
            check_whole(arena, subject)
    assert keyed_meter.totals().excess == 0


@pytest.mark.g3
@pytest.mark.g5
def test_two_workers_in_all_phases_show_all_or_nothing_and_pay_once(arena, keyed_meter):
    """Both work on the same runs; a reader that looks all the time never sees one without its last phase."""
    subjects = [accepted(arena, f"story {n}") for n in range(3)]

    def seen():
        return [len(arena.texts_of(arena.head(subject, "digest"))) for subject in subjects]

    with worker(arena, keyed_meter) as one, worker(arena, keyed_meter) as two:
        working = [arena.start(engine.run_until_idle) for engine in (one, two)]

        def look():
            lengths = seen()
            assert set(lengths) <= {0, 5}
            return lengths == [5, 5, 5]

        eventually(look)
        for each in working:
            each.result()
    for subject in subjects:
        check_whole(arena, subject)
    assert keyed_meter.totals().excess == 0
