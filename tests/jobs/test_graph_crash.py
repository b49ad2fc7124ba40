"""Workers die while a graph is made: every phase goes on, and nothing is paid twice."""

import random

import pytest

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.core.states import LIVE, Status
from holdfast.service.documents import Upload
from holdfast.service.jobs import JobRequest
from holdfast.service.requests import RequestContext
from holdfast.store.derived import trees
from holdfast.testing.meter import Meter
from tests.jobs import graph_author
from tests.jobs.graph_author import story
from tests.live_install import mill as running

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


@pytest.mark.g4
@pytest.mark.g5
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("kills", "names"),
    [
        pytest.param(2, "a", marks=pytest.mark.timeout(300)),
        pytest.param(50, "abcdefghijklmnop", marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
    ],
)
def test_workers_killed_while_a_graph_is_made(database_url, monkeypatch, tmp_path, kills, names):
    """Each dies at random, most with a charged call in flight; charges are as many as distinct calls."""
    chance = random.Random(15)
    uploads = [Upload(story(name * 3, 60, at).encode(), f"{name}.txt") for at, name in enumerate(names)]
    with Meter(honour_keys=True, chat=graph_author.answer) as meter:
        settings = {"database_url": database_url, "llm_provider": "openai", "llm_base_url": meter.base_url}
        settings |= {"llm_key_retention": "86400", "order_deadline": "4"}
        with running(monkeypatch, tmp_path, uploads, **settings) as (runtime, worker):
            services = bootstrap.AppServices(runtime)
            shelf = services.collections.get("default", "shelf")
            run_id = services.jobs.on_collection(RequestContext(), shelf, JobRequest("graph", {})).run_id
            ended = lambda: services.jobs.view("default", run_id).job.run.status not in LIVE
            for number in range(kills):
                goal = meter.totals().charges + chance.randrange(4)
                meter.hold("after")
                victim = worker(f"victim-{number}")
                meter.wait_open(1, 60.0)
                meter.release()
                until(lambda goal=goal: meter.totals().charges >= goal or ended(), 60, "nothing is charged")
                victim.kill()
            worker("survivor")
            until(ended, 240, "the job does not end")
            assert services.jobs.view("default", run_id).job.run.status is Status.SUCCESS
            totals = meter.totals()
            assert (totals.charges, totals.excess) == (totals.distinct_inputs, 0)
            (head,) = runtime.db.read(lambda tx: trees.of_collection(tx, "default", "shelf", "graph", 9))
            assert trees.faults(runtime.db, head) == trees.TreeFaults(0, 0, 0)
