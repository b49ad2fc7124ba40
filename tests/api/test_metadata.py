"""Metadata and labels of documents: given at upload, changed without indexing, kept by everything else."""

import json
from urllib.parse import urlencode

from sqlalchemy import select

from holdfast.store.base.schema import document_values

ABOUT = {"author": "Ann", "year": 2024, "tags": ["a", "b"], "review": {"by": None, "id": 2**60 + 1}}


def listed(client, condition, where="shelf"):
    query = urlencode({"filter": json.dumps(condition)})
    return [each["id"] for each in client.get(f"collections/{where}/documents?{query}").json["documents"]]


def hits(client, condition, where="shelf", words="lighthouse"):
    query = urlencode({"collection": where, "q": words, "filter": json.dumps(condition)})
    return [each["document_id"] for each in client.get(f"search?{query}").json["hits"]]


def test_metadata_is_given_at_upload_and_shown_as_it_was(client):
    """By JSON and beside a file; every value comes back exactly, and filters find it."""
    body = {"text": "The lighthouse.", "metadata": ABOUT, "labels": ["hr", "a", "hr"]}
    client.collection("shelf")
    text = client.post("collections/shelf/documents", body).json["document"]
    fields = {"metadata": json.dumps({"year": 1999}), "labels": '["b"]'}
    file = client.upload("collections/shelf/documents", b"A file.", **fields).json["document"]
    assert (text["metadata"], text["labels"]) == (ABOUT, ["a", "hr"])
    assert (file["metadata"], file["labels"]) == ({"year": 1999}, ["b"])
    assert listed(client, {"range": {"year": {"lt": 2000}}}) == [file["id"]]
    assert listed(client, {"eq": {"review.id": 2**60 + 1}}) == [text["id"]]
    assert listed(client, {"eq": {"review.id": 2**60}}) == []


def test_changed_metadata_counts_at_once_and_indexes_nothing(client, install):
    """The next search sees it; no run, no charge; the same change again is no change; the journal has one."""
    document = client.indexed("The lighthouse keeper.")
    assert hits(client, {"eq": {"author": "Ann"}}) == []
    for _ in range(2):
        reply = client.call("PATCH", f"/api/v1/documents/{document['id']}", {"metadata": ABOUT})
        assert (reply.status, reply.json["disposition"]) == (200, "unchanged")
    assert hits(client, {"eq": {"author": "Ann"}}) == [document["id"]]
    assert hits(client, {"not": {"eq": {"author": "Ann"}}}) == []
    after = client.get(f"documents/{document['id']}").json
    assert (after["metadata"], after["index_generation"]) == (ABOUT, document["index_generation"])
    notes = [each for each in client.get("events").json["events"] if each["verb"] == "describe"]
    assert [each["data"]["metadata"] for each in notes] == [sorted(ABOUT)]


def test_metadata_goes_with_the_document(client, install):
    """A new title, new content, a copy, a move: all of them leave it as it is."""
    client.collection("attic")
    document = client.indexed("The lighthouse keeper.")
    path = f"documents/{document['id']}"
    client.call("PATCH", f"/api/v1/{path}", {"metadata": ABOUT, "labels": ["hr"]})
    client.call("PATCH", f"/api/v1/{path}", {"title": "Another"})
    client.put(f"{path}/content", {"text": "The lighthouse and its lamp."})
    install.work()
    condition = {"eq": {"author": "Ann", "$labels": "hr", "$title": "Another"}}
    copy = client.put(f"collections/attic/documents/{document['id']}", {"mode": "copy"}).json["document"]
    assert listed(client, condition, "attic") == [copy["id"]]
    client.call("DELETE", f"/api/v1/documents/{copy['id']}")
    client.put(f"collections/attic/documents/{document['id']}", {"mode": "move"})
    assert listed(client, condition) == []
    assert hits(client, condition, "attic") == [document["id"]]


UNUSABLE = [
    '{"a": "\\u0000"}',
    '{"a": "\\ud800"}',
    '{"\\ud800": 1}',
    '{"$name": 1}',
    '{"": 1}',
    '{"a": NaN}',
    '{"a": 1e999}',
    json.dumps({"a": 10**100}),
    json.dumps({"a": "x" * 17_000}),
    json.dumps({"a": list(range(600))}),
    '{"a": [[[[[[[[[1]]]]]]]]]}',
    "[1]",
    '"text"',
]


def test_metadata_that_cannot_be_stored_is_refused(client):
    """With a clear code, and nothing is stored."""
    client.collection("shelf")
    for metadata in UNUSABLE:
        reply = client.upload("collections/shelf/documents", b"A file.", metadata=metadata)
        assert reply.status in {400, 422}, metadata
        assert reply.code in {"bad_metadata", "bad_request"}, metadata
    assert client.get("collections/shelf/documents").json["documents"] == []


def test_a_search_with_a_filter_still_finds_as_many(client, install):
    """Documents are left out before they are ranked: what is left fills the answer."""
    client.collection("shelf")
    for number in range(30):
        body = {"text": f"The lighthouse number {number}.", "metadata": {"odd": number % 10 == 3}}
        client.post("collections/shelf/documents", body)
    install.work()
    assert len(hits(client, {"eq": {"odd": True}})) == 3
    assert len(hits(client, {"eq": {"odd": False}})) == 10


def test_a_deleted_document_leaves_no_values(client, install):
    """They would be read by every filter after it."""
    document = client.indexed("The lighthouse keeper.")
    client.call("PATCH", f"/api/v1/documents/{document['id']}", {"metadata": ABOUT})
    client.call("DELETE", f"/api/v1/documents/{document['id']}")
    assert listed(client, {"exists": "author"}) == []
    assert install.runtime.db.look(select(document_values)) == []


def test_a_job_and_an_export_take_only_what_passes(client, install):
    """Of two documents one is asked about, and one is in the file; its metadata comes with the import."""
    for name in ("Ann", "Bo"):
        client.text(f"The lighthouse of {name}.", metadata={"author": name}, labels=[name])
    install.work()
    condition = {"eq": {"author": "Ann"}}
    body = {"kind": "qa", "params": {"filter": condition}}
    job = client.post("collections/shelf/jobs", body).json["job_id"]
    export = client.post("collections/shelf/export", {"filter": condition}).json["job_id"]
    install.work()
    results = client.get(f"jobs/{job}/results").json["results"]
    assert {each["document_id"] for each in results} == set(listed(client, condition))
    assert client.get(f"jobs/{export}").json["totals"]["documents"] == 1
    file = client.get(f"jobs/{export}/file").raw
    assert client.upload("imports", file, "b.zip", collection="attic").status == 202
    install.work()
    assert len(listed(client, {"eq": {"author": "Ann", "$labels": "Ann"}}, "attic")) == 1
    refused = client.post("collections/shelf/jobs", {"kind": "qa", "params": {"filter": {"no": 1}}})
    assert refused.code == "bad_filter"
