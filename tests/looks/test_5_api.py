"""Sources over the API: added, shown, changed, looked at, removed; secrets are never shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.install import ApiInstall
from tests.looks.flaky import FlakySource


@pytest.fixture
def api(sqlite_url: str, tmp_path: Path) -> Iterator[ApiInstall]:
    (tmp_path / "folder").mkdir()
    install = ApiInstall(sqlite_url, tmp_path / "data", source_folders=str(tmp_path / "folder"))
    yield install
    install.close()


@pytest.fixture
def client(api):
    api.client.collection("shelf")
    return api.client


def test_a_source_from_its_first_look_to_its_removal(api, client, tmp_path):
    """The files of a folder become documents, and each item can be followed."""
    (tmp_path / "folder" / "a.txt").write_text("Apples are red.")
    (tmp_path / "folder" / "empty.txt").write_text("")
    body = {"type": "folder", "options": {"path": str(tmp_path / "folder")}, "refresh_every": 3600}
    added = client.post("collections/shelf/sources", body)
    assert (added.status, added.json["disposition"]) == (201, "accepted")
    where = f"collections/shelf/sources/{added.json['source']['id']}"
    assert client.get(where).json["status"] == "looking"
    assert client.post(f"{where}/refresh").json["disposition"] == "duplicate"
    api.work()
    shown = client.get(where).json
    assert (shown["status"], shown["counts"]["new"], shown["counts"]["failed"]) == ("ok", 1, 1)
    assert shown["next_look"] > shown["last_look"]
    page = client.get(f"{where}/items?limit=1").json
    rest = client.get(f"{where}/items?cursor={page['next']}").json
    assert [each["external_id"] for each in page["items"] + rest["items"]] == ["a.txt", "empty.txt"]
    assert [each["state"] for each in client.get(f"{where}/items?state=failed").json["items"]] == ["failed"]
    document = page["items"][0]["document_id"]
    origin = client.get(f"documents/{document}/sources").json["origins"][0]
    assert (origin["external_id"], origin["source_id"]) == ("a.txt", shown["id"])
    assert client.call("DELETE", f"{where}?documents=delete").status == 202
    assert client.get(where).code == "unknown_source"
    api.work()
    assert client.get(f"documents/{document}").status == 404


def test_secrets_are_taken_kept_and_never_shown(api, client, monkeypatch):
    """A token is in no answer; a change that does not name it keeps it, unless the source is elsewhere."""
    FlakySource(0).use(monkeypatch)
    options = {"url": "https://one.example", "token": "open-sesame"}
    added = client.post("collections/shelf/sources", {"type": "flaky", "options": options})
    where = f"collections/shelf/sources/{added.json['source']['id']}"
    changed = client.call("PATCH", where, {"options": {"url": options["url"], "exclude": ["*.png"]}})
    assert changed.json["options"]["token"] == "********"
    moved = client.call("PATCH", where, {"options": {"url": "https://two.example"}})
    assert moved.json["options"] == {"url": "https://two.example"}
    for answer in (added, changed, client.get(where), client.get("collections/shelf/sources")):
        assert b"open-sesame" not in answer.raw


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"type": "folder", "options": {"path": "/etc"}}, "source_access_denied"),
        ({"type": "nothing"}, "bad_source"),
        ({"type": "urls", "options": {"urls": ["ftp://x"]}}, "bad_source"),
        ({"type": "urls", "options": {"urls": ["https://x.example"]}, "refresh_every": 10}, "validation"),
    ],
)
def test_what_could_never_work_is_refused_with_its_reason(api, client, body, code):
    """The answer says which option is wrong, and nothing is kept."""
    refused = client.post("collections/shelf/sources", body)
    assert refused.status in {400, 422}
    assert refused.code == code or code == "validation"
    assert client.get("collections/shelf/sources").json == {"sources": []}
