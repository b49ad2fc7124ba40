"""External ids over HTTP: given with every way to upload, looked up, shown, deleted by."""

import urllib.request
from urllib.parse import quote

from tests.moving.bundle_files import brought, exported

ID = "cms/7 & ä"
BOOKS = "collections/shelf/documents"


def named(client, external_id=ID, where="shelf"):
    listed = client.get(f"collections/{where}/documents?external_id={quote(external_id, safe='')}").json
    return [each["id"] for each in listed["documents"]]


def test_a_file_a_text_and_a_url_take_the_same_id(client, install):
    """One document, each way a new generation of it; shown by the API and in the web UI."""
    client.collection("shelf")
    first = client.upload(BOOKS, b"The tide is high.", external_id=ID)
    text = client.post(BOOKS, {"text": "The tide is low.", "external_id": ID})
    url = f"http://127.0.0.1:{install.port}/healthz"
    page = client.post(BOOKS, {"url": url, "external_id": ID, "title": "Health"})
    assert [each.status for each in (first, text, page)] == [202, 202, 202]
    assert [each.json["disposition"] for each in (text, page)] == ["superseding"] * 2
    document = page.json["document"]
    assert (document["external_id"], document["title"], document["index_generation"]) == (ID, "Health", 3)
    assert named(client) == [first.json["document"]["id"]] == [document["id"]]
    assert named(client, "cms") == []
    with urllib.request.urlopen(f"http://127.0.0.1:{install.port}/documents/{document['id']}") as shown:
        assert "External ID: cms/7 &amp; ä" in shown.read().decode()


def test_the_same_push_again_is_unchanged_and_keys_and_generations_hold(client, install):
    """200 for the same bytes, 412 for another generation, the same answer for the same key."""
    client.collection("shelf")
    body = {"text": "The tide is high.", "external_id": ID}
    client.post(BOOKS, body)
    install.work()
    same = client.post(BOOKS, body)
    assert (same.status, same.json["disposition"]) == (200, "unchanged")
    other = body | {"text": "The tide is low."}
    assert client.post(BOOKS, other, headers={"If-Match": '"9"'}).code == "generation_moved"
    once = {"If-Match": '"1"', "Idempotency-Key": "k1"}
    replies = [client.post(BOOKS, other, headers=once) for _ in range(2)]
    assert [each.status for each in replies] == [202, 202]
    assert replies[0].json["run"] == replies[1].json["run"]
    refused = client.post(BOOKS, {"text": "New."}, headers={"If-Match": '"1"'})
    assert refused.code == "bad_if_match"


def test_a_document_is_deleted_by_its_external_id(client, install):
    """Only that of this collection; afterwards there is none, and the id is free."""
    for where in ("shelf", "attic"):
        client.text("The tide is high.", to=where, external_id=ID)
    path = f"{BOOKS}?external_id={quote(ID, safe='')}"
    assert client.call("DELETE", path).status == 204
    assert client.call("DELETE", path).code == "unknown_document"
    assert (named(client), len(named(client, where="attic"))) == ([], 1)
    assert client.post(BOOKS, {"text": "The tide is high.", "external_id": ID}).status == 202


def test_a_move_takes_the_id_along_and_a_copy_does_not(client, install):
    """A move to where the id is taken is refused, and names the document that has it."""
    document = client.indexed("The tide is high.", external_id=ID)
    other = client.text("The tide is low.", to="attic", external_id=ID)
    client.collection("cellar")
    refused = client.put(f"collections/attic/documents/{document['id']}", {"mode": "move"})
    assert (refused.status, refused.code) == (409, "same_external_id")
    assert other["id"] in refused.message
    copy = client.put(f"collections/cellar/documents/{document['id']}", {"mode": "copy"}).json["document"]
    assert copy["external_id"] is None
    moved = client.put(f"collections/cellar/documents/{document['id']}", {"mode": "move"}).json["document"]
    assert (moved["collection"], moved["external_id"]) == ("cellar", ID)
    assert (named(client), named(client, where="cellar")) == ([], [document["id"]])


def test_an_id_can_be_given_to_a_document_that_is_there(client):
    """So that documents of before can be pushed from now on; one that is taken is a conflict."""
    one, two = client.text("The tide is high."), client.text("The tide is low.")
    path = "/api/v1/documents/{}"
    assert client.call("PATCH", path.format(one["id"]), {"external_id": ID}).status == 200
    taken = client.call("PATCH", path.format(two["id"]), {"external_id": ID})
    assert (taken.status, taken.code) == (409, "same_external_id")
    assert client.post(BOOKS, {"text": "Slack water.", "external_id": ID}).json["document"]["id"] == one["id"]


def test_a_bundle_keeps_external_ids_and_leaves_documents_that_have_them(client, install):
    """Two ids with the same bytes arrive as two; the second import leaves both, whatever they hold."""
    for number in (1, 2):
        client.text("The tide is high.", external_id=f"cms/{number}")
    install.work()
    bundle = exported(client)
    brought(client, bundle, collection="attic")
    ids = [named(client, f"cms/{number}", "attic") for number in (1, 2)]
    assert [len(each) for each in ids] == [1, 1]
    assert ids[0] != ids[1]
    client.post("collections/attic/documents", {"text": "Newer.", "external_id": "cms/1"})
    install.work()
    result = brought(client, bundle, collection="attic")
    assert result["totals"]["unchanged"] == 2
    assert [named(client, f"cms/{number}", "attic") for number in (1, 2)] == ids
