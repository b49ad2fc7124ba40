"""Only what changed is paid for, by the provider's own book."""

import itertools
import threading

import pytest
from sqlalchemy import delete

from holdfast.core.states import Disposition
from holdfast.service.requests import RequestContext
from holdfast.store.base.schema import chunks, word_counts
from holdfast.store.protocol import slices
from holdfast.store.views import reads
from tests.indexing import books
from tests.indexing.install import WISH, Asking

PAGES = 200
PLACES = range(3, PAGES, 33)
EDITS = (
    lambda text, place: text.replace(" ", f" {place} times ", 3),
    lambda text, place: f"{text} Account {place} was added later.",
    lambda text, place: f"{text.rpartition('. ')[0]}.",
)
NAMES = {"pdf": "book.pdf", "docx": "book.docx", "markdown": "book.md"}


def test_asking_again_for_what_is_unchanged_pays_nothing(install):
    """The same bytes, the same options: no generation and no exchange with the provider."""
    document = install.indexed(books.plain(30), "book.pdf")
    before = install.meter.totals()
    assert install.documents.index(WISH, document.id).disposition is Disposition.UNCHANGED
    assert install.work() == []
    assert install.meter.totals() == before


@pytest.mark.g5
def test_forced_work_makes_a_new_generation_for_nothing(install):
    """Everything is done again and published again; the provider does not hear of it."""
    document = install.indexed(books.plain(30), "book.pdf")
    before = install.meter.totals()
    taken = install.documents.index(WISH, document.id, force=True)
    assert taken.answer.generation == 2
    install.work()
    assert install.document(document.id).published_generation == 2
    assert len(install.texts(document)) == 30
    assert install.meter.totals() == before


def holding(texts, paragraph):
    """How many of the chunks hold some of the paragraph."""
    sentences = [sentence[:40] for sentence in paragraph.split(". ")[1:]]
    return sum(any(sentence in " ".join(text.split()) for sentence in sentences) for text in texts)


@pytest.mark.g5
@pytest.mark.parametrize("form", NAMES)
def test_one_changed_paragraph_of_two_hundred_pages_costs_the_chunks_it_is_in(install, form):
    """A word changed, a sentence put in or out, twice each: at most 1.5 times the chunks that hold them.

    Together, for one alone may cost more: a chunk that becomes too long is cut anew, and its parts are new.
    """
    book = books.Book(PAGES, paragraphs=5)
    document = install.indexed(getattr(book, form)(), NAMES[form])
    assert install.paid() == document.chunks > PAGES
    first, changed = install.paid(), 0
    for position, edit in zip(PLACES, itertools.cycle(EDITS), strict=False):
        old, before = book.pages[position][1], install.paid()
        new = book.pages[position][1] = edit(old, position)
        assert new != old
        held = holding(install.texts(document), old)
        install.put(document.id, getattr(book, form)(), NAMES[form])
        install.work()
        assert install.paid(since=before) >= 1
        changed += max(held, holding(install.texts(document), new))
    assert changed >= len(PLACES)
    assert install.paid(since=first) <= 1.5 * changed
    assert install.document(document.id).published_generation == 1 + len(PLACES)
    assert install.meter.totals().excess == 0


@pytest.mark.g5
@pytest.mark.parametrize("form", NAMES)
def test_a_page_put_in_front_of_two_hundred_costs_about_itself(install, form):
    """Every slice has other page numbers now and is read again; at most three pages' worth is paid."""
    book = books.Book(PAGES)
    document = install.indexed(getattr(book, form)(), NAMES[form])
    before, chunks_of_a_page = install.paid(), install.paid() / PAGES
    book.pages.insert(0, book.new_page())
    install.put(document.id, getattr(book, form)(), NAMES[form])
    install.work()
    assert 1 <= install.paid(since=before) <= 3 * chunks_of_a_page
    if form == "pdf":
        (hit,) = install.find("Inserted", k=1)
        assert hit.page == 1
        assert install.document(document.id).pages == PAGES + 1


@pytest.mark.g5
def test_the_same_text_is_free_in_another_document_and_collection_of_the_tenant(install):
    """A page in two books, a book in two collections: paid once."""
    book = books.Book(24, paragraphs=1)
    install.indexed(book.pdf(), "book.pdf")
    paid = install.paid()
    install.indexed(book.markdown(), "book.md", options={"chunk_size": 40})
    extra = install.paid(since=paid)
    install.indexed(book.pdf(), "book.pdf", to="attic")
    book.pages.reverse()
    install.indexed(book.pdf(), "reversed.pdf")
    assert install.paid(since=paid) == extra
    assert install.meter.totals().excess == 0


@pytest.mark.g5
def test_the_same_text_of_another_tenant_is_paid_again(install):
    """Else the bill of one would tell what the other holds."""
    content = books.plain(10)
    install.indexed(content, "book.pdf")
    other = install.indexed(content, "book.pdf", tenant="somebody")
    assert install.paid() == 20
    assert install.meter.totals().max_charges == 2
    assert install.find("plain book", tenant="somebody")[0].document_id == other.id


