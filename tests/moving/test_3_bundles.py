"""A collection as one file: out of a tenant, and into another or another installation."""

import json
import struct
from urllib.request import urlopen

import pytest
from sqlalchemy import func, insert, select, update

from holdfast.kinds import export as exporting
from holdfast.store.base.schema import budgets, calls, charges, chunks, documents, heads, tasks
from tests.documents import files, pdfs
from tests.moving.bundle_files import brought, changed, exported, hits, listed, packed, pieces, told

TEXTS = (
    "The lighthouse keeper oils the great lamp before dusk.",
    "A ferry crosses the sound twice a day in summer.",
    "Copper kettles hang above the stove in the old kitchen.",
)


def count(install, table, *where):
    query = select(func.count()).select_from(table).where(*where)
    return install.runtime.db.read(lambda tx: tx.execute(query).scalar_one())


@pytest.fixture
def shelf(client, install):
    """A collection with options, some documents, and one that is not ready."""
    options = {"chunk_size": 64}
    assert client.post("collections", {"id": "shelf", "title": "The shelf", "options": options}).status == 201
    for number, text in enumerate(TEXTS):
        client.text(text, title=f"Text {number}")
    install.work()
    never = client.text("Nobody has begun with this one.")
    assert client.post(f"documents/{never['id']}/cancel").status == 200
    return client


@pytest.fixture
def bundle(shelf, install):
    got = exported(shelf)
    install.work()
    return got


def test_a_bundle_holds_what_is_published(bundle):
    """Documents with their bytes, chunks, vectors and options; not what is still to be indexed."""
    result = pieces(bundle)
    manifest = json.loads(result["manifest.json"])
    assert (manifest["format"], manifest["documents"], manifest["chunks"], manifest["vectors"]) == (
        1,
        3,
        3,
        3,
    )
    assert manifest["collection"] == {"id": "shelf", "title": "The shelf", "options": {"chunk_size": 64}}
    assert [each["provider"] for each in manifest["models"]] == ["local"]
    lines = [json.loads(line) for line in result["parts/00001/documents.jsonl"].splitlines()]
    assert {each["title"] for each in lines} == {"Text 0", "Text 1", "Text 2"}
    content = result["parts/00001/content.bin"]
    size = struct.unpack("<Q", content[:8])[0]
    assert content[8 : 8 + size].decode() in TEXTS


def test_an_import_is_searchable_at_once_and_costs_nothing(bundle, install):
    """In another tenant: by words and by vectors, with the same ranking, and nothing was embedded again."""
    other = install.key("other")
    owner = install.key("default")
    before = count(install, charges)
    job = brought(other, bundle)
    assert job["state"] == "success"
    assert (job["totals"]["documents"], job["totals"]["chunks"], job["totals"]["vectors"]) == (3, 3, 3)
    assert other.get("collections/shelf").json["options"] == {"chunk_size": 64}
    assert {each["index_status"] for each in listed(other, "shelf")} == {"success"}
    for words in ("lighthouse lamp", "a boat over the water"):
        assert hits(other, "shelf", words.replace(" ", "+")) == hits(owner, "shelf", words.replace(" ", "+"))
    assert count(install, charges) == before
    again = other.post(f"documents/{listed(other, 'shelf')[0]['id']}/index", {"mode": "retry"})
    assert (again.status, again.json["disposition"]) == (200, "unchanged")


def test_the_same_bundle_again_changes_nothing(bundle, install):
    """The same documents, not one twice, and none of what people did with them since is undone."""
    other = install.key("other")
    brought(other, bundle)
    first = listed(other, "shelf")
    other.call("PATCH", f"documents/{first[0]['id']}", {"title": "Mine now"})
    rows = count(install, chunks)
    job = brought(other, bundle)
    assert (job["totals"]["documents"], job["totals"]["unchanged"]) == (0, 3)
    after = listed(other, "shelf")
    assert [each["id"] for each in after] == [each["id"] for each in first]
    assert [each["index_generation"] for each in after] == [1, 1, 1]
    assert after[0]["title"] == "Mine now"
    assert count(install, chunks) == rows


