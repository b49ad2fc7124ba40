"""A worker dies in the middle of a long PDF: finished slices stay, paid chunks stay, readers see no gap."""

import contextlib
import os
from pathlib import Path

import pytest

from holdfast import bootstrap, settings
from holdfast.chaos.waiting import until
from holdfast.chaos.worker_processes import WorkerProcess
from holdfast.core.states import Status, TaskState
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.views import reads
from holdfast.testing.meter import Meter
from holdfast.worker import sender
from tests.indexing import books
from tests.indexing.reading import Reader
from tests.live_install import in_flight

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(300)]
PAGES = 300
LEASE = 4.0
MEMORY = 400 * 1024 * 1024


def texts(word):
    return [f"This is {word} number{number}x of the plain book." for number in range(1, PAGES + 1)]


@pytest.fixture(params=[True, False], ids=["keyed", "unkeyed"])
def meter(request):
    """A provider that honours idempotency keys, and one that does not."""
    with Meter(honour_keys=request.param) as running:
        yield running


class Mill:
    """Real workers on an installation, and a document of theirs that was published before."""

    def __init__(self, environment, folder, meter, undo):
        self.environment, self.folder, self.meter, self._undo = environment, folder, meter, undo
        loaded = settings.load()
        self.sender = sender.open_sender(loaded)
        undo.callback(self.sender.close)
        self.runtime = undo.enter_context(bootstrap.open_runtime(loaded, sender=self.sender))
        undo.callback(self.runtime.engine.registry.get("index").run.__self__.close)
        self.db = self.runtime.db
        services = bootstrap.AppServices(self.runtime)
        self.documents = services.documents
        services.collections.make(RequestContext(), "shelf")
        taken = self.documents.add(RequestContext(), "shelf", [Upload(books.plain(PAGES), "book.pdf")])[0]
        self.runtime.engine.run_until_idle()
        self.id = taken.document.id
        self.meter.plan(latency=0.1)

    def worker(self, name):
        started = WorkerProcess(name, self.environment, self.folder, concurrency=2)
        self._undo.callback(started.clear)
        return started

    def replace(self, word):
        """New content of as many pages; answers the run."""
        upload = Upload(books.plain(PAGES, word), "book.pdf")
        return self.documents.put_content(RequestContext(), self.id, upload).answer.run_id

    def document(self):
        return self.documents.get("default", self.id)

    def done(self, run_id):
        """The finished slices of the run with the epochs that finished them."""
        result = reads.tasks_of(self.db, run_id)
        return {one.task.id: one.task.epoch for one in result if one.task.state is TaskState.DONE}

    def ended(self, seconds=120.0):
        live = {Status.QUEUED, Status.RUNNING}
        until(lambda: self.document().status not in live, seconds, "the run does not end")


@pytest.fixture
def mill(installed, monkeypatch, tmp_path, meter):
    changes = {
        "HOLDFAST_EMBEDDING_KEY_RETENTION": "86400" if meter.honour_keys else "0",
        "HOLDFAST_LEASE_TTL": str(LEASE),
        "HOLDFAST_SWEEP_INTERVAL": "1",
        "HOLDFAST_ORDER_DEADLINE": "4",
    }
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    with contextlib.ExitStack() as undo:
        yield Mill(dict(os.environ), tmp_path, meter, undo)


@pytest.fixture
def reader(mill, database_url):
    with Reader(database_url, mill.document().head_id, texts("page")) as reading:
        yield reading
    assert reading.faults == []
    assert reading.saw(1) > 10


def killed_with_an_order_open(mill, worker):
    """The worker is killed while the provider has taken the money and not answered.

    Answers how many inputs were on their way then: those that had only arrived are charged all the same.
    """
    mill.meter.hold("after")
    mill.meter.wait_open(1, 60.0, charged=True)
    worker.kill()
    hit = in_flight(mill.db)
    mill.meter.release()
    assert hit > 0
    return hit


