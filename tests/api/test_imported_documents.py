"""Documents that another system had indexed: listed, explained, and indexed once asked for."""

import pytest

from holdfast.store.library import imports, quotas
from holdfast.store.library.quotas import Quota
from tests.indexing.test_2_urls import Site

ROWS = [("10", True, "Harbour rules"), ("11", False, "Tide tables")]


@pytest.fixture
def imported(install):
    imports.import_documents(install.runtime.db, ROWS, tenant="default", collection="old")
    return install


def test_imported_documents_are_listed_with_their_titles(imported, client):
    """The collection is there, the active one ready, the other not indexed, and no digest is invented."""
    listed = client.get("collections/old/documents").json["documents"]
    assert [(each["id"], each["title"], each["index_status"]) for each in listed] == [
        ("10", "Harbour rules", "success"),
        ("11", "Tide tables", "not_indexed"),
    ]
    assert [(each["source"], each["size"], each["digest"]) for each in listed] == [("imported", 0, "")] * 2
    assert client.get("collections/old").status == 200


@pytest.mark.parametrize("document", ["10", "11"])
def test_why_says_that_it_was_imported_and_what_is_missing(imported, client, document):
    """One sentence for what happened, one for what to do."""
    body = client.get(f"documents/{document}/why").json
    assert "Imported as" in body["sentence"]
    assert "no content here yet" in body["sentence"]
    assert (body["next_step"], f"PUT /documents/{document}/content" in body["advice"]) == ("upload", True)


@pytest.mark.parametrize("document", ["10", "11"])
def test_indexing_without_content_is_refused_until_it_is_uploaded(imported, client, document):
    """The refusal names the way out, and that way leads to a document that search finds."""
    refused = client.post(f"documents/{document}/index", {"mode": "force"})
    assert (refused.status, refused.code) == (409, "no_content")
    assert f"PUT /documents/{document}/content" in refused.message
    said = client.upload(f"documents/{document}/content", b"Anchors hold in mud.", method="PUT")
    assert (said.status, said.json["disposition"]) == (202, "accepted" if document == "11" else "superseding")
    imported.work()
    hits = client.get("search?q=anchors&collection=old").json["hits"]
    assert [each["document_id"] for each in hits] == [document]
    assert client.post(f"documents/{document}/index", {"mode": "force"}).status == 202


def test_one_with_a_url_is_fetched_when_it_is_asked_for(install, client):
    """Indexing fetches the content first; nothing is asked for when that fails."""
    site = Site()
    try:
        site.show("Gulls nest on the mole.", '"1"')
        rows = [("10", True, "News", site.url), ("11", False, "Gone", "http://127.0.0.1:1/gone")]
        imports.import_documents(install.runtime.db, rows, tenant="default", collection="old")
        assert client.get("documents/10/why").json["next_step"] == "index"
        assert client.post("documents/10/index", {}).status == 202
        install.work()
        assert client.get("documents/10").json["chunks"] == 1
        assert client.post("documents/11/index", {}).code == "url_failed"
        assert client.get("documents/11").json["index_status"] == "not_indexed"
    finally:
        site.close()


def test_a_collection_of_imported_documents_alone_can_be_searched(imported, client):
    """There is nothing to find, which is an answer and no failure."""
    said = client.get("search?q=Harbour+rules&collection=old")
    assert (said.status, said.json["hits"]) == (200, [])


def test_other_options_move_and_copy_ask_for_nothing_that_is_not_there(imported, client):
    """Options are kept for later and a move is a move; there is nothing to copy."""
    client.collection("new")
    assert client.call("PATCH", "documents/10", {"options": {"chunk_size": 256}}).status == 200
    changed = client.call("PATCH", "collections/old", {"options": {"chunk_size": 128}})
    assert (changed.status, client.get("documents/11").json["index_status"]) == (200, "not_indexed")
    moved = client.put("collections/new/documents/10", {"mode": "move"})
    assert (moved.status, client.get("documents/10").json["collection"]) == (200, "new")
    assert client.put("collections/new/documents/11", {"mode": "copy"}).code == "no_content"
    imported.worker.engine.sweep()
    assert client.get("documents/10").json["index_generation"] == 1


def test_an_import_counts_against_the_quota(install):
    """What does not fit is refused, and nothing of that batch is there."""
    quotas.set_limits(install.runtime.db, "default", Quota(documents=1))
    with pytest.raises(quotas.QuotaExceededError):
        imports.import_documents(install.runtime.db, ROWS, tenant="default", collection="old")
    assert install.client.get("collections/old/documents").json["documents"] == []
