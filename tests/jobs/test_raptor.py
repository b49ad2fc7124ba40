"""Trees of summaries: built level by level, paid for by what changed, and gone with their documents."""

import hashlib

import pytest

from holdfast.core.states import Status
from holdfast.store.base.schema import derived_nodes, derived_sources
from holdfast.store.derived import trees
from tests.jobs.install import ask, done, job, paragraphs, results


@pytest.fixture
def author(author):
    """Summaries that depend on what was read, and on nothing else."""

    def say(messages):
        passages = author.passage(messages)
        mark = hashlib.sha256(passages.encode()).hexdigest()[:8]
        return f"Summary {mark}\nThe passages {mark} say: {passages[:200]}"

    author.say = say
    return author


def nodes(install):
    """All nodes of the published tree, by key, with their rows."""

    def body(tx):
        head = trees.of_collection(tx, "default", "shelf", "raptor", 10)[-1]
        rows = tx.execute(derived_nodes.select()).all()
        return head, [row for row in rows if (row.head_id, row.generation) == (head.head_id, head.generation)]

    return install.runtime.db.read(body)


def sources(install):
    rows = install.runtime.db.read(lambda tx: tx.execute(derived_sources.select()).all())
    head, _ = nodes(install)
    return [row for row in rows if row.generation == head.generation]


def calls_of(install, **params):
    """How many calls a job paid for, and the job."""
    before = install.paid
    finished = done(install, "raptor", **params)
    assert finished["state"] == "success", finished
    return install.paid - before, finished


def test_a_tree_over_documents_and_their_collection(install):
    """Every chunk is under one node of each level, all have sources, and nothing changed costs nothing."""
    install.shelf(*(paragraphs(name, 20) for name in ("alpha", "beta", "gamma")))
    paid, finished = calls_of(install)
    head, built = nodes(install)
    assert trees.faults(install.runtime.db, head) == trees.TreeFaults(0, 0, 0)
    assert [row.parent for row in built].count(None) == 1
    assert paid == sum(row.type == "summary" for row in built)
    for level in (1, 2):
        covered = [
            (row.document, number)
            for row in sources(install)
            if row.node in {one.key for one in built if one.level == level and one.document}
            for number in range(row.first, row.last + 1)
        ]
        assert len(covered) == len(set(covered))
    assert {(row.document, row.version) for row in sources(install)} == {
        (one["id"], 1) for one in install.client.get("collections/shelf/documents").json["documents"]
    }
    assert sorted(one["levels"] for one in results(install.client, finished["job_id"])) == [2, 2, 2]
    assert calls_of(install, mode="force")[0] == 0


def test_an_edit_pays_for_what_is_above_it(install):
    """A paragraph of one of four documents is changed: its group, its root and the collection are paid."""
    install.shelf(*(paragraphs(name, 20) for name in ("alpha", "beta", "gamma", "delta")))
    first, _ = calls_of(install)
    document = install.client.get("collections/shelf/documents").json["documents"][0]
    text = paragraphs("alpha", 20).replace("alpha7word3", "changed")
    install.client.put(f"documents/{document['id']}/content", {"text": text})
    install.work()
    again, _ = calls_of(install)
    assert first >= 12
    assert 1 <= again <= 5


def test_two_jobs_at_once(small):
    """A second one is refused while the first is under way, whatever it asks for; nothing is paid twice."""
    small.shelf(paragraphs("alpha", 12))
    first = ask(small.client, "raptor")
    second = ask(small.client, "raptor", scope="document")
    assert (second.status, second.code) == (409, "duplicate")
    small.work()
    assert job(small.client, first.json["job_id"])["state"] == "success"
    assert calls_of(small, scope="document")[0] == 0


def test_scopes(small):
    """Of documents alone there are as many roots as documents; themes put chunks of several together."""
    small.shelf(*(paragraphs(name, 8) for name in ("alpha", "beta")), "A short one.")
    calls_of(small, scope="document")
    _, built = nodes(small)
    assert [row.parent for row in built].count(None) == 3
    assert {row.type for row in built if row.document and row.text == "A short one."} == {"passage"}
    calls_of(small, scope="themes")
    head, built = nodes(small)
    assert [row.parent for row in built].count(None) == 1
    assert trees.faults(small.runtime.db, head) == trees.TreeFaults(0, 0, 0)
    assert calls_of(small, scope="themes", mode="force")[0] == 0
    assert calls_of(small, scope="themes", rebuild=True)[0] == 0


