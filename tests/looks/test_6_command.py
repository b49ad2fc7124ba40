"""`holdfast sources`: a person at a terminal adds, sees, refreshes and removes a source."""

import json

import pytest

from tests.commands import caller


@pytest.fixture
def holdfast(sqlite_url, tmp_path, monkeypatch, capsys):
    """`holdfast("sources", "list")` runs a command on an installation whose folder may be a source."""
    (tmp_path / "folder").mkdir()
    mine = {"DATA_DIR": tmp_path / "data", "DATABASE_URL": sqlite_url, "SOURCE_FOLDERS": tmp_path / "folder"}
    for name, value in mine.items():
        monkeypatch.setenv(f"HOLDFAST_{name}", str(value))
    return caller(monkeypatch, capsys)


def test_a_source_at_the_terminal(holdfast, tmp_path):
    """Added with its interval in plain words, listed, shown, refreshed and removed."""
    path = f"path={tmp_path / 'folder'}"
    code, said, _ = holdfast("sources", "add", "folder", "-o", path, "-o", "include=*.txt", "--every", "15m")
    assert code == 0
    assert "again every 15 min" in said
    shown = json.loads(holdfast("sources", "list", "--json")[1])[0]
    assert (shown["refresh_every"], shown["options"]["include"]) == (900, ["*.txt"])
    source = shown["id"]
    assert "looking" in holdfast("sources", "list")[1]
    assert "under way already" in holdfast("sources", "refresh", source)[1]
    assert "keeps documents that are gone" in holdfast("sources", "show", source)[1]
    assert holdfast("sources", "remove", source)[0] == 0
    assert "has no sources" in holdfast("sources", "list")[1]


def test_mistakes_at_the_terminal_say_what_to_write(holdfast):
    """A time that is none, an option without a value, a folder that is not allowed."""
    assert "like 15m" in holdfast("sources", "add", "folder", "--every", "soon")[2]
    assert "NAME=VALUE" in holdfast("sources", "add", "folder", "-o", "path")[2]
    assert "HOLDFAST_SOURCE_FOLDERS" in holdfast("sources", "add", "folder", "-o", "path=/etc")[2]
    assert holdfast("sources", "show", "nothing")[0] == 5
