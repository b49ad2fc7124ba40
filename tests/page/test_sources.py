"""A person adds a source in the web UI, sees its look, and follows it to a document."""

import pytest

from holdfast.chaos.waiting import until
from tests.api.install import ApiInstall


@pytest.fixture
def library(sqlite_url, tmp_path):
    """An installation with a collection, and a folder that may be a source."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "heron.txt").write_text("The heron rests in the reeds.")
    (tmp_path / "folder" / "empty.txt").write_text("")
    install = ApiInstall(sqlite_url, tmp_path / "data", source_folders=str(tmp_path / "folder"))
    install.client.collection("shelf")
    yield install, tmp_path / "folder"
    install.close()


def test_a_source_is_added_and_followed_on_its_page(library, look):
    """From the empty page to the look, its failed item, and the document that says where it came from."""
    install, folder = library
    reader = look(f"http://127.0.0.1:{install.port}")
    page = reader.open("/collections/shelf/sources")
    page.click("text=Add source")
    page.select_option("#source-type", "folder")
    page.fill("#source-folder-path", str(folder))
    page.click("#new-source button.main")
    page.wait_for_selector("li.source")
    install.work()
    page = reader.open("/collections/shelf/sources")
    until(lambda: "Up to date" in reader.text("li.source"), 30, "the look is not shown")
    shown = reader.text("li.source")
    assert "1 new" in shown
    assert "empty.txt" in shown
    document = install.client.get("collections/shelf/documents").json["documents"][0]["id"]
    reader.open(f"/documents/{document}")
    assert "heron.txt" in reader.text(".origins")
    assert reader.judged() == []
