"""A dry run carries a flow out on one document, shows what each step makes, and changes nothing."""

import json
from typing import Any

import pytest

from tests.documents import scans
from tests.flows.install import GIST, TERMS, FlowsInstall, flow
from tests.jobs.install import paragraphs

SPLIT = "split: {size: 256}"
EMBED = 'embed: {text: "{gist}\\n{text}"}'
PUBLISH = "publish: {search: [text, gist], fields: [gist, own]}"
SHOUT = 'python: {name: own, call: "harbour_steps:shout", version: 1}'


def tried(install: FlowsInstall, source: str, document: str, **more: Any) -> Any:
    response = install.client.post(f"documents/{document}/dry-run", {"source": source, **more})
    assert response.status == 200, response.raw
    return response.json


def outputs(trial: Any) -> dict[str, Any]:
    return {step["name"]: step["outputs"] for step in trial["steps"]}


def test_every_step_shows_its_output_and_nothing_is_changed(install: FlowsInstall) -> None:
    """The outputs of two chunks and of the document; the document stays as it was, and no flow is applied."""
    (document,) = install.shelf(paragraphs("tide", 4))
    source = flow("parse: {}", SPLIT, GIST, TERMS, SHOUT, EMBED, PUBLISH)
    trial = tried(install, source, document["id"], chunks=2)
    shown = outputs(trial)
    assert shown["parse"] == [{"format": "text", "pages": 1, "language": None}]
    assert [each.split()[2] for each in shown["split"]] == ["0", "1"]
    assert shown["gist"] == ["gist of tide paragraph 0", "gist of tide paragraph 1"]
    assert shown["terms"] == [{"topic": "topic of tide"}]
    assert shown["embed"][1].startswith("gist of tide paragraph 1\ntide paragraph 1")
    assert shown["publish"][0] == {"gist": "gist of tide paragraph 0", "own": "TIDE!"}
    gist = next(step for step in trial["steps"] if step["name"] == "gist")
    assert (gist["items"], gist["paid_calls"], gist["cost"] > 0, trial["of"]) == (2, 2, True, 4)
    assert trial["cost"] > 0
    assert install.client.get("flows").json["flows"] == []
    assert install.client.get(f"documents/{document['id']}").json == document


def test_what_a_dry_run_paid_for_is_not_paid_again(install: FlowsInstall) -> None:
    """The second dry run costs nothing; the collection that takes the flow pays for the other chunks."""
    (document,) = install.shelf(paragraphs("tide", 4))
    source = flow(SPLIT, GIST, TERMS)
    assert tried(install, source, document["id"], chunks=1)["cost"] > 0
    before = install.charged()["chat/completions"]
    assert before == 2
    again = tried(install, source, document["id"], chunks=1)
    assert (again["cost"], install.charged()["chat/completions"]) == (0.0, 2)
    install.apply(source, to="shelf")
    install.work()
    assert install.charged()["chat/completions"] == 5
    assert install.meter.totals().excess == 0


def test_without_paying_it_shows_what_is_known_and_what_the_rest_costs(small: FlowsInstall) -> None:
    """An answer that nobody has paid for is null, and so is all that would be made from it."""
    (document,) = small.shelf(paragraphs("tide", 2))
    source = flow(SPLIT, GIST, EMBED, PUBLISH.replace(", own", ""))
    dry = tried(small, source, document["id"], pay=False)
    assert outputs(dry)["gist"] == outputs(dry)["embed"] == [None, None]
    assert (dry["cost"], dry["unpaid_calls"], dry["unpaid_cost"] > 0) == (0.0, 2, True)
    assert small.charged().get("chat/completions", 0) == 0
    paid = tried(small, source, document["id"])
    dry = tried(small, source, document["id"], pay=False)
    assert outputs(dry) == outputs(paid)
    assert dry["unpaid_calls"] == 0


