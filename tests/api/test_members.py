"""Documents inside documents over HTTP: what a container holds, and where a document lies."""

import urllib.request

from tests.documents import files


def test_an_archive_shows_its_documents_and_each_its_archive(client, install):
    """By the API and in the web UI; labels and metadata of the archive hold for what is in it."""
    client.collection("shelf")
    data = files.archive({"a/tide.txt": b"The tide is high.", "moon.txt": b"The moon is full."})
    fields = {"metadata": '{"year": 1999}', "labels": '["hr"]'}
    box = client.upload("collections/shelf/documents", data, name="papers.zip", **fields).json["document"]
    install.work()
    inside = client.get(f"documents/{box['id']}/members").json
    assert inside["parents"] == []
    assert [each["name"] for each in inside["children"]] == ["a/tide.txt", "moon.txt"]
    child = client.get(f"documents/{inside['children'][0]['id']}").json
    assert (child["metadata"], child["labels"], child["index_status"]) == ({"year": 1999}, ["hr"], "success")
    around = client.get(f"documents/{child['id']}/members").json
    assert [(each["id"], each["title"]) for each in around["parents"]] == [(box["id"], box["title"])]
    assert [each["index_status"] for each in inside["children"]] == ["success", "success"]
    for name, other in ((child["id"], box["id"]), (box["id"], child["id"])):
        with urllib.request.urlopen(f"http://127.0.0.1:{install.port}/documents/{name}") as page:
            assert f'href="/documents/{other}"' in page.read().decode()


def test_an_archive_shows_which_of_its_files_failed(client, install):
    """By the API and in the web UI: the archive itself is ready."""
    client.collection("shelf")
    data = files.archive({"torn.pdf": b"%PDF-1.4 torn", "moon.txt": b"The moon is full."})
    box = client.upload("collections/shelf/documents", data, name="papers.zip").json["document"]
    install.work()
    inside = client.get(f"documents/{box['id']}/members").json["children"]
    assert {each["name"]: each["index_status"] for each in inside} == {
        "torn.pdf": "failed", "moon.txt": "success",
    }  # fmt: skip
    with urllib.request.urlopen(f"http://127.0.0.1:{install.port}/documents/{box['id']}") as page:
        assert 'data-state="failed"' in page.read().decode()
