"""Chunks edited and switched off over HTTP: a run each time, listed with the original."""

import pytest

from tests.api.install import PREFIX


@pytest.fixture
def client(install):
    return install.key("default", "read", "write")


def chunks(client, document, **more):
    return client.get(f"documents/{document['id']}/chunks").json["chunks"]


def change(client, document, chunk, body, **headers):
    path = f"{PREFIX}/documents/{document['id']}/chunks/{chunk}"
    return client.call("PATCH", path, body, headers={"If-Match": headers["match"]} if headers else {})


def test_a_chunk_is_edited_and_restored(install, client):
    """202 with the run; the list, the hits and the edits show it, with the original and who it was."""
    document = client.indexed("The lamp costs ten.", title="Prices")
    (chunk,) = chunks(client, document)
    assert (chunk["edited"], chunk["enabled"], chunk["original_text"]) == (False, True, None)
    said = change(client, document, chunk["id"], {"text": "The lamp costs twelve."})
    assert (said.status, said.json["run"]["generation"], said.json["disposition"]) == (202, 2, "superseding")
    pending = client.get(f"documents/{document['id']}/edits").json["edits"]
    assert [each["state"] for each in pending] == ["pending"]
    install.work()
    (edited,) = chunks(client, document)
    assert (edited["id"], edited["text"]) == (chunk["id"], "The lamp costs twelve.")
    assert (edited["edited"], edited["original_text"]) == (True, "The lamp costs ten.")
    (hit,) = client.get("search?collection=shelf&q=lamp").json["hits"]
    assert (hit["text"], hit["edited"]) == ("The lamp costs twelve.", True)
    (edit,) = client.get(f"documents/{document['id']}/edits").json["edits"]
    who = client.get(f"documents/{document['id']}/runs").json["runs"][0]["actor"]
    assert who
    assert (edit["state"], edit["edited_by"], edit["page"]) == ("applied", who, 1)
    story = client.get(f"documents/{document['id']}/why").json
    noted = [(each["verb"], each["reason"], each["actor"], each["generation"]) for each in story["journal"]]
    assert ("edit", "text", who, 2) in noted
    assert ("request", "superseding:edited", who, 2) in noted
    assert change(client, document, edit["chunk"], {"text": None, "enabled": True}).status == 202
    install.work()
    assert [each["text"] for each in chunks(client, document)] == ["The lamp costs ten."]
    assert client.get(f"documents/{document['id']}/edits").json["edits"] == []


def test_a_chunk_that_is_off_is_listed_only_for_who_may_switch_it_on(install, client):
    """A reader sees neither the chunk nor that there is an edit."""
    document = client.indexed("Only this.", title="Off")
    (chunk,) = chunks(client, document)
    change(client, document, chunk["id"], {"enabled": False})
    install.work()
    assert [(each["enabled"], each["text"]) for each in chunks(client, document)] == [(False, "Only this.")]
    reader = install.key("default", "read")
    assert chunks(reader, document) == []
    assert client.get("search?collection=shelf&q=only").json["hits"] == []
    assert reader.get(f"documents/{document['id']}/edits").status == 403
    assert change(reader, document, chunk["id"], {"enabled": True}).status == 403


def test_an_edit_of_an_older_version_or_of_nothing_is_refused(install, client):
    """412 by If-Match, 404 for no such chunk, 400 for an empty text, 402 over `max_cost` or budget."""
    document = client.indexed("The lamp costs ten.", title="Prices")
    (chunk,) = chunks(client, document)
    assert change(client, document, chunk["id"], {"enabled": False}, match='"7"').status == 412
    assert change(client, document, "0" * 32, {"enabled": False}).code == "no_chunk"
    assert change(client, document, chunk["id"], {"text": " "}).code == "empty"
    assert change(client, document, chunk["id"], {}).code == "nothing_to_change"
    assert change(client, document, chunk["id"], {"enabled": False}, match='"1"').status == 202
