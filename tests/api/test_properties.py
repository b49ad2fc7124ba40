"""Properties of files over HTTP: shown apart from metadata, found by filters, and trusted by no key."""

import urllib.request

from holdfast.service.access import Scope
from tests.api.install import Client
from tests.api.test_metadata import hits, listed
from tests.documents import pdfs

TEXT = b"---\ntitle: The tide table\nauthor: Ann\nteam: public\nyear: 2024\n---\n# Sea\n\nThe lighthouse.\n"


def uploaded(client, install, data=TEXT, name="tide.md", **fields):
    client.collection("shelf")
    document = client.upload("collections/shelf/documents", data, name=name, **fields).json["document"]
    install.work()
    return client.get(f"documents/{document['id']}").json


def test_properties_are_found_by_filters_and_metadata_comes_first(client, install):
    """Lists and search find both; metadata of the same name hides the property, until it is taken away."""
    document = uploaded(client, install)
    name, path = document["id"], f"/api/v1/documents/{document['id']}"
    assert document["properties"] == {
        "title": "The tide table",
        "author": "Ann",
        "team": "public",
        "year": 2024,
    }
    assert document["metadata"] == {}
    between = {"range": {"year": {"gte": 2024, "lt": 2025}}}
    assert (listed(client, between), hits(client, {"eq": {"author": "Ann"}})) == ([name], [name])
    client.call("PATCH", path, {"metadata": {"author": "Bo"}})
    assert (listed(client, {"eq": {"author": "Ann"}}), listed(client, {"eq": {"author": "Bo"}})) == (
        [],
        [name],
    )
    assert listed(client, between) == [name]
    client.call("PATCH", path, {"metadata": {}})
    assert hits(client, {"eq": {"author": "Ann"}}) == [name]
    assert client.get("search?collection=shelf&q=2024").json["hits"] == []


def test_properties_belong_to_the_version(client, install):
    """Those of the old one count until the new one is published; a move takes them along."""
    document = uploaded(client, install)
    name, path = document["id"], f"documents/{document['id']}"
    client.put(f"{path}/content", {"text": "---\nauthor: Cy\n---\n# Sea\n\nThe lighthouse."})
    assert listed(client, {"eq": {"author": "Ann"}}) == [name]
    install.work()
    assert client.get(path).json["properties"] == {"author": "Cy"}
    assert listed(client, {"or": [{"eq": {"author": "Ann"}}, {"exists": "year"}]}) == []
    client.collection("attic")
    client.put(f"collections/attic/documents/{name}", {"mode": "move"})
    assert listed(client, {"eq": {"author": "Cy"}}, where="attic") == [name]


def test_a_title_that_nobody_gave_is_that_of_the_file(client, install):
    """Search in titles finds it; one that somebody gave stays; without a good one it is the file's name."""
    document = uploaded(client, install)
    assert document["title"] == "The tide table"
    assert client.get("search?collection=shelf&q=tide").json["hits"]
    client.put(f"documents/{document['id']}/content", {"text": "# Sea\n\nThe lighthouse is dark."})
    install.work()
    assert client.get(f"documents/{document['id']}").json["title"] == "untitled"
    client.call("PATCH", f"/api/v1/documents/{document['id']}", {"title": "Mine"})
    client.put(f"documents/{document['id']}/content", {"text": TEXT.decode()})
    install.work()
    assert client.get(f"documents/{document['id']}").json["title"] == "Mine"
    other = uploaded(client, install, TEXT + b"More.", title="Given")
    assert other["title"] == "Given"


