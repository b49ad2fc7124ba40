"""Readers of a knowledge graph see one generation, whole, and nothing of a deleted document."""

import itertools
import threading
from http.client import HTTPConnection

import pytest

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.providers.local import LocalProvider
from holdfast.store.protocol import prune
from tests import commands
from tests.api.install import ApiInstall
from tests.jobs.graph_rows import GraphRows, key

READS, REPUBLICATIONS = 1_000, 20
CANARY = "zanzibarium"


@pytest.fixture
def install(database_url, tmp_path):
    """An installation without a language model."""
    installation = ApiInstall(database_url, tmp_path / "data")
    yield installation
    installation.close()


def generation(db, document, number):
    """Every node says in which round it was made; entities come and go between the rounds."""
    rows = GraphRows(db, {document: 1})
    names = [f"E{each}" for each in range(number % 3, 6)]
    for name in names:
        rows.entity(name, f"round {number}", document, mentions=number)
    for one, other in itertools.pairwise(names):
        rows.relation(one, other, f"round {number}", document)
    rows.report("All", f"round {number}", document, children=[key(name) for name in names])
    return rows


@pytest.mark.g3
def test_a_thousand_reads_during_twenty_republications_are_each_of_one_generation(install):
    """All that one answer has was made in the same round, and no relation leads to what is not there."""
    document = install.client.indexed("One passage.")["id"]
    generation(install.runtime.db, document, 0).publish()
    graphs = bootstrap.AppServices(install.runtime).graphs
    counts, faults = [0, 0], []
    ended = threading.Event()

    def read(reader):
        while not ended.is_set():
            page = graphs.entities("default", "shelf")
            rounds = {each.description for each in page.entities}
            rounds |= {f"round {each.name.mentions}" for each in page.entities}
            picture = graphs.picture("default", "shelf")
            drawn = {each.key for each in picture.entities}
            ends = {end for edge in picture.edges for end in (edge.source, edge.target)}
            if len(rounds) != 1 or not ends <= drawn or len(picture.edges) != len(drawn) - 1:
                faults.append((rounds, ends - drawn))
            near = graphs.neighbours("default", "shelf", key("E5"))
            texts = {each.relation.text for each in near.neighbours}
            if texts != {f"round {near.entity.mentions}"}:
                faults.append((texts, near.entity.mentions))
            counts[reader] += 3

    readers = [threading.Thread(target=read, args=(number,)) for number in range(len(counts))]
    for each in readers:
        each.start()
    try:
        for number in range(1, REPUBLICATIONS + 1):
            generation(install.runtime.db, document, number).publish()
            goal = number * READS // REPUBLICATIONS
            until(lambda: sum(counts) >= goal or faults, 60, "nobody reads")  # noqa: B023
    finally:
        ended.set()
        for each in readers:
            each.join()
    assert faults == []
    assert sum(counts) >= READS


def answers(install, holdfast=None):
    """Everything that shows anything of a graph, as text by name."""
    graph, question = "collections/shelf/graph", "Who owes a lantern?"
    entity, report = key(f"{CANARY} Jones"), key("Debts")
    paths = [
        "",
        f"/entities/{entity}",
        f"/entities/{entity}/neighbours",
        f"/entities/{key('Ann Holt')}/neighbours",
    ]
    paths += ["/communities", f"/communities/{report}", "?q=jones"]
    shown = {path or "list": install.client.get(graph + path).raw.decode() for path in paths}
    for mode in ("local", "global"):
        body = {"collections": ["shelf"], "q": question, "mode": mode}
        shown[f"search {mode}"] = install.client.post("search", body).raw.decode()
        reply = install.client.post("collections/shelf/ask", {"question": question, "mode": mode})
        shown[f"ask {mode}"] = reply.raw.decode()
    if holdfast is not None:
        shown["command search"] = holdfast("search", question, "-c", "shelf", "--mode", "local")[1]
        shown["command ask"] = holdfast("ask", question, "-c", "shelf", "--mode", "global")[1]
        shown["command"] = holdfast("graph", "shelf")[1]
        shown["command entity"] = holdfast("graph", "shelf", "--entity", "Ann Holt")[1]
        shown["command reports"] = holdfast("graph", "shelf", "--communities", "--json")[1]
    pages = {"page": "", "page entity": f"?entity={entity}", "page report": f"?community={report}"}
    for name, query in pages.items():
        connection = HTTPConnection("127.0.0.1", install.port, timeout=30)
        connection.request("GET", f"/collections/shelf/graph{query}", headers={"Accept": "text/html"})
        shown[name] = connection.getresponse().read().decode()
        connection.close()
    return shown


@pytest.mark.g3
def test_a_word_of_a_deleted_document_is_in_no_answer_of_the_graph(
    install, database_url, tmp_path, monkeypatch, capsys
):
    """It was in every one of them; from the commit on it is in none, before and after the next sweep."""
    secret = install.client.indexed(f"{CANARY} Jones owes Ann Holt a lantern.", title="Debts")["id"]
    other = install.client.indexed("Ann Holt keeps the lighthouse.", title="Rules")["id"]
    rows = GraphRows(install.runtime.db, {secret: 1, other: 1})
    rows.provider = LocalProvider()
    jones = rows.entity(f"{CANARY} Jones", "Owes a lantern.", secret)
    ann = rows.entity("Ann Holt", "Keeps the lighthouse.", other, mentions=3)
    rows.relation("Ann Holt", f"{CANARY} Jones", f"{CANARY} owes her a lantern.", secret)
    rows.report("Debts", f"{CANARY} Jones owes a lantern.", secret, other, children=(jones, ann))
    rows.publish()
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", database_url)
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "data"))
    holdfast = commands.caller(monkeypatch, capsys)
    assert [name for name, text in answers(install, holdfast).items() if CANARY not in text] == []
    assert install.client.call("DELETE", f"documents/{secret}").status == 204
    assert [name for name, text in answers(install, holdfast).items() if CANARY in text] == []
    prune.prune_generations(install.runtime.db)
    assert [name for name, text in answers(install).items() if CANARY in text] == []
    assert "Ann Holt" in install.client.get("collections/shelf/graph").raw.decode()
