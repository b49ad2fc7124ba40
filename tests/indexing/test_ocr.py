"""Scanned pages become searchable, and no picture is recognised twice."""

import pytest
from sqlalchemy import func, select

from holdfast import extras
from holdfast.core.gaps import Gap
from holdfast.core.states import Status
from holdfast.documents.parse.records import GapReason
from holdfast.kinds import recognition
from holdfast.service.requests import RequestContext
from holdfast.store.base.schema import page_texts
from holdfast.store.views import reads
from tests.documents import ocr, scans
from tests.indexing.install import Asking, IndexingInstall


@pytest.fixture(scope="session")
def asking_parser():
    """One parser for all: loading a language takes a moment."""
    parser = Asking()
    yield parser
    parser.close()


@pytest.fixture
def asking(database_url, tmp_path, meter, asking_parser):
    """An installation whose parser remembers which pages it was asked to recognise."""
    ocr.require_ocr()
    asking_parser.asked.clear()
    install = IndexingInstall(database_url, tmp_path / "data", meter, asking_parser)
    yield install
    install.close()


def scan(word, seed=1):
    """A scanned page with this word on it."""
    return scans.picture([f"The {word} rests here.", *scans.lines(seed, 3)])


def recognised(install):
    """The pages that were recognised since the last look."""
    pages = [what for ask, what in install.parser.asked if ask == "recognise"]
    install.parser.asked.clear()
    return pages


def run_of(install, document):
    return reads.runs_of(install.db, document.head_id)[0].run


def test_a_scanned_page_is_found_by_its_words(asking):
    """Its chunks say that they were read by OCR, and with what confidence."""
    book = scans.pdf([scans.lines(1, 20), scan("heron")])
    document = asking.indexed(book, "book.pdf")
    (hit,) = asking.find("heron")
    assert (hit.document_id, hit.page, document.gaps) == (document.id, 2, ())
    chunks = reads.visible_chunks(asking.db, document.head_id).chunks
    assert [bool(each.chunk.data.get("ocr", 0) > 80) for each in chunks if each.chunk.page == 2] == [True]
    assert all("ocr" not in each.chunk.data for each in chunks if each.chunk.page == 1)


@pytest.mark.g5
def test_one_inserted_scan_is_recognised_and_paid_alone(asking):
    """An edit, a repetition on request, and the same page in another document recognise nothing again."""
    pages = [scan("heron", 1), scan("egret", 2), scan("stork", 3)]
    document = asking.indexed(scans.pdf(pages), "book.pdf")
    assert recognised(asking) == [1, 2, 3]
    paid = asking.paid()
    asking.put(document.id, scans.pdf([pages[0], scan("crane", 4), *pages[1:]]), "book.pdf")
    asking.work()
    assert (recognised(asking), asking.paid() - paid) == ([2], 1)
    asking.indexed(scans.pdf([pages[2], scans.lines(5, 20)]), "other.pdf")
    assert recognised(asking) == []


@pytest.mark.g4
def test_a_run_that_failed_afterwards_recognises_nothing_again(asking):
    """The provider refuses what two recognised pages say; the retry finds both pages recognised."""
    asking.meter.plan(script=[{"do": "fail", "status": 400, "charge": False}])
    document = asking.indexed(scans.pdf([scan("heron", 1), scan("egret", 2)]), "book.pdf")
    assert (document.status, recognised(asking)) == (Status.FAILED, [1, 2])
    asking.documents.index(RequestContext(), document.id)
    asking.work()
    assert asking.document(document.id).status is Status.SUCCESS
    assert recognised(asking) == []


def test_a_long_scan_is_done_in_slices_of_four_pages(asking):
    """Recognising takes seconds a page, so that several workers share a document."""
    asking.upload(scans.pdf([scan("heron", 1)] * 6), "book.pdf")
    asking.work()
    assert {what for ask, what in asking.parser.asked if ask == "cut"} == {(1, 4), (5, 6)}
    assert recognised(asking) == [1]


def test_off_is_off(asking):
    """By the option of a collection or a document."""
    book = scans.pdf([scans.lines(1, 20), scan("heron")])
    document = asking.indexed(book, "book.pdf", options={"ocr": "off"})
    assert (document.gaps, recognised(asking)) == ((Gap("2", "no_text_layer", 1),), [])


def test_an_image_is_indexed(asking):
    """A photograph of a page is a document of one page, with its own picture."""
    document = asking.indexed(scans.encoded(scan("heron")), "photo.bin")
    assert (document.format, document.pages, document.gaps) == ("png", 1, ())
    assert document.thumbnail is not None
    assert [hit.document_id for hit in asking.find("heron")] == [document.id]


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_without_the_extra_an_image_is_refused_with_what_to_install(install, monkeypatch, mode):
    """Nothing could be read: that is no empty success. With `on` this holds for every document."""
    monkeypatch.setitem(extras.MODULES, "ocr", ("no_such_module",))
    content = scans.encoded(scan("heron")) if mode == "auto" else "plain words"
    document = install.indexed(content, "photo.png", options={"ocr": mode})
    run = run_of(install, document)
    assert (document.status, run.error_code) == (Status.FAILED, "ocr_missing")
    assert 'pip install "holdfast[ocr]"' in run.error_message


def test_what_was_recognised_goes_with_its_document(asking):
    """After a deletion nothing of its text is left."""
    document = asking.indexed(scans.pdf([scan("heron")]), "book.pdf")
    count = select(func.count()).select_from(page_texts)
    assert asking.db.read(lambda tx: tx.execute(count).scalar_one()) == 1
    asking.documents.delete(RequestContext(), document.id)
    asking.tidy()
    assert asking.db.read(lambda tx: tx.execute(count).scalar_one()) == 0


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ({"confidence": 49, "blocks": ["paragraph", 0, "x"]}, GapReason.LOW_CONFIDENCE),
        ({"confidence": 0, "blocks": []}, GapReason.NOTHING_RECOGNISED),
        ({"confidence": 100, "blocks": [], "blank": True}, None),
        ({"confidence": 50, "blocks": ["paragraph", 0, "x"]}, None),
    ],
)
def test_a_page_that_is_left_out_says_so(text, gap):
    """Below a confidence of 50, or without a word; blank paper is no gap."""
    page = recognition.recognised_page(3, {"words": [], "blank": False, **text})
    assert (page.gap, bool(page.blocks)) == (gap, gap is None and "blank" not in text)
