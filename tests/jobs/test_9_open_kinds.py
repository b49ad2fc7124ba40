"""Kinds that Holdfast has never heard of: every face takes what the registry has."""

import json

import pytest

from holdfast import settings
from holdfast.engine.models import Model
from holdfast.kinds import extract, qa
from tests.api.install import ApiInstall
from tests.jobs.install import ask, job, results

TEXT = "Anna and Ada saw a banana.\n\nAn ape ate it."


class OwnKindsInstall(ApiInstall):
    """An installation with the kinds of a user."""

    def described(self):
        return self.built.app.openapi()

    def shelf(self, *texts):
        documents = [self.client.text(text, to="shelf") for text in texts]
        self.work()
        return documents


@pytest.fixture
def own(database_url, tmp_path):
    install = OwnKindsInstall(database_url, tmp_path / "data", kinds="tests.jobs.own_kinds:KINDS")
    yield install
    install.close()


def done(install, kind, **params):
    said = ask(install.client, kind, **params)
    assert said.status == 202, said.raw
    install.work()
    return job(install.client, said.json["job_id"])


def test_what_is_frozen_and_what_is_paid_for_is_as_it_was(own):
    """The options of a job and the content keys of its calls: else everybody would pay again."""
    own.shelf(TEXT)
    qa_job = ask(own.client, "qa", notes=" Short. ").json["job"]
    assert qa_job["params"] == {"documents": None, "notes": "Short.", "limit": 100, "per_chunk": 3}
    model = Model("openai", "gpt-4o-mini")
    text, schema = "The ferry leaves at noon.", {"type": "object", "properties": {"name": {"type": "string"}}}
    call = qa._call(model, qa.instruction(3, "Short."), text, 3)
    assert call.key("default") == "187b7f23f30a9cccbf533eea563a35399caac768f89b3353977ab45c850c930a"
    call = extract.call_for(model, text, schema, "")
    assert call.key("default") == "4c68f12508a89ce4e0e9edcc8a24fce3ce041f492713a1be118a5076c19d94c9"


def test_a_kind_of_a_user_is_requested_as_any_other(own):
    """Its results are read as JSON and as a table; the same again is unchanged; it can be filtered by."""
    (book,) = own.shelf(TEXT)
    finished = done(own, "letters", letter="a")
    assert (finished["state"], finished["results"], finished["params"]["upper"]) == ("success", 1, False)
    (result,) = results(own.client, finished["job_id"])
    assert (result["letter"], result["count"]) == ("a", TEXT.count("a"))
    assert (result["document_id"], result["error"]) == (book["id"], None)
    table = own.client.get(f"jobs/{finished['job_id']}/results?format=csv").raw.decode().splitlines()
    assert table[0] == "letter,count,document_id,generation,page,chunk,error"
    assert ask(own.client, "letters", letter="a").json["disposition"] == "unchanged"
    assert [one["kind"] for one in own.client.get("jobs?kind=letters").json["jobs"]] == ["letters"]
    assert own.client.get("jobs?kind=qa").json["jobs"] == []


WRONG = [
    ("letters", {}, "letter"),
    ("letters", {"letter": "ab"}, "letter"),
    ("letters", {"letter": 7}, "letter"),
    ("letters", {"letter": "a", "upper": "perhaps"}, "upper"),
    ("letters", {"letter": "a", "size": 1}, "size"),
    ("letters", {"letter": "\x00"}, "letter"),
    ("words", {"least": 10}, "least"),
    ("words", {"documents": "all"}, "documents"),
    ("note", {"note": ["a"]}, "note"),
    ("note", {"documents": ["1"]}, "documents"),
    ("qa", {"limit": 0}, "limit"),
]


@pytest.mark.g6
def test_a_wrong_parameter_is_named_and_an_unknown_kind_is_told_what_there_is(own):
    """Before anything is queued."""
    own.shelf(TEXT)
    for kind, params, name in WRONG:
        said = ask(own.client, kind, **params)
        assert (said.status, said.code, name in said.message) == (400, "bad_params", True), said.message
    said = ask(own.client, "sonnets")
    assert (said.status, said.code) == (400, "unknown_kind")
    assert "known are: extract, graph, letters, mindmap, note, qa, raptor, words" in said.message
    assert own.client.get("jobs?kind=sonnets").code == "unknown_kind"
    assert own.client.get("jobs").json["jobs"] == []


def test_kinds_and_their_parameters_are_in_the_description(own):
    """`GET /kinds` and the OpenAPI say of each kind what it takes and what it leaves."""
    own.shelf(TEXT)
    listed = own.client.get("kinds").json
    kinds = {one["kind"]: one for one in listed["jobs"]}
    assert sorted(kinds) == ["extract", "graph", "letters", "mindmap", "note", "qa", "raptor", "words"]
    assert kinds["words"]["params"]["properties"]["least"]["maximum"] == 9
    assert (kinds["letters"]["estimates"], kinds["words"]["estimates"]) == (False, True)
    assert {"letters", "qa", "prompt", "webhook"} <= {one["sort"] for one in listed["actions"]}
    schemas = own.client.get("openapi.json").json["components"]["schemas"]
    assert schemas["NewJob"]["properties"]["kind"]["enum"] == [
        *("qa", "extract", "raptor", "graph", "mindmap", "letters", "words", "note")
    ]
    assert schemas["letters_result"]["properties"]["count"] == {"type": "integer"}
    assert "letters" in schemas["NewAction"]["properties"]["sort"]["enum"]


