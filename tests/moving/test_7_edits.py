"""Edits go wherever their document goes, and no further."""

from sqlalchemy import select

from holdfast.store.base.schema import chunk_edits
from tests.api.install import PREFIX
from tests.documents import files
from tests.moving.bundle_files import brought, exported

DELIMITED = "First part.---Second part.---Third part."


def chunks(client, document_id):
    return client.get(f"documents/{document_id}/chunks").json["chunks"]


def change(client, document_id, number, body):
    name = chunks(client, document_id)[number]["id"]
    return client.call("PATCH", f"{PREFIX}/documents/{document_id}/chunks/{name}", body)


def edited(client, install, document_id):
    """The first chunk is switched off, the second has another text; published."""
    assert change(client, document_id, 0, {"enabled": False}).status == 202
    assert change(client, document_id, 1, {"text": "Better part."}).status == 202
    install.work()


def shown(client, document_id):
    return [(each["text"], each["enabled"], each["edited"]) for each in chunks(client, document_id)]


EDITED = [("First part.", False, False), ("Better part.", True, True), ("Third part.", True, False)]


def stored(install):
    return install.runtime.db.read(lambda tx: tx.all(select(chunk_edits.c.document)))


def test_edits_go_with_copies_moves_and_bundles_and_end_with_their_document(client, install):
    """Copied and exported as they are; imported in the same order; nothing is left of deleted documents."""
    document = client.indexed(DELIMITED, options={"delimiter": "---"})["id"]
    edited(client, install, document)
    assert shown(client, document) == EDITED
    client.collection("attic")
    assert client.put(f"collections/attic/documents/{document}", {"mode": "copy"}).status == 202
    install.work()
    copy = client.get("collections/attic/documents").json["documents"][0]["id"]
    assert shown(client, copy) == EDITED
    client.collection("cellar")
    client.put(f"collections/cellar/documents/{copy}", {"mode": "move"})
    assert shown(client, copy) == EDITED
    bundle = exported(client)
    other = install.key("other")
    assert brought(other, bundle)["state"] == "success"
    (imported,) = other.get("collections/shelf/documents").json["documents"]
    assert shown(other, imported["id"]) == EDITED
    states = [each["state"] for each in other.get(f"documents/{imported['id']}/edits").json["edits"]]
    assert states == ["applied", "applied"]
    assert other.post(f"documents/{imported['id']}/index", {"mode": "force"}).status == 202
    install.work()
    assert shown(other, imported["id"]) == EDITED
    owner = install.key("default")
    for who, name in ((owner, document), (owner, copy), (other, imported["id"])):
        assert who.call("DELETE", f"{PREFIX}/documents/{name}").status == 204
    assert stored(install) == []


def test_a_document_of_an_archive_keeps_its_edits_when_the_archive_is_indexed_again(client, install):
    """Its bytes are the same, so it is the same document; the edits of one are not those of the other."""
    client.collection("shelf")
    archive = files.archive({"a.txt": b"The lamp costs ten.", "b.txt": b"Another file."})
    container = client.upload("collections/shelf/documents", archive, "all.zip").json["document"]["id"]
    install.work()
    inside = client.get(f"documents/{container}/members").json["children"]
    member = next(each["id"] for each in inside if each["name"] == "a.txt")
    assert change(client, member, 0, {"text": "The lamp costs twelve."}).status == 202
    install.work()
    assert client.post(f"documents/{container}/index", {"mode": "force"}).status == 202
    install.work()
    assert [each["text"] for each in chunks(client, member)] == ["The lamp costs twelve."]
    assert client.get(f"documents/{member}").json["index_generation"] == 2
    assert client.call("DELETE", f"{PREFIX}/documents/{container}").status == 204
    assert stored(install) == []
