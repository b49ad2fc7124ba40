"""G3: a reader sees exactly one complete generation, whatever is replaced, failed or cancelled meanwhile."""

import threading

import pytest

from holdfast import faults
from holdfast.core.records import Chunk, Fenced, Landed, Slice, Spent
from holdfast.core.states import Status
from holdfast.store.protocol import duties, prune, requests, tasks
from holdfast.store.views import reads
from tests.races.arena import SUBJECT, eventually

pytestmark = pytest.mark.g3


def sliced(arena, number, content="a", subject=SUBJECT):
    """The claims of all slices of a planned run."""
    plan = arena.taken(content, subject)
    assert tasks.plan(arena.db, plan, [Slice({"n": n}) for n in range(number)], Spent()) == Landed()
    return [arena.claim() for _ in range(number)]


def finish(arena, claim):
    return tasks.finish(arena.db, claim, spent=Spent(), staged=1)


def test_of_two_last_finishers_inside_their_transactions_exactly_one_publishes(pg_arena):
    """One stands before its commit when the other counts: counted under the head's lock, none is missed."""
    one, two = sliced(pg_arena, 2)
    first = pg_arena.start(lambda: finish(pg_arena, one), stop_at="finish.commit").stands()
    second = pg_arena.start(lambda: finish(pg_arena, two))
    pg_arena.waits(second)
    assert [first.result(), second.result()] == [Landed(), Landed(published=True)]
    assert pg_arena.head().published_generation == 1


def test_of_many_last_finishers_at_once_exactly_one_publishes(arena):
    """Four slices end at the same moment, five times over: one publication each, and never none."""
    for round_ in range(5):
        claims = sliced(arena, 4, subject=f"document:{round_}")
        for claim in claims:
            tasks.stage(arena.db, claim, [Chunk(0, f"slice {claim.ordinal}")])
        outcomes = arena.race(*[lambda claim=claim: finish(arena, claim) for claim in claims])
        assert sorted(one.published for one in outcomes) == [False, False, False, True]
        assert arena.texts(f"document:{round_}") == [f"slice {n}" for n in (1, 2, 3, 4)]
    assert [verb for verb, _ in arena.verbs()].count("publish") == 5


def test_a_slice_that_fails_beside_the_last_finisher_leaves_no_publication(arena):
    """The failing slice stands before its commit; the other finds its run ended."""
    one, two = sliced(arena, 2)
    failing = arena.start(
        lambda: tasks.fail(arena.db, one, code="broken", message="broken"), stop_at="fail.commit"
    ).stands()
    last = arena.start(lambda: finish(arena, two))
    arena.waits(last)
    assert failing.result() == Landed()
    assert isinstance(last.result(), Fenced)
    head = arena.head()
    assert (head.status, head.published_generation, head.visible) == (Status.FAILED, 0, False)


class Reader:
    """Reads what is visible, over and over, and keeps every sight that was not one whole generation."""

    def __init__(self, arena, head_id):
        self._arena, self._head_id = arena, head_id
        self.torn, self.seen, self.looks = [], set(), 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def _read(self):
        while not self._stop.is_set():
            page = reads.visible_chunks(self._arena.db, self._head_id)
            texts = [one.chunk.text for one in page.chunks] if page is not None else None
            if texts is not None and texts != whole(page.generation):
                self.torn.append((page.generation, texts))
            self.seen.add(page.generation if page is not None else 0)
            self.looks += 1

    def __enter__(self):
        self._thread.start()
        eventually(lambda: self.looks)
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(20)

    def look(self):
        """A whole look has begun and ended since the call."""
        target = self.looks + 2
        eventually(lambda: self.looks >= target or not self._thread.is_alive())


def whole(generation):
    """What a complete generation of the reader's document looks like: its size tells them apart."""
    return [f"{generation}/{part}/{n}" for part in (1, 2) for n in range(3 + generation % 4)]


def stage_part(arena, claim):
    generation = claim.generation
    batch = [text for text in whole(generation) if text.startswith(f"{generation}/{claim.ordinal}/")]
    for n, text in enumerate(batch):  # one by one: the reader gets its chance between any two
        tasks.stage(arena.db, claim, [Chunk(n, text)])


def test_a_reader_sees_only_whole_generations_while_all_sorts_of_ends_go_by(arena):
    """Replace, fail, cancel, supersede, crash and prune: never a mix, never a part, never an empty page."""
    for claim in sliced(arena, 2, "first"):
        stage_part(arena, claim)
        finish(arena, claim)
    head_id = arena.head().id
    with Reader(arena, head_id) as reader:
        for end in ("replace", "fail", "cancel", "supersede", "crash", "replace"):
            one, two = sliced(arena, 2, end + str(arena.head().generation))
            stage_part(arena, one)
            finish(arena, one)
            stage_part(arena, two)
            reader.look()
            if end == "fail":
                tasks.fail(arena.db, two, code="broken", message="broken")
            elif end == "cancel":
                requests.cancel(arena.db, head_id)
            elif end == "crash":
                two = arena.take_over(two)
                stage_part(arena, two)
                finish(arena, two)
            elif end == "replace":
                finish(arena, two)
            prune.prune_generations(arena.db, 100)
            reader.look()
    assert reader.torn == []
    assert reader.seen == {1, 2, 6, 7}


