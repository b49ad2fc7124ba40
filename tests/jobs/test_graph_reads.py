"""The knowledge graph over HTTP: what is there, page by page, with its passages, and nothing withheld."""

import json

import pytest

from holdfast.service.access import Scope
from tests import commands
from tests.api.install import Client
from tests.jobs.graph_rows import GraphRows, key

TEXTS = {
    "rules": "Ann Holt keeps the northern lighthouse.",
    "ships": "Ben Carr sails the Petrel past the lighthouse.",
    "secret": "Quicksilver Jones owes Ann Holt a lantern.",
}


@pytest.fixture
def documents(install):
    """The ids of three published documents by name, with their generations."""
    items = {name: install.client.text(text, title=name.title()) for name, text in TEXTS.items()}
    install.work()
    return {name: each["id"] for name, each in items.items()}


def drawn(install, documents, **versions):
    """A graph of four people over the three documents, and reports on two communities."""
    numbers = {each: versions.get(name, 1) for name, each in documents.items()}
    rules, ships, secret = documents["rules"], documents["ships"], documents["secret"]
    rows = GraphRows(install.runtime.db, numbers)
    ann = rows.entity("Ann Holt", "Keeps the lighthouse.", rules, mentions=5, names=["A. Holt"])
    ben = rows.entity("Ben Carr", "Sails the Petrel.", ships, mentions=3)
    ship = rows.entity("Petrel", "A ship.", ships, mentions=4, kind="ship")
    jones = rows.entity("Quicksilver Jones", "Owes a lantern.", secret)
    sails = rows.relation("Ben Carr", "Petrel", "He sails it.", ships, weight=3)
    rows.relation("Ann Holt", "Ben Carr", "She lights his way.", rules, ships, weight=2)
    rows.relation("Ann Holt", "Quicksilver Jones", "He owes her.", secret)
    findings = [{"text": "Ben sails the Petrel.", "cites": [sails, ship]}]
    low = rows.report("Sailors", "Ben and his ship.", ships, children=(ben, ship), findings=findings)
    other = rows.report("Lights", "Ann and quicksilver.", rules, secret, children=(ann, jones))
    rows.report("Harbour", "All.", *documents.values(), level=2, children=(low, other))
    return rows


def test_a_graph_is_read_from_its_entities_to_their_passages(install, documents):
    """What is there, an entity by its name, its neighbours by weight, and the passage that it is from."""
    graph = "collections/shelf/graph"
    assert install.client.get(graph).json["generation"] is None
    claim = drawn(install, documents).publish()
    whole = install.client.get(graph).json
    assert whole["counts"] == {"entities": 4, "relations": 3, "reports": 3}
    assert (whole["generation"], whole["stale"], whole["stand_in"]) == (claim.generation, False, True)
    assert whole["kinds"] == {"person": 3, "ship": 1}
    assert [each["title"] for each in whole["entities"]] == [
        "Ann Holt",
        "Petrel",
        "Ben Carr",
        "Quicksilver Jones",
    ]
    names = lambda query: [each["title"] for each in install.client.get(f"{graph}?{query}").json["entities"]]
    assert names("q=hol") == ["Ann Holt"]
    assert names("q=a%20holt") == ["Ann Holt"]
    assert names("kind=ship") == ["Petrel"]
    ben = install.client.get(f"{graph}/entities/{key('Ben Carr')}").json
    assert (ben["description"], ben["report"]["title"]) == ("Sails the Petrel.", "Sailors")
    source = ben["sources"][0]
    assert (source["title"], source["passages"][0]["text"]) == ("Ships", TEXTS["ships"])
    assert source["passages"][0]["chunk"] == f"{documents['ships']}@0.0"
    near = install.client.get(f"{graph}/entities/{key('Ben Carr')}/neighbours").json["neighbours"]
    assert [(each["entity"]["title"], each["weight"], each["outgoing"]) for each in near] == [
        ("Petrel", 3, True),
        ("Ann Holt", 2, False),
    ]


def test_communities_are_read_by_level_down_to_the_passages_of_a_finding(install, documents):
    """The top first; a report has its members, and a finding the passages that it rests on."""
    drawn(install, documents).publish()
    path = "collections/shelf/graph/communities"
    listed = install.client.get(path).json
    assert [each["title"] for each in listed["communities"]] == ["Harbour", "Lights", "Sailors"]
    assert listed["levels"] == {"2": 1, "1": 2}
    below = install.client.get(f"{path}?level=1&parent={key('Harbour')}").json["communities"]
    assert [each["title"] for each in below] == ["Lights", "Sailors"]
    report = install.client.get(f"{path}/{key('Sailors')}").json
    assert [each["title"] for each in report["members"]] == ["Petrel", "Ben Carr"]
    assert [each["title"] for each in report["findings"][0]["cites"]] == ["Ben Carr \u2013 Petrel", "Petrel"]
    assert [each["text"] for each in report["findings"][0]["passages"]] == [TEXTS["ships"]]
    top = install.client.get(f"{path}/{key('Harbour')}").json
    assert [each["title"] for each in top["communities"]] == ["Lights", "Sailors"]
    assert len(top["members"]) == 4


