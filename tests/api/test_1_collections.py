"""Collections, as a program uses them."""


def test_a_collection_is_made_shown_and_listed(client):
    """Its options are those that differ from the defaults."""
    said = client.post("collections", {"id": "shelf", "title": "My shelf", "options": {"chunk_size": 64}})
    assert said.status == 201
    assert said.json["options"] == {"chunk_size": 64}
    assert client.get("collections/shelf").json["title"] == "My shelf"
    assert [one["id"] for one in client.get("collections").json["collections"]] == ["shelf"]


def test_a_collection_without_an_id_is_given_one(client):
    """Whoever needs no name of their own need not think of one."""
    name = client.post("collections", {"title": "Nameless"}).json["id"]
    assert client.get(f"collections/{name}").json["title"] == "Nameless"


def test_making_it_again_as_it_is_changes_nothing(client):
    """The same wish is met already; another one is a conflict, and says what to do."""
    client.post("collections", {"id": "shelf", "options": {"chunk_size": 64}})
    assert client.post("collections", {"id": "shelf", "options": {"chunk_size": 64}}).status == 200
    said = client.post("collections", {"id": "shelf", "options": {"chunk_size": 65}})
    assert (said.status, said.code) == (409, "collection_exists")


def test_changed_options_ask_for_every_document_again(client, install):
    """The answer says for how many; null goes back to the default."""
    client.indexed("Some words about anchors.")
    said = client.call("PATCH", "collections/shelf", {"title": "Renamed", "options": {"chunk_size": 64}})
    assert said.json["requested"] == 1
    assert said.json["collection"]["title"] == "Renamed"
    back = client.call("PATCH", "collections/shelf", {"options": {"chunk_size": None}})
    assert back.json["collection"]["options"] == {}


def test_deleting_takes_the_documents_along(client):
    """Nothing of it can be found any more."""
    document = client.indexed("Some words about anchors.")
    assert client.call("DELETE", "collections/shelf").json == {"deleted": 1, "to_follow": 0}
    assert client.get("collections/shelf").code == "unknown_collection"
    assert client.get(f"documents/{document['id']}").code == "unknown_document"


def test_what_can_never_be_an_option_is_refused(client):
    """The message names what is known."""
    said = client.post("collections", {"id": "shelf", "options": {"colour": "red"}})
    assert (said.status, said.code) == (400, "bad_option")
    assert "chunk_size" in said.message
    assert client.post("collections", {"id": "no spaces"}).code == "bad_collection"
