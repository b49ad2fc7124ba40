"""Graphs of entities: extracted by windows, described, in communities with reports; paid by what changed."""

import hashlib
import json

import pytest

from holdfast.core.states import Status
from holdfast.store.base.schema import derived_edges, derived_nodes, derived_sources, derived_state
from holdfast.store.derived import trees
from tests.jobs import graph_author
from tests.jobs.graph_author import story
from tests.jobs.install import ask, done, results


@pytest.fixture
def author(author):
    author.say = graph_author.answer
    return author


def rows(install, table=derived_nodes):
    """The rows of the published graph, and its head."""

    def body(tx):
        head = trees.of_collection(tx, "default", "shelf", "graph", 10)[-1]
        return head, [
            row
            for row in tx.execute(table.select()).all()
            if (row.head_id, row.generation) == (head.head_id, head.generation)
        ]

    return install.runtime.db.read(body)


def build(install, **params):
    """How many calls a job paid for, and the job."""
    before = install.paid
    finished = done(install, "graph", **params)
    assert finished["state"] == "success", finished
    return install.paid - before, finished


def by_type(install, node_type):
    return {row.key: row for row in rows(install)[1] if row.type == node_type}


def test_a_graph_of_entities_relations_and_reports(install):
    """Each entity is in one community of level 1, all have sources and positions, no edge dangles."""
    install.shelf(*(story(name, 40, seed) for seed, name in enumerate(("alpha", "beta", "gamma"))))
    paid, finished = build(install)
    head, nodes = rows(install)
    assert trees.faults(install.runtime.db, head) == trees.TreeFaults(0, 0, 0)
    entities, relations, reports = (by_type(install, each) for each in ("entity", "relation", "report"))
    assert {*graph_author.PEOPLE, *graph_author.PLACES} <= {row.title for row in entities.values()}
    assert {row.parent for row in entities.values()} == {
        row.key for row in reports.values() if row.level == 1
    }
    assert all(row.parent is None or reports[row.parent].level > row.level for row in reports.values())
    edges = rows(install, derived_edges)[1]
    assert {edge.data["node"] for edge in edges} == set(relations)
    assert {end for edge in edges for end in (edge.source, edge.target)} <= set(entities)
    placed = [row.data for row in nodes if row.type != "relation"]
    assert all(0 <= data["x"] <= 1 and 0 <= data["y"] <= 1 and not data["stand_in"] for data in placed)
    members = {row.key for row in nodes if row.parent}
    assert all(set(one["cites"]) <= members for row in reports.values() for one in row.data["findings"])
    assert {row.level for row in rows(install, derived_state)[1]} <= set(range(1, 12))
    assert len(results(install.client, finished["job_id"])) == 3
    assert paid == install.meter.totals().distinct_inputs


def test_the_same_graph_costs_nothing_and_has_the_same_keys_everywhere(install):
    """Nothing changed, or the order of documents: no call is paid for, and every key is what it was."""
    texts = [story(name, 24, seed) for seed, name in enumerate(("alpha", "beta", "gamma"))]
    install.shelf(*texts)
    build(install)
    keys = sorted(row.key for row in rows(install)[1])
    assert build(install, mode="force")[0] == 0
    assert sorted(row.key for row in rows(install)[1]) == keys
    for document in install.client.get("collections/shelf/documents").json["documents"]:
        install.client.call("DELETE", f"documents/{document['id']}")
    install.work()
    install.shelf(*reversed(texts))
    assert build(install)[0] == 0
    assert sorted(row.key for row in rows(install)[1]) == keys
    # As on the other database: the keys hold what the documents say and nothing else.
    assert hashlib.sha256("".join(keys).encode()).hexdigest()[:12] == "00e3a450aaeb"


def test_an_edit_pays_for_its_window_and_what_follows_from_it(small):
    """A sentence of one of four documents is changed: most of the graph is not paid for again."""
    documents = small.shelf(*(story(name, 40, seed) for seed, name in enumerate(("a", "b", "c", "d"))))
    first, _ = build(small)
    text = story("a", 40, 0).replace("ahkx", "changed")
    small.client.put(f"documents/{documents[0]['id']}/content", {"text": text})
    small.work()
    again, _ = build(small)
    assert 1 <= again <= first // 2


def test_names_that_mean_the_same_are_one_entity(small, author):
    """Case and plural by rule; what differs more by the model, which is asked once for a block."""

    def say(messages):
        if str(messages[0]["content"]).startswith("Which of these names"):
            return {"same": [["Ann", "Ann Archer", "Nobody"], "nonsense", [7]]}
        return {
            "entities": [
                {"name": "Ann", "type": "Person", "description": "Ann is a keeper."},
                {"name": "Ann Archer", "type": "person", "description": "She has keys."},
                {"name": "the ANN archer", "type": "ship"},
                {"name": "Harbours", "type": "place"},
                {"name": "harbour", "type": "place", "description": "It has a wall."},
            ],
            "relations": [
                {"source": "Ann", "target": "Harbour", "relation": "keeps", "description": "Ann keeps it."},
                {"source": "Ann", "target": "Ann Archer", "relation": "is"},
            ],
        }

    usual = author.say
    author.say = lambda messages: (
        usual(messages) if str(messages[0]["content"]).startswith("Below") else say(messages)
    )
    small.shelf("Ann Archer keeps the harbour and all of its keys, every day of the year.")
    build(small)
    entities = sorted(by_type(small, "entity").values(), key=lambda row: row.title)
    assert [(row.title, row.data["kind"], row.data["names"]) for row in entities] == [
        ("Ann", "person", ["Ann Archer", "the ANN archer"]),
        ("Harbours", "place", ["harbour"]),
    ]
    assert entities[0].text == "Ann is a keeper. She has keys."
    (relation,) = by_type(small, "relation").values()
    assert (relation.title, relation.data["relation"], relation.data["weight"]) == (
        "Ann \u2013 Harbours",
        "keeps",
        1,
    )


