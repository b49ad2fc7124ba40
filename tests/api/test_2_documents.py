"""Documents, as a program uses them."""

import http.server
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from sqlalchemy import insert

from holdfast.core.errors import StoreUnavailableError
from holdfast.store.base.schema import budgets
from holdfast.store.library import collections

FIELDS = {
    "index_status",
    "index_generation",
    "published_generation",
    "progress",
    "queued_at",
    "started_at",
    "finished_at",
    "seconds",
    "chunks",
    "pages",
    "cost",
    "error",
}


def test_a_file_is_taken_in_and_then_searchable(client, install):
    """202 says that it will be done; the workers of its lane are woken; then it answers questions."""
    client.collection()
    said = client.upload("collections/shelf/documents", b"The anchor holds fast.", "harbour.txt", lane="bulk")
    assert said.status == 202
    assert said.json["disposition"] == "accepted"
    assert said.json["run"]["status"] == "queued"
    assert install.sender.lanes == {"bulk": 1}
    install.work()
    response = client.get(f"documents/{said.json['document']['id']}")
    assert response.headers["etag"] == '"1"'
    assert set(response.json) > FIELDS
    assert (response.json["index_status"], response.json["chunks"], response.json["error"]) == (
        "success",
        1,
        None,
    )
    assert (response.json["index_generation"], response.json["published_generation"]) == (1, 1)
    hits = client.get("search?collection=shelf&q=anchor&k=3").json["hits"]
    assert [(hit["title"], hit["generation"]) for hit in hits] == [("harbour.txt", 1)]
    assert "holds fast" in hits[0]["text"]


def test_the_same_bytes_are_the_same_document(client, install):
    """200 and `duplicate` while it runs, `unchanged` when it is done; no second document either way."""
    response = client.text("The same words.")
    again = client.post("collections/shelf/documents", {"text": "The same words."})
    assert (again.status, again.json["disposition"]) == (200, "duplicate")
    install.work()
    again = client.upload("collections/shelf/documents", b"The same words.", "other.txt")
    assert (again.status, again.json["disposition"]) == (200, "unchanged")
    assert again.json["document"]["id"] == response["id"]


@pytest.mark.g6
def test_of_eight_simultaneous_uploads_one_makes_the_document(client):
    """The others are told that it is under way."""
    client.collection()
    start = threading.Barrier(8)

    def upload(_):
        start.wait()
        return client.upload("collections/shelf/documents", b"Eight times the same.")

    with ThreadPoolExecutor(8) as crowd:
        said = list(crowd.map(upload, range(8)))
    assert sorted(one.json["disposition"] for one in said) == ["accepted"] + ["duplicate"] * 7
    assert len({one.json["document"]["id"] for one in said}) == 1
    assert len(client.get("collections/shelf/documents").json["documents"]) == 1


@pytest.mark.g6
def test_asking_for_what_is_under_way_is_refused_with_a_sentence(client, install):
    """409 names the run, its generation and how far it is; the journal has it."""
    response = client.text("Some words.")
    said = client.post(f"documents/{response['id']}/index", {"mode": "retry"})
    assert (said.status, said.code) == (409, "duplicate")
    assert said.message == "A title is already in progress (queued)"
    install.begun()
    said = client.post(f"documents/{response['id']}/index", {"mode": "force"})
    assert said.message == "A title is already in progress (indexing, 0 %)"
    active = said.json["error"]["active"]
    assert (active["run_id"], active["status"], active["generation"]) == (response["run_id"], "indexing", 1)
    assert {"done", "total", "unit", "stages"} <= set(active["progress"])
    assert client.get("bill").json["refused_duplicates"] == 2


def test_the_three_ways_to_ask_again(client, install):
    """`retry` leaves success alone, `force` does not, and `replace` ends what is under way."""
    document = client.indexed("Some words.")
    path = f"documents/{document['id']}/index"
    assert client.post(path, {}).json["disposition"] == "unchanged"
    forced = client.post(path, {"mode": "force", "lane": "bulk", "priority": 0})
    assert (forced.status, forced.json["run"]["generation"]) == (202, 2)
    replaced = client.post(path, {"mode": "replace"})
    assert (replaced.status, replaced.json["run"]["generation"]) == (202, 3)
    runs = client.get(f"documents/{document['id']}/runs").json["runs"]
    assert [one["status"] for one in runs] == ["queued", "cancelled", "success"]


