"""`holdfast export` and `holdfast import`, with a real worker."""

import json
import os

import pytest

from holdfast.chaos.worker_processes import WorkerProcess
from tests.commands import caller

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def holdfast(monkeypatch, capsys, tmp_path):
    """`holdfast("status")` runs a command in this process; answers exit code, output and complaint."""
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "installed"))

    return caller(monkeypatch, capsys)


@pytest.fixture
def worker(holdfast, tmp_path):
    assert holdfast("migrate")[0] == 0
    started = WorkerProcess("real", dict(os.environ), tmp_path, concurrency=1)
    yield started.ready()
    started.clear()


def test_a_collection_goes_into_a_file_and_comes_back(holdfast, worker, tmp_path):
    """Whole, for nothing, as often as one likes; and each refusal has its exit code and leaves no file."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/herons.txt").write_text("Herons stand still for hours.")
    assert holdfast("index", "papers", "--collection", "birds")[0] == 0
    code, out, _ = holdfast("export", "birds", "birds.zip", "--json")
    body = json.loads(out)
    assert (code, body["job"]["state"], body["file"]) == (0, "success", "birds.zip")
    size = (tmp_path / "birds.zip").stat().st_size
    assert size > 0
    code, _, complaint = holdfast("export", "birds", "birds.zip")
    assert (code, "[file_exists]" in complaint) == (2, True)
    assert holdfast("export", "birds", "birds.zip", "--force")[0] == 0
    assert holdfast("export", "nobody", "other.zip")[0] == 5
    assert holdfast("export", "birds", "no/such/folder.zip")[0] == 2
    assert sorted(each.name for each in tmp_path.glob("*.zip*")) == ["birds.zip"]
    code, out, _ = holdfast("import", "birds.zip", "--collection", "copy")
    assert (code, "1 documents" in out) == (0, True), out
    code, out, _ = holdfast("import", "birds.zip", "--collection", "copy", "--json")
    assert (code, json.loads(out)["job"]["state"]) == (0, "success")
    payload = json.loads(holdfast("search", "herons", "--collection", "copy", "--json")[1])
    assert len(payload["hits"]) == 1
    assert holdfast("import", "papers/herons.txt")[0] == 2
    assert holdfast("import", "missing.zip")[0] == 2
    worker.kill()
    code, out, _ = holdfast("import", "birds.zip", "--collection", "later", "--no-wait", "--json")
    assert (code, json.loads(out)["job"]["state"]) == (0, "queued")
    code, _, complaint = holdfast("import", "birds.zip", "--collection", "later")
    assert (code, "[duplicate]" in complaint) == (3, True)
