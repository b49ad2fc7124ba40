"""Files and names as nobody should make them: each is taken in, or left out by name; nothing falls over."""

import json
import os
import subprocess

import pytest

from holdfast import settings
from holdfast.chaos.worker_processes import PROGRAM
from holdfast.core.errors import BadRequestError
from holdfast.service import folder
from holdfast.service.uploads import Upload
from tests.indexing.background_worker import BackgroundWorker
from tests.indexing.install import WISH, endings

NAMES = [
    "../../etc/passwd",
    "/etc/passwd",
    "line\nbreak.txt",
    "escape\x1b[31m.txt",
    "bell\x07.txt",
    "\u202efdp.exe",
    "\u540d\u524d \u05e9\u05dd \U0001f980.txt",
    "e\u0301.txt",
    "a" * 2000,
    "'; DROP TABLE documents; --",
    "%s%n{0}",
]


def test_a_name_is_only_a_name(install):
    """It is kept as it was given, leads nowhere, and the title is one line of it."""
    for number, name in enumerate(NAMES):
        document = install.indexed(f"Content number{number}x.", name)
        assert document.name == name
        assert not set(document.title) & set("\n/")
        assert len(document.title) <= 500
        assert [hit.document_id for hit in install.find(f"number{number}x")] == [document.id]
        assert install.shelf.path(document.digest).is_relative_to(install.folder)


@pytest.mark.g6
def test_a_name_that_cannot_be_kept_is_refused(install):
    """Before its bytes are kept."""
    for name in ("nul\x00.txt", "lone\ud800.txt", "a" * 2001, "\u00e9" * 1500):
        with pytest.raises(BadRequestError) as caught:
            install.documents.add(WISH, "shelf", [Upload(b"words", name)])
        assert caught.value.code == "bad_name"
    assert list(install.shelf.older(0.0)) == []
    assert list(install.documents.walk("default", "shelf")) == []


