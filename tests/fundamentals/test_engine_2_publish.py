"""A run is planned, its slices are done, and the whole is published at once, or not at all."""

import pytest
from sqlalchemy import text, update

from holdfast.core.records import Chunk, Landed, Slice
from holdfast.core.states import Status
from holdfast.engine.events import Ending
from holdfast.engine.kinds import Kind
from holdfast.store.base.schema import lines
from holdfast.store.views import reads


def pages(work):
    return [Slice({"page": page}) for page in range(len(work.content))]


def copy_page(work):
    work.stage([Chunk(0, work.content[work.payload["page"]], page=work.payload["page"])])


INDEX = Kind("index", copy_page, plan=pages)


def test_a_plan_cuts_the_run_into_slices(story):
    """The first task plans; the slices are tasks of their own; the last one to finish publishes."""
    engine = story.engine(INDEX)
    run_id = engine.request(story.ask(content="abc")).run_id
    endings = [done.ending for done in engine.work_off()]
    assert endings == [Ending.PLANNED, Ending.FINISHED, Ending.FINISHED, Ending.PUBLISHED]
    assert [task.ordinal for task in story.tasks(run_id)] == [0, 1, 2, 3]
    assert story.texts() == ["a", "b", "c"]


def test_a_small_document_is_done_by_its_plan_task(story):
    """One slice needs no second task."""
    engine = story.engine(INDEX)
    run_id = engine.request(story.ask(content="a")).run_id
    assert [done.ending for done in engine.work_off()] == [Ending.PUBLISHED]
    assert len(story.tasks(run_id)) == 1
    assert story.texts() == ["a"]


@pytest.mark.g3
def test_nothing_is_visible_before_the_last_slice(story):
    """With all slices but one done, a reader still sees nothing."""
    engine = story.engine(INDEX)
    engine.request(story.ask(content="abc"))
    engine.work_off(most=3)
    assert story.texts() == []
    engine.work_off(most=1)
    assert story.texts() == ["a", "b", "c"]


@pytest.mark.g3
def test_the_old_generation_answers_until_the_new_one_is_whole(story):
    """A reader sees the old text, then the new text, and never a mixture."""
    engine = story.engine(INDEX)
    seen = []
    for content in ("ab", "xyz"):
        engine.request(story.ask(content=content))
        while engine.work_off(most=1):
            seen.append("".join(story.texts()))
    assert seen == ["", "", "ab", "ab", "ab", "ab", "xyz"]


@pytest.mark.g3
def test_a_failed_generation_leaves_the_old_one_in_place(story):
    """One slice of the new generation fails: the run fails, and the old text still answers."""

    def refuse_x(work):
        if work.content[work.payload["page"]] == "x":
            raise ValueError("x")
        copy_page(work)

    engine = story.engine(Kind("index", refuse_x, plan=pages))
    engine.request(story.ask(content="ab"))
    engine.work_off()
    engine.request(story.ask(content="axb"))
    assert Ending.FAILED in [done.ending for done in engine.work_off()]
    head = story.head()
    assert (head.status, head.generation, head.published_generation) == (Status.FAILED, 2, 1)
    assert story.texts() == ["a", "b"]
    assert story.open_tasks() == 0


@pytest.fixture
def reports(story):
    story.db.write("by_hand", lambda tx: tx.execute(text("CREATE TABLE reports (id TEXT, generation INT)")))
    query = text("SELECT id, generation FROM reports")
    return lambda: [tuple(row) for row in story.db.read(lambda tx: tx.all(query))]


def note(tx, claim):
    values = {"id": claim.subject, "generation": claim.generation}
    tx.execute(text("INSERT INTO reports VALUES (:id, :generation)"), values)


@pytest.mark.g3
def test_the_publish_hook_writes_in_the_publishing_transaction(story, reports):
    """Your own rows appear with the publication, once, however many slices there were."""
    engine = story.engine(Kind("index", copy_page, plan=pages, publish=note))
    engine.request(story.ask(content="abc"))
    engine.work_off(most=3)
    assert reports() == []
    engine.work_off()
    assert reports() == [("document:1", 1)]


@pytest.mark.g3
def test_a_publish_hook_that_raises_takes_the_publication_with_it(story, reports):
    """Neither the hook's rows nor the new generation are there; the run has failed and says why."""

    def note_and_raise(tx, claim):
        note(tx, claim)
        if claim.content == "b":
            raise LookupError("no such report")

    engine = story.engine(Kind("index", copy_page, plan=pages, publish=note_and_raise))
    engine.request(story.ask(content="a"))
    engine.work_off()
    run_id = engine.request(story.ask(content="b")).run_id
    engine.work_off()
    assert reports() == [("document:1", 1)]
    assert story.texts() == ["a"]
    failed = story.run(run_id)
    assert (failed.status, failed.error_code) == (Status.FAILED, "work_raised")
    assert failed.error_message == "LookupError: no such report"