def test_a_step_that_fails_is_shown_with_its_words(small: FlowsInstall) -> None:
    """A flow that would fail the document is looked at to its end all the same."""
    (document,) = small.shelf(paragraphs("tide", 1))
    fails = SHOUT.replace("shout", "fails")
    trial = tried(small, flow(SPLIT, fails, GIST), document["id"])
    failed = trial["steps"][1]
    assert (failed["failed"], failed["outputs"]) == (1, [None])
    assert failed["errors"] == ["harbour_steps:fails raised ValueError: no tide"]
    assert outputs(trial)["gist"] == ["gist of tide paragraph 0"]


def test_a_dry_run_keeps_to_its_price_its_tenant_and_its_limits(small: FlowsInstall) -> None:
    """`max_cost`, budgets, strange documents, faulty flows and readers are refused and pay nothing."""
    (document,) = small.shelf(paragraphs("tide", 2))
    good, path = {"source": flow(SPLIT, GIST)}, f"documents/{document['id']}/dry-run"
    refused = [
        ({**good, "max_cost": 1e-9}, 402, "over_budget"),
        ({**good, "source": flow("splt: {}")}, 400, "bad_flow"),
        ({**good, "chunks": 51}, 400, "bad_request"),
    ]
    for body, status, code in refused:
        response = small.client.post(path, body)
        assert (response.status, response.code) == (status, code), response.raw
    small.client.put("budgets", {"scope": "tenant", "hard": 0.0000001})
    response = small.client.post(path, good)
    assert (response.status, response.code) == (402, "over_budget")
    other = small.key("other")
    assert other.post(path, good).status == 404
    assert small.key("default", "read").post(path, good).status == 403
    assert small.charged().get("chat/completions", 0) == 0


def test_a_document_is_read_by_the_options_of_the_flow(small: FlowsInstall) -> None:
    """The file is read again: what the flow cleans away is not in the chunks, also if it was indexed."""
    small.client.collection("shelf")
    pages = [[f"Page text number {page}.", f"{page}"] for page in range(1, 4)]
    book = scans.pdf(pages)
    uploaded = small.client.upload("collections/shelf/documents", book, "book.pdf").json["document"]
    small.work()
    source = flow("clean: {drop: [page_numbers]}", SPLIT)
    trial = tried(small, source, uploaded["id"], chunks=3)
    assert [step["name"] for step in trial["steps"]] == ["clean", "split"]
    assert [chunk["page"] for chunk in trial["chunks"]] == [1, 2, 3]


def test_the_command_prints_each_step(small, holdfast, tmp_path, monkeypatch):
    """What it may cost, then each step with its outputs; --json has what the API has."""
    for name, value in small.environment().items():
        monkeypatch.setenv(name, value)
    (document,) = small.shelf(paragraphs("tide", 2))
    file = tmp_path / "contracts.yaml"
    file.write_text(flow(SPLIT, GIST))
    code, output, _ = holdfast("flow", "dry-run", str(file), document["id"], "--chunks", "1")
    assert code == 0
    assert "dry run of contracts@1 on Text 0: 1 paid call, at most $" in output
    assert "first 1 of 2 chunks; nothing was indexed" in output
    assert "2. enrich gist (" in output
    assert "gist of tide paragraph 0" in output
    shown = json.loads(holdfast("flow", "dry-run", str(file), document["id"], "--json")[1])
    assert len(shown["chunks"]) == 2
    assert holdfast("flow", "dry-run", str(file), "nothing")[0] == 5


@pytest.mark.parametrize("says", ["", "\x00 words", "x" * 100_000])
def test_a_model_that_answers_strangely_spoils_no_dry_run(small: FlowsInstall, says: str) -> None:
    """An empty answer is a failure of its step; what cannot be stored is replaced; a long one is shown."""
    small.author.say = lambda messages: says
    (document,) = small.shelf(paragraphs("tide", 1))
    step = tried(small, flow(SPLIT, GIST), document["id"])["steps"][1]
    assert step["failed"] == (0 if says else 1)
    assert (step["outputs"][0] is None) is (not says)
