"""`holdfast collections` and `holdfast documents`: what there is, by id and title, and how it goes away."""

import json
import sqlite3
from contextlib import closing

import pytest

from holdfast import bootstrap, settings
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.library import document_members
from tests.commands import caller


@pytest.fixture
def holdfast(monkeypatch, capsys, database_url):
    """Commands on a fresh installation."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", database_url)
    return caller(monkeypatch, capsys)


@pytest.fixture
def papers(holdfast):
    """The ids of two documents of the collection `papers`, beside an empty one."""
    with bootstrap.open_runtime(settings.load()) as runtime:
        services = bootstrap.AppServices(runtime)
        services.collections.make(RequestContext(), "papers", title="The harbour's papers")
        services.collections.make(RequestContext(), "sample")
        uploads = [Upload(b"Anchors hold.", "anchors.txt"), Upload(b"Ropes wear.", "ropes.txt")]
        return [taking.document.id for taking in services.documents.add(RequestContext(), "papers", uploads)]


def test_a_document_shows_what_it_contains_and_what_it_lies_in(holdfast, papers):
    """For people in one line each, for scripts with ids and names."""
    box, child = papers
    with bootstrap.open_runtime(settings.load()) as runtime:
        link = {"tenant": "default", "parent": box, "child": child}
        runtime.db.write("link", lambda tx: tx.execute(document_members.LINK, link))
    shown = json.loads(holdfast("documents", "show", box, "--json")[1])
    assert [(each["id"], each["name"]) for each in shown["children"]] == [(child, "ropes.txt")]
    assert f"{box} (anchors.txt, queued)" in holdfast("documents", "show", child)[1]


def test_a_file_is_indexed_under_an_external_id(holdfast, papers, tmp_path):
    """The same id is the same document, which `--prune` leaves alone; an id is for one file."""
    file = tmp_path / "tide.txt"
    index = ("index", file, "-c", "papers", "--external-id", "cms/7", "--no-wait", "--json")
    for text, counted in (("High.", (1, 0)), ("Low.", (0, 1))):
        file.write_text(text)
        code, out, _ = holdfast(*index)
        assert (code, (json.loads(out)["new"], json.loads(out)["changed"])) == (0, counted)
    assert holdfast("index", tmp_path, "-c", "papers", "--external-id", "x")[0] == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    assert (
        json.loads(holdfast("index", empty, "-c", "papers", "--prune", "--no-wait", "--json")[1])["removed"]
        == 2
    )
    (left,) = json.loads(holdfast("documents", "list", "--external-id", "cms/7", "--json")[1])
    assert (left["external_id"], left["index_generation"]) == ("cms/7", 2)
    described = holdfast("documents", "describe", left["id"], "--external-id", "cms/8", "--json")[1]
    assert json.loads(described)["external_id"] == "cms/8"


def test_collections_are_listed_and_shown(holdfast, papers):
    """With title and numbers, for people and for scripts."""
    code, out, _ = holdfast("collections", "list")
    assert (code, "The harbour's papers" in out, "2 queued" in out) == (0, True, True)
    listed = json.loads(holdfast("collections", "list", "--json")[1])
    assert [(each["id"], each["documents"]) for each in listed] == [("papers", 2), ("sample", 0)]
    body = json.loads(holdfast("collections", "show", "papers", "--json")[1])
    assert (body["title"], body["states"]) == ("The harbour's papers", {"queued": 2})


def test_documents_are_listed_and_shown_with_their_titles(holdfast, papers):
    """Of one collection or of all; by state, and by a part of the title."""
    code, out, _ = holdfast("documents", "list", "--collection", "papers")
    assert code == 0
    assert all(word in out for word in (*papers, "anchors.txt", "ropes.txt", "queued"))
    body = json.loads(holdfast("documents", "list", "--title", "rope", "--json")[1])
    assert [each["id"] for each in body] == [papers[1]]
    assert json.loads(holdfast("documents", "list", "--state", "failed", "--json")[1]) == []
    assert len(json.loads(holdfast("documents", "list", "--most", "1", "--json")[1])) == 1
    assert (
        json.loads(holdfast("documents", "show", f"document:{papers[0]}", "--json")[1])["title"]
        == "anchors.txt"
    )


def test_a_chunk_is_edited_turned_off_and_restored(holdfast, papers):
    """Each is a version that `why` explains; what is off is listed, and found by no search."""
    with bootstrap.open_runtime(settings.load()) as runtime:
        runtime.engine.run_until_idle()
        (chunk,) = json.loads(holdfast("documents", "chunks", papers[0], "--json")[1])["chunks"]
        edit = ("documents", "edit-chunk", papers[0], chunk["id"])
        code, out, _ = holdfast(*edit, "--text", "Anchors drag.")
        assert (code, "version 2" in out) == (0, True)
        assert "waiting" in holdfast("documents", "edits", papers[0])[1]
        runtime.engine.run_until_idle()
        assert "Anchors drag." in holdfast("search", "anchors", "--collection", "papers")[1]
        assert "a passage was edited by cli:" in holdfast("why", f"document:{papers[0]}")[1]
        assert holdfast(*edit, "--off")[0] == 0
        runtime.engine.run_until_idle()
        assert " off " in holdfast("documents", "chunks", papers[0])[1]
        assert holdfast(*edit, "--original")[0] == 0
        runtime.engine.run_until_idle()
    assert "no edits" in holdfast("documents", "edits", papers[0])[1]
    assert holdfast(*edit)[0] == 2


def test_deleting_asks_first(holdfast, papers):
    """A script has to say --yes; what is deleted is gone, with its work."""
    code, _, err = holdfast("documents", "delete", papers[0])
    assert (code, "anchors.txt" in err, "--yes" in err) == (2, True, True)
    assert holdfast("documents", "delete", papers[0], "none", "--yes")[0] == 5  # then none of them is
    assert holdfast("documents", "delete", papers[0], "--yes")[0] == 0
    assert holdfast("documents", "show", papers[0])[0] == 5
    code, out, _ = holdfast("collections", "delete", "papers", "--yes", "--json")
    assert (code, json.loads(out)["deleted"]) == (0, 1)
    assert [each["id"] for each in json.loads(holdfast("collections", "list", "--json")[1])] == ["sample"]


def test_a_misspelt_collection_is_told_with_those_that_there_are(holdfast, papers):
    """`papres` is answered with what could have been meant, by every command."""
    for words in (
        ("search", "x", "-c", "papres"),
        ("collections", "show", "papres"),
        ("export", "papres", "f"),
    ):
        code, _, err = holdfast(*words)
        assert (code, "there is no collection 'papres'; there are: papers, sample" in err) == (5, True), words


def test_commands_that_read_leave_no_folder_behind(holdfast, papers, tmp_path):
    """Not even on PostgreSQL, where nothing but documents' bytes lies in it."""
    for words in (
        ("status",),
        ("search", "x", "-c", "papers"),
        ("documents", "list"),
        ("bill",),
        ("keys", "list"),
    ):
        assert holdfast(*words, "--data-dir", tmp_path / "none")[0] == 0, words
    assert not (tmp_path / "none").exists()