def test_a_cut_answer_keeps_its_whole_items_and_nonsense_is_repaired_once(small, author):
    """The repair is one more paid call; a window that cannot be read even then is listed."""
    whole = (
        '{"entities": [{"name": "Ann Archer", "type": "person", "description": "A keeper."}, {"name": "Port'
    )
    calls = []

    def say(messages):
        calls.append(messages)
        text = str(messages[1]["content"])
        if "alpha" in text:
            return whole
        if "beta" in text and len(messages) > 2:
            return {"entities": [{"name": "Port Alder", "type": "place"}], "relations": "none"}
        return "I would rather not."

    author.say = say
    small.shelf(*(f"The {name} text is about the keeper of the port." for name in ("alpha", "beta", "gamma")))
    finished = done(small, "graph")
    assert finished["state"] == "success", finished
    assert sorted(row.title for row in by_type(small, "entity").values()) == ["Ann Archer", "Port Alder"]
    listed = [one for one in results(small.client, finished["job_id"]) if one["error"]]
    assert [one["error"]["code"] for one in listed] == ["bad_answer"]
    assert finished["counters"]["failed"] == 1
    assert len(calls) == 5


def test_a_model_that_finds_nothing_fails_the_job(small, author):
    """With what it said, or that there is nothing to be found; a wrong parameter is refused before."""
    author.say = lambda _messages: "no"
    small.shelf("One.")
    finished = done(small, "graph")
    assert (finished["state"], finished["error"]["code"]) == (Status.FAILED, "bad_answer")
    author.say = lambda _messages: {"entities": [], "relations": []}
    small.shelf("Two is another word, of another document.")
    finished = done(small, "graph", notes="all of them")
    assert (finished["state"], finished["error"]["code"]) == (Status.FAILED, "nothing_found")
    for params in ({"gleanings": 3}, {"entity_types": []}, {"entity_types": ["!"]}, {"depth": 2}):
        assert ask(small.client, "graph", **params).status == 400


def test_gleanings_add_what_was_missed(small, author):
    """One more call for a window; what it says again is not there twice."""
    first = {"entities": [{"name": "Ann Archer", "type": "person"}], "relations": []}
    more = {"entities": [{"name": "ann archer"}, {"name": "Ben Baker", "type": "person"}], "relations": []}
    author.say = lambda messages: more if len(messages) > 2 else first
    small.shelf("Ann Archer is here, and Ben Baker is there, in a very short text.")
    paid, _ = build(small, gleanings=1, merge_names=False)
    assert paid == 2
    assert sorted(row.title for row in by_type(small, "entity").values()) == ["Ann Archer", "Ben Baker"]


def test_a_refused_report_is_quoted_and_listed(small, author):
    """The model writes no report at all: the graph is whole, marked, and every refusal is a result."""
    usual = author.say
    author.say = lambda messages: (
        "" if str(messages[0]["content"]).startswith("Below are things") else usual(messages)
    )
    small.shelf(story("alpha", 24), story("beta", 24, 3))
    _, finished = build(small)
    reports = [row for row in by_type(small, "report").values() if row.data["size"] > 1]
    assert reports
    assert {row.data["error"]["code"] for row in reports} == {"bad_answer"}
    listed = [one for one in results(small.client, finished["job_id"]) if one["error"]]
    assert len(listed) == finished["counters"]["failed"] == len(reports)
    assert all(row.text for row in reports)


@pytest.mark.g3
def test_a_deleted_document_is_in_no_node_any_more(install):
    """What windows said of it is gone with the run, and its nodes when its deletion is pruned."""
    documents = install.shelf("The keeper Canary Bird met Ann Archer at Port Alder.", story("beta", 12))
    build(install)
    canary = next(one["id"] for one in documents if one["title"] == "Text 0")
    install.client.call("DELETE", f"documents/{canary}")
    install.work()
    install.tidy()
    shown = [json.dumps([row.title, row.text, row.data]) for row in rows(install)[1]]
    shown += [json.dumps(row.data) for row in rows(install, derived_state)[1]]
    assert shown
    assert not any("Canary" in each for each in shown)
    assert not any(row.document == canary for row in rows(install, derived_sources)[1])


def test_the_estimate_holds(small):
    """A range before anything is known, of which windows are certain; exact once all is paid."""
    small.shelf(*(story(name, 40, seed) for seed, name in enumerate(("a", "b", "c", "d"))))
    before = small.estimate("graph")
    paid, _ = build(small)
    least, most = before.calls_between
    assert least <= paid <= most
    assert least < before.forecast.calls < most
    after = small.estimate("graph")
    assert (after.forecast.calls, after.forecast.known_calls) == (0, paid)
    assert after.calls_between is None
