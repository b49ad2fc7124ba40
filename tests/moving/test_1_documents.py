"""A document goes from one collection into another."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert, select

from holdfast import faults
from holdfast.store.base import journal
from holdfast.store.base.schema import budgets, heads
from tests.conformance.conftest import failing_once

TEXT = "The lighthouse keeper oils the great lamp before dusk."


def put(client, document, to, mode="move", **more):
    return client.put(f"collections/{to}/documents/{document['id']}", {"mode": mode}, **more)


def hits(client, where, words="lighthouse"):
    return [hit["document_id"] for hit in client.get(f"search?collection={where}&q={words}").json["hits"]]


def listed(client, where):
    return [each["id"] for each in client.get(f"collections/{where}/documents").json["documents"]]


@pytest.fixture
def document(client):
    """A ready document, and another collection."""
    client.collection("attic")
    return client.indexed(TEXT)


def test_a_moved_document_is_found_there_and_no_longer_here(client, document, install):
    """At once, in lists, by words and by title; nothing is indexed again."""
    assert hits(client, "shelf") == [document["id"]]
    assert hits(client, "attic") == []
    said = put(client, document, "attic")
    assert (said.status, said.json["disposition"]) == (200, "unchanged")
    assert said.json["document"]["collection"] == "attic"
    assert (hits(client, "shelf"), hits(client, "attic")) == ([], [document["id"]])
    assert (listed(client, "shelf"), listed(client, "attic")) == ([], [document["id"]])
    assert said.json["document"]["updated_at"] > document["updated_at"]
    install.work()
    assert client.get(f"documents/{document['id']}").json["published_generation"] == 1


def test_the_words_of_a_moved_document_weigh_where_it_is(client, document, install):
    """A word that is in every document of a collection weighs less; the one that left does not count."""
    client.indexed("A lighthouse on a rock.", to="attic")
    client.indexed("Something about gardens.", to="attic")

    def score():
        return client.get("search?collection=attic&q=lighthouse&k=5").json["hits"]

    before = score()
    put(client, document, "attic")
    assert len(score()) == len(before) + 1
    put(client, document, "shelf")
    assert score() == before


def test_a_move_into_other_options_makes_a_new_generation(client, document, install):
    """It is searchable there at once by the old one, until the new one is published."""
    assert client.call("PATCH", "collections/attic", {"options": {"chunk_size": 32}}).status == 200
    said = put(client, document, "attic")
    assert (said.status, said.json["disposition"]) == (202, "superseding")
    assert hits(client, "attic") == [document["id"]]
    install.work()
    now = client.get(f"documents/{document['id']}").json
    assert (now["published_generation"], now["collection"]) == (2, "attic")
    assert hits(client, "attic") == [document["id"]]


def test_a_document_that_is_being_indexed_can_be_moved(client, install):
    """Whoever works on it publishes it where it is by then, and its duplicate is not noted as refused."""
    client.collection("attic")
    response = client.text(TEXT)
    assert put(client, response, "attic").status == 200
    install.work()
    assert (hits(client, "shelf"), hits(client, "attic")) == ([], [response["id"]])
    assert client.get("bill").json["refused_duplicates"] == 0


def test_a_copy_is_a_document_of_its_own_and_costs_nothing(client, document, install):
    """The old one stays; what was embedded before is taken from the ledger."""
    said = put(client, document, "attic", "copy")
    assert said.status == 202
    created = said.json["document"]
    assert created["id"] != document["id"]
    assert (created["title"], created["digest"]) == (document["title"], document["digest"])
    install.work()
    assert (hits(client, "shelf"), hits(client, "attic")) == ([document["id"]], [created["id"]])
    cost = client.get(f"documents/{created['id']}").json["cost"]
    assert (cost["paid_calls"], cost["reused_calls"]) == (0, 1)


def test_the_same_bytes_in_the_target(client, document, install):
    """A copy answers with that document; a move is refused with its id, and moves nothing."""
    twin = client.indexed(TEXT, to="attic")
    said = put(client, document, "attic", "copy")
    assert (said.status, said.json["disposition"]) == (200, "unchanged")
    assert said.json["document"]["id"] == twin["id"]
    said = put(client, document, "attic")
    assert (said.status, said.code) == (409, "same_content")
    assert twin["id"] in said.message
    assert listed(client, "shelf") == [document["id"]]


def moves(install, document):
    """How often the journal says that the document was moved."""
    row = select(heads.c.id).where(heads.c.subject == f"document:{document['id']}", heads.c.kind == "index")
    read = install.runtime.db.read
    noted = read(lambda tx: journal.of_head(tx, tx.execute(row).scalar_one()))
    return [each["verb"] for each in noted].count("move")


def test_a_move_to_where_it_is_changes_nothing(client, document, install):
    """The second click, and a copy into its own collection."""
    assert put(client, document, "attic").status == 200
    again = put(client, document, "attic")
    assert (again.status, again.json["disposition"]) == (200, "unchanged")
    same = put(client, document, "attic", "copy")
    assert (same.status, same.json["document"]["id"]) == (200, document["id"])
    assert moves(install, document) == 1


def test_conditions_and_keys_hold_as_everywhere(client, document):
    """Another generation is 412 and moves nothing; the same key gives the same answer again."""
    said = put(client, document, "attic", headers={"If-Match": '"7"'})
    assert (said.status, said.code) == (412, "generation_moved")
    said = put(client, document, "attic", "copy", headers={"If-Match": '"7"'})
    assert (said.status, said.code) == (412, "generation_moved")
    assert listed(client, "attic") == []
    key = {"Idempotency-Key": "once", "If-Match": '"1"'}
    first, second = (put(client, document, "attic", "copy", headers=key) for _ in range(2))
    assert (first.status, second.status) == (202, 202)
    assert first.json == second.json
    assert len(listed(client, "attic")) == 1


def test_what_is_not_there_is_not_found(client, document):
    """Neither a collection nor a document, and no other mode."""
    assert put(client, document, "nowhere").code == "unknown_collection"
    assert put(client, {"id": "nothing"}, "attic").code == "unknown_document"
    assert put(client, document, "attic", "link").status == 400


def test_a_budget_that_is_used_up_stops_a_move_that_would_cost(client, document, install):
    """Other options would be paid from the new collection: 402, and it stays where it was."""
    client.call("PATCH", "collections/attic", {"options": {"chunk_size": 32}})
    used_up = {"tenant": "default", "scope": "collection:attic", "hard_limit": 0}
    install.runtime.db.write("by_hand", lambda tx: tx.execute(insert(budgets), used_up))
    said = put(client, document, "attic")
    assert (said.status, said.code) == (402, "over_budget")
    assert (listed(client, "shelf"), hits(client, "attic")) == ([document["id"]], [])


def test_jobs_on_a_document_go_with_it(client, document, install):
    """They are listed with the collection that it is in."""
    job = client.post(f"documents/{document['id']}/jobs", {"kind": "qa"}).json["job_id"]
    install.work()
    put(client, document, "attic")
    assert [each["job_id"] for each in client.get("jobs?collection=attic").json["jobs"]] == [job]
    assert client.get("jobs?collection=shelf").json["jobs"] == []


def prompt(client, where):
    body = {"sort": "prompt", "params": {"instruction": "Say what it is about."}}
    said = client.post(f"collections/{where}/actions", body)
    assert said.status == 201
    return said.json["action"]["id"]


def fired(client, where):
    return client.get(f"collections/{where}/actions").json["actions"][0]["fired"]


def test_a_ready_document_fires_the_actions_of_where_it_goes_once(client, document, install):
    """At once, and not again when it comes back in the same generation."""
    prompt(client, "attic")
    put(client, document, "attic")
    assert fired(client, "attic") == 1
    install.work()
    put(client, document, "shelf")
    put(client, document, "attic")
    assert fired(client, "attic") == 1


def test_a_document_that_is_not_ready_fires_them_when_it_is(client, install):
    """Moved or copied while it waits: the actions wait with it."""
    client.collection("attic")
    prompt(client, "attic")
    response = client.text(TEXT)
    put(client, response, "attic")
    put(client, client.text("Another text."), "attic", "copy")
    assert fired(client, "attic") == 0
    install.work()
    assert fired(client, "attic") == 2


@pytest.mark.parametrize("point", ["finish.commit", "finish.committed"])
def test_a_move_while_it_is_published_misses_no_action_and_fires_none_twice(client, install, point):
    """Whichever comes second at the head sees the other."""
    client.collection("attic")
    prompt(client, "attic")
    response = client.text(TEXT)
    with ThreadPoolExecutor(1) as mover:
        moves = []

        def meanwhile(name):
            if name == point and not moves:
                moves.append(mover.submit(put, client, response, "attic"))

        with faults.armed(meanwhile):
            install.work()
        assert moves[0].result(30).status == 200
    install.work()
    assert fired(client, "attic") == 1
    assert (hits(client, "shelf"), hits(client, "attic")) == ([], [response["id"]])


@pytest.mark.g1
def test_two_who_move_it_at_once_leave_it_in_one_place(client, document):
    """Row and head agree, whoever was second."""
    client.collection("cellar")
    with ThreadPoolExecutor(8) as crowd:
        places = ["attic", "cellar"] * 4
        said = list(crowd.map(lambda to: put(client, document, to).status, places))
    assert set(said) == {200}
    where = client.get(f"documents/{document['id']}").json["collection"]
    for each in ("shelf", "attic", "cellar"):
        assert hits(client, each) == ([document["id"]] if each == where else [])


def test_equal_documents_that_move_into_one_collection_at_once_do_not_both_arrive(client, install):
    """One is moved, the other is refused with the first one's id."""
    for name in ("a", "b", "attic"):
        client.collection(name)
    pair = [client.indexed(TEXT, to=name) for name in ("a", "b")]
    with ThreadPoolExecutor(2) as crowd:
        said = sorted(crowd.map(lambda one: put(client, one, "attic").status, pair))
    assert said == [200, 409]
    assert len(hits(client, "attic")) == 1


def test_a_move_whose_answer_was_lost_is_one_move(client, document, install):
    """The transaction runs again, finds its own entry in the journal, and fires nothing twice."""
    prompt(client, "attic")
    with failing_once("move.committed") as met:
        assert put(client, document, "attic").status == 200
    assert met.count("move.committed") == 2
    assert (moves(install, document), fired(client, "attic")) == (1, 1)
    assert hits(client, "attic") == [document["id"]]


def test_the_bytes_of_a_copy_are_its_own(client, document, install):
    """The original is deleted before the copy is indexed."""
    created = put(client, document, "attic", "copy").json["document"]
    assert client.call("DELETE", f"documents/{document['id']}").status == 204
    install.work()
    assert hits(client, "attic") == [created["id"]]
