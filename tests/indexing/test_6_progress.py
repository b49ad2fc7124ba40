"""Big documents: cut into slices, done by several workers, and told about by true counts."""

import threading

import pytest

from holdfast import faults
from holdfast.store.views import reads
from tests.documents import files, pdfs
from tests.documents.prose import Prose
from tests.indexing import books
from tests.indexing.install import endings


def test_progress_is_told_by_true_counts(install):
    """After each slice: pages read, chunks embedded and written, never more, never fewer."""
    taken = install.upload(books.plain(36), "book.pdf")
    seen = []
    while install.work(most=1):
        output = reads.progress_of(install.db, taken.answer.run_id)
        seen.append((output.stages, round(output.rolled.share, 3)))
    counts = [{"pages": n, "embedded": n, "reused": 0, "written": n} for n in (12, 24, 36)]
    assert [{name: done for name, (done, _) in stages.items()} for stages, _ in seen] == [{}, *counts]
    assert [share for _, share in seen] == [0.0, 0.333, 0.667, 1.0]
    assert output.chunks == 36


def test_progress_tells_what_was_reused(install):
    """A changed page is embedded, the rest of its slice looked up, and the other slices taken over."""
    book = books.Book(36, paragraphs=1)
    document = install.indexed(book.pdf(), "book.pdf")
    book.pages[20] = book.new_page()
    taken = install.put(document.id, book.pdf(), "book.pdf")
    install.work()
    stages = reads.progress_of(install.db, taken.answer.run_id).stages
    assert {name: done for name, (done, _) in stages.items()} == {
        "pages": 36,
        "embedded": 1,
        "reused": 35,
        "written": 36,
    }


def test_a_long_slice_tells_how_far_it_is(install):
    """A text of many hundred chunks is staged and told about in between, while the provider is asked."""
    taken = install.upload("\n\n".join(Prose(4).paragraphs(900)), "long.txt", options={"chunk_size": 64})
    seen, one_look = [], threading.Lock()

    def look(point):
        if point == "send.answered":
            with one_look:
                output = reads.progress_of(install.db, taken.answer.run_id)
                seen.append(
                    (output.rolled.done, output.rolled.total, output.stages.get("written", (0, 0))[0])
                )

    with faults.armed(look):
        install.work()
    chunks = install.document(taken.document.id).chunks
    between = [done for done, _, _ in seen if 0 < done < chunks]
    assert between
    assert all(total in {0, chunks} and written == done for done, total, written in seen)
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert len(install.texts(install.document(taken.document.id))) == chunks


def test_the_slices_of_a_document_are_done_by_several_workers_at_once(install):
    """Two workers have an order open at the same time for the same document; it is published whole."""
    taken = install.upload(books.plain(48), "book.pdf")
    install.work(most=1)
    install.meter.hold("before")
    engines = [install.worker("one"), install.worker("two")]
    done = []
    threads = [threading.Thread(target=lambda each=each: done.extend(each.work_off())) for each in engines]
    for each in threads:
        each.start()
    assert install.meter.wait_open(2).open == 2
    owners = {one.task.owner for one in reads.tasks_of(install.db, taken.answer.run_id) if one.task.owner}
    install.meter.release()
    for each in threads:
        each.join()
    assert owners >= {"one", "two"}
    assert sorted(endings(done)) == ["finished"] * 3 + ["published"]
    document = install.document(taken.document.id)
    assert [f"number{n}x" in text for n, text in enumerate(install.texts(document), start=1)] == [True] * 48
    assert install.meter.totals().excess == 0


def test_a_sheet_is_cut_by_rows(install):
    """Three thousand rows to a slice; every row is found."""
    rows = [["name", "number"], *([f"row{number}x", number] for number in range(7000))]
    taken = install.upload(files.workbook({"Sheet": rows}), "rows.xlsx", options={"chunk_size": 2048})
    assert endings(install.work()) == ["planned", "finished", "finished", "published"]
    for word in ("row0x", "row3100x", "row6999x"):
        assert [hit.document_id for hit in install.find(word)] == [taken.document.id]


@pytest.mark.g3
def test_a_pdf_with_pages_without_text_is_whole(install):
    """Empty pages count as pages and have no chunks; a slice of nothing else does not fail the document."""
    document = install.indexed(pdfs.make(["first", *[""] * 30, "last heron"]), "sparse.pdf")
    assert (document.pages, document.chunks) == (32, 2)
    assert [hit.page for hit in install.find("heron")] == [32]