def test_a_result_is_kept_with_the_run(story):
    """What `run` answers is small JSON for people and programs to read."""
    engine = story.engine(Kind("index", lambda work: {"pages": 3}))
    run_id = engine.request(story.ask()).run_id
    engine.work_off()
    assert reads.run(story.db, run_id).result == {"pages": 3}


def test_progress_only_moves_forward(story):
    """True counts, told as they come; a lower one (a slice that starts again) changes nothing."""
    seen = []

    def work_in_steps(work):
        for done in (1, 3, 2, 4):
            work.progress(done, 4, unit="pages", line=f"page {done}")
            seen.append(reads.progress_of(story.db, work.claim.run_id).rolled.done)

    engine = story.engine(Kind("index", work_in_steps))
    run_id = engine.request(story.ask()).run_id
    engine.work_off()
    assert seen == [1, 3, 3, 4]
    output = reads.progress_of(story.db, run_id)
    assert (output.rolled.share, output.rolled.complete, output.unit) == (1.0, True, "pages")
    assert [line.text for line in output.lines] == ["page 1", "page 3", "page 2", "page 4"]


def test_lines_of_one_moment_stay_in_the_order_they_were_told_in(story):
    """SQLite's clock counts milliseconds, and several lines fit into one."""

    def chatter(work):
        for number in range(30):
            work.progress(0, 1, line=f"line {number}")

    engine = story.engine(Kind("index", chatter))
    run_id = engine.request(story.ask()).run_id
    engine.work_off()
    story.db.write("by_hand", lambda tx: tx.execute(update(lines).values(at=1.0)))
    output = reads.progress_of(story.db, run_id)
    assert [line.text for line in output.lines] == [f"line {number}" for number in range(30)]


def test_progress_of_a_run_is_the_weighted_share_of_its_slices(story):
    """A slice that weighs three times as much moves the bar three times as far."""

    def plan(work):
        return [Slice(weight=3), Slice(weight=1)]

    def half(work):
        work.progress(1, 2, unit="rows", stages={"parse": (1, 2)})
        shares.append(reads.progress_of(story.db, work.claim.run_id).rolled.share)

    shares = []
    engine = story.engine(Kind("index", half, plan=plan))
    run_id = engine.request(story.ask()).run_id
    engine.work_off()
    assert shares == [0.375, 0.875]
    assert reads.progress_of(story.db, run_id).stages == {"parse": (2, 4)}


@pytest.mark.g4
def test_cancel_before_it_starts(story):
    """A cancelled request is never begun; nothing was published, so the head is idle again."""
    engine = story.engine(INDEX)
    answer = engine.request(story.ask())
    assert engine.cancel(answer.head_id, actor="ann") == Landed()
    assert engine.work_off() == []
    assert story.run(answer.run_id).status is Status.CANCELLED
    assert story.head().status is Status.IDLE


@pytest.mark.g2
@pytest.mark.g3
def test_cancel_while_it_runs_keeps_what_is_published(story):
    """The worker is refused at its next write; the published generation goes on answering."""

    def cancelled_midway(work):
        if work.content == "b":
            engine.cancel(work.claim.head_id)
        copy_page(work)

    engine = story.engine(Kind("index", cancelled_midway, plan=pages))
    engine.request(story.ask(content="a"))
    engine.work_off()
    engine.request(story.ask(content="b"))
    assert [done.ending for done in engine.work_off()] == [Ending.FENCED_OUT]
    assert story.texts() == ["a"]
    assert (story.head().status, story.head().published_generation) == (Status.SUCCESS, 1)


@pytest.mark.g1
def test_delete_is_itself_a_generation(story):
    """After a delete nothing is visible, and a new request goes on counting where the old one stopped."""
    engine = story.engine(INDEX)
    head_id = engine.request(story.ask(content="a")).head_id
    engine.work_off()
    assert engine.delete("default", "document:1") == [head_id]
    assert story.texts() == []
    assert (story.head().generation, story.head().deleted) == (2, True)
    answer = engine.request(story.ask(content="a"))
    assert (answer.reason, answer.generation) == ("never_done", 3)
    engine.work_off()
    assert story.texts() == ["a"]