@pytest.mark.parametrize("end", ["fail", "cancel", "request", "abandon"])
def test_an_unpublished_end_leaves_the_old_generation_answering(arena, end):
    """The old generation answers until the new one is published, and an end without one changes nothing."""
    first = arena.taken("a")
    tasks.stage(arena.db, first, [Chunk(0, "old")])
    finish(arena, first)
    second = arena.taken("b")
    tasks.stage(arena.db, second, [Chunk(0, "new")])
    ends = {
        "fail": lambda: tasks.fail(arena.db, second, code="broken", message="broken"),
        "cancel": lambda: requests.cancel(arena.db, second.head_id),
        "request": lambda: arena.ask("c"),
        "abandon": lambda: (arena.run_out(second), duties.expire(arena.db, cap=1)),
    }
    ends[end]()
    head = arena.head()
    assert (head.visible, head.published_generation, arena.texts()) == (True, 1, ["old"])
    prune.prune_generations(arena.db, 100)
    assert arena.texts() == ["old"]


def test_pruning_beside_a_running_replacement_keeps_what_answers_and_what_is_made(arena):
    """Only what lies below the published generation is superfluous; the head's own is further on."""
    for content in ("a", "b"):
        claim = arena.taken(content)
        tasks.stage(arena.db, claim, [Chunk(0, content)])
        finish(arena, claim)
    running = arena.taken("c")
    tasks.stage(arena.db, running, [Chunk(0, "c")])
    prune.prune_generations(arena.db, 100)
    assert [(row.generation, row.text) for row in arena.rows("chunks")] == [(2, "b"), (3, "c")]
    assert arena.texts() == ["b"]


def test_a_publication_and_a_prune_at_once_leave_one_whole_generation(pg_arena):
    """The finisher stands before its commit; the pruner waits for the head and then takes only the old."""
    for content in ("a", "b"):
        claim = pg_arena.taken(content)
        tasks.stage(pg_arena.db, claim, [Chunk(0, content)])
        if content == "a":
            finish(pg_arena, claim)
    finisher = pg_arena.start(lambda: finish(pg_arena, claim), stop_at="finish.commit").stands()
    pruner = pg_arena.start(lambda: prune.prune_generations(pg_arena.db, 100))
    pg_arena.waits(pruner)
    assert finisher.result() == Landed(published=True)
    pruner.result()
    assert pg_arena.texts() == ["b"]


@pytest.mark.parametrize("moment", ["plan.commit", "plan.committed"])
def test_a_half_planned_run_never_exists(arena, moment):
    """A planner that dies before its commit leaves no slice; one that dies after it leaves all of them."""
    claim = arena.taken()

    def die(point):
        if point == moment:
            raise faults.Crash

    with faults.armed(die), pytest.raises(faults.Crash):
        tasks.plan(arena.db, claim, [Slice({"n": n}) for n in range(5)], Spent())
    planned = moment == "plan.committed"
    [run] = arena.rows("runs")
    assert (run.slices, arena.count("tasks")) == ((5, 6) if planned else (None, 1))
    if not planned:
        again = arena.take_over(claim)
        assert tasks.plan(arena.db, again, [Slice(), Slice()], Spent()) == Landed()
        assert arena.rows("runs")[0].slices == 2


def test_a_planned_run_is_not_published_before_its_slices(arena):
    """The plan task ends first; its end alone publishes nothing."""
    sliced(arena, 2)
    assert arena.head().status is Status.RUNNING
    assert arena.head().visible is False


def test_the_publishing_statement_itself_only_goes_up(arena):
    """Even past every other guard, an older generation does not replace a newer one."""
    for content in ("a", "b"):
        finish(arena, arena.taken(content))
    head = arena.head()
    [old] = arena.rows("runs", generation=1)
    values = {"b_run": old.id, "b_head": head.id, "b_generation": 1, "b_slices": 0, "b_result": None}
    noted = {f"j_{name}": None for name in ("head_id", "run_id", "task_id", "generation", "epoch", "actor")}
    noted |= {"j_tenant": "default", "j_verb": "publish", "j_reason": "test", "j_data": None}
    arena.db.write("test", lambda tx: tx.together(tasks.PUBLISHED, values | noted))
    assert arena.head().published_generation == 2


ENDS = {
    "finish": lambda arena, claim: tasks.finish(arena.db, claim, spent=Spent()),
    "fail": lambda arena, claim: tasks.fail(arena.db, claim, code="broken", message="broken"),
    "cancel": lambda arena, claim: requests.cancel(arena.db, claim.head_id),
    "request": lambda arena, _: arena.ask("b", kind="job"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_callback_exists_from_the_commit_of_the_end_that_it_tells_of(arena, end):
    """While the end stands before its commit there is nothing to deliver; after it there is one delivery."""
    claim = arena.taken(kind="job", callback={"url": "http://receiver.example/"})
    ending = arena.start(lambda: ENDS[end](arena, claim), stop_at=f"{end}.commit").stands()
    early = arena.rows("deliveries"), arena.rows("runs", kind="webhook")
    ending.result()
    assert early == ([], [])
    assert [row.cause for row in arena.rows("deliveries")] == [claim.run_id]
    assert [row.status for row in arena.rows("runs", kind="webhook")] == [Status.QUEUED]
