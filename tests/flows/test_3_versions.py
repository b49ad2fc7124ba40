"""Versions of flows: applied for good, taken by collections, estimated and compared before."""

import json

import pytest

from tests.flows.install import GIST, TERMS, FlowsInstall, flow
from tests.jobs.install import paragraphs

SPLIT = "split: {size: 256}"
EMBED = 'embed: {text: "{gist}\\n{text}"}'


def test_a_version_never_changes(install: FlowsInstall) -> None:
    """Applying it again is no change, whatever its comments; other steps are refused with what differs."""
    assert install.client.post("flows", {"source": flow(SPLIT, GIST)}).status == 201
    assert install.client.post("flows", {"source": f"# again\n{flow(SPLIT, GIST)}"}).status == 200
    other = install.client.post("flows", {"source": flow(SPLIT, GIST.replace("40", "41"))})
    assert (other.status, other.code) == (409, "flow_exists")
    assert "enrich gist: changed: max_tokens was 40, is 41" in other.message
    assert "use version: 2" in other.message
    assert [each["id"] for each in install.client.get("flows").json["flows"]] == ["contracts@1"]
    assert install.client.get("flows/contracts").json["source"] == flow(SPLIT, GIST)


def test_a_collection_takes_only_a_flow_that_exists_here(small: FlowsInstall) -> None:
    """The option names a version; another tenant's flow, an unknown one and a bad name are refused."""
    other, small.client = small.key("other"), small.key("default")
    small.client.collection()
    assert other.post("flows", {"source": flow(SPLIT)}).status == 201
    change = {"options": {"flow": "contracts@1"}}
    small.apply(flow(SPLIT, version=3))
    response = small.client.call("PATCH", "collections/shelf", change)
    assert (response.status, response.code) == (404, "unknown_flow")
    assert "the newest version is contracts@3" in response.message
    for name in ("contracts", "contracts@x", "@1", 7):
        response = small.client.call("PATCH", "collections/shelf", {"options": {"flow": name}})
        assert (response.status, response.code) == (400, "bad_option")
    strange = small.client.post("flows", {"source": flow('python: {name: a, call: "os:system", version: 1}')})
    assert strange.json["error"]["faults"][0] | {"message": ""} == {
        "line": 4,
        "column": 29,
        "message": "",
    }
    assert "HOLDFAST_FLOW_FUNCTIONS does not name os:system" in strange.message


def test_the_estimate_is_what_the_run_pays(install: FlowsInstall) -> None:
    """Before a flow is applied its price is known by step; the option change asks for just that."""
    install.shelf(paragraphs("tide", 3), paragraphs("wave", 2))
    source = flow(SPLIT, GIST, TERMS)
    body = {"source": source, "collection": "shelf"}
    estimated = install.client.post("flows/estimate", body).json
    assert {each["name"]: each["calls"] for each in estimated["steps"]} == {"gist": 5, "terms": 2, "embed": 0}
    assert (estimated["estimate"]["calls"], estimated["estimate"]["reused_calls"]) == (7, 5)
    before = install.paid
    install.apply(source, to="shelf", estimate=estimated["estimate"]["fingerprint"])
    install.work()
    assert install.paid - before == 7
    again = install.client.post("flows/estimate", body).json["estimate"]
    assert (again["documents"], again["calls"], again["cost"]) == (0, 0, 0.0)
    embedded = flow(SPLIT, GIST, TERMS, EMBED, version=2)
    estimated = install.client.post("flows/estimate", body | {"source": embedded}).json
    # The answers are in the ledger, so that what would be embedded is known exactly.
    assert {each["name"]: each["calls"] for each in estimated["steps"]} == {"gist": 0, "terms": 0, "embed": 5}
    assert estimated["estimate"]["exact"] is True