def test_into_its_own_collection_everything_is_unchanged(bundle, shelf, install):
    """And what was deleted since comes back."""
    gone = listed(shelf, "shelf")
    gone = next(each for each in gone if each["title"] == "Text 1")
    shelf.call("DELETE", f"documents/{gone['id']}")
    job = brought(shelf, bundle)
    assert (job["totals"]["documents"], job["totals"]["unchanged"]) == (1, 2)
    assert hits(shelf, "shelf", "ferry")[0] == TEXTS[1]


def test_into_a_collection_of_another_name(bundle, install):
    """One that is there keeps its own options; its documents are re-cut only when somebody asks."""
    other = install.key("other")
    other.collection("attic")
    job = brought(other, bundle, collection="attic")
    assert (job["collection"], job["totals"]["documents"]) == ("attic", 3)
    assert other.get("collections/shelf").status == 404
    result = listed(other, "attic")[0]
    requested = other.post(f"documents/{result['id']}/index", {"mode": "retry"})
    assert (requested.status, requested.json["disposition"]) == (202, "superseding")
    install.work()
    now = other.get(f"documents/{result['id']}").json
    assert (now["published_generation"], now["cost"]["paid_calls"]) == (2, 0)


def test_actions_fire_for_what_arrives(bundle, install):
    """A document that is brought becomes ready here."""
    other = install.key("other")
    other.collection("attic")
    other.post("collections/attic/actions", {"sort": "prompt", "params": {"instruction": "Sum it up."}})
    brought(other, bundle, collection="attic")
    install.work()
    assert other.get("collections/attic/actions").json["actions"][0]["fired"] == 3


def foreign(bundle):
    """The bundle as an installation with another provider would have made it."""

    def another(line):
        return {**line, "index": {**line["index"], "provider": "elsewhere", "model": "their-model"}}

    return changed(bundle, "parts/00001/documents.jsonl", another)


def test_vectors_of_another_provider_answer_no_query_and_words_do(bundle, install):
    """They are in the ledger under their own key; asked for, the documents are embedded here."""
    other = install.key("other")
    job = brought(other, foreign(bundle))
    assert (job["state"], job["totals"]["words_only"]) == ("success", 3)
    assert hits(other, "shelf", "ferry")[0] == TEXTS[1]
    assert count(install, calls, calls.c.tenant == "other", calls.c.model == "their-model") == 3
    assert count(install, calls, calls.c.tenant == "other") == 3
    result = listed(other, "shelf")[0]
    assert other.post(f"documents/{result['id']}/index", {"mode": "retry"}).status == 202
    install.work()
    assert other.get(f"documents/{result['id']}").json["index_status"] == "success"


