"""A request about a whole collection is short, whatever its size: the sweep goes on where it stopped."""

import pytest
from sqlalchemy import insert, select, update

from holdfast.chaos.waiting import until
from holdfast.service import bulk_updates as service
from holdfast.service import collections
from holdfast.store.base.schema import budgets, documents, heads
from holdfast.store.base.schema import rounds as table
from holdfast.store.library import bulk_updates

COUNT = 5


@pytest.fixture
def shelf(install, client, monkeypatch):
    """A collection that is larger than what is done at once, or at a turn."""
    monkeypatch.setattr(service, "AT_ONCE", 2)
    monkeypatch.setattr(service, "PER_TURN", dict.fromkeys(service.PER_TURN, 2))
    items = [client.text(f"Copper kettle number {number}.") for number in range(COUNT)]
    install.work()
    return items


def turn(install):
    """A turn of the sweep, in a worker's process."""
    (duty,) = [duty for duty in install.worker.engine.parts.duties if duty.name == "rounds"]
    return duty.run()


def under_way(install):
    return install.runtime.db.read(lambda tx: tx.execute(select(table)).all())


def live(install):
    """How many documents are at work or visible."""
    result = select(heads.c.id).where(heads.c.kind == "index", ~heads.c.deleted)
    return len(install.runtime.db.read(lambda tx: tx.execute(result).all()))


def generations(client):
    return [each["index_generation"] for each in client.get("collections/shelf/documents").json["documents"]]


def test_new_options_ask_for_some_documents_now_and_for_the_rest_later(install, client, shelf):
    """The answer says how many follow; each turn asks for some more, and the last ends the round."""
    said = client.call("PATCH", "collections/shelf", {"options": {"chunk_size": 32}})
    assert (said.json["requested"], said.json["to_follow"]) == (2, 3)
    assert generations(client) == [2, 2, 1, 1, 1]
    assert (turn(install), turn(install), turn(install)) == (2, 1, 0)
    assert generations(client) == [2] * COUNT
    assert under_way(install) == []


def test_a_second_change_begins_the_round_anew(install, client, shelf):
    """Whoever carries the old one on moves nothing of the new one; all documents have the last options."""
    client.call("PATCH", "collections/shelf", {"options": {"chunk_size": 32}})
    (old,) = bulk_updates.due(install.runtime.db, 5)
    client.call("PATCH", "collections/shelf", {"options": {"chunk_size": 64}})
    bulk_updates.step(install.runtime.db, old, "zzz")
    bulk_updates.end(install.runtime.db, old)
    while under_way(install):
        turn(install)
    install.work()
    assert client.call("PATCH", "collections/shelf", {"options": {"chunk_size": 64}}).json["requested"] == 0
    while under_way(install):
        assert turn(install) == 0


def test_a_used_up_budget_makes_the_round_wait_and_not_forget(install, client, shelf):
    """Nothing is left out: it goes on with the same document once there is money."""
    used_up = {"tenant": "default", "scope": "collection:shelf", "hard_limit": 0}
    install.runtime.db.write("by_hand", lambda tx: tx.execute(insert(budgets), used_up))
    said = client.call("PATCH", "collections/shelf", {"options": {"chunk_size": 32}})
    assert (said.json["requested"], said.json["to_follow"]) == (0, COUNT)
    assert turn(install) == 0
    install.runtime.db.write("by_hand", lambda tx: tx.execute(update(budgets).values(hard_limit=None)))
    install.runtime.db.write("by_hand", lambda tx: tx.execute(update(table).values(due_at=0.0)))
    while under_way(install):
        turn(install)
    assert generations(client) == [2] * COUNT


def test_a_deleted_collection_is_invisible_at_once_whatever_is_left(install, client, shelf):
    """Search, lists, counts and every document by its id; the sweep ends the rest."""
    client.text("A kettle that nobody has begun with.")
    said = client.call("DELETE", "collections/shelf")
    assert said.json == {"deleted": COUNT + 1, "to_follow": COUNT - 1}
    for path in ("collections/shelf", "collections/shelf/documents", "search?collection=shelf&q=kettle"):
        assert client.get(path).status == 404
    assert all(client.get(f"documents/{each['id']}").status == 404 for each in shelf)
    assert client.get("collections").json["collections"] == []
    assert live(install) == COUNT - 1
    while under_way(install):
        turn(install)
    assert live(install) == 0
    install.work()
    assert live(install) == 0


def test_a_collection_made_again_before_its_deletion_is_over_is_empty(install, client, shelf, monkeypatch):
    """What is left goes first, or 409 while that is too much; then the new one is nobody's but its own."""
    monkeypatch.setattr(collections, "MADE_AGAIN", 2)
    client.call("DELETE", "collections/shelf")
    (old,) = bulk_updates.due(install.runtime.db, 5)
    said = client.post("collections", {"id": "shelf"})
    assert (said.status, said.code) == (409, "collection_emptying")
    assert client.post("collections", {"id": "shelf"}).status == 201
    new = client.indexed("A new copper kettle.")
    assert under_way(install) == []
    turn(install)
    bootstrap_library(install).rounds.go_on(old, 10)
    hits = client.get("search?collection=shelf&q=kettle").json["hits"]
    assert [hit["document_id"] for hit in hits] == [new["id"]]


def bootstrap_library(install):
    return install.built.app.state.services.collections


def test_deleting_ends_a_round_of_options(install, client, shelf):
    """Nobody asks for what is gone."""
    client.call("PATCH", "collections/shelf", {"options": {"chunk_size": 32}})
    client.call("DELETE", "collections/shelf")
    assert [row.sort for row in under_way(install)] == ["delete"]
    while under_way(install):
        turn(install)
    assert install.worker.engine.work_off() == []


def test_options_that_contradict_a_documents_own_are_refused_before_anything_changes(install, client, shelf):
    """The answer names the document; the collection keeps its options, and no round begins."""
    odd = client.text("A kettle cut with a wide overlap.", options={"overlap": 100})
    install.work()
    said = client.call("PATCH", "collections/shelf", {"options": {"chunk_size": 64}})
    assert (said.status, said.code) == (409, "options_conflict")
    assert odd["id"] in said.json["error"]["message"]
    assert client.get("collections/shelf").json["options"] == {}
    assert under_way(install) == []
    assert client.call("PATCH", "collections/shelf", {"options": {"chunk_size": 300}}).status == 200


def test_a_document_that_cannot_be_asked_for_is_told_of_and_the_round_goes_on(install, client, shelf):
    """Its own options contradict the collection's all the same: its journal says so, the others go on."""
    odd = min(each["id"] for each in shelf)
    client.call("PATCH", "collections/shelf", {"options": {"chunk_size": 64}})
    own = update(documents).where(documents.c.id == odd).values(options={"overlap": 100})
    install.runtime.db.write("by_hand", lambda tx: tx.execute(own))
    install.runtime.db.write("by_hand", lambda tx: tx.execute(update(table).values(after="", due_at=0.0)))
    while under_way(install):
        turn(install)
    assert generations(client) == [2] * COUNT
    events = lambda: client.get(f"documents/{odd}/events").json["events"]
    until(lambda: "refused:bad_chunk_options" in [each["reason"] for each in events()], 10, "nothing is told")
    assert "the overlap at most half" in str(client.get(f"documents/{odd}/why").json)
