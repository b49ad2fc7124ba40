"""What is derived, as readers see it: nothing of a deleted document, and the same on every database."""

import hashlib
import threading
from http.client import HTTPConnection

import pytest

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.service.access import Scope
from holdfast.store.base.schema import derived_nodes
from tests import commands
from tests.api.install import ApiInstall, Client
from tests.jobs import derived_kills
from tests.jobs.graph_rows import GraphRows
from tests.jobs.install import ask

CANARY = "zanzibarium"
KINDS = ("raptor", "graph", "mindmap")


@pytest.fixture
def plain(database_url, tmp_path):
    """An installation without a language model."""
    installation = ApiInstall(database_url, tmp_path / "data")
    yield installation
    installation.close()


def text(name, parts=8):
    """A document of some chunks, with headings and names that hold its own name."""
    return "\n\n".join(
        f"## {name} part {at}\n\nThe keeper {name.title()} Jones met Ann Holt at Port {name.title()}. "
        + " ".join(f"{name}{at}word{number}" for number in range(120))
        for at in range(parts)
    )


def derived(install):
    for kind in KINDS:
        assert ask(install.client, kind).status == 202
    install.work()


def tree_texts(client, node=None):
    """Every answer of the tree, from the top to the passages."""
    path = "collections/shelf/tree" + (f"?node={node}" if node else "")
    answer = client.get(path)
    yield answer.raw.decode()
    for each in answer.json["nodes"]:
        yield from tree_texts(client, each["key"])


def answers(install, holdfast):
    """Everything that shows anything that was derived, as text by name."""
    client, shown = install.client, {}
    shown["tree"] = "".join(tree_texts(client))
    paths = ["graph", "graph?q=jones", "graph/communities", "mindmap", "mindmap?format=markdown"]
    for path in [*paths, "mindmap?format=svg"]:
        shown[path] = client.get(f"collections/shelf/{path}").raw.decode()
    for mode in ("local", "global"):
        body = {"collections": ["shelf"], "q": "Jones port keeper", "mode": mode}
        shown[f"search {mode}"] = client.post("search", body).raw.decode()
    shown["search"] = client.post("search", {"collections": ["shelf"], "q": "keeper Jones"}).raw.decode()
    shown["ask"] = client.post("collections/shelf/ask", {"question": "Whom did Jones meet?"}).raw.decode()
    for tab in ("tree", "graph", "mindmap"):
        shown[f"command {tab}"] = holdfast(tab, "shelf")[1]
        connection = HTTPConnection("127.0.0.1", install.port, timeout=30)
        connection.request("GET", f"/collections/shelf/{tab}", headers={"Accept": "text/html"})
        shown[f"web {tab}"] = connection.getresponse().read().decode()
        connection.close()
    return {name: CANARY in each.lower() for name, each in shown.items()}