class Watched:
    """Counts what the work of a process asks of chunker and ledger."""

    def __init__(self, install, monkeypatch):
        self.paid = []
        self.parser = Asking()
        self.cut = self.parser.pieces_of
        self.engine = install.worker("watched", self.parser)
        pay = self.engine.ledger.pay

        def watched_pay(holder, calls, counted=None):
            self.paid.append(len(calls))
            return pay(holder, calls, counted)

        monkeypatch.setattr(self.engine.ledger, "pay", watched_pay)

    def work(self):
        """All that is due was done; `cut` and `paid` tell what that took."""
        self.cut.clear()
        self.engine.work_off()


@pytest.fixture
def watched(install, monkeypatch):
    created = Watched(install, monkeypatch)
    yield created
    created.parser.close()


def changed_book(install):
    """Three slices, published; then the second one changed and asked for."""
    book = books.Book(36, paragraphs=1)
    document = install.indexed(book.pdf(), "book.pdf")
    book.pages[15] = book.new_page()
    return document, install.put(document.id, book.pdf(), "book.pdf")


@pytest.mark.g5
def test_a_slice_that_did_not_change_is_taken_over_without_being_run(install, watched):
    """Only the changed slice is cut and shown to the ledger; the others have their chunks from before."""
    result, taken = changed_book(install)
    before = install.texts(result)
    watched.work()
    assert watched.cut == [13]
    assert watched.paid == [12]
    items = [one.result for one in reads.tasks_of(install.db, taken.answer.run_id)]
    assert [each and each.get("taken_over") for each in items] == [None, 1, None, 1]
    after = install.texts(result)
    assert [number for number in range(36) if after[number] != before[number]] == [15]
    assert len(install.find("Inserted")) == 1
    install.tidy()
    assert install.texts(result) == after
    assert install.rows(result) == 36


def test_a_taken_over_slice_is_found_and_counted_like_one_that_was_run(install):
    """Scores after a take-over are those of a document indexed for the first time."""
    changed_book(install)
    install.work()
    with install.shelf.open(next(install.documents.walk("default", "shelf")).digest) as content:
        twin = install.indexed(content.read(), to="attic")
    assert twin.chunks == 36
    here = [(hit.page, round(hit.score, 9)) for hit in install.find("passage ledger lease")]
    there = [(hit.page, round(hit.score, 9)) for hit in install.find("passage ledger lease", where="attic")]
    assert here == there


@pytest.mark.parametrize("table", [chunks, word_counts], ids=["chunks", "counts"])
def test_a_slice_whose_old_rows_vanish_meanwhile_is_done_instead(install, watched, monkeypatch, table):
    """They were there when the take-over was decided and not when it was made: nothing is missing."""
    result, _ = changed_book(install)
    genuine = slices.published

    def vanishing(db, head_id):
        known = genuine(db, head_id)
        gone = delete(table).where(table.c.head_id == head_id, table.c.generation == 1)
        install.db.write("by_hand", lambda tx: tx.execute(gone))
        return known

    monkeypatch.setattr(slices, "published", vanishing)
    paid = install.paid()
    watched.work()
    assert watched.cut == [1, 13, 25]
    assert len(install.texts(result)) == 36
    assert install.paid(since=paid) == 1
    assert len(install.find("Inserted passage")) >= 1


def test_other_options_take_nothing_over(install, watched):
    """Slices of another chunk size are not those: all of it is cut again, what is known is not paid again."""
    book = books.Book(24, paragraphs=1)
    document = install.indexed(book.pdf(), "book.pdf")
    paid = install.paid()
    install.collections.change(WISH, "shelf", options={"chunk_size": 300})
    watched.work()
    assert watched.cut == [1, 13]
    assert install.paid(since=paid) == 0
    assert install.document(document.id).published_generation == 2


@pytest.mark.g5
def test_two_documents_with_the_same_pages_indexed_at_once_pay_once(install):
    """One worker waits for the other's order instead of sending its own."""
    book = books.Book(12, paragraphs=1)
    install.upload(book.pdf(), "one.pdf")
    book.pages.reverse()
    install.upload(book.pdf(), "two.pdf")
    install.meter.plan(latency=0.2)
    engines = [install.worker("one"), install.worker("two")]
    threads = [threading.Thread(target=each.run_until_idle) for each in engines]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.chunks for each in install.documents.walk("default", "shelf")] == [12, 12]
    assert (install.paid(), install.meter.totals().excess) == (12, 0)


def test_each_run_reports_what_was_paid_and_reused(install):
    """In its own books, which agree with the provider's."""
    result, taken = changed_book(install)
    first = reads.runs_of(install.db, result.head_id)[-1]
    paid = install.paid()
    install.work()
    old = reads.progress_of(install.db, first.run.id).spent
    new = reads.progress_of(install.db, taken.answer.run_id).spent
    assert (old.paid_calls, old.reused_calls) == (36, 0)
    assert (new.paid_calls, new.reused_calls) == (install.paid(since=paid), 11) == (1, 11)
    assert new.tokens > 0
    assert install.meter.totals().tokens == old.tokens + new.tokens


def test_another_actor_and_lane_change_nothing(install):
    """Who asks, and how urgently, is no reason to do it again."""
    document = install.indexed("The same tale.")
    wish = RequestContext(actor="somebody", lane="interactive", priority=0)
    assert install.documents.index(wish, document.id).disposition is Disposition.UNCHANGED