def test_a_bundle_changes_nothing_of_another_tenants_and_no_call_that_is_settled(bundle, install, shelf):
    """Lying vectors are the importing tenant's own; what they had paid for stays as it was."""
    owner, liar, honest = install.key("default"), install.key("liar"), install.key("honest")
    honest.post("collections", {"id": "shelf", "options": {"chunk_size": 64}})
    honest.indexed(TEXTS[0])

    def results(tenant):
        query = select(calls.c.key, calls.c.result).where(calls.c.tenant == tenant)
        return dict(install.runtime.db.read(lambda tx: [tuple(row) for row in tx.all(query)]))

    before = results("default"), results("honest")
    result = pieces(bundle)
    size = len(result["parts/00001/vectors.bin"])
    result["parts/00001/vectors.bin"] = struct.pack(f"<{size // 4}f", *([0.5] * (size // 4)))
    for each in (liar, honest):
        brought(each, packed(result), collection="bad")
    assert results("default") == before[0]
    assert {key: results("honest")[key] for key in before[1]} == before[1]
    assert len(results("liar")) == 3
    assert hits(owner, "shelf", "ferry")[0] == TEXTS[1]


def test_an_export_shows_one_moment(shelf, install, monkeypatch):
    """What is published while the rows are read is not in it, neither whole nor in part."""
    done = []
    genuine = exporting.exports.chunks_of

    def meanwhile(*args):
        if not done:
            done.append(1)
            result = next(each for each in listed(shelf, "shelf") if each["title"] == "Text 2")
            shelf.put(f"documents/{result['id']}/content", {"text": "Something else entirely."})
            install.runtime.engine.work_off()
        return genuine(*args)

    monkeypatch.setattr(exporting.exports, "chunks_of", meanwhile)
    result = pieces(exported(shelf))
    text = result["parts/00001/chunks.jsonl"].decode()
    assert done
    assert all(each in text for each in TEXTS)
    assert "Something else" not in text


def test_a_large_collection_is_many_parts(shelf, install, monkeypatch):
    """Each is a task of the import, and progress counts documents."""
    monkeypatch.setattr(exporting, "DOCUMENTS_PER_PART", 1)
    got = exported(shelf)
    assert json.loads(pieces(got)["manifest.json"])["parts"] == 3
    other = install.key("other")
    job = brought(other, got)
    assert (job["totals"]["documents"], job["progress"]["done"]) == (3, 3)
    assert hits(other, "shelf", "kettles")[0] == TEXTS[2]


def test_pages_and_pictures_come_along(client, install):
    """A PDF: its bytes, its format, its pages, its thumbnail."""
    client.collection("shelf")
    body = client.upload(
        "collections/shelf/documents", pdfs.make(["One page.", "Another page."]), "a.pdf"
    ).json
    install.work()
    old = client.get(f"documents/{body['document']['id']}").json
    other = install.key("other")
    owner = install.key("default")
    brought(other, exported(owner))
    (new,) = listed(other, "shelf")
    for name in ("title", "name", "digest", "size", "format", "pages", "chunks"):
        assert new[name] == old[name], name
    assert (
        other.get(f"documents/{new['id']}/thumbnail").raw == owner.get(f"documents/{old['id']}/thumbnail").raw
    )


def test_an_empty_collection_is_a_bundle_too(client, install):
    """It brings its title and options; and a budget that is used up keeps nobody's documents back."""
    used_up = {"tenant": "default", "scope": "tenant", "hard_limit": 0}
    install.runtime.db.write("by_hand", lambda tx: tx.execute(insert(budgets), used_up))
    client.post("collections", {"id": "shelf", "title": "Nothing yet"})
    got = exported(client)
    other = install.key("other")
    assert brought(other, got)["state"] == "success"
    assert other.get("collections/shelf").json["title"] == "Nothing yet"


def test_a_second_export_is_refused_while_one_is_under_way(shelf):
    """409 with a sentence and the active run; the file belongs to the job alone."""
    first = shelf.post("collections/shelf/export", {"lane": "interactive"})
    said = shelf.post("collections/shelf/export")
    assert (said.status, said.code) == (409, "duplicate")
    assert said.message.startswith("Export of The shelf: already in progress")
    job_id = first.json["job_id"]
    assert shelf.get(f"jobs/{job_id}/file").code == "no_file"
    assert shelf.get(f"jobs/{job_id}/results").json["results"] == []
    assert shelf.get(f"jobs/{job_id}/results?format=csv").status == 200
    assert [each["kind"] for each in shelf.get("jobs?kind=export").json["jobs"]] == ["export"]


def test_a_file_that_was_thrown_away_is_told_as_such(shelf, install):
    """It is kept for a day."""
    said = shelf.post("collections/shelf/export")
    install.work()
    with urlopen(f"http://127.0.0.1:{install.port}/jobs/{said.json['job_id']}") as page:
        assert b"Export" in page.read()
    result = shelf.get(f"jobs/{said.json['job_id']}/file")
    assert result.headers["content-disposition"] == 'attachment; filename="shelf.holdfast.zip"'
    assert int(result.headers["content-length"]) == len(result.raw)
    gone = [each.digest for each in install.runtime.shelf.older(-10.0)]
    for digest in gone:
        install.runtime.shelf.delete(digest)
    assert shelf.get(f"jobs/{said.json['job_id']}/file").code == "no_file"


def test_a_document_whose_bytes_are_gone_is_left_out_and_counted(bundle, shelf, install):
    """An import cannot make a document without its content."""
    for each in install.runtime.shelf.older(-10.0):
        install.runtime.shelf.delete(each.digest)
    got = exported(shelf)
    other = install.key("other")
    job = brought(other, got)
    assert job["totals"]["documents"] == 0
    assert job["totals"]["without_bytes"] >= 3


class DeadError(BaseException):
    """The process ended here."""


def die_at(install, monkeypatch, number):
    """The worker dies in mid-import, when it is about to publish this document."""
    kind = install.worker.engine.registry.get("import").run.__self__
    genuine, seen = kind._publish, []

    def die(*args):
        seen.append(1)
        if len(seen) == number:
            raise DeadError
        return genuine(*args)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "_publish", die)
        with pytest.raises(DeadError):
            install.work()


def leases_ran_out(install, *where):
    ended = update(tasks).values(lease_until=0.0).where(tasks.c.state == "running", *where)
    install.runtime.db.write("by_hand", lambda tx: tx.execute(ended))
    install.worker.engine.sweep()


@pytest.mark.g4
def test_what_an_import_left_is_taken_up(bundle, install, monkeypatch):
    """It died between two documents: the second was opened, and not published."""
    other = install.key("other")
    said = other.upload("imports", bundle, "shelf.zip")
    die_at(install, monkeypatch, 2)
    assert [each["index_status"] for each in listed(other, "shelf")].count("success") == 1
    leases_ran_out(install, tasks.c.pipeline == "import@1")
    install.work()
    job = told(other, said)
    assert (job["state"], job["totals"]["documents"], job["totals"]["unchanged"]) == ("success", 2, 1)
    assert [each["index_status"] for each in listed(other, "shelf")] == ["success"] * 3
    assert count(install, charges, charges.c.tenant == "other") == 0


@pytest.mark.g4
def test_a_document_that_an_import_left_for_good_is_indexed_by_others(bundle, install, monkeypatch):
    """Its claim runs out, and its bytes are there: nothing that was accepted is lost, or there twice."""
    other = install.key("other")
    said = other.upload("imports", bundle, "shelf.zip")
    die_at(install, monkeypatch, 1)
    assert other.post(f"jobs/{said.json['job_id']}/cancel").status == 200
    leases_ran_out(install)
    install.work()
    (result,) = listed(other, "shelf")
    assert (result["index_status"], result["chunks"], result["cost"]["paid_calls"]) == ("success", 1, 0)
    head = select(heads.c.id).where(heads.c.tenant == "other", heads.c.kind == "index").scalar_subquery()
    assert count(install, chunks, chunks.c.head_id == head) == 1
    assert count(install, documents, documents.c.tenant == "other") == 1


def test_an_archive_arrives_with_its_documents(client, install):
    """What lies in it lies in it there, too, goes with it, and says about itself what it said."""
    client.collection("shelf")
    data = files.archive({"a.md": b"---\nauthor: Ann\n---\n# Sand\n\nThe kettle.", "b.txt": b"The tide."})
    client.upload("collections/shelf/documents", data, "papers.zip")
    install.work()
    other, owner = install.key("other"), install.key("default")
    brought(other, exported(owner))
    named = {each["name"]: each for each in listed(other, "shelf")}
    inside = other.get(f"documents/{named['papers.zip']['id']}/members").json["children"]
    assert [each["id"] for each in inside] == [named["a.md"]["id"], named["b.txt"]["id"]]
    assert named["a.md"]["properties"] == {"author": "Ann"}
    assert other.get(f"documents/{named['a.md']['id']}/outline").json["entries"][0]["title"] == "Sand"
    other.call("DELETE", f"/api/v1/documents/{named['papers.zip']['id']}")
    assert listed(other, "shelf") == []
