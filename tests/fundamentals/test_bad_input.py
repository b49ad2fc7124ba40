"""Nonsense from every side: a clear error with a stable code, nothing lost, nothing paid twice."""

import contextlib
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import func, select, text

from holdfast import faults
from holdfast.core.errors import BadRequestError, SchemaError, StoreUnavailableError
from holdfast.core.records import Chunk, Slice
from holdfast.core.states import Status
from holdfast.engine import execute
from holdfast.engine.events import Ending
from holdfast.engine.host import ThreadHost
from holdfast.engine.kinds import Kind, Registry
from holdfast.ledger.pay import Call
from holdfast.store.base import revisions
from holdfast.store.base.schema import heads
from holdfast.store.features import open_database
from holdfast.store.views import reads
from holdfast.testing.meter import Meter

UGLY = "nul \x00 half \ud800 end"
SHOWN = "nul � half � end"
INDEX = Kind("index", lambda work: work.stage([Chunk(0, work.content)]))


def ended(story, engine, **ask):
    """The run of one request, after everything that was due has been done."""
    run_id = engine.request(story.ask(**ask)).run_id
    engine.work_off()
    assert story.open_tasks() == 0
    return story.run(run_id)


# What is asked for.


@pytest.mark.g6
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"kind": "poetry"}, "unknown_kind"),
        ({"subject": "42"}, "bad_subject"),
        ({"subject": "document:"}, "bad_subject"),
        ({"subject": "document:a\x00b"}, "bad_subject"),
        ({"subject": 42}, "bad_subject"),
        ({"tenant": "no spaces"}, "bad_tenant"),
        ({"lane": "fast"}, "bad_lane"),
        ({"priority": 10}, "bad_priority"),
        ({"priority": True}, "bad_priority"),
        ({"options": {"size": float("nan")}}, "not_json"),
        ({"options": {"when": object()}}, "not_json"),
        ({"options": {"text": "x" * 70_000}}, "options_too_large"),
        ({"content": UGLY}, "bad_content"),
        ({"content": 7}, "bad_content"),
        ({"collection": "\x00"}, "bad_collection"),
        ({"actor": "\ud800"}, "bad_actor"),
    ],
)
def test_a_senseless_request_is_refused_and_leaves_nothing(story, change, code):
    """Each part that makes no sense has its code; no head is made for it."""
    with pytest.raises(BadRequestError) as refused:
        story.engine(INDEX).request(story.ask(**change))
    assert refused.value.code == code
    count = select(func.count()).select_from(heads)
    assert story.db.read(lambda tx: tx.execute(count).scalar_one()) == 0


def test_options_may_hold_anything_that_json_can(everywhere):
    """Huge numbers, NUL bytes and half characters come back as they were asked for."""
    seen = []
    engine = everywhere.engine(Kind("index", lambda work: seen.append(dict(work.options))))
    options = {"huge": 10**40, "ugly": UGLY, "deep": [[[{"a": None}]]]}
    assert ended(everywhere, engine, options=options).status is Status.SUCCESS
    assert seen == [options]


@pytest.mark.parametrize("name", ["", "Index", "in dex", "x" * 41])
def test_a_kind_needs_a_name_of_the_right_form(name):
    """It is part of addresses and metrics."""
    with pytest.raises(BadRequestError) as refused:
        Registry([Kind(name, lambda work: None)])
    assert refused.value.code == "bad_kind"


# What the work answers.


