"""Documents, keys and bills are for their owner alone, whatever the umask of the shell."""

import os
import stat
import subprocess

import pytest

from tests.worker.programs import PROGRAM


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


def run(data, *words):
    """A command of somebody whose new files everybody may read, on the folder `data`."""
    done = subprocess.run(
        [PROGRAM, *words, "--data-dir", data],
        capture_output=True,
        text=True,
        check=False,
        umask=0o022,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def open_to_others(folder):
    """What somebody else could look at, if the folder above let him in."""
    return [
        (str(path.relative_to(folder)), oct(stat.S_IMODE(path.lstat().st_mode)))
        for path in (folder, *folder.rglob("*"))
        if path.lstat().st_mode & 0o077
    ]


def test_nothing_that_a_command_writes_is_open_to_others(data, tmp_path):
    """Database, blobs and broker, made by the command, its worker and the worker's children."""
    (tmp_path / "paper.txt").write_text("Anchors hold.")
    run(data, "index", tmp_path / "paper.txt")
    assert (data / "holdfast.db").exists()
    assert open_to_others(data) == []


@pytest.mark.parametrize("command", ["status", "migrate"])
def test_what_was_open_is_closed_at_the_next_start(data, command):
    """Of an installation that an earlier release has made; also by a command that only reads."""
    run(data, "migrate")
    (data / "blobs").mkdir()
    for path in (data, *data.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    run(data, command)
    assert open_to_others(data) == []


def test_a_database_elsewhere_is_closed_and_its_folder_left_alone(data, tmp_path, monkeypatch):
    """The folder of a database that somebody put beside other things is not ours to close."""
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", f"sqlite:///{folder}/holdfast.db")
    run(data, "migrate")
    os.chmod(folder / "holdfast.db", 0o644)  # noqa: PTH101 - as an earlier release has left it
    run(data, "status")
    assert stat.S_IMODE((folder / "holdfast.db").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
