"""What a look does: new, changed, unchanged and gone items, and what becomes of their documents."""

import pytest

from holdfast.core.errors import BadRequestError
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.library.document_edits import ChunkChange
from tests.documents import pdfs
from tests.looks.install import WISH, SourcesInstall, counts


def test_what_is_new_is_indexed_and_what_is_known_costs_nothing(install):
    """The first look indexes every file; the second finds all of them unchanged and requests nothing."""
    install.write("a.txt", "Apples are red.")
    install.write("deep/b.txt", "Bananas are yellow.")
    source = install.add()
    install.work()
    source = install.again(source)
    assert counts(source) == {"new": 2}
    assert set(install.shelf()) == {"a.txt", "deep/b.txt"}
    assert all(document.visible for document in install.shelf().values())
    assert counts(install.look(source)) == {"unchanged": 2}
    assert set(install.index_runs().values()) == {1}


def test_a_changed_item_is_a_new_generation_of_the_same_document(install):
    """A file that changed keeps its document, which has one generation more; the others have none."""
    install.write("a.txt", "Apples are red.")
    install.write("b.txt", "Bananas are yellow.")
    source = install.add()
    install.work()
    before = install.shelf()
    install.write("a.txt", "Apples are green now.")
    assert counts(install.look(source)) == {"changed": 1, "unchanged": 1}
    install.work()
    after = install.shelf()
    assert {name: document.id for name, document in before.items()} == {
        name: document.id for name, document in after.items()
    }
    assert [after[name].generation for name in ("a.txt", "b.txt")] == [2, 1]


def test_edits_of_a_document_are_kept_when_its_file_changes_at_the_source(small):
    """A chunk that a person switched off stays off where its text still exists."""
    pages = [f"This is page number{n} of the book." for n in range(5)]
    file = small.folder / "a.pdf"
    file.write_bytes(pdfs.make(pages))
    source = small.add()
    small.work()
    document = small.shelf()["a.pdf"]
    edits = small.services.edits
    one = edits.chunks(document, limit=10).chunks[2]
    edits.change(RequestContext(actor="ann"), document.id, one.id, ChunkChange(enabled=False))
    small.work()
    file.write_bytes(pdfs.make([*pages, "A last page."]))
    small.look(source)
    small.work()
    assert small.shelf()["a.pdf"].generation == 3
    shown = edits.chunks(small.shelf()["a.pdf"], limit=100, with_disabled=False).chunks
    assert [each.text for each in shown] == [*pages[:2], *pages[3:], "A last page."]


def test_a_touched_file_with_the_same_bytes_is_unchanged(small):
    """A new time with the old bytes costs one fetch, and no generation."""
    small.write("a.txt", "Apples are red.")
    source = small.add()
    small.work()
    small.write("a.txt", "Apples are red.")
    assert counts(small.look(source)) == {"unchanged": 1}
    assert [document.generation for document in small.shelf().values()] == [1]


def test_what_is_gone_stays_unless_the_source_prunes(install):
    """Without prune a document outlives its file; with it, it is deleted at the next look."""
    install.write("a.txt", "Apples are red.")
    install.write("b.txt", "Bananas are yellow.")
    source = install.add()
    install.work()
    (install.folder / "b.txt").unlink()
    assert counts(install.look(source)) == {"unchanged": 1, "gone": 1}
    assert set(install.shelf()) == {"a.txt", "b.txt"}
    assert [item.external_id for item in install.sources.items(source, state="gone")] == ["b.txt"]
    source = install.sources.change(WISH, install.again(source), prune=True)
    assert counts(install.look(source)) == {"unchanged": 1, "gone": 1}
    assert set(install.shelf()) == {"a.txt"}
    assert [item.external_id for item in install.sources.items(source)] == ["a.txt"]


def test_an_empty_source_prunes_nothing(small):
    """A folder without a single file may be a disk that is not mounted: nothing is deleted for it."""
    small.write("a.txt", "Apples are red.")
    source = small.add(prune=True)
    small.work()
    (small.folder / "a.txt").unlink()
    assert counts(small.look(source)) == {"gone": 1}
    assert set(small.shelf()) == {"a.txt"}


def test_a_look_that_fails_prunes_nothing_and_says_why(small):
    """A folder that is not there is an error of the source, and no document is deleted."""
    small.write("in/a.txt", "Apples are red.")
    source = small.add(path=small.folder / "in", prune=True)
    small.work()
    (small.folder / "in").rename(small.folder / "away")
    source = small.look(source)
    assert source.error is not None
    assert source.error[0] == "source_unreachable"
    assert set(small.shelf()) == {"a.txt"}
    (small.folder / "away").rename(small.folder / "in")
    source = small.look(source)
    assert (source.error, counts(source)) == (None, {"unchanged": 1})