def test_pages_of_a_graph_are_of_one_generation(install, documents):
    """Each page goes on where the last one ended; after a publication the cursor is refused."""
    drawn(install, documents).publish()
    graph = "collections/shelf/graph"
    first = install.client.get(f"{graph}?limit=3").json
    rest = install.client.get(f"{graph}?limit=3&cursor={first['next']}").json
    assert [each["title"] for each in rest["entities"]] == ["Quicksilver Jones"]
    assert rest["next"] is None
    near = f"{graph}/entities/{key('Ann Holt')}/neighbours?limit=1"
    follows = install.client.get(near).json["next"]
    drawn(install, documents).publish()
    for path in (f"{graph}?cursor={first['next']}", f"{near}&cursor={follows}"):
        assert install.client.get(path).code == "stale_cursor"
    assert install.client.get(f"{graph}?cursor=x").code == "bad_cursor"
    assert install.client.get(f"{graph}/entities/abc").code == "unknown_node"
    assert install.client.get(f"{graph}/communities/abc").code == "unknown_node"


@pytest.mark.g3
def test_a_deleted_document_takes_its_entities_relations_and_reports_along(install, documents):
    """From the commit on, and after its rows are pruned; what is of other documents alone stays."""
    drawn(install, documents).publish()
    graph = "collections/shelf/graph"
    assert install.client.get(graph).json["counts"]["entities"] == 4
    assert install.client.call("DELETE", f"documents/{documents['secret']}").status == 204
    for _ in range(2):
        left = install.client.get(graph).json
        assert left["counts"] == {"entities": 3, "relations": 2, "reports": 1}
        assert [each["title"] for each in left["entities"]] == ["Ann Holt", "Petrel", "Ben Carr"]
        assert install.client.get(f"{graph}/entities/{key('Quicksilver Jones')}").code == "unknown_node"
        near = install.client.get(f"{graph}/entities/{key('Ann Holt')}/neighbours").json["neighbours"]
        assert [each["entity"]["title"] for each in near] == ["Ben Carr"]
        assert [each["title"] for each in install.client.get(f"{graph}/communities").json["communities"]] == [
            "Sailors"
        ]
        install.tidy()


def test_a_key_with_a_filter_sees_what_all_of_its_documents_allow(install, documents):
    """An entity of a document that does not pass is not there, nor a relation that ends at it."""
    drawn(install, documents).publish()
    for name in ("rules", "ships"):
        install.client.call("PATCH", f"documents/{documents[name]}", {"labels": ["public"]})
    only = {"in": {"$labels": ["public"]}}
    limited = Client(
        install, install.access.make(tenant="default", name="x", scopes=[Scope.READ], only=only).token
    )
    seen = limited.get("collections/shelf/graph").json
    assert seen["counts"] == {"entities": 3, "relations": 2, "reports": 1}
    assert "Quicksilver" not in str(seen)
    assert limited.get(f"collections/shelf/graph/entities/{key('Quicksilver Jones')}").status == 404


def test_a_changed_document_makes_its_entities_stale(install, documents):
    """The answer says so until the next run, and shows no passage of the version that is gone."""
    drawn(install, documents).publish()
    path = f"documents/{documents['ships']}/content"
    changed = install.client.upload(path, b"Ben Carr sold the Petrel.", method="PUT")
    assert changed.status == 202, changed.raw
    install.work()
    assert install.client.get("collections/shelf/graph").json["stale"]
    ben = install.client.get(f"collections/shelf/graph/entities/{key('Ben Carr')}").json
    assert ben["stale"]
    assert ben["sources"][0]["passages"] == []
    assert not install.client.get(f"collections/shelf/graph/entities/{key('Ann Holt')}").json["stale"]


def test_the_command_prints_tables(small, sqlite_url, monkeypatch, capsys):
    """Entities, one of them with its neighbours and its passage, and the reports."""
    items = {name: small.client.text(text, title=name.title()) for name, text in TEXTS.items()}
    small.work()
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(small.settings.data_dir))
    holdfast = commands.caller(monkeypatch, capsys)
    assert "holdfast jobs graph" in holdfast("graph", "shelf")[1]
    drawn(small, {name: each["id"] for name, each in items.items()}).publish()
    _, listed, _ = holdfast("graph", "shelf")
    assert "4 entities, 3 relations, 3 reports, stand-in" in listed
    assert [line.split("  ")[0] for line in listed.splitlines()[2:4]] == ["Ann Holt", "Petrel"]
    _, ben, _ = holdfast("graph", "shelf", "--entity", "ben carr")
    assert "Petrel" in ben
    assert TEXTS["ships"] in ben
    _, reports, _ = holdfast("graph", "shelf", "--communities")
    assert "Harbour" in reports
    assert holdfast("graph", "shelf", "--entity", "nobody")[0] == 5
    assert json.loads(holdfast("graph", "shelf", "--json")[1])["graph"]["counts"]["entity"] == 4