@pytest.mark.g3
@pytest.mark.parametrize(
    ("result", "code"),
    [
        ("text", "bad_result"),
        (["list"], "bad_result"),
        ({"x": object()}, "bad_result"),
        ({"x": float("inf")}, "bad_result"),
        ({"x": "y" * 1_100_000}, "result_too_large"),
        ({"x": "é" * 600_000}, "result_too_large"),
    ],
    ids=["text", "list", "object", "infinity", "large", "large-in-bytes"],
)
def test_a_senseless_result_fails_the_run(story, result, code):
    """What was published before still answers."""
    answers = [None, result]
    engine = story.engine(Kind("index", lambda work: INDEX.run(work) or answers.pop(0)))
    assert ended(story, engine, content="a").status is Status.SUCCESS
    failed = ended(story, engine, content="b")
    assert (failed.status, failed.error_code) == (Status.FAILED, code)
    assert story.texts() == ["a"]


@pytest.mark.parametrize(
    ("slices", "code"),
    [
        (None, "bad_plan"),
        ("abc", "bad_plan"),
        ([1, 2], "bad_plan"),
        ([], "empty_plan"),
        ([Slice({"x": object()})], "bad_plan"),
        ([Slice("payload")], "bad_plan"),
        ([Slice(weight=-1)], "bad_plan"),
        ([Slice(weight=10**20)], "bad_plan"),
    ],
)
def test_a_senseless_plan_fails_the_run(story, slices, code):
    """No half-planned run exists."""
    failed = ended(story, story.engine(Kind("index", lambda work: None, plan=lambda work: slices)))
    assert (failed.status, failed.error_code) == (Status.FAILED, code)


@pytest.mark.parametrize(
    "chunk",
    [
        Chunk(-1),
        Chunk(2**40),
        Chunk(1.5),
        Chunk(0, page=2**40),
        Chunk(0, text=b"bytes"),
        Chunk(0, data={"x": object()}),
        Chunk(0, data=7),
        Chunk(5),
    ],
    ids=["negative", "huge", "fraction", "page", "bytes", "data", "no-mapping", "twice"],
)
def test_a_senseless_chunk_fails_the_run(story, chunk):
    """The code says so before the database does, for each would do it in its own words."""
    failed = ended(story, story.engine(Kind("index", lambda work: work.stage([Chunk(5), chunk]))))
    assert (failed.status, failed.error_code) == (Status.FAILED, "bad_chunk")
    assert story.texts() == []


@pytest.mark.parametrize("counts", [(-1, 3), (1, -3), (10**30, 10**31), (0.5, 1), (None, 1)])
def test_senseless_progress_fails_the_run(story, counts):
    """Counts are whole numbers from 0 on."""
    failed = ended(story, story.engine(Kind("index", lambda work: work.progress(*counts))))
    assert (failed.status, failed.error_code) == (Status.FAILED, "bad_progress")


@pytest.mark.g4
def test_an_error_with_ugly_words_still_ends_the_run(everywhere, monkeypatch):
    """NUL bytes and half characters in an exception are shown as U+FFFD, not lost with the run."""
    monkeypatch.setattr(execute.log, "disabled", True)  # the runner cannot pass such words on

    def explode(work):
        raise RuntimeError(UGLY)

    failed = ended(everywhere, everywhere.engine(Kind("index", explode)))
    assert (failed.status, failed.error_code) == (Status.FAILED, "work_raised")
    assert failed.error_message == f"RuntimeError: {SHOWN}"


def test_ugly_text_in_chunks_lines_and_results_is_kept(everywhere):
    """A broken file is indexed all the same; what cannot be kept is replaced."""

    def ugly(work):
        work.stage([Chunk(0, UGLY, data={"raw": UGLY})])
        work.progress(1, 1, unit="\x00", line=UGLY)
        return {"said": UGLY}

    run = ended(everywhere, everywhere.engine(Kind("index", ugly)))
    assert run.status is Status.SUCCESS
    assert everywhere.texts() == [SHOWN]
    assert [line.text for line in reads.progress_of(everywhere.db, run.id).lines] == [SHOWN]
    assert reads.run(everywhere.db, run.id).result == {"said": UGLY}


# Work that does not end.


class Clock(ThreadHost):
    """A host whose clock is moved by hand."""

    def __init__(self):
        self.now = 1000.0

    def clock(self):
        return self.now