def test_new_content_supersedes_and_the_old_answers_until_then(client, install):
    """A reader sees the old generation, whole, until the new one is published."""
    document = client.indexed("Old words.")
    said = client.put(f"documents/{document['id']}/content", {"text": "New words."})
    assert (said.status, said.json["disposition"]) == (202, "superseding")
    before = client.get(f"documents/{document['id']}").json
    assert (before["index_generation"], before["published_generation"], before["ready"]) == (2, 1, True)
    assert client.get(f"documents/{document['id']}/chunks").json["chunks"][0]["text"] == "Old words."
    install.work()
    assert client.get(f"documents/{document['id']}/chunks").json["chunks"][0]["text"] == "New words."


def test_new_content_may_be_a_file_and_must_not_be_anothers(client):
    """Two documents of a collection never have the same bytes; the answer names the other."""
    other = client.text("Taken.")
    response = client.text("Mine.")
    said = client.upload(f"documents/{response['id']}/content", b"From a file.", method="PUT")
    assert said.status == 202
    said = client.put(f"documents/{response['id']}/content", {"text": "Taken."})
    assert (said.status, said.code) == (409, "same_content")
    assert other["id"] in said.message


def test_a_generation_that_has_moved_stops_a_request(client):
    """`If-Match` is compared inside the transaction; 412 changes nothing, and the journal counts it."""
    response = client.text("Some words.")
    path = f"documents/{response['id']}"
    said = client.put(f"{path}/content", {"text": "Late."}, headers={"If-Match": '"7"'})
    assert (said.status, said.code) == (412, "generation_moved")
    assert client.get(path).json["digest"] == response["digest"]
    reasons = [each["reason"] for each in client.get(f"{path}/events").json["events"]]
    assert reasons.count("refused:generation_mismatch") == 1
    assert client.post(f"{path}/cancel", headers={"If-Match": '"2"'}).status == 412
    assert client.put(f"{path}/content", {"text": "In time."}, headers={"If-Match": '"1"'}).status == 202
    assert client.put(f"{path}/content", {"text": "x"}, headers={"If-Match": "soon"}).code == "bad_if_match"


def test_a_run_is_cancelled_once(client, install):
    """What was published stays; there is nothing to cancel a second time."""
    document = client.indexed("Some words.")
    client.post(f"documents/{document['id']}/index", {"mode": "force"})
    said = client.post(f"documents/{document['id']}/cancel")
    assert (said.status, said.json["document"]["index_status"]) == (200, "success")
    assert client.post(f"documents/{document['id']}/cancel").code == "nothing_to_cancel"


def test_a_deleted_document_is_gone(client):
    """204, then 404, and no search finds it."""
    document = client.indexed("Some words about anchors.")
    assert client.call("DELETE", f"documents/{document['id']}").status == 204
    assert client.get(f"documents/{document['id']}").status == 404
    assert client.call("DELETE", f"documents/{document['id']}").status == 404
    assert client.get("search?collection=shelf&q=anchors").json["hits"] == []


def test_documents_are_listed_page_by_page(client):
    """The cursor leads through all of them, each once."""
    created = {client.text(f"Text number {number}.")["id"] for number in range(5)}
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get(f"collections/shelf/documents?limit=2{cursor}").json
        seen += [one["id"] for one in page["documents"]]
        cursor = f"&cursor={page['next']}" if page["next"] else None
    assert sorted(created) == seen


def test_a_failed_document_says_why(client, install):
    """Code and message are those of the run."""
    document = client.indexed(" \n ")
    assert (document["index_status"], document["error"]["code"]) == ("failed", "no_text")
    assert document["error"]["message"]
    assert client.post(f"documents/{document['id']}/index", {}).json["disposition"] == "accepted"


class Page(http.server.BaseHTTPRequestHandler):
    text = b"What is at the address."

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(self.text)))
        self.end_headers()
        self.wfile.write(self.text)

    def log_message(self, *_):
        pass


