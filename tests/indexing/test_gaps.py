"""Pages that could not be read are told with the version that lacks them, and with no other."""

import pytest

from holdfast.core.gaps import Gap
from holdfast.core.states import Status
from holdfast.service import explanations
from holdfast.store.protocol import tasks
from holdfast.store.views import reads
from tests.documents import pdfs, scans
from tests.indexing.install import IndexingInstall


@pytest.fixture
def install(database_url, tmp_path, meter, parser):
    """An installation without OCR."""
    built = IndexingInstall(database_url, tmp_path / "data", meter, parser, ocr="off")
    yield built
    built.close()


def scanned(*numbers, of=3):
    """A PDF of text whose pages with these numbers are scans."""
    return scans.pdf(
        [
            scans.picture(["one", "two"], dpi=30) if page in numbers else scans.lines(page, 20)
            for page in range(1, of + 1)
        ]
    )


def test_a_document_with_scanned_pages_is_ready_with_gaps(install):
    """Its status is success, what could be read is found, and the run says which pages are missing."""
    document = install.indexed(scanned(2), "book.pdf")
    assert (document.status, document.pages) == (Status.SUCCESS, 3)
    assert document.gaps == (Gap("2", "no_text_layer", 1),)
    (run,) = reads.runs_of(install.db, document.head_id)
    assert run.gaps == document.gaps
    story = reads.story(install.db, document.head_id)
    assert "Page 2 has no text; install OCR to read it." in explanations.advise(story).sentence


def test_a_document_of_characters_without_meaning_fails_and_costs_nothing(install, meter):
    """Every page has a text layer, and none of it is text."""
    document = install.indexed(pdfs.unmapped(scans.lines(1, 20), shift=130), "book.pdf")
    assert (install.run(document).error_code, meter.totals().exchanges) == ("no_text", 0)


def test_gaps_over_several_slices_are_one(install):
    """Pages 4 to 9 of twelve, read in four tasks."""
    document = install.indexed(scanned(*range(4, 10), of=12), "book.pdf", options={"slice_pages": 3})
    assert document.gaps == (Gap("4-9", "no_text_layer", 6),)


@pytest.mark.g3
def test_gaps_change_with_the_publication(install):
    """While a better scan is being indexed, the gaps are the old version's; then they are gone."""
    document = install.indexed(scanned(2), "book.pdf")
    install.put(document.id, scanned(), "book.pdf")
    assert install.document(document.id).gaps == document.gaps
    install.work()
    assert install.document(document.id).gaps == ()


@pytest.mark.g2
def test_a_worker_that_lost_its_claim_writes_no_gaps(install):
    """It finishes late, and is fenced out: the gaps are those of the newer version."""
    taken = install.upload(scanned(2), "book.pdf")
    late = install.open_claim()
    install.put(taken.document.id, scanned(1), "book.pdf")
    install.work()
    result = {"readings": [[3, "empty", None, "no_text_layer"]]}
    kind = install.engine.registry.get("index")
    outcome = tasks.finish(
        install.db, late, spent=reads.Spent(), result=result, publish=lambda tx: kind.publish(tx, late)
    )
    assert type(outcome).__name__ == "Fenced"
    assert install.document(taken.document.id).gaps == (Gap("1", "no_text_layer", 1),)