@pytest.mark.g3
def test_a_word_of_a_deleted_document_is_in_nothing_that_was_derived(
    plain, database_url, tmp_path, monkeypatch, capsys
):
    """It was in every answer; from the commit of the deletion on it is in none."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", database_url)
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "data"))
    holdfast = commands.caller(monkeypatch, capsys)
    plain.client.collection("shelf")
    for name in (CANARY, "other"):
        plain.client.upload("collections/shelf/documents", text(name).encode(), f"{name}.md")
    plain.work()
    derived(plain)
    assert [name for name, has in answers(plain, holdfast).items() if not has] == []
    documents = plain.client.get("collections/shelf/documents").json["documents"]
    (secret,) = (each["id"] for each in documents if CANARY in each["title"])
    assert plain.client.call("DELETE", f"documents/{secret}").status == 204
    assert [name for name, has in answers(plain, holdfast).items() if has] == []


def test_a_key_with_a_filter_sees_what_all_sources_allow(plain):
    """Of two documents it may read one: nothing that the other had a part in is shown to it."""
    plain.client.collection("shelf")
    for name, team in ((CANARY, "blue"), ("other", "red")):
        document = plain.client.upload("collections/shelf/documents", text(name).encode(), f"{name}.md").json
        path = f"documents/{document['document']['id']}"
        assert plain.client.call("PATCH", path, {"labels": [team]}).status == 200
    plain.work()
    derived(plain)
    only = {"in": {"$labels": ["red"]}}
    access = plain.access.make(tenant="default", name="red", scopes=[Scope.READ], only=only)
    reader = Client(plain, access.token)
    shown = ["".join(tree_texts(reader))]
    shown += [reader.get(f"collections/shelf/{path}").raw.decode() for path in ("graph", "mindmap")]
    assert [CANARY in each.lower() for each in shown] == [False] * 3
    assert ["other" in each.lower() for each in shown] == [True] * 3


READS, REPUBLICATIONS = 1_000, 20


def published(db, document, number):
    """A tree and a map whose nodes all say in which round they were made, and differ in number."""
    for kind, node_type in (("raptor", "summary"), ("mindmap", "topic")):
        rows = GraphRows(db, {document: 1})
        below = [
            rows.node(node_type, f"round {number} {at}", f"round {number}", document, level=1)
            for at in range(2 + number % 3)
        ]
        rows.node(node_type, f"round {number}", f"round {number}", document, level=2, children=below)
        rows.publish(kind=kind)


@pytest.mark.g3
def test_a_thousand_reads_of_trees_and_maps_are_each_of_one_generation(plain):
    """All that one answer has was made in one of the twenty rounds, and all of that round is there."""
    document = plain.client.indexed("One passage.")["id"]
    published(plain.runtime.db, document, 0)
    services = bootstrap.AppServices(plain.runtime)
    shelf = services.collections.get("default", "shelf")
    counts, faults, ended = [0, 0], [], threading.Event()

    def read(reader):
        while not ended.is_set():
            topics = [each.title for each in services.mind_maps.of_collection(shelf).every_topic()]
            (root,) = services.trees.of_collection("default", "shelf").nodes
            rounds = {" ".join(title.split()[:2]) for title in topics}
            number = int(topics[0].split()[1])
            children = 2 + int(root.node.title.split()[1]) % 3
            if len(rounds) != 1 or len(topics) != 3 + number % 3 or root.node.children != children:
                faults.append((topics, root))
            counts[reader] += 2

    readers = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for each in readers:
        each.start()
    try:
        for number in range(1, REPUBLICATIONS + 1):
            published(plain.runtime.db, document, number)
            goal = number * READS // REPUBLICATIONS
            until(lambda: sum(counts) >= goal or faults, 60, "nobody reads")  # noqa: B023
    finally:
        ended.set()
        for each in readers:
            each.join()
    assert faults == []
    assert sum(counts) >= READS


# Of what each kind makes of three documents; another rule or prompt gives another one, everywhere.
SHAPES = {"raptor": "31f27d4b0557", "graph": "fa23a5395ded", "mindmap": "84fce233a3f8"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_shape_on_every_database_in_whatever_order_documents_came(install, kind):
    """Levels, titles and parents are what they are everywhere; documents in another order cost nothing."""
    chosen = derived_kills.KINDS[kind]
    install.author.say = chosen.chat
    uploads = chosen.write(3)
    for name, listed in (("shelf", uploads), ("other", uploads[::-1])):
        install.client.collection(name)
        for upload in listed:
            install.client.upload(f"collections/{name}/documents", upload.content, upload.name)
        install.work()
        before = install.paid
        assert ask(install.client, kind, to=f"collections/{name}").status == 202
        install.work()
    assert install.paid == before
    rows = install.runtime.db.read(lambda tx: tx.execute(derived_nodes.select()).all())
    shapes = {}
    for row in rows:
        titles = {each.key: each.title for each in rows if each.head_id == row.head_id}
        line = f"{row.level} {row.type} {row.title} < {titles.get(row.parent)}"
        shapes.setdefault(row.head_id, []).append(line)
    first, second = ("\n".join(sorted(each)) for each in shapes.values())
    assert first == second
    assert hashlib.sha256(first.encode()).hexdigest()[:12] == SHAPES[kind]
