"""The mind map of a collection in a browser: it opens to the passages, and is read by everybody."""

import pytest

from tests.api.install import ApiInstall

TEXT = "# Birds\n\n## Herons\n\nThey rest.\n\n## Owls\n\nThey fly at night.\n\n## Terns\n\nThey dive.\n"


@pytest.fixture
def library(sqlite_url, tmp_path):
    """An installation with a document of some headings, and its map."""
    install = ApiInstall(sqlite_url, tmp_path / "data")
    install.client.collection("shelf")
    install.client.upload("collections/shelf/documents", TEXT.encode(), "birds.md")
    install.work()
    assert install.client.post("collections/shelf/jobs", {"kind": "mindmap", "params": {}}).status == 202
    install.work()
    yield install
    install.close()


def test_a_map_opens_to_the_passage(library, look):
    """From the topic to the document, at the passage; the picture can be downloaded."""
    reader = look(f"http://127.0.0.1:{library.port}")
    page = reader.open("/collections/shelf/mindmap")
    assert "Owls" in reader.text("#topics")
    assert reader.judged() == []
    assert page.get_attribute("text=Picture (SVG)", "href").endswith("mindmap?format=svg")
    page.click("#topics summary:has-text('Owls')")
    page.click("#topics details[open] a")
    page.wait_for_url("**/documents/*?at=*")