def test_a_document_may_come_from_an_address_and_be_fetched_again(client, install, monkeypatch):
    """What is there now is what it wants; nothing happens if that is as it was."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{site.server_port}/page.txt"
        client.collection()
        response = client.post("collections/shelf/documents", {"url": url}).json["document"]
        install.work()
        assert client.post(f"documents/{response['id']}/refresh").json["disposition"] == "unchanged"
        monkeypatch.setattr(Page, "text", b"It has changed.")
        assert client.post(f"documents/{response['id']}/refresh").json["disposition"] == "superseding"
        site.shutdown()
    other = client.text("Not from an address.")
    assert client.post(f"documents/{other['id']}/refresh").code == "no_url"


@pytest.mark.g1
def test_of_eight_who_saw_the_same_generation_one_may_change_it(client):
    """The others are told that it has moved; what is wanted is what the one sent."""
    response = client.text("Some words.")
    start = threading.Barrier(8)

    def put(number):
        start.wait()
        body = {"text": f"Version {number}."}
        return client.put(f"documents/{response['id']}/content", body, headers={"If-Match": '"1"'})

    with ThreadPoolExecutor(8) as crowd:
        said = list(crowd.map(put, range(8)))
    assert sorted(one.status for one in said) == [202] + [412] * 7
    winner = next(one for one in said if one.status == 202)
    payload = client.get(f"documents/{response['id']}").json
    assert (payload["digest"], payload["index_generation"]) == (winner.json["document"]["digest"], 2)


def test_over_budget_is_refused_before_anything_is_spent(client, install):
    """402 says whose budget it is, and names the document."""
    client.collection()
    used_up = {"tenant": "default", "scope": "tenant", "hard_limit": 0}
    install.runtime.db.write("by_hand", lambda tx: tx.execute(insert(budgets), used_up))
    said = client.post("collections/shelf/documents", {"text": "Some words."})
    assert (said.status, said.code) == (402, "over_budget")
    assert said.message == "the budget of the tenant is used up; raise it, then retry"
    body = client.get(f"documents/{said.json['error']['document_id']}").json
    assert (body["index_status"], body["index_generation"]) == ("not_indexed", 0)


def test_a_database_that_is_away_is_told_as_such(client, monkeypatch):
    """503, and nothing is kept under the key: the same request again is carried out."""
    key = {"Idempotency-Key": "again"}
    away = Mock(side_effect=StoreUnavailableError("the database does not answer"))
    with monkeypatch.context() as patch:
        patch.setattr(collections, "make_collection", away)
        said = client.post("collections", {"id": "shelf"}, headers=key)
        assert (said.status, said.code, said.headers["retry-after"]) == (503, "database_unavailable", "5")
    assert client.post("collections", {"id": "shelf"}, headers=key).status == 201


def test_a_defect_is_told_without_its_inside(client, monkeypatch):
    """500 in the one shape, with the headers of every answer; the log has the rest."""
    monkeypatch.setattr(collections, "all_collections", Mock(side_effect=ValueError("a secret")))
    said = client.get("collections", may_fail=True)
    assert (said.status, said.code) == (500, "internal")
    assert b"secret" not in said.raw
    assert said.headers["x-content-type-options"] == "nosniff"


def test_a_documents_options_are_changed_and_it_is_indexed_anew(client, install):
    """202 and a new generation; a title alone is 200; what cannot be followed is refused."""
    response = client.text("Words of copper. " * 200)
    install.work()
    path = f"documents/{response['id']}"
    said = client.call("PATCH", path, {"options": {"chunk_size": 32}})
    assert (said.status, said.json["disposition"]) == (202, "superseding")
    install.work()
    assert client.get(path).json["options"] == {"chunk_size": 32}
    said = client.call("PATCH", path, {"title": "Copper"})
    assert (said.status, said.json["document"]["title"]) == (200, "Copper")
    said = client.call("PATCH", path, {"options": {"chunk_size": 1}})
    assert (said.status, said.code) == (400, "bad_chunk_options")
    said = client.call("PATCH", path, {"title": "x"}, headers={"If-Match": '"1"'})
    assert (said.status, said.code) == (412, "generation_moved")