def test_the_first_build_costs_a_quarter_of_a_call_for_a_chunk_and_what_was_estimated(small):
    """Of documents of about twenty chunks; the estimate is within a tenth, and exact once all is paid."""
    small.shelf(*(paragraphs(name, 19) for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")))
    foreseen = small.estimate("raptor").forecast.calls
    paid, _ = calls_of(small)
    chunks = sum(one["chunks"] for one in small.client.get("collections/shelf/documents").json["documents"])
    assert paid <= 0.25 * chunks
    assert abs(foreseen - paid) <= max(2, 0.1 * paid)
    again = small.estimate("raptor").forecast
    assert (again.calls, again.known_calls) == (0, paid)


@pytest.mark.g3
def test_a_word_of_a_deleted_document_is_in_no_node_any_more(install):
    """Withheld from the commit on, and then gone from the tables."""
    documents = install.shelf(paragraphs("canary", 6), paragraphs("other", 6))
    calls_of(install)
    canary = next(one["id"] for one in documents if one["title"] == "Text 0")
    install.client.call("DELETE", f"documents/{canary}")

    def shown(tx):
        head = trees.of_collection(tx, "default", "shelf", "raptor", 10)[0]
        reader = trees.TreeReader("default", "shelf", "raptor")
        keys = [row.key for row in tx.execute(derived_nodes.select()).all()]
        return [node.text for node in reader.named(tx, head, keys).values()]

    texts = install.runtime.db.read(shown)
    assert texts
    assert not any("canary" in text for text in texts)
    install.work()
    install.tidy()
    assert not any("canary" in row.text for row in nodes(install)[1])


def test_a_refusal_is_listed_and_the_tree_is_whole(small, author):
    """The model says nothing about one document: its groups are quoted, marked, and listed as failed."""
    usual = author.say
    author.say = lambda messages: "" if "beta" in author.passage(messages)[:9] else usual(messages)
    small.shelf(paragraphs("alpha", 8), paragraphs("beta", 8))
    _, finished = calls_of(small)
    head, built = nodes(small)
    assert trees.faults(small.runtime.db, head) == trees.TreeFaults(0, 0, 0)
    failed = [row for row in built if row.data and "error" in row.data]
    assert failed
    listed = [one for one in results(small.client, finished["job_id"]) if one["error"]]
    assert {one["error"]["code"] for one in listed} == {"bad_answer"}
    assert finished["counters"]["failed"] == len(failed)


def test_a_model_that_writes_nothing_at_all_fails_the_job(small, author):
    """There is no tree of quotes that somebody could take for summaries."""
    author.say = lambda _messages: ""
    small.shelf(paragraphs("alpha", 8))
    finished = done(small, "raptor")
    assert (finished["state"], finished["error"]["code"]) == (Status.FAILED, "bad_answer")


def test_tables_are_left_out_and_parameters_are_checked(small):
    """A document of rows has nothing to summarise; wrong parameters are refused before anything is paid."""
    rows = "\n".join(f"| {n} | {n * n} | {n**3} |" for n in range(40))
    small.shelf(rows)
    finished = done(small, "raptor")
    assert (finished["state"], finished["error"]["code"]) == (Status.FAILED, "nothing_found")
    for params in ({"group": 3}, {"summary_tokens": 99}, {"scope": "world"}, {"depth": 2}):
        assert ask(small.client, "raptor", **params).status == 400
    assert small.paid == 0


def test_a_tree_is_read_from_the_top_to_the_passages(small):
    """By the API: the collection, a document, what is below a node, and pages of one generation."""
    documents = small.shelf(*(paragraphs(name, 8) for name in ("alpha", "beta")))
    assert small.client.get("collections/shelf/tree").json == {
        "generation": None,
        "node": None,
        "nodes": [],
        "sources": [],
        "next": None,
    }
    calls_of(small)
    top = small.client.get("collections/shelf/tree").json["nodes"]
    assert [(len(one["covers"]), one["stale"], one["stand_in"]) for one in top] == [(2, False, False)]
    below = small.client.get(f"collections/shelf/tree?node={top[0]['key']}&limit=1").json
    assert below["node"]["key"] == top[0]["key"]
    rest = small.client.get(f"collections/shelf/tree?node={top[0]['key']}&cursor={below['next']}").json
    assert {one["document_id"] for one in below["nodes"] + rest["nodes"]} == {one["id"] for one in documents}
    node = small.client.get(f"documents/{documents[0]['id']}/tree").json["nodes"][0]
    while node["children"]:
        node = small.client.get(f"documents/{documents[0]['id']}/tree?node={node['key']}").json["nodes"][0]
    opened = small.client.get(f"collections/shelf/tree?node={node['key']}").json
    assert [one["document_id"] for one in opened["sources"]] == [documents[0]["id"]]
    assert len(opened["sources"][0]["passages"]) == opened["sources"][0]["last"] + 1
    assert small.client.get("collections/shelf/tree?node=abc").code == "unknown_node"
    calls_of(small, summary_tokens=200)
    stale = small.client.get(f"collections/shelf/tree?cursor={below['next']}")
    assert (stale.status, stale.code) == (409, "stale_cursor")


def test_what_is_below_a_withheld_summary_takes_its_position(small):
    """One of three documents is deleted: the roots of the others are the top of the tree."""
    documents = small.shelf(*(paragraphs(name, 4) for name in ("alpha", "beta", "gamma")))
    calls_of(small)
    small.client.call("DELETE", f"documents/{documents[0]['id']}")
    top = small.client.get("collections/shelf/tree").json["nodes"]
    assert {one["document_id"] for one in top} == {documents[1]["id"], documents[2]["id"]}


def test_summaries_are_among_the_hits_of_a_search(small):
    """With their type and the documents that they are about; not for a deleted one, nor with chunks alone."""
    documents = small.shelf(paragraphs("alpha", 8), paragraphs("beta", 8))
    calls_of(small, scope="document")
    hits = small.client.get("search?collection=shelf&q=alpha&k=50").json["hits"]
    summaries = [one for one in hits if one["type"] == "summary"]
    assert summaries[0]["covers"] == [documents[0]["id"]]
    node = small.client.get(f"collections/shelf/tree?node={summaries[0]['node']}").json["node"]
    assert node["text"] == summaries[0]["text"]
    chunks = small.client.get("search?collection=shelf&q=alpha&k=50&source=chunks").json["hits"]
    assert {one["type"] for one in chunks} == {"chunk"}
    small.client.call("DELETE", f"documents/{documents[0]['id']}")
    hits = small.client.get("search?collection=shelf&q=alpha&k=50").json["hits"]
    assert [one for one in hits if one["type"] == "summary" and "alpha" in one["text"]] == []
