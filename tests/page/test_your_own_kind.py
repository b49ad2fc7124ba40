"""A wheel of somebody else brings a kind: it is requested by HTTP, command line, web UI and Python.

The package is the one of docs/how-to/your-own-kind.md. It is built, installed and found by its entry point;
API and worker are real processes, and the model is a meter that counts what it charged.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.chaos.waiting import until
from holdfast.testing.meter import Meter
from tests.docs import howto
from tests.page.browser_user import Api
from tests.worker.programs import PROGRAM

PAGE = howto.ROOT / "docs/how-to/your-own-kind.md"
TEXT = "The harbour opens at dawn. The harbour master keeps the keys of the harbour."

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the installed package, made of a wheel."""
    folder = tmp_path_factory.mktemp("foreign")
    for block in howto.blocks(PAGE.read_text()):
        if block.word == "file":
            path = folder / block.about
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text)
    source, wheels = folder / "acme-headlines", folder / "wheels"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    subprocess.run(build, cwd=source, capture_output=True, check=True)
    (wheel,) = wheels.glob("*.whl")
    target = [*("--target", str(folder / "installed")), *("--python", sys.executable), str(wheel)]
    install = [sys.executable, "-m", "uv", "pip", "install", "-q", "--offline", "--no-deps", *target]
    subprocess.run(install, capture_output=True, check=True)
    return folder / "installed"


class Installation:
    """`holdfast up` with the package in its environment."""

    def __init__(self, folder: Path, package: Path, meter: Meter) -> None:
        self.url = f"sqlite:///{folder}/data/holdfast.db"
        own = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH", "")]))
        self.environment = own | {
            "PYTHONPATH": path,
            "HOLDFAST_DATA_DIR": str(folder / "data"),
            "HOLDFAST_PORT": str(howto._free_port()),
            "HOLDFAST_LLM_PROVIDER": "openai",
            "HOLDFAST_LLM_BASE_URL": meter.base_url,
            "HOLDFAST_LLM_API_KEY": "test",
        }
        self.address = f"http://127.0.0.1:{self.environment['HOLDFAST_PORT']}"
        self.log = (folder / "up.log").open("wb")
        command = [str(PROGRAM), "up", "-c", "1"]
        self.process = subprocess.Popen(command, env=self.environment, stdout=self.log, stderr=self.log)
        self.api = Api(self.address)

    def answers(self):
        """True once a worker is known."""
        try:
            return self.api.get("status")["installation"]["workers"]
        except OSError:
            return False

    def command(self, *words):
        """What a command printed, as JSON."""
        command = [str(PROGRAM), *words, "--json"]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=120
        )
        return json.loads(done.stdout)

    def results(self, job_id):
        """The results of the job, once it has succeeded."""
        until(lambda: self.api.get(f"jobs/{job_id}")["job"]["state"] == "success", 60, "the job does not end")
        return self.api.get(f"jobs/{job_id}/results")["results"]

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


@pytest.fixture
def foreign(installed, tmp_path):
    with Meter(chat=lambda messages: f"Headline of {messages[1]['content'][:11]}") as meter:
        running = Installation(tmp_path, installed, meter)
        try:
            until(running.answers, 90, f"no answer: {tmp_path}/up.log")
            running.api.collection("shelf")
            document = running.api.text("shelf", "Harbour", TEXT)
            until(lambda: running.api.document(document)["index_status"] == "success", 60, "not indexed")
            yield running, meter
        finally:
            running.close()


@pytest.mark.g5
def test_a_kind_of_a_foreign_wheel_is_requested_in_all_four_ways(foreign, installed, look, monkeypatch):
    """The parameters differ, so each is a job of its own; the headline of the document is paid for once."""
    running, meter = foreign
    # HTTP
    job = running.api.call("POST", "collections/shelf/jobs", {"kind": "headlines", "params": {"words": 1}})
    (result,) = running.results(job["job_id"])
    assert (result["headline"], result["words"]) == ("Headline of The harbour", ["harbour"])
    # the command line, which waits for the end
    printed = running.command("jobs", "headlines", "--collection", "shelf", "--words", "2", "--yes")
    assert (printed["job"]["state"], printed["job"]["results"]) == ("success", 1)
    assert len(running.command("jobs", "results", printed["job"]["job_id"])[0]["words"]) == 2
    # Python
    monkeypatch.syspath_prepend(str(installed))
    supplies = holdfast.Supplies(llm=printed["job"]["provider"], llm_model=printed["job"]["model"])
    kind = __import__("acme_headlines").KIND
    with holdfast.open(running.url, kinds=[kind], supplies=supplies, migrate=False) as hold:
        job_id = hold.start_job("headlines", {"words": 3}, collection="shelf").run_id
        until(lambda: hold.job(job_id).status == "success", 60, "the job does not end")
        assert [len(each.data["words"]) for each in hold.job_results(job_id)] == [3]
        with pytest.raises(holdfast.BadRequestError, match="words must be at most 20"):
            hold.start_job("headlines", {"words": 21}, collection="shelf")
    # the web UI: a form of the parameters, the price, and the kind's own view
    reader = look(running.address)
    page = reader.open("/jobs")
    page.click("[data-open=new-job]")
    page.select_option("#job-kind", "headlines")
    page.fill("#job-headlines-words", "4")
    page.select_option("#job-headlines-style", "sober")
    page.click("#new-job [data-ask-estimate]")
    reader.shows("#new-job [data-estimated]", "1 reused")
    page.click("#new-job [data-after-estimate]")
    page.wait_for_url("**/jobs/*")
    reader.shows("h3.headline", "Headline of The harbour")
    assert reader.judged() == []
    assert (meter.totals().charges, meter.totals().excess) == (1, 0)


def test_what_a_foreign_kind_left_is_found_by_search(foreign, look):
    """In the web UI its hits stand among those of the chunks."""
    running, _ = foreign
    job = running.api.call("POST", "collections/shelf/jobs", {"kind": "headlines", "params": {}})
    running.results(job["job_id"])
    reader = look(running.address)
    reader.open("/search?collection=shelf")
    reader.page.fill("[name=q]", "harbour")
    reader.page.press("[name=q]", "Enter")
    reader.shows("#main", "Headline of The harbour")
    running.command("search", "harbour", "--collection", "shelf")