TRAPS = {
    "comments": "<!---->" * 40 + "x",
    "brackets": "# x\n\n- y\n\n" + "[" * 60_000,
    "spaces": "# x" + " " * 60_000 + "y",
    "marks": "a" + "\u0300\u0316" * 30_000,
    "long comments": "<!---->" * 60_000 + "x",
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_text_that_once_kept_every_process_busy_is_indexed(install, name):
    """In time that grows with its length alone, in this process or in the child where limits hold."""
    assert install.indexed(TRAPS[name], f"{name}.txt").chunks >= 1


GARBAGE = {
    "bytes": bytes(range(256)) * 40,
    "nuls": b"\x00" * 5000,
    "surrogates": b"\xff\xfe" + b"\xd8\x00" * 100,
    "head": b"%PDF-1.7",
    "zip": b"PK\x03\x04" + bytes(range(7, 250)),
    "compound": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x01" * 600,
    "deep": b"<html>" * 20_000,
    "blank": b" \n\t " * 500,
}


def test_garbage_ends_as_a_failure_with_a_code_or_as_text(install):
    """Never an exception of ours, never an empty success."""
    ends = {}
    for name, content in GARBAGE.items():
        taken = install.upload(content, "thing.bin")
        install.work()
        document = install.document(taken.document.id)
        ends[name] = f"{document.chunks} chunks" if document.visible else install.run(document).error_code
    codes = {"no_text", "unknown_format", "broken_file", "too_large", "parse_memory"}
    assert {name for name, end in ends.items() if end not in codes} <= {"surrogates"}, ends
    assert ends["blank"] == "no_text"
    assert "0 chunks" not in ends.values()


def test_a_text_of_one_endless_word_is_cut(install):
    """No chunk is larger than what was asked for."""
    document = install.indexed(b"x" * 200_000, "word.txt")
    assert document.chunks > 10
    assert "".join(install.texts(document)) == "x" * 200_000


@pytest.fixture
def staff(installed):
    working = BackgroundWorker()
    yield working
    working.close()


@pytest.fixture
def strange(tmp_path):
    """A folder of strange things."""
    root = tmp_path / "strange"
    root.mkdir()
    (root / "good.txt").write_text("A good file.")
    (root / "loop").symlink_to(root)
    (root / "nowhere.txt").symlink_to(root / "gone.txt")
    os.mkfifo(root / "pipe.txt")
    (root / "empty.txt").touch()
    (root / "line\nbreak\x1b[31m.txt").write_text("A name of two lines.")
    (root / ("n" * 240 + ".txt")).write_text("A long name.")
    with (root / os.fsdecode(b"lat\xefn.txt")).open("w") as file:
        file.write("A name in no encoding.")
    return root


def test_a_folder_of_strange_things_is_taken_in(staff, holdfast, strange):
    """Loops, dangling links and pipes are passed over; names that cannot be kept are refused and shown."""
    code, out, _ = holdfast("index", str(strange), "--json")
    body = json.loads(out)
    assert code == 1
    assert (body["documents"], body["new"], body["failed"]) == (3, 3, 0)
    assert sorted(body["refused"]) == ["empty.txt", "lat\ufffdn.txt"]
    code, out, err = holdfast("index", str(strange))
    assert (code, err) == (1, "")
    assert "\x1b[31m" not in out


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_strange_names_do_not_end_the_program(staff, strange, tmp_path):
    """As a process of its own, in the plainest of locales."""
    result = subprocess.run(
        [str(PROGRAM), "index", str(strange)],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
        cwd=tmp_path,
    )
    assert (result.returncode, result.stderr) == (1, b"")
    assert b"lat" in result.stdout


def test_a_file_that_changes_while_it_is_read_is_one_of_its_versions(install, tmp_path, monkeypatch):
    """Hashed, then written to, then kept: what is indexed is what was kept, and the next pass agrees."""
    path = tmp_path / "papers" / "moving.txt"
    path.parent.mkdir()
    path.write_text("The first version.")
    genuine = folder._digest

    def hashed_too_early(file):
        digest = genuine(file)
        path.write_text("The second version.")
        return digest

    monkeypatch.setattr(folder, "_digest", hashed_too_early)
    intake = folder.Folders(install.db, install.documents).take_in(WISH, "shelf", folder.files([path.parent]))
    install.work()
    monkeypatch.undo()
    assert (intake.new, intake.refused) == (1, {})
    assert len(install.find("second version")) == 1
    again = folder.Folders(install.db, install.documents).take_in(WISH, "shelf", folder.files([path.parent]))
    assert (again.unchanged, again.new, again.changed) == (1, 0, 0)


def test_a_file_that_vanishes_while_it_is_read_is_named(install, tmp_path, monkeypatch):
    """It was hashed and is gone when it should be kept; its document is left alone."""
    path = tmp_path / "papers" / "gone.txt"
    path.parent.mkdir()
    path.write_text("Soon gone.")
    genuine = folder._digest

    def then_vanish(file):
        digest = genuine(file)
        path.unlink()
        return digest

    monkeypatch.setattr(folder, "_digest", then_vanish)
    intake = folder.Folders(install.db, install.documents).take_in(WISH, "shelf", folder.files([path.parent]))
    assert (intake.new, list(intake.refused)) == (0, ["gone.txt"])


def test_more_bytes_than_allowed_are_refused(install, monkeypatch):
    """At the door, and nothing is kept of them."""
    monkeypatch.setattr(install.documents, "_most_bytes", 1000)
    with pytest.raises(BadRequestError) as caught:
        install.documents.add(WISH, "shelf", [Upload(b"x" * 1001)])
    assert caught.value.code == "too_large"


def test_bytes_that_are_missing_from_the_shelf_fail_with_a_code(install):
    """Somebody cleaned up by hand: the run fails, and says why."""
    taken = install.upload("Soon missing.")
    install.shelf.delete(taken.document.digest)
    assert endings(install.work()) == ["failed"]
    assert install.run(install.document(taken.document.id)).error_code == "blob_missing"


def test_the_settings_of_the_tests_are_their_own(installed):
    """Nothing here ever writes into the folder of whoever runs the tests."""
    assert str(settings.load().data_dir) == installed["HOLDFAST_DATA_DIR"]