@pytest.mark.g3
@pytest.mark.g5
@pytest.mark.g7
def test_a_worker_killed_in_the_middle_of_three_hundred_pages(mill, reader):
    """Keyed, the bill is exact to the input; unkeyed, only the orders that the kill hit are charged twice."""
    run_id = mill.replace("leaf")
    reader.whole[2] = texts("leaf")
    first = mill.worker("first")
    until(lambda: len(mill.done(run_id)) >= 6, 90, "no slices are done")
    hit = killed_with_an_order_open(mill, first)
    saved = mill.done(run_id)
    assert 6 <= len(saved) < 26
    mill.worker("second")
    mill.ended()
    after = mill.done(run_id)
    assert {task: after[task] for task in saved} == saved
    assert mill.document().published_generation == 2
    until(lambda: reader.faults or reader.saw(2) > 5, 30, "the new generation is not seen")
    totals = mill.meter.totals()
    assert totals.distinct_inputs == 2 * PAGES
    bound = 0 if mill.meter.honour_keys else hit
    assert totals.excess <= bound
    print(f"charges / distinct = {totals.charges / totals.distinct_inputs:.3f}, {hit} inputs on their way")


@pytest.mark.g3
@pytest.mark.g5
def test_a_cancel_in_the_middle_then_the_same_again(mill, reader):
    """Killed, cancelled, asked for again: the old text answers till the end, and what was paid stays paid."""
    run_id = mill.replace("leaf")
    reader.whole[3] = texts("leaf")
    first = mill.worker("first")
    until(lambda: len(mill.done(run_id)) >= 4, 90, "no slices are done")
    hit = killed_with_an_order_open(mill, first)
    assert mill.documents.cancel(RequestContext(), mill.id)
    assert mill.document().status is Status.SUCCESS
    mill.documents.index(RequestContext(), mill.id)
    mill.worker("second")
    mill.ended()
    assert mill.document().published_generation == 3
    until(lambda: reader.faults or reader.saw(3) > 5, 30, "the new generation is not seen")
    assert reader.saw(2) == 0
    bound = 0 if mill.meter.honour_keys else hit
    assert mill.meter.totals().excess <= bound


@pytest.mark.g3
def test_a_failure_in_the_middle_leaves_the_old_text(mill, reader):
    """The provider refuses for good while two processes work; both stop, and the old text answers."""
    run_id = mill.replace("leaf")
    mill.worker("first")
    until(lambda: len(mill.done(run_id)) >= 4, 90, "no slices are done")
    mill.meter.plan(fail=1.0, fail_status=400)
    mill.ended()
    assert mill.document().status is Status.FAILED
    looks = reader.saw(1)
    until(lambda: reader.faults or reader.saw(1) > looks + 5, 30, "the reader stopped")
    assert mill.document().published_generation == 1


def descendants(pids):
    """These processes and all below them: those that read documents have sessions of their own."""
    result = set(pids)
    parents = {}
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
    while more := {pid for pid, parent in parents.items() if parent in result} - result:
        result |= more
    return result


def resident(pid):
    """The most memory that a process ever had, in bytes."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    return 0


@pytest.mark.parametrize("meter", [True], indirect=True, ids=["local"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_two_thousand_pages_in_bounded_memory(installed, monkeypatch, tmp_path, meter):
    """With the model on board no process of the worker, its readers of documents included, exceeds 400 MB."""
    for name in list(os.environ):
        if name.startswith("HOLDFAST_EMBEDDING"):
            monkeypatch.delenv(name)
    loaded = settings.load()
    sending = sender.open_sender(loaded)
    peak = {}
    with bootstrap.open_runtime(loaded, sender=sending) as runtime:
        services = bootstrap.AppServices(runtime)
        services.collections.make(RequestContext(), "shelf")
        book = books.Book(2000, paragraphs=5)
        taken = services.documents.add(RequestContext(), "shelf", [Upload(book.pdf(), "book.pdf")])[0]
        worker = WorkerProcess("big", dict(os.environ), tmp_path, concurrency=2)
        try:

            def watched():
                for pid in descendants(worker.tree()):
                    peak[pid] = max(peak.get(pid, 0), resident(pid))
                return services.documents.get("default", taken.document.id).status is Status.SUCCESS

            until(watched, 240, "it is not published", every=0.2)
        finally:
            worker.clear()
        document = services.documents.get("default", taken.document.id)
    sending.close()
    assert (document.pages, document.chunks >= 2000) == (2000, True)
    print(f"peaks {sorted(each // 2**20 for each in peak.values())} MiB, chunks {document.chunks}")
    assert max(peak.values()) < MEMORY
