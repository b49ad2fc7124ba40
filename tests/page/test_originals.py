"""Hits and passages are looked at on their page, and what could not be read is said."""

import pytest

from holdfast.chaos.waiting import until
from tests.api.install import ApiInstall
from tests.documents import scans


@pytest.fixture
def library(sqlite_url, tmp_path, monkeypatch):
    """An installation without OCR, with a PDF whose second page is a scan, and a text."""
    monkeypatch.setenv("HOLDFAST_OCR", "off")
    install = ApiInstall(sqlite_url, tmp_path / "data")
    client = install.client
    client.collection("shelf")
    book = scans.pdf([["The heron rests in the reeds."], scans.picture(["one", "two"], dpi=30)])
    book_id = client.upload("collections/shelf/documents", book, "book.pdf").json["document"]["id"]
    client.indexed("The heron is a bird.")
    yield install, book_id
    install.close()


def test_a_hit_is_shown_on_its_page_with_the_passage_marked(library, look):
    """A PDF as a picture beside the hit, a text as text; nothing is loaded before somebody looks."""
    install, book = library
    reader = look(f"http://127.0.0.1:{install.port}")
    page = reader.open("/search?collection=shelf&q=heron")
    assert page.locator("details.viewer").count() == 2
    assert reader.asked("/pages/1") == 0
    page.click(f'li:has(a[href^="/documents/{book}"]) details.viewer summary')
    picture = page.locator("details.viewer img")
    until(lambda: picture.evaluate("image => image.naturalWidth") > 500, 30, "its page is not shown")
    page.click("details.viewer summary:has-text('Show the passage')")
    assert "The heron is a bird." in reader.text("details.viewer .passage")
    assert reader.judged() == []


def test_gaps_are_said_in_plain_words(library, look):
    """On the document and in its row; the original can be downloaded."""
    install, book = library
    reader = look(f"http://127.0.0.1:{install.port}")
    page = reader.open(f"/documents/{book}")
    assert "Page 2 has no text; install OCR to read it." in reader.text(".why")
    with page.expect_download() as download:
        page.click("text=Download original")
    assert download.value.suggested_filename == "book.pdf"
    reader.open("/collections/shelf")
    assert "1 page unread" in reader.text(f"#d-{book}")
