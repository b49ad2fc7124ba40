"""A model without a price is called unpriced wherever its cost would be shown, before and after."""

import pytest

from holdfast.testing.meter import Meter
from tests.api.install import ApiInstall

MODEL = "nobody-knows"


@pytest.fixture
def odd(sqlite_url, tmp_path):
    """An installation whose language model has no price, with one document that is ready."""
    with Meter(honour_keys=True) as meter:
        requested = {"llm_provider": "openai", "llm_base_url": meter.base_url, "llm_api_key": "test"}
        install = ApiInstall(sqlite_url, tmp_path / "data", **requested, llm_model=MODEL)
        install.client.indexed("Anchors hold in mud.", title="Anchors")
        yield install
        install.close()


def test_the_actions_page_says_unpriced(odd, look):
    """In the dialog, in its estimate, beside the action, and as the cost of what it did."""
    reader = look(f"http://127.0.0.1:{odd.port}")
    page = reader.open("/collections/shelf/actions")
    page.click("text=Add action")
    assert f"{MODEL} is unpriced" in reader.text("#new-action")
    page.click("#new-action >> text=Estimate")
    reader.shows("#new-action [data-estimated]", f"unpriced ({MODEL} has no known price) for 1 document")
    page.click("#new-action >> text=Add >> nth=-1")
    page.wait_for_selector("li.action")
    odd.work()
    reader.shows("li.action", f"uses {MODEL}")
    reader.shows("li.action .action-what", "unpriced")
    reader.shows("li.action td.n", "unpriced")


def test_jobs_and_runs_say_unpriced(odd, look):
    """In the dialog, in the list, on the job's own page and on that of its log: nowhere $0.00."""
    job = odd.client.post("collections/shelf/jobs", {"kind": "qa", "params": {"limit": 1}}).json["job_id"]
    odd.work()
    reader = look(f"http://127.0.0.1:{odd.port}")
    page = reader.open("/jobs")
    assert "unpriced" in reader.text(f"#b-{job} .w")
    page.click("text=New job")
    assert f"{MODEL} is unpriced" in reader.text("#new-job")
    for path, position in ((f"/jobs/{job}", ".tiles"), (f"/runs/{job}", ".head")):
        reader.open(path)
        assert "unpriced" in reader.text(position)
