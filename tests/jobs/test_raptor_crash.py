"""Workers die while a tree of summaries or a mind map is made: it goes on, and nothing is paid twice."""

import hashlib

import pytest

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.core.states import LIVE, Status
from holdfast.service.jobs import JobRequest
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.derived import trees
from holdfast.testing.meter import Meter
from tests.jobs.install import paragraphs
from tests.live_install import mill as running

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(1500)]
KILLS = 3
MANY_KILLS = 50


def summary(messages):
    passages = str(messages[1]["content"])
    mark = hashlib.sha256(passages.encode()).hexdigest()[:8]
    return f"Summary {mark}\nThe passages {mark} say: {passages[:200]}"


def tree_documents(names):
    return [Upload(paragraphs(name, 20).encode(), f"{name}.txt") for name in names]


def outlines(names):
    """Documents of three headings: a call each; what is answered is no map, so that their headings are."""
    parts = ("first", "second", "third")
    return [
        Upload("\n\n".join(f"## {name} {part}\n\nText." for part in parts).encode(), f"{name}.md")
        for name in names
    ]


def killed(kind, uploads, kills, database_url, monkeypatch, tmp_path):
    """The job was carried out while workers were killed; charges are as many as calls, and it is whole."""
    with Meter(honour_keys=True, chat=summary) as meter:
        settings = {"database_url": database_url, "llm_provider": "openai", "llm_base_url": meter.base_url}
        settings |= {"llm_key_retention": "86400", "order_deadline": "4"}
        with running(monkeypatch, tmp_path, uploads, **settings) as (runtime, worker):
            services = bootstrap.AppServices(runtime)
            shelf = services.collections.get("default", "shelf")
            run_id = services.jobs.on_collection(RequestContext(), shelf, JobRequest(kind, {})).run_id
            for number in range(kills):
                meter.hold("after")
                victim = worker(f"victim-{number}")
                meter.wait_open(1, 60.0, charged=True)
                victim.kill()
                meter.release()
            worker("survivor")
            ended = lambda: services.jobs.view("default", run_id).job.run.status not in LIVE
            until(ended, 240, "the job does not end")
            assert services.jobs.view("default", run_id).job.run.status is Status.SUCCESS
            totals = meter.totals()
            assert (totals.charges, totals.excess) == (totals.distinct_inputs, 0)
            (head,) = runtime.db.read(lambda tx: trees.of_collection(tx, "default", "shelf", kind, 9))
            assert trees.faults(runtime.db, head) == trees.TreeFaults(0, 0, 0)


@pytest.mark.g4
@pytest.mark.g5
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_workers_killed_while_a_tree_is_built(database_url, monkeypatch, tmp_path):
    """Each dies with a charged call in flight; the next one goes on, and charges are as many as calls."""
    killed("raptor", tree_documents(("alpha", "beta")), KILLS, database_url, monkeypatch, tmp_path)


@pytest.mark.long
@pytest.mark.g5
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("kind", "write", "documents"), [("raptor", tree_documents, 24), ("mindmap", outlines, 90)]
)
def test_fifty_workers_killed(kind, write, documents, database_url, monkeypatch, tmp_path):
    """The same for each kind, fifty times: charges divided by distinct calls are 1.000."""
    names = [f"name{number}" for number in range(documents)]
    killed(kind, write(names), MANY_KILLS, database_url, monkeypatch, tmp_path)