@pytest.mark.g4
def test_work_past_its_soft_limit_fails_at_its_next_check(story):
    """The code and the message say which limit it was, while the lease is still good."""
    host = Clock()

    def slow(work):
        host.now += 6
        work.check()

    failed = ended(story, story.engine(Kind("index", slow, soft_limit=5.0), host=host))
    assert (failed.status, failed.error_code) == (Status.FAILED, "time_limit")
    assert "5 s" in failed.error_message


@pytest.mark.g4
@pytest.mark.g7
def test_work_that_hangs_is_given_to_another_and_then_given_up(story):
    """Past the hard limit the task is due again at once; each hang counts, and the third ends the run."""
    host = Clock()

    def hang(work):
        host.now += 4000
        engine.watchdog.beat()
        work.check()

    engine = story.engine(Kind("index", hang), host=host)
    run_id = engine.request(story.ask()).run_id
    for _ in range(3):
        assert [done.ending for done in engine.work_off(most=1)] == [Ending.OVERRAN]
    assert story.run(run_id).error_code == "abandoned"


WORKER = """
    import os, signal, sys
    from holdfast.engine.engine import Engine, EngineDependencies
    from holdfast.engine.kinds import Kind
    from holdfast.store.features import open_database

    def run(work):
        work.progress(1, 2) if sys.argv[3] == "progress" else None
        os.kill(os.getpid(), signal.SIGKILL)

    kind = Kind("index", run, version=int(sys.argv[2]))
    print(len(Engine(open_database(sys.argv[1]), EngineDependencies(kinds=[kind])).work_off()))
"""


def worker(url, version=1, before="nothing"):
    """A process of its own whose work kills it."""
    command = [sys.executable, "-c", textwrap.dedent(WORKER), url, str(version), before]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.g4
@pytest.mark.g7
def test_work_that_kills_its_process_is_done_by_another(story, sqlite_url):
    """The process is gone without a word: whoever sweeps on its machine sees it, and need not wait."""
    engine = story.engine(INDEX)
    run_id = engine.request(story.ask()).run_id
    assert worker(sqlite_url).returncode == -signal.SIGKILL
    assert engine.sweep().due == {"bulk": 1}
    assert [task.attempts for task in story.tasks(run_id)] == [0]
    assert story.journal("expire") == ["worker_died"]
    assert [done.ending for done in engine.work_off()] == [Ending.PUBLISHED]


def test_a_process_of_another_release_leaves_what_it_does_not_know(story, sqlite_url):
    """The older process ends well, having found nothing to do; the work waits for one that knows it."""
    engine = story.engine(Kind("index", INDEX.run, version=2))
    engine.request(story.ask())
    older = worker(sqlite_url, version=1)
    assert (older.returncode, older.stdout.strip()) == (0, "0")
    assert len(engine.work_off()) == 1


# A database that goes away.


@contextlib.contextmanager
def sqlite_away(db, url):
    path = Path(url.removeprefix("sqlite:///"))
    db.close()
    path.rename(path.with_suffix(".away"))
    path.mkdir()
    try:
        yield
    finally:
        path.rmdir()
        path.with_suffix(".away").rename(path)


@contextlib.contextmanager
def postgresql_away(url):
    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


@pytest.fixture
def away(everywhere, database_url):
    """A block in which nobody reaches the database."""
    if everywhere.db.postgresql:
        return lambda: postgresql_away(database_url)
    return lambda: sqlite_away(everywhere.db, database_url)


@pytest.mark.g4
def test_a_request_without_a_database_says_so(everywhere, away):
    """The caller is told that nothing is known to have changed; afterwards the same request is accepted."""
    engine = everywhere.engine(INDEX)
    with away(), pytest.raises(StoreUnavailableError) as gone:
        engine.request(everywhere.ask())
    assert gone.value.code == "database_unavailable"
    assert engine.request(everywhere.ask()).created