def test_a_diff_says_what_becomes_of_each_step(small: FlowsInstall) -> None:
    """A changed prompt touches the steps that read its field, and no others."""
    small.shelf(paragraphs("tide", 2))
    small.apply(flow(SPLIT, GIST, TERMS, EMBED), to="shelf")
    small.work()
    changed = flow(SPLIT, GIST.replace("a sentence", "a word"), TERMS, EMBED, "publish: {}", version=2)
    diff = small.client.post("flows/diff", {"source": changed, "collection": "shelf"}).json
    assert diff["against"] == "contracts@1"
    assert {each["name"]: each["change"] for each in diff["changes"]} == {
        "split": "same",
        "gist": "changed",
        "terms": "same",
        "embed": "reads changed",
        "publish": "new",
    }
    assert {each["name"]: each["calls"] for each in diff["steps"]} == {"gist": 2, "terms": 0, "embed": 2}


def test_a_budget_stops_a_flow_and_lets_it_go_on(install: FlowsInstall) -> None:
    """A step waits for the budget as embedding does; raised, the run goes on and pays nothing twice."""
    install.shelf(paragraphs("tide", 3))
    install.client.put("budgets", {"scope": "tenant", "hard": 0.00002})
    install.apply(flow(SPLIT, GIST), to="shelf")
    install.work()
    before = install.charged().get("chat/completions", 0)
    assert before < 3
    install.client.put("budgets", {"scope": "tenant", "hard": 10})
    install.work()
    assert install.charged()["chat/completions"] == 3
    assert install.meter.totals().excess == 0


def test_commands_check_apply_and_list(small, holdfast, tmp_path, monkeypatch):
    """`flow check` prints each fault at its place; `apply` shows the price and indexes the collection."""
    for name, value in small.environment().items():
        monkeypatch.setenv(name, value)
    small.shelf(paragraphs("tide", 2))
    file = tmp_path / "contracts.yaml"
    file.write_text(flow("splt: {}", "extract: {name: terms, schema: terms.json}"))
    (tmp_path / "terms.json").write_text('{"type": "object", "properties": {"topic": {"type": "string"}}}')
    code, output, _ = holdfast("flow", "check", str(file))
    assert code == 2
    assert output.startswith(f"{file}:4:5: there is no step 'splt'")
    file.write_text(flow(SPLIT, "extract: {name: terms, schema: terms.json}"))
    assert "contracts@1 is valid: split, extract terms" in holdfast("flow", "check", str(file))[1]
    code, output, _ = holdfast("flow", "diff", str(file), "-c", "shelf")
    assert "extract terms: new" in output
    code, output, _ = holdfast("flow", "apply", str(file), "-c", "shelf", "--yes")
    assert (code, "indexing 1 document" in output) == (0, True)
    listed = json.loads(holdfast("flow", "list", "--json")[1])
    assert listed == [{"id": "contracts@1", "flow": "contracts", "version": 1, "collections": ["shelf"]}]
    assert holdfast("flow", "show", "contracts")[1] == file.read_text()
    file.write_text(flow(SPLIT, GIST))
    code, _, complaint = holdfast("flow", "apply", str(file))
    assert (code, "removed" in complaint) == (3, True)
    assert holdfast("flow", "show", "nothing")[0] == 5


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"flow: a\nversion: 1\nsteps: [{split: {}}] # caf\xe9\n", "is not UTF-8 text: byte 46 (line 3)"),
        ("flow: a\n".encode("utf-16"), "is not UTF-8 text"),
        (b"x" * 300_000, "is too large"),
    ],
    ids=["Latin-1", "UTF-16", "large"],
)
def test_a_file_that_is_no_text_is_refused_in_words(holdfast, tmp_path, monkeypatch, content, says):
    """Another encoding and a file that is far too large; a mark of UTF-8 at the beginning is no fault."""
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "data"))
    assert holdfast("migrate")[0] == 0
    file = tmp_path / "contracts.yaml"
    file.write_bytes(content)
    code, _, complaint = holdfast("flow", "check", str(file))
    assert (code, says in complaint) == (2, True), complaint
    file.write_bytes(b"\xef\xbb\xbf" + flow(SPLIT).encode())
    assert holdfast("flow", "check", str(file))[0] == 0
    assert "cannot be read: " in holdfast("flow", "check", str(tmp_path))[2]
    assert "is too large" in holdfast("flow", "check", "/dev/zero")[2]
