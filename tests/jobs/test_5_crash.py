"""A worker dies in the middle of a job: finished slices and paid calls stay, the rest is done by another."""

import pytest

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.core.states import LIVE, Status, TaskState
from holdfast.service.jobs import JobRequest
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.views import reads
from holdfast.testing.meter import Meter
from tests.jobs.install import Author, paragraphs
from tests.live_install import in_flight
from tests.live_install import mill as running

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def meter(request):
    """A provider that honours idempotency keys, and one that does not."""
    with Meter(honour_keys=request.param, chat=Author()) as running:
        yield running


@pytest.fixture
def mill(database_url, monkeypatch, tmp_path, meter):
    """An installation with a metered model, and two documents."""
    texts = [paragraphs(name, 20).encode() for name in ("alpha", "beta")]
    with running(
        monkeypatch,
        tmp_path,
        [Upload(text, f"{n}.txt") for n, text in enumerate(texts)],
        database_url=database_url,
        llm_provider="openai",
        llm_base_url=meter.base_url,
        llm_key_retention="86400" if meter.honour_keys else "0",
        order_deadline="4",
    ) as created:
        yield created


@pytest.mark.g4
@pytest.mark.g5
@pytest.mark.g7
@pytest.mark.parametrize(
    ("database_url", "meter"),
    [("sqlite", False), ("postgresql", True)],
    indirect=True,
    ids=["sqlite-unkeyed", "postgresql-keyed"],
)
def test_a_worker_killed_in_the_middle_of_a_job(mill, meter):
    """Slices that were done stay done; keyed, nothing is paid twice; unkeyed, only what the kill hit."""
    runtime, worker = mill
    jobs = bootstrap.AppServices(runtime).jobs
    shelf = bootstrap.AppServices(runtime).collections.get("default", "shelf")
    run_id = jobs.on_collection(
        RequestContext(), shelf, JobRequest("qa", {"limit": 1000, "per_chunk": 1})
    ).run_id
    meter.plan(latency=0.1)

    def finished():
        result = reads.tasks_of(runtime.db, run_id)
        return {one.task.id: one.task.epoch for one in result if one.task.state is TaskState.DONE}

    first = worker("first")
    until(lambda: len(finished()) >= 3, 90, "no slices are done")  # the plan, and two of its slices
    meter.hold("after")
    meter.wait_open(1, 60.0, charged=True)
    first.kill()
    hit = in_flight(runtime.db)
    meter.release()
    outcome = finished()
    worker("second")
    until(lambda: jobs.view("default", run_id).job.run.status not in LIVE, 120, "the job does not end")
    view = jobs.view("default", run_id)
    assert view.job.run.status is Status.SUCCESS
    assert {task: finished()[task] for task in outcome} == outcome
    totals = meter.totals()
    result = jobs.results(view, limit=2000)
    assert len(result) == totals.distinct_inputs == len({one.data["question"] for one in result})
    assert hit > 0
    assert totals.excess <= (0 if meter.honour_keys else hit)