def test_imported_documents_are_listed_explained_and_indexable(holdfast, tmp_path):
    """Titles and addresses come from their columns; without content `retry` says how to give it some."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as old:
        old.execute("CREATE TABLE papers (id INTEGER, is_active INTEGER, name TEXT)")
        old.execute("INSERT INTO papers VALUES (7, 1, 'Harbour rules'), (8, 0, NULL)")
        old.commit()
    words = ("--table", "papers", "--title-column", "name", "--collection", "old")
    assert holdfast("import-documents", "--from", f"sqlite:///{tmp_path}/old.db", *words)[0] == 0
    listed = json.loads(holdfast("documents", "list", "--json")[1])
    assert {(each["id"], each["title"], each["index_status"]) for each in listed} == {
        ("7", "Harbour rules", "success"),
        ("8", "8", "not_indexed"),
    }
    for subject in ("document:7", "document:8"):
        assert "no content here yet" in " ".join(holdfast("why", subject)[1].split())
        code, _, err = holdfast("retry", subject)
        assert (code, "[no_content]" in err, "/content" in err) == (3, True, True)
    with bootstrap.open_runtime(settings.load()) as runtime:
        bootstrap.AppServices(runtime).documents.put_content(
            RequestContext(), "8", Upload(b"Anchors hold.", "anchors.txt")
        )
        runtime.engine.work_off()
    assert holdfast("retry", "document:8", "--force")[0] == 0