def test_items_with_the_same_bytes_share_a_document_until_one_changes(install):
    """Two equal files are one document; it goes with the last of them, and neither changes the other's."""
    install.write("a.txt", "The same words.")
    install.write("b.txt", "The same words.")
    source = install.add(prune=True)
    install.work()
    assert len(install.shelf()) == 1
    shared = install.shelf()["a.txt"]
    install.write("b.txt", "Other words.")
    assert counts(install.look(source)) == {"unchanged": 1, "changed": 1}
    assert install.shelf()["a.txt"].digest == shared.digest
    assert len(install.shelf()) == 2
    install.write("b.txt", "The same words.")
    install.look(source)
    assert [document.id for document in install.shelf().values()] == [shared.id]
    (install.folder / "a.txt").unlink()
    install.look(source)
    assert [document.id for document in install.shelf().values()] == [shared.id]


def test_what_a_person_uploaded_is_never_changed_or_deleted_by_a_source(install):
    """A document that was uploaded before, or after, stays with its bytes whatever the source does."""
    install.documents.add(WISH, "shelf", [Upload(b"Mine before.", "mine.txt")])
    install.write("a.txt", "Mine before.")
    install.write("b.txt", "Mine after.")
    install.write("c.txt", "Stays.")
    source = install.add(prune=True)
    install.work()
    install.documents.add(WISH, "shelf", [Upload(b"Mine after.", "mine-too.txt")])
    install.write("a.txt", "Changed at the source.")
    (install.folder / "b.txt").unlink()
    install.look(source)
    assert set(install.shelf()) == {"mine.txt", "a.txt", "b.txt", "c.txt"}


def test_one_bad_item_does_not_stop_the_others(small):
    """An empty file is listed with its error; the others are taken in, and it is tried again later."""
    small.write("a.txt", "Apples are red.")
    small.write("b.txt", "")
    source = small.add()
    small.work()
    assert counts(small.again(source)) == {"new": 1, "failed": 1}
    failed = small.sources.items(source, state="failed")
    assert [(item.external_id, item.error_code) for item in failed] == [("b.txt", "empty")]
    small.write("b.txt", "Bananas are yellow.")
    assert counts(small.look(source)) == {"new": 1, "unchanged": 1}


def test_documents_have_the_metadata_and_labels_of_their_source(small):
    """So that keys with a filter see them."""
    small.write("a.txt", "Apples are red.")
    small.add(metadata={"team": "fruit"}, labels=["public"])
    small.work()
    document = small.shelf()["a.txt"]
    assert (document.metadata, document.labels) == ({"team": "fruit"}, ("public",))


@pytest.mark.parametrize(
    ("type_", "options", "more", "code"),
    [
        ("folder", {"path": "/etc"}, {}, "source_access_denied"),
        ("folder", {"path": "relative"}, {}, "bad_source"),
        ("folder", {"unknown": 1}, {}, "bad_source"),
        ("shelf", {}, {}, "bad_source"),
        ("folder", {}, {"refresh_every": 59.0}, "bad_interval"),
    ],
)
def test_a_source_that_can_never_work_is_refused(small, type_, options, more, code):
    """The answer says at once what is wrong, and nothing is kept."""
    with pytest.raises(BadRequestError) as refused:
        small.sources.add(WISH, "shelf", type_, {"path": str(small.folder)} | options, **more)
    assert refused.value.code == code
    assert small.sources.all("default", "shelf") == []


def test_folders_are_no_sources_unless_an_operator_allows_some(sqlite_url, tmp_path):
    """Without the setting nobody reads a folder of the server."""
    install = SourcesInstall(sqlite_url, tmp_path / "data", tmp_path / "folder", source_folders="")
    try:
        with pytest.raises(BadRequestError, match="HOLDFAST_SOURCE_FOLDERS"):
            install.add()
    finally:
        install.close()


def test_links_lead_nowhere(small, tmp_path):
    """Neither a link to a file nor one to a folder is followed, and none in the path of the source."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("A secret.")
    small.write("a.txt", "Apples are red.")
    (small.folder / "file.txt").symlink_to(tmp_path / "secret" / "key.txt")
    (small.folder / "out").symlink_to(tmp_path / "secret")
    small.add()
    linked = small.add(path=small.folder / "out")
    small.work()
    assert set(small.shelf()) == {"a.txt"}
    assert small.again(linked).error is not None
