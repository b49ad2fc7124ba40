"""Documents that were imported from another system: what they are is said, and they can be indexed here."""

import pytest

from holdfast.store.library import imports
from tests.api.install import ApiInstall

ROWS = [("10", True, "Harbour rules"), ("11", False, "Tide tables")]


@pytest.fixture
def imported(sqlite_url, tmp_path):
    """An installation with documents of `import-documents`, and nothing else."""
    install = ApiInstall(sqlite_url, tmp_path / "data")
    imports.import_documents(install.runtime.db, ROWS, tenant="default", collection="old")
    yield install
    install.close()


def chosen(page, selector, name, content):
    """A file is chosen for the button."""
    with page.expect_file_chooser() as chooser:
        page.click(selector)
    chooser.value.set_files({"name": name, "mimeType": "text/plain", "buffer": content})


def test_imported_documents_are_listed_and_not_called_ready(imported, look):
    """Each row says that search does not find it, and offers what helps; search says so, too."""
    reader = look(f"http://127.0.0.1:{imported.port}")
    page = reader.open("/collections/old")
    for name in ("10", "11"):
        row = reader.text(f"#d-{name}")
        assert "Imported" in row
        assert "Not searchable yet: upload its file" in row
        assert "Ready" not in row
        assert page.locator(f"#d-{name} [data-replace]").inner_text() == "Upload file"
    reader.open("/search?collection=old&q=Harbour+rules")
    assert "including imported ones, cannot be found, not even by title" in reader.text("#main")


def test_each_filter_lists_as_many_as_it_counts(imported, look):
    """Documents without content are counted as imported, not as ready or not indexed."""
    imported.client.indexed("Anchors hold in mud.", to="old")
    reader = look(f"http://127.0.0.1:{imported.port}")
    page = reader.open("/collections/old")
    counts = {
        name: int(page.inner_text(f"#n-{name}")) for name in ("success", "not_indexed", "imported", "failed")
    }
    assert counts == {"success": 1, "not_indexed": 0, "imported": 2, "failed": 0}
    for name, count in counts.items():
        reader.open(f"/collections/old?status={name}")
        assert page.locator("li.doc").count() == count


def test_an_imported_document_is_explained_and_indexed_from_its_page(imported, look):
    """The web UI says what is missing; with its file the document is ready, has a picture and is found."""
    reader = look(f"http://127.0.0.1:{imported.port}")
    page = reader.open("/documents/10")
    assert "It has no content here yet, so search cannot find it." in reader.text(".why")
    assert page.locator("text=Index again").count() == 0
    chosen(page, ".why [data-replace]", "rules.txt", b"Anchors hold in mud.")
    reader.shows("h1", "Queued")
    imported.work()
    reader.shows("h1", "Ready")
    page.wait_for_selector("img.thumb")
    reader.open("/search?collection=old&q=Harbour+rules")
    assert "Harbour rules" in reader.text(".hits")


def test_an_imported_document_is_indexed_from_the_list(imported, look):
    """The button of its row takes the file; the row is then like any other."""
    reader = look(f"http://127.0.0.1:{imported.port}")
    page = reader.open("/collections/old")
    chosen(page, "#d-11 [data-replace]", "tides.txt", b"High water at noon.")
    reader.shows("#d-11", "Queued")
    imported.work()
    reader.shows("#d-11", "Ready")