@pytest.mark.g4
def test_work_without_a_database_is_let_go_and_done_later(everywhere, away):
    """The worker neither fails the run nor dies; the lease runs out and the task is due again."""
    outage, outages = contextlib.ExitStack(), [away]

    def interrupted(work):
        if outages:
            outage.enter_context(outages.pop()())
        work.progress(1, 2)
        INDEX.run(work)

    engine = everywhere.engine(Kind("index", interrupted))
    engine.request(everywhere.ask())
    with outage:
        (done,) = engine.work_off(most=1)
    assert (done.ending, done.reason) == (Ending.RELEASED, "database_unavailable")
    everywhere.pass_time(60)
    engine.sweep()
    everywhere.end_grace()  # given after an outage of more than a second, as this one is on a slow machine
    engine.sweep()
    assert [done.ending for done in engine.work_off()] == [Ending.PUBLISHED]
    assert everywhere.texts() == ["a"]


class Repairer(ThreadHost):
    """A host on which the database is back when somebody has waited for it."""

    def __init__(self, repair):
        self.repair = repair

    def sleep(self, seconds):
        self.repair()


@pytest.mark.g5
def test_an_answer_that_was_paid_for_outlives_the_database(everywhere, away):
    """The database goes away between the answer and its settlement: the answer is held until it is back."""
    outage = contextlib.ExitStack()

    def cut(name):
        if name == "send.answered":
            outage.enter_context(away())

    call = Call("meter", "embeddings", "small", "chunk-01")
    with Meter() as meter, contextlib.closing(meter.provider()) as provider:
        kind = Kind("index", lambda work: {"bytes": len(work.pay([call])[0])})
        engine = everywhere.engine(kind, providers={"meter": provider}, host=Repairer(outage.close))
        with faults.armed(cut):
            run = ended(everywhere, engine)
        assert run.status is Status.SUCCESS
        assert meter.totals().charges == 1
    assert reads.progress_of(everywhere.db, run.id).spent.paid_calls == 1


# A database that is not ours.


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql://localhost/x", "sqlite://", "sqlite:///:memory:", "oracle+x://"]
)
def test_an_address_that_is_none(url):
    """The message shows what an address looks like."""
    with pytest.raises(BadRequestError, match="sqlite:///path") as refused:
        open_database(url)
    assert refused.value.code == "bad_database_url"


def test_a_missing_driver_is_named_with_its_cure(monkeypatch):
    """PostgreSQL is an extra: without it the error says what to install."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(BadRequestError, match=r"holdfast\[postgres\]") as refused:
        open_database("postgresql://localhost/x")
    assert refused.value.code == "driver_missing"


def test_a_database_that_does_not_answer(tmp_path):
    """The first question gets the error; nobody waits longer than the patience."""
    db = open_database(f"sqlite:///{tmp_path}/no/such/folder/holdfast.db", patience=0.0)
    with pytest.raises(StoreUnavailableError, match="DATABASE_URL") as gone:
        reads.head(db, "default", "index", "document:1")
    assert gone.value.code == "database_unavailable"
    db.close()


def test_an_empty_database_needs_its_tables(tmp_path):
    """The check says which command makes them."""
    db = open_database(f"sqlite:///{tmp_path}/empty.db")
    with pytest.raises(SchemaError, match="holdfast migrate") as refused:
        revisions.check(db.engine)
    assert refused.value.code == "schema_mismatch"
    db.close()


def test_a_database_of_a_newer_release_is_left_alone(everywhere):
    """A revision that this code does not know is not guessed at."""
    set_revision = text("UPDATE holdfast_version SET version_num = 'from_the_future'")
    everywhere.db.write("by_hand", lambda tx: tx.execute(set_revision))
    with pytest.raises(SchemaError, match="install a newer holdfast"):
        revisions.check(everywhere.db.engine)
