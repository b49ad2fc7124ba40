"""Search and answers by the knowledge graph: local by entities and relations, global by reports."""

import pytest

from holdfast.providers.local import LocalProvider
from tests import commands
from tests.api.install import ApiInstall
from tests.jobs.graph_rows import GraphRows, key

TEXTS = {
    "crew": "Ben Carr is the captain of the Petrel since the spring of 1901.",
    "yard": "The Petrel was built by the yard of Marten & Sons in Lowford.",
    "bread": "Bread is baked in the village on Tuesdays and on Fridays.",
}
HOP = "Which yard built the ship of Ben Carr?"


@pytest.fixture
def harbour(database_url, tmp_path):
    """Three documents without a language model, and their ids by name."""
    installation = ApiInstall(database_url, tmp_path / "data")
    items = {name: installation.client.text(text, title=name.title()) for name, text in TEXTS.items()}
    installation.work()
    yield installation, {name: each["id"] for name, each in items.items()}
    installation.close()


def draw(install, documents):
    rows = GraphRows(install.runtime.db, dict.fromkeys(documents.values(), 1))
    rows.provider = LocalProvider()
    crew, yard, bread = documents["crew"], documents["yard"], documents["bread"]
    ben = rows.entity("Ben Carr", "Captain of the Petrel.", crew, mentions=2)
    ship = rows.entity("Petrel", "A ship.", crew, yard, mentions=3, kind="ship")
    marten = rows.entity("Marten & Sons", "A yard in Lowford.", yard, kind="organisation")
    loaf = rows.entity("Bread", "Baked in the village.", bread, kind="thing")
    rows.relation("Ben Carr", "Petrel", "He is her captain.", crew, weight=2)
    built = rows.relation("Marten & Sons", "Petrel", "They built the ship.", yard, weight=2)
    findings = [{"text": "Marten & Sons built the Petrel.", "cites": [built]}]
    ships = "Ships of the harbour and who built and sailed them. The Petrel was built in Lowford."
    rows.report(
        "Ships and their builders", ships, crew, yard, children=(ben, ship, marten), findings=findings
    )
    rows.report("Village life", "Bread is baked twice a week.", bread, children=(loaf,))
    return rows


def test_local_search_follows_entities_and_relations_to_passages(harbour):
    """A question about what is two passages away is answered by both, and each says how it was reached."""
    install, documents = harbour
    draw(install, documents).publish()
    body = {"collections": ["shelf"], "q": HOP, "mode": "local"}
    hits = install.client.post("search", body).json["hits"]
    assert {hit["document_id"] for hit in hits[:2]} == {documents["crew"], documents["yard"]}
    assert all(hit["document_id"] != documents["bread"] for hit in hits)
    by_document = {hit["document_id"]: hit for hit in hits}
    steps = by_document[documents["yard"]]["path"]
    assert [each["type"] for each in steps] == ["entity", "relation", "entity", "relation"]
    assert [steps[0]["title"], steps[2]["title"]] == ["Ben Carr", "Petrel"]
    assert by_document[documents["yard"]]["chunk"] == f"{documents['yard']}@0.0"
    path = f"search?collection=shelf&q=Bread&mode=local&document={documents['crew']}"
    assert install.client.get(path).json["hits"] == []


def test_global_search_finds_reports_and_their_passages(harbour):
    """The report that fits, with the passages that it rests on."""
    install, documents = harbour
    draw(install, documents).publish()
    hits = install.client.get("search?collection=shelf&q=who%20built%20ships&mode=global").json["hits"]
    assert (hits[0]["type"], hits[0]["title"]) == ("report", "Ships and their builders")
    assert hits[0]["node"] == key("Ships and their builders")
    assert TEXTS["yard"] in [each["text"] for each in hits[0]["passages"]]
    assert set(hits[0]["covers"]) == {documents["crew"], documents["yard"]}


def test_a_question_about_the_whole_gets_the_reports_of_the_highest_level(harbour):
    """It has no word of any report; one of random letters gets nothing, and no model is asked."""
    install, documents = harbour
    rows = draw(install, documents)
    rows.report("The harbour", "A harbour and its village.", *documents.values(), level=2)
    rows.publish()
    body = {"question": "What are the main topics of these documents?", "mode": "global"}
    whole = install.client.post("collections/shelf/ask", body).json
    assert "The harbour" in [each["title"] for each in whole["sources"]]
    hits = install.client.get("search?collection=shelf&q=what%20is%20it%20about&mode=global").json["hits"]
    assert hits[0]["title"] == "The harbour"
    body = {"question": "xqzvw kkkrt pfffg", "mode": "global"}
    assert install.client.post("collections/shelf/ask", body).json["reason"] == "nothing_found"


def test_an_answer_over_reports_cites_through_to_passages(harbour):
    """The stand-in quotes a report; its source names the report and the passage to open."""
    install, documents = harbour
    draw(install, documents).publish()
    body = {"question": "Which ships were built in Lowford?", "mode": "global"}
    answer = install.client.post("collections/shelf/ask", body).json
    assert not answer["refused"]
    source = answer["sources"][answer["sentences"][0]["cites"][0] - 1]
    assert (source["type"], source["node"]) == ("report", key("Ships and their builders"))
    assert source["chunk"] in {f"{documents[name]}@0.0" for name in ("crew", "yard")}
    assert {each["document_id"] for each in source["passages"]} == {documents["crew"], documents["yard"]}
    local = install.client.post("collections/shelf/ask", {"question": HOP, "mode": "local"}).json
    assert {each["document_id"] for each in local["sources"]} >= {documents["yard"]}


def test_without_a_graph_the_error_names_the_job(harbour):
    """Of one collection it is an error; among several, a notice."""
    install, documents = harbour
    said = install.client.get("search?collection=shelf&q=x&mode=local")
    assert (said.status, said.code) == (409, "no_graph")
    assert "holdfast jobs graph --collection shelf" in said.message
    assert (
        install.client.post("collections/shelf/ask", {"question": "x", "mode": "global"}).code == "no_graph"
    )
    draw(install, documents).publish()
    install.client.collection("bare")
    both = install.client.get("search?collection=bare&collection=shelf&q=Ben%20Carr&mode=local").json
    assert both["hits"]
    assert [each["code"] for each in both["notices"]] == ["no_graph"]
    like = f"search?collection=shelf&like={documents['crew']}&mode=local"
    assert install.client.get(like).code == "bad_request"


def test_the_commands_have_the_modes(harbour, database_url, tmp_path, monkeypatch, capsys):
    """`holdfast search --mode local` shows the way, `holdfast ask --mode global` the passages."""
    install, documents = harbour
    draw(install, documents).publish()
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", database_url)
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "data"))
    holdfast = commands.caller(monkeypatch, capsys)
    _, listed, _ = holdfast("search", HOP, "-c", "shelf", "--mode", "local")
    assert "→ passage" in listed
    _, answer, _ = holdfast("ask", "Which ships were built in Lowford?", "-c", "shelf", "--mode", "global")
    assert "[1] Ships and their builders" in answer
    assert f"{documents['yard']}@0.0" in answer
