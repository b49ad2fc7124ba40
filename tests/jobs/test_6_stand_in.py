"""Without any model: the stand-in answers, offline and for nothing, through real workers, and says so."""

import json
import os

import pytest

from holdfast.chaos.worker_processes import WorkerProcess
from holdfast.providers import local_llm
from holdfast.search import citations
from tests.api.install import ApiInstall
from tests.commands import caller
from tests.jobs.install import ask, job, results

TOWER = "The Eiffel Tower is a wrought-iron tower in Paris. It is 330 metres high and was completed in 1889."
INVOICE = "Invoice: A-17\nDate: 3 March 2024\nTotal: EUR 1,234.50\nContact: bob@example.org\n"
SCHEMA = {
    "type": "object",
    "properties": {
        "invoice": {"type": "string"},
        "date": {"type": "string", "format": "date"},
        "total": {"type": "number"},
    },
    "required": ["invoice"],
}


@pytest.fixture
def plain(database_url, tmp_path):
    """An installation as it comes: nothing is set up."""
    install = ApiInstall(database_url, tmp_path / "data")
    yield install
    install.close()


def test_the_default_works_and_says_that_it_is_a_stand_in(plain):
    """Answers stand in the text; nothing is paid; job, results and status say who answered."""
    plain.client.indexed(TOWER)
    said = ask(plain.client, limit=2)
    plain.work()
    finished = job(plain.client, said.json["job_id"])
    assert (finished["state"], finished["stand_in"], finished["model"]) == ("success", True, "extractive-1")
    assert finished["cost"]["paid"] == 0
    result = results(plain.client, finished["job_id"])
    assert result
    assert all(one["answer"] in TOWER for one in result)
    assert plain.client.get(f"jobs/{finished['job_id']}/results").json["stand_in"] is True
    response = plain.client.get("status").json["language_model"]
    assert response == {"provider": "local-extractive", "model": "extractive-1", "stand_in": True}


def test_fields_by_their_patterns(plain):
    """Labelled lines, dates and amounts; a document without the required ones is recorded."""
    plain.client.indexed(INVOICE)
    plain.client.indexed(TOWER)
    said = ask(plain.client, "extract", schema=SCHEMA)
    plain.work()
    finished = job(plain.client, said.json["job_id"])
    assert (finished["results"], finished["failed_results"]) == (1, 1)
    result = next(one for one in results(plain.client, finished["job_id"]) if one["fields"])
    assert result["fields"] == {"invoice": "A-17", "date": "2024-03-03", "total": 1234.5}
    assert result["sources"]["invoice"]["page"] == 1


def test_the_stand_in_follows_references(plain):
    """As Pydantic writes a model in a model, and a field that may be null."""
    plain.client.indexed(INVOICE)
    seller = {"type": "object", "properties": {"contact": {"type": "string", "format": "email"}}}
    properties = {
        "seller": {"$ref": "#/$defs/Seller"},
        "total": {"anyOf": [{"type": "null"}, {"type": "number"}]},
    }
    schema = {"type": "object", "properties": properties, "$defs": {"Seller": seller}}
    response = ask(plain.client, "extract", schema=schema)
    plain.work()
    (result,) = results(plain.client, response.json["job_id"])
    assert result["fields"] == {"seller": {"contact": "bob@example.org"}, "total": 1234.5}


@pytest.fixture
def holdfast(monkeypatch, capsys, tmp_path):
    """`holdfast("jobs")` runs a command in this process; answers exit code, output and complaint."""
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "installed"))

    return caller(monkeypatch, capsys)


def test_a_job_from_the_terminal_waits_for_documents_that_are_not_ready(holdfast, tmp_path):
    """Without `--wait-for-ready` it is refused; with it the job is accepted and waits for them."""
    (tmp_path / "tower.txt").write_text(TOWER)
    assert holdfast("index", tmp_path / "tower.txt", "--no-wait")[0] == 0
    words = ("jobs", "qa", "--limit", 2, "--no-wait", "--json")
    code, _, err = holdfast(*words)
    assert (code, "[nothing_ready]" in err) == (3, True)
    code, out, _ = holdfast(*words, "--wait-for-ready")
    assert (code, json.loads(out)["job"]["state"]) == (0, "queued")


@pytest.fixture
def worker(holdfast, tmp_path):
    """A worker of its own processes, on the embedded default."""
    assert holdfast("migrate")[0] == 0
    started = WorkerProcess("real", dict(os.environ), tmp_path, concurrency=1)
    yield started.ready()
    started.clear()


@pytest.mark.slow
def test_the_commands_from_a_folder_to_its_answers(holdfast, worker, tmp_path):
    """Index, ask, follow, read, and the refusals, with a real worker; and without one nothing is lost."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/tower.txt").write_text(TOWER)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    assert holdfast("index", tmp_path / "papers")[0] == 0
    code, out, _ = holdfast("jobs", "qa", "--limit", 2, "--json")
    body = json.loads(out)
    assert (code, body["job"]["state"], body["disposition"]) == (0, "success", "accepted")
    job_id = body["job"]["job_id"]
    code, out, _ = holdfast("jobs", "results", job_id)
    assert (code, "stand-in" in out, "Eiffel" in out) == (0, True, True)
    assert holdfast("jobs", "results", job_id, "--csv")[1].startswith("question,answer,")
    assert job_id in holdfast("jobs")[1]
    assert [one["job_id"] for one in json.loads(holdfast("jobs", "--kind", "qa", "--json")[1])] == [job_id]
    code, out, _ = holdfast("jobs", "qa", "--limit", 2, "--json")
    assert (code, json.loads(out)["disposition"]) == (0, "unchanged")
    worker.kill()
    code, out, _ = holdfast("jobs", "extract", tmp_path / "schema.json", "--no-wait", "--json")
    waiting = json.loads(out)["job"]["job_id"]
    code, _, body = holdfast("jobs", "extract", tmp_path / "schema.json")
    assert (code, "already in progress" in body, "[duplicate]" in body) == (3, True, True)
    assert holdfast("jobs", "cancel", waiting)[0] == 0
    assert holdfast("jobs", "cancel", waiting)[0] == 3
    assert holdfast("jobs", "results", waiting)[0] == 3
    assert holdfast("jobs", "show", waiting)[1].startswith(f"job {waiting}: extract of default, cancelled")
    assert holdfast("jobs", "show", "nothing")[0] == 5
    assert holdfast("jobs", "--state", "nothing")[0] == 2
    assert holdfast("jobs", "extract", tmp_path / "papers/tower.txt")[0] == 2


def test_each_quotation_of_the_stand_in_keeps_its_own_citation():
    """Also one without a full stop, like a line of a table or of a letter's head."""
    sources = [[1, "To: the harbour master of Port Wren"], [2, "The harbour master sleeps on Sundays."]]
    hint = {"do": "answer", "question": "When does the harbour master sleep?", "sources": sources}
    said = local_llm.answer([{"role": "user", "content": "x"}], [], hint)["content"]
    checked = citations.check(said, [text for _, text in sources])
    assert {(one.cites, one.support) for one in checked.sentences} == {((1,), "quoted"), ((2,), "quoted")}
