"""Each page keeps how it was read, with the version that shows it."""

import pytest

from holdfast.store.library import page_readings
from tests.documents import scans
from tests.indexing.install import IndexingInstall


@pytest.fixture
def install(database_url, tmp_path, meter, parser):
    """An installation without OCR."""
    built = IndexingInstall(database_url, tmp_path / "data", meter, parser, ocr="off")
    yield built
    built.close()


def scanned(*numbers, of=5):
    return scans.pdf(
        [
            scans.picture(["one", "two"], dpi=30) if page in numbers else scans.lines(page, 20)
            for page in range(1, of + 1)
        ]
    )


def listed(install, document, **more):
    return page_readings.pages(install.db, "default", document.id, **{"limit": 100} | more)


def test_every_page_says_its_quality_and_its_words(install):
    """Read in three tasks, listed in one order, and a few at a time."""
    document = install.indexed(scanned(2), "book.pdf", options={"slice_pages": 2})
    assert document.page_qualities == {"empty": 1, "text": 4}
    pages = listed(install, document).pages
    assert [(page.page, page.quality, page.gap) for page in pages] == [
        (number, "empty", "no_text_layer") if number == 2 else (number, "text", None)
        for number in range(1, 6)
    ]
    assert all(page.words > 20 for page in pages if page.quality == "text")
    last = (pages[1].slice, pages[1].page)
    assert listed(install, document, after=last, limit=2).pages == pages[2:4]


@pytest.mark.g3
def test_pages_change_with_the_publication(install):
    """While a better scan is being indexed, the pages are those of the old version."""
    document = install.indexed(scanned(2), "book.pdf")
    before = listed(install, document)
    install.put(document.id, scanned(), "book.pdf")
    assert listed(install, document) == before
    install.work()
    assert {page.quality for page in listed(install, document).pages} == {"text"}
    assert listed(install, document).generation == 2
    assert install.document(document.id).page_qualities == {"text": 5}


def test_a_table_has_rows_and_no_pages(install):
    """Nothing is listed, and nothing counted."""
    document = install.indexed("a,b\n1,2\n", "table.csv")
    assert (document.page_qualities, listed(install, document).pages) == ({}, ())