def test_a_kind_without_an_estimate_says_so(own):
    """One that pays for nothing says that instead."""
    own.shelf(TEXT)
    body = {"collection": "shelf", "kind": "letters", "params": {"letter": "a"}}
    assert own.client.post("estimate", body).code == "no_estimate"
    estimate = own.client.post("estimate", {"collection": "shelf", "kind": "words"}).json
    assert (estimate["calls"], estimate["documents"], estimate["cost"]) == (0, 1, 0)


def test_a_kind_that_reads_no_documents_needs_none(own):
    """It runs on a collection that has nothing ready, with its parameters frozen."""
    own.client.collection("shelf")
    finished = done(own, "note", note="hello")
    assert (finished["state"], finished["params"]) == ("success", {"note": "hello"})


def test_a_job_outlives_its_package(own, database_url, tmp_path):
    """Where the kind is not installed any more its jobs are listed, and their results read, all the same."""
    own.shelf(TEXT)
    finished = done(own, "letters", letter="a")
    plain = ApiInstall(database_url, tmp_path / "data")
    try:
        (listed,) = plain.client.get("jobs").json["jobs"]
        assert (listed["job_id"], listed["kind"]) == (finished["job_id"], "letters")
        assert listed["state"] == "success"
        (result,) = results(plain.client, finished["job_id"])
        assert result["count"] == TEXT.count("a")
        assert plain.client.get(f"jobs/{finished['job_id']}/results?format=csv").status == 200
    finally:
        plain.close()


def test_a_kind_of_a_user_is_an_action_too(own):
    """It runs on each document that becomes ready, with parameters checked and frozen."""
    own.client.collection("shelf")
    action = {"sort": "letters", "params": {"letter": "a"}}
    wrong = own.client.post("collections/shelf/actions", {**action, "params": {}})
    assert (wrong.code, "letter" in wrong.message) == ("bad_params", True)
    added = own.client.post("collections/shelf/actions", action).json["action"]
    assert added["params"] == {"letter": "a", "upper": False}
    (book,) = own.shelf(TEXT)
    (follow_up,) = own.client.get(f"documents/{book['id']}/actions").json["follow_ups"]
    assert follow_up["result"] == {"results": [{"letter": "a", "count": TEXT.count("a")}]}


def test_search_looks_where_a_kind_says(own):
    """Its hits stand among the chunks; what is not in the collection is dropped; a failure is said."""
    own.shelf(TEXT)
    done(own, "letters", letter="a")
    both = own.client.get("search?collection=shelf&q=banana").json
    assert [hit["source"] for hit in both["hits"]] == ["chunks", "letters"]
    assert both["legs"][-1] == "letters"
    alone = own.client.get("search?collection=shelf&q=banana&source=letters").json["hits"]
    assert [(hit["text"], hit["source"]) for hit in alone] == [("a: banana", "letters")]
    chunks = own.client.get("search?collection=shelf&q=banana&source=chunks").json
    assert [hit["source"] for hit in chunks["hits"]] == ["chunks"]
    failed = own.client.get("search?collection=shelf&q=banana+boom").json
    assert [notice["code"] for notice in failed["notices"]] == ["source_failed"]
    assert [hit["source"] for hit in failed["hits"]] == ["chunks"]
    assert own.client.get("search?collection=shelf&q=a&source=nowhere").code == "unknown_source"


@pytest.mark.g3
def test_a_source_shows_what_the_latest_job_published_and_no_deleted_document(own):
    """A job that is superseded by another one takes its results out of search."""
    first, _ = own.shelf(TEXT, "A second text with an a.")
    done(own, "letters", letter="a")
    done(own, "letters", letter="n")
    find = "search?collection=shelf&q=banana&source=letters"
    assert {hit["text"] for hit in own.client.get(find).json["hits"]} == {"n: banana"}
    own.client.call("DELETE", f"documents/{first['id']}")
    assert first["id"] not in {hit["document_id"] for hit in own.client.get(find).json["hits"]}


def test_a_kind_cannot_come_from_a_file_in_the_current_folder(tmp_path, monkeypatch):
    """Neither named nor switched on by a `holdfast.toml` that merely lies there."""
    monkeypatch.chdir(tmp_path)
    for line in ('kinds = "evil:KIND"', "installed_kinds = true"):
        (tmp_path / "holdfast.toml").write_text(line)
        with pytest.raises(settings.SettingsError, match=line.partition(" ")[0]):
            settings.load()


def test_results_are_json_whatever_a_kind_leaves(own):
    """All of them in one download, as page by page."""
    own.shelf(TEXT, "Two words.")
    finished = done(own, "words", least=4)
    whole = json.loads(own.client.get(f"jobs/{finished['job_id']}/results?all=true").raw)
    assert whole["results"] == results(own.client, finished["job_id"])
    assert {tuple(one["words"]) for one in whole["results"]} == {
        ("Anna", "banana."),
        ("words.",),
    }
