"""Chunks edited and switched off by people: a new version each time, which pays for the new text alone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import faults
from holdfast.core.errors import BadRequestError, ConflictError, GenerationMovedError, NotFoundError
from holdfast.core.states import Disposition, Status
from holdfast.engine.events import Ending
from holdfast.service.edits import EditState
from holdfast.service.requests import RequestContext
from holdfast.store.library import document_requests
from holdfast.store.library.document_edits import ChunkChange
from tests.documents import pdfs
from tests.indexing import books
from tests.indexing.install import WISH

ANN = RequestContext(actor="ann")
OFF, ON, BACK = ChunkChange(enabled=False), ChunkChange(enabled=True), ChunkChange(True, None, has_text=True)
PAGES = 30  # three slices


def text(new):
    return ChunkChange(text=new, has_text=True)


def chunks(install, document):
    page = install.edits.chunks(install.document(document.id), limit=1000)
    return list(page.chunks)


def edit(install, document, number, chunk_change, **more):
    """The chunk with that number is changed, and the new version published."""
    taken = install.edits.change(ANN, document.id, chunks(install, document)[number].id, chunk_change, **more)
    install.work()
    return taken


@pytest.fixture
def book(install):
    """A document of thirty chunks in three slices, each text its own."""
    return install.indexed(books.plain(PAGES), "book.pdf")


@pytest.mark.g5
def test_an_edited_chunk_is_a_new_version_that_pays_for_its_text_alone(install, book):
    """Readers see the old text until the new version is published; its page stays."""
    before, old = install.paid(), install.texts(book)
    taken = install.edits.change(ANN, book.id, chunks(install, book)[4].id, text("A corrected figure."))
    assert (taken.disposition, taken.answer.generation) == (Disposition.SUPERSEDING, 2)
    assert install.texts(install.document(book.id)) == old
    install.work()
    assert install.texts(install.document(book.id)) == [*old[:4], "A corrected figure.", *old[5:]]
    assert install.paid(since=before) == 1
    here = chunks(install, book)[4]
    assert (here.page, here.original, here.is_edited, here.enabled) == (5, old[4], True, True)
    assert [hit.page for hit in install.find("corrected")] == [5]


def test_a_chunk_that_is_switched_off_is_found_by_nobody_until_it_is_switched_on(install, book):
    """No search and no job sees it; a person does. Nothing of this is paid for."""
    before, old = install.paid(), install.texts(book)
    edit(install, book, 20, OFF)
    assert install.texts(install.document(book.id)) == [*old[:20], *old[21:]]
    assert install.find("number21x") == []
    here = chunks(install, book)[20]
    assert (here.enabled, here.original, here.position) == (
        False,
        old[20],
        chunks(install, book)[21].position - 1,
    )
    edit(install, book, 20, ON)
    assert install.texts(install.document(book.id)) == old
    assert install.paid() == before
    assert install.edits.all_of(install.document(book.id)) == []


def test_an_edit_is_taken_back_and_the_original_is_there_again_for_nothing(install, book):
    """The document is indexed as if there had never been an edit."""
    old = install.texts(book)
    edit(install, book, 3, text("Wrong."))
    edit(install, book, 3, OFF)
    paid = install.paid()
    edit(install, book, 3, BACK)
    assert install.texts(install.document(book.id)) == old
    assert install.paid() == paid
    again = install.documents.index(WISH, book.id)
    assert (again.disposition, install.document(book.id).edits) == (Disposition.UNCHANGED, None)


@pytest.mark.g6
def test_the_same_edit_twice_is_one_run(install, book):
    """While it runs it is a duplicate, afterwards unchanged; the second pays nothing."""
    name = chunks(install, book)[0].id
    first = install.edits.change(ANN, book.id, name, text("New."))
    second = install.edits.change(ANN, book.id, name, text(" New.\r\n"))
    assert (second.disposition, second.answer.run_id) == (Disposition.DUPLICATE, first.answer.run_id)
    install.work()
    third = install.edits.change(ANN, book.id, name, text("New."))
    assert (third.disposition, third.answer.generation) == (Disposition.UNCHANGED, 2)


def test_edits_survive_new_content_where_their_text_survives(install):
    """A page is inserted before it, its own page is gone, and comes back: the edit knows its text."""
    pages = [f"This is page number{number}x." for number in range(1, 20)]
    document = install.indexed(pdfs.make(pages), "book.pdf")
    edit(install, document, 4, text("Edited five."))
    edit(install, document, 14, OFF)
    install.put(document.id, pdfs.make(["A new first page.", *pages]), "book.pdf")
    install.work()
    texts = install.texts(install.document(document.id))
    assert texts[5] == "Edited five."
    assert pages[14] not in texts
    install.put(document.id, pdfs.make(pages[:4] + pages[5:]), "book.pdf")
    install.work()
    states = {view.edit.page: view.state for view in install.edits.all_of(install.document(document.id))}
    assert states == {5: EditState.NOT_APPLIED, 15: EditState.APPLIED}
    assert "Edited five." not in install.texts(install.document(document.id))
    install.put(document.id, pdfs.make(pages), "book.pdf")
    install.work()
    assert install.texts(install.document(document.id))[4] == "Edited five."


def test_an_edit_stays_with_its_own_of_several_equal_texts(install):
    """Neighbours tell them apart, also when one more is inserted before them; the others stay as they are."""
    pages = ["First page.", "To be confirmed.", "Second page.", "To be confirmed.", "Third page."]
    content = "\n\n---\n\n".join(pages)
    document = install.indexed(content, "a.txt", options={"delimiter": "---"})
    assert install.texts(document) == pages
    edit(install, document, 3, text("Forty-two."))
    assert install.texts(install.document(document.id)) == [*pages[:3], "Forty-two.", pages[4]]
    more = ["Opening.", "To be confirmed.", *pages]
    install.put(document.id, "\n\n---\n\n".join(more), "a.txt")
    install.work()
    assert install.texts(install.document(document.id)) == [*more[:5], "Forty-two.", more[6]]


def test_two_people_who_edit_two_chunks_at_once_both_have_their_edit(install, book):
    """The second of them asks for a version with both."""
    names = [each.id for each in chunks(install, book)]
    gate = threading.Barrier(2)

    def change(editor, number):
        gate.wait()
        editor.change(ANN, book.id, names[number], text(f"Edit {number}."))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(change, (install.editor(), install.editor()), (2, 25)))
    install.work()
    texts = install.texts(install.document(book.id))
    assert (texts[2], texts[25]) == ("Edit 2.", "Edit 25.")


@pytest.mark.g1
def test_an_edit_during_a_run_is_in_the_version_that_wins(install, book):
    """The document is being indexed again when somebody edits it: the later generation has both."""
    name = chunks(install, book)[0].id
    pages = [f"This is leaf number{number}x." for number in range(1, PAGES)]
    install.put(book.id, pdfs.make(["This is page number1x of the plain book.", *pages]), "book.pdf")
    stale = install.open_claim()
    install.edits.change(ANN, book.id, name, text("Edited."))
    install.work()
    document = install.document(book.id)
    assert install.texts(document)[:2] == ["Edited.", pages[0]]
    assert (document.published_generation, stale.generation) == (3, 2)


def once(point, what):
    """`what` happens the first time that `point` is met."""
    met = []

    def handler(name):
        if name == point and not met:
            met.append(name)
            what()

    return faults.armed(handler)


def taken_over(install):
    """Every lease is over, and another worker does the work."""
    install.pass_time(3600)
    second = install.worker("second")
    second.sweep()
    return second.work_off()


def crash():
    raise faults.Crash


@pytest.mark.g2
def test_a_worker_frozen_in_the_middle_of_an_edit_writes_nothing_when_it_thaws(install, book):
    """Frozen between paying and publishing; another one finishes, and nothing is paid twice."""
    name, before = chunks(install, book)[0].id, install.paid()
    install.edits.change(ANN, book.id, name, text("Edited."))
    others = []

    def meanwhile():
        others.extend(taken_over(install))

    with once("settle.committed", meanwhile):
        install.work()
    document = install.document(book.id)
    assert others[-1].ending is Ending.PUBLISHED
    assert (document.status, document.published_generation) == (Status.SUCCESS, 2)
    assert install.texts(document)[0] == "Edited."
    assert install.paid(since=before) == 1


@pytest.mark.g4
def test_an_edit_is_stored_with_its_request_or_not_at_all(install, book):
    """Killed before the commit there is neither; killed after it, or while paying, others finish."""
    name, before = chunks(install, book)[0].id, install.paid()
    with once("edit_chunk.commit", crash), pytest.raises(faults.Crash):
        install.edits.change(ANN, book.id, name, text("Edited."))
    assert (install.document(book.id).generation, install.document(book.id).edits) == (1, None)
    with once("edit_chunk.committed", crash), pytest.raises(faults.Crash):
        install.edits.change(ANN, book.id, name, text("Edited."))
    with once("settle.committed", crash), pytest.raises(faults.Crash):
        install.work()
    taken_over(install)
    assert install.texts(install.document(book.id))[0] == "Edited."
    assert install.paid(since=before) == 1


@pytest.mark.g3
def test_a_cancelled_edit_leaves_the_old_version_and_waits(install, book):
    """It is shown as not published yet, and a retry publishes it."""
    install.edits.change(ANN, book.id, chunks(install, book)[0].id, text("Edited."))
    install.documents.cancel(WISH, book.id)
    install.work()
    assert "Edited." not in install.texts(install.document(book.id))
    assert [view.state for view in install.edits.all_of(install.document(book.id))] == [EditState.PENDING]
    install.documents.index(WISH, book.id)
    install.work()
    assert install.texts(install.document(book.id))[0] == "Edited."


def test_who_looked_at_an_older_version_changes_nothing(install, book):
    """The expected generation is tested under the lock of the head."""
    name = chunks(install, book)[0].id
    edit(install, book, 0, text("Edited."), expect_generation=1)
    with pytest.raises(GenerationMovedError):
        install.edits.change(ANN, book.id, name, OFF, expect_generation=1)
    assert install.document(book.id).generation == 2


def test_what_cannot_be_indexed_is_refused_before_anything_is_stored(install, book):
    """An empty text means switching off, a long one does not fit the embedder; NUL is replaced."""
    for chunk_change, code in (
        (text(" \n"), "empty"),
        (text("word " * 3000), "chunk_too_long"),
        (ChunkChange(), "nothing_to_change"),
    ):
        with pytest.raises(BadRequestError) as error:
            edit(install, book, 0, chunk_change)
        assert error.value.code == code
        assert install.document(book.id).edits is None
    edit(install, book, 0, text("a\x00b \ud800 c"))
    odd = "\N{REPLACEMENT CHARACTER}"
    assert install.texts(install.document(book.id))[0] == f"a{odd}b {odd} c"


def test_a_chunk_of_an_earlier_version_is_known_by_its_text(install):
    """An old id finds the chunk where it is now; one whose text is gone, or there several times, does not."""
    pages = [f"This is page number{number}x." for number in range(1, 4)]
    document = install.indexed(pdfs.make(pages), "book.pdf")
    names = [each.id for each in chunks(install, document)]
    install.put(document.id, pdfs.make(["New.", pages[1], pages[2], pages[2]]), "book.pdf")
    install.work()
    install.edits.change(ANN, document.id, names[1], OFF)
    with pytest.raises(NotFoundError):
        install.edits.change(ANN, document.id, names[0], OFF)
    with pytest.raises(ConflictError):
        install.edits.change(ANN, document.id, names[2].rpartition(".")[0] + ".9", OFF)


def test_a_document_of_which_everything_is_switched_off_is_empty_but_there(install):
    """It is published without text, not failed, and can be switched on again."""
    document = install.indexed("Only this.", "a.txt")
    edit(install, document, 0, OFF)
    document = install.document(document.id)
    assert (document.status, document.chunks, install.texts(document)) == (Status.SUCCESS, 0, [])
    edit(install, document, 0, ON)
    assert install.texts(install.document(document.id)) == ["Only this."]


def switched_off_just_before(install, book, monkeypatch, name):
    """The third chunk is switched off by somebody else after `name` was called with the document as read."""
    real, seen = getattr(document_requests, name), []

    def first(*arguments, **more):
        if not seen:
            seen.append(chunks(install, book)[2])
            install.edits.change(ANN, book.id, seen[0].id, OFF)
        return real(*arguments, **more)

    monkeypatch.setattr(document_requests, name, first)
    return seen


def test_an_edit_made_while_a_document_is_indexed_again_is_kept(install, monkeypatch):
    """The request is for the edits that the document has when its head is locked."""
    book = install.indexed(books.plain(5), "book.pdf")
    seen = switched_off_just_before(install, book, monkeypatch, "ask")
    install.documents.index(WISH, book.id, force=True)
    install.work()
    assert seen[0].text not in install.texts(install.document(book.id))


def test_an_edit_made_while_a_file_is_replaced_is_kept(install, monkeypatch):
    """Where the text still exists in the new file."""
    book = install.indexed(books.plain(5), "book.pdf")
    seen = switched_off_just_before(install, book, monkeypatch, "set_source")
    install.put(book.id, books.plain(6), "book.pdf")
    install.work()
    assert seen[0].text not in install.texts(install.document(book.id))
