"""`holdfast collections` and `holdfast documents`: what there is, by id and title, and how it goes away."""

import json

import pytest

from holdfast import bootstrap, settings
from holdfast.service.library import Upload, Wish
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
        library = bootstrap.library(runtime)
        library.make_collection(Wish(), "papers", title="The harbour's papers")
        library.make_collection(Wish(), "sample")
        uploads = [Upload(b"Anchors hold.", "anchors.txt"), Upload(b"Ropes wear.", "ropes.txt")]
        return [taking.document.id for taking in library.add(Wish(), "papers", uploads)]


def test_collections_are_listed_and_shown(holdfast, papers):
    """With title and numbers, for people and for scripts."""
    code, out, _ = holdfast("collections", "list")
    assert (code, "The harbour's papers" in out, "2 queued" in out) == (0, True, True)
    listed = json.loads(holdfast("collections", "list", "--json")[1])
    assert [(each["id"], each["documents"]) for each in listed] == [("papers", 2), ("sample", 0)]
    told = json.loads(holdfast("collections", "show", "papers", "--json")[1])
    assert (told["title"], told["states"]) == ("The harbour's papers", {"queued": 2})


def test_documents_are_listed_and_shown_with_their_titles(holdfast, papers):
    """Of one collection or of all; by state, and by a part of the title."""
    code, out, _ = holdfast("documents", "list", "--collection", "papers")
    assert code == 0
    assert all(word in out for word in (*papers, "anchors.txt", "ropes.txt", "queued"))
    found = json.loads(holdfast("documents", "list", "--title", "rope", "--json")[1])
    assert [each["id"] for each in found] == [papers[1]]
    assert json.loads(holdfast("documents", "list", "--state", "failed", "--json")[1]) == []
    assert len(json.loads(holdfast("documents", "list", "--most", "1", "--json")[1])) == 1
    assert (
        json.loads(holdfast("documents", "show", f"document:{papers[0]}", "--json")[1])["title"]
        == "anchors.txt"
    )


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
