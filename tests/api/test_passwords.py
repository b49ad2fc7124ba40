"""Protected PDFs: the password comes with the upload or later, opens them, and is never shown."""

from urllib.parse import urlencode

import pytest
from sqlalchemy import select

from holdfast.store.base.schema import documents
from tests.documents import pdfs

SECRET = "open-sesame-4711"
LOCKED = pdfs.make(["The lighthouse is hidden here"] * 2, password=SECRET)


def hits(client, words="lighthouse", where="shelf"):
    query = urlencode({"collection": where, "q": words})
    return client.get(f"search?{query}").json["hits"]


def uploaded(client, **fields):
    client.collection("shelf")
    return client.upload("collections/shelf/documents", LOCKED, "locked.pdf", **fields).json["document"]


def failure(client, document):
    return client.get(f"documents/{document['id']}").json["error"]["code"]


def test_a_password_at_upload_opens_the_file(client, install):
    """The text is found, and indexing again needs no password."""
    document = uploaded(client, password=SECRET)
    install.work()
    client.post(f"documents/{document['id']}/index", {"mode": "force"})
    install.work()
    after = client.get(f"documents/{document['id']}").json
    assert (after["index_status"], after["published_generation"], len(hits(client))) == ("success", 2, 2)


def test_a_missing_and_a_wrong_password_have_codes_of_their_own(client, install):
    """Without one: `encrypted`; a wrong one: `wrong_password`; the right one, sent later, opens the file."""
    document = uploaded(client)
    install.work()
    assert failure(client, document) == "encrypted"
    path = f"/api/v1/documents/{document['id']}"
    assert client.call("PATCH", path, {"password": "a guess"}).status == 202
    install.work()
    assert failure(client, document) == "wrong_password"
    assert client.call("PATCH", path, {"password": SECRET}).status == 202
    install.work()
    assert len(hits(client)) == 2
    assert client.call("PATCH", path, {"password": SECRET}).json["disposition"] == "unchanged"


def test_the_same_file_sent_again_with_its_password_is_opened(client, install):
    """The collection has these bytes already; what was missing is the password."""
    document = uploaded(client)
    install.work()
    assert uploaded(client, password=SECRET)["id"] == document["id"]
    install.work()
    assert client.get(f"documents/{document['id']}").json["index_status"] == "success"


def test_a_copy_can_be_opened_when_its_original_is_gone(client, install):
    """The password goes with the copy, and leaves the database with a document that is deleted."""
    document = uploaded(client, password=SECRET)
    client.collection("attic")
    client.put(f"collections/attic/documents/{document['id']}", {"mode": "copy"})
    client.call("DELETE", f"/api/v1/documents/{document['id']}")
    install.work()
    assert len(hits(client, where="attic")) == 2
    rows = install.runtime.db.look(select(documents.c.deleted, documents.c.password), {})
    assert sorted((row.deleted, row.password) for row in rows) == [(False, SECRET), (True, None)]


def test_a_password_is_in_no_answer_event_or_log(client, install, caplog):
    """Not in the document, its history, the journal, the explanation or an export."""
    document = uploaded(client, password=SECRET)
    install.work()
    replies = [client.get(path) for path in ("events", "collections/shelf/documents", "jobs")]
    parts = ("", "/runs", "/events", "/chunks", "/why")
    replies += [client.get(f"documents/{document['id']}{part}") for part in parts]
    assert all(reply.status == 200 and SECRET.encode() not in reply.raw for reply in replies)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("password", ["", "x" * 201, "a\u0000b"])
def test_a_password_that_cannot_be_kept_is_refused_unrepeated(client, password):
    """Empty, too long, or with a NUL; the answer does not contain it."""
    client.collection("shelf")
    reply = client.upload("collections/shelf/documents", LOCKED, "locked.pdf", password=password)
    assert reply.status in {400, 422}
    assert "xxx" not in reply.raw.decode()
    assert "\\u0000" not in reply.raw.decode()


def test_a_page_of_a_protected_file_is_shown(client, install):
    """Whoever may read the document sees its pages, with a passage marked, without the password."""
    document = uploaded(client, password=SECRET)
    install.work()
    chunk = client.get(f"documents/{document['id']}/chunks").json["chunks"][0]
    for query in ("", f"?chunk={chunk['slice']}.{chunk['position']}"):
        reply = client.get(f"documents/{document['id']}/pages/1{query}")
        assert (reply.status, reply.raw[:4]) == (200, b"\x89PNG")