def test_a_file_never_passes_the_filter_of_a_key_by_itself(client, install):
    """Neither by front matter of the field's name, nor by names like those of labels; metadata does."""
    client = Client(install, install.access.make(tenant="default", name="all", scopes=list(Scope)).token)
    only = {"or": [{"eq": {"team": "public"}}, {"in": {"$labels": ["public"]}}]}
    created = install.access.make(
        tenant="default", name="limited", scopes=[Scope.READ, Scope.WRITE], only=only
    )
    limited = Client(install, created.token)
    document = uploaded(
        client, install, TEXT.replace(b"year", b"$labels: [public]\n$file.team: public\nyear")
    )
    assert limited.get(f"documents/{document['id']}").status == 404
    assert (listed(limited, {"exists": "year"}), hits(limited, {"exists": "year"})) == ([], [])
    refused = limited.upload("collections/shelf/documents", TEXT + b"New.", name="new.md")
    assert (refused.status, refused.json["error"]["code"]) == (403, "key_restricted")
    client.call("PATCH", f"/api/v1/documents/{document['id']}", {"metadata": {"team": "public"}})
    assert hits(limited, {"eq": {"author": "Ann"}}) == [document["id"]]


def test_a_collection_may_leave_properties_alone(client, install):
    """With the option off there are none, and front matter is no text either."""
    client.post("collections", {"id": "shelf", "options": {"properties": False}})
    document = uploaded(client, install)
    assert (document["properties"], document["title"]) == ({}, "tide.md")


def test_the_table_of_contents_is_that_of_the_file(client, install):
    """Bookmarks of a PDF, headings of any other; each entry leads to its text in the web UI."""
    bookmarks = [("Sand", 1, [("Salt & sea", 2)])]
    pdf = uploaded(client, install, pdfs.make(["The sand.", "The salt."], bookmarks=bookmarks), "a.pdf")
    text = uploaded(client, install, b"# One\n\nThe sand.\n\n## Two\n\nThe lighthouse.\n", "b.md")
    outline = client.get(f"documents/{pdf['id']}/outline").json
    assert outline == {
        "generation": 1,
        "entries": [
            {"level": 1, "title": "Sand", "page": 1},
            {"level": 2, "title": "Salt & sea", "page": 2},
        ],
    }
    entries = client.get(f"documents/{text['id']}/outline").json["entries"]
    assert [(each["level"], each["title"]) for each in entries] == [(1, "One"), (2, "Two")]
    chunks = client.get(f"documents/{pdf['id']}/chunks").json["chunks"]
    assert [each["headings"] for each in chunks] == [["Sand"], ["Sand", "Salt & sea"]]
    home = f"http://127.0.0.1:{install.port}/documents/{pdf['id']}"
    link = "heading=Salt+%26+sea&amp;page=2"
    with urllib.request.urlopen(home) as page:
        assert link in page.read().decode()
    with urllib.request.urlopen(f"{home}?{link.replace('&amp;', '&')}") as page:
        assert '<li id="c-0-1" class="target">' in page.read().decode()


def test_the_pages_say_how_they_were_read(client, install):
    """A few at a time, and in the web UI; a cursor of another version is refused."""
    pdf = uploaded(client, install, pdfs.make(["The sand.", "", "The salt and the sea."]), "a.pdf")
    assert (pdf["page_qualities"], pdf["language"]) == ({"empty": 1, "text": 2}, "en")
    first = client.get(f"documents/{pdf['id']}/pages?limit=2").json
    rest = client.get(f"documents/{pdf['id']}/pages?limit=2&cursor={first['next']}").json
    pages = [*first["pages"], *rest["pages"]]
    assert [(each["page"], each["quality"], each["words"]) for each in pages] == [
        (1, "text", 2),
        (2, "empty", 0),
        (3, "text", 5),
    ]
    assert (first["generation"], rest["next"]) == (1, None)
    with urllib.request.urlopen(f"http://127.0.0.1:{install.port}/documents/{pdf['id']}") as page:
        assert 'id="pages-title"' in page.read().decode()
    stale = client.get(f"documents/{pdf['id']}/pages?cursor=9.0.1")
    assert (stale.status, stale.json["error"]["code"]) == (409, "stale_cursor")
