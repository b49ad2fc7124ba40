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
from tests.indexing.house import WISH, Asking

PAGES = 200
PLACES = range(3, PAGES, 33)
EDITS = (
    lambda text, place: text.replace(" ", f" {place} times ", 3),
    lambda text, place: f"{text} Account {place} was added later.",
    lambda text, place: f"{text.rpartition('. ')[0]}.",
)
NAMES = {"pdf": "book.pdf", "docx": "book.docx", "markdown": "book.md"}


def test_asking_again_for_what_is_unchanged_pays_nothing(house):
    """The same bytes, the same options: no generation and no exchange with the provider."""
    found = house.indexed(books.plain(30), "book.pdf")
    before = house.meter.totals()
    assert house.documents.index(WISH, found.id).disposition is Disposition.UNCHANGED
    assert house.work() == []
    assert house.meter.totals() == before


@pytest.mark.g5
def test_forced_work_makes_a_new_generation_for_nothing(house):
    """Everything is done again and published again; the provider does not hear of it."""
    found = house.indexed(books.plain(30), "book.pdf")
    before = house.meter.totals()
    taken = house.documents.index(WISH, found.id, force=True)
    assert taken.answer.generation == 2
    house.work()
    assert house.document(found.id).published_generation == 2
    assert len(house.texts(found)) == 30
    assert house.meter.totals() == before


def holding(texts, paragraph):
    """How many of the chunks hold some of the paragraph."""
    sentences = [sentence[:40] for sentence in paragraph.split(". ")[1:]]
    return sum(any(sentence in " ".join(text.split()) for sentence in sentences) for text in texts)


@pytest.mark.g5
@pytest.mark.parametrize("form", NAMES)
def test_one_changed_paragraph_of_two_hundred_pages_costs_the_chunks_it_is_in(house, form):
    """A word changed, a sentence put in or out, twice each: at most 1.5 times the chunks that hold them.

    Together, for one alone may cost more: a chunk that becomes too long is cut anew, and its parts are new.
    """
    book = books.Book(PAGES, paragraphs=5)
    found = house.indexed(getattr(book, form)(), NAMES[form])
    assert house.paid() == found.chunks > PAGES
    first, changed = house.paid(), 0
    for place, edit in zip(PLACES, itertools.cycle(EDITS), strict=False):
        old, before = book.pages[place][1], house.paid()
        new = book.pages[place][1] = edit(old, place)
        assert new != old
        held = holding(house.texts(found), old)
        house.put(found.id, getattr(book, form)(), NAMES[form])
        house.work()
        assert house.paid(since=before) >= 1
        changed += max(held, holding(house.texts(found), new))
    assert changed >= len(PLACES)
    assert house.paid(since=first) <= 1.5 * changed
    assert house.document(found.id).published_generation == 1 + len(PLACES)
    assert house.meter.totals().excess == 0


@pytest.mark.g5
@pytest.mark.parametrize("form", NAMES)
def test_a_page_put_in_front_of_two_hundred_costs_about_itself(house, form):
    """Every slice has other page numbers now and is read again; at most three pages' worth is paid."""
    book = books.Book(PAGES)
    found = house.indexed(getattr(book, form)(), NAMES[form])
    before, chunks_of_a_page = house.paid(), house.paid() / PAGES
    book.pages.insert(0, book.new_page())
    house.put(found.id, getattr(book, form)(), NAMES[form])
    house.work()
    assert 1 <= house.paid(since=before) <= 3 * chunks_of_a_page
    if form == "pdf":
        (hit,) = house.find("Inserted", k=1)
        assert hit.page == 1
        assert house.document(found.id).pages == PAGES + 1


@pytest.mark.g5
def test_the_same_text_is_free_in_another_document_and_collection_of_the_tenant(house):
    """A page in two books, a book in two collections: paid once."""
    book = books.Book(24, paragraphs=1)
    house.indexed(book.pdf(), "book.pdf")
    paid = house.paid()
    house.indexed(book.markdown(), "book.md", options={"chunk_size": 40})
    extra = house.paid(since=paid)
    house.indexed(book.pdf(), "book.pdf", to="attic")
    book.pages.reverse()
    house.indexed(book.pdf(), "reversed.pdf")
    assert house.paid(since=paid) == extra
    assert house.meter.totals().excess == 0


@pytest.mark.g5
def test_the_same_text_of_another_tenant_is_paid_again(house):
    """Else the bill of one would tell what the other holds."""
    content = books.plain(10)
    house.indexed(content, "book.pdf")
    other = house.indexed(content, "book.pdf", tenant="somebody")
    assert house.paid() == 20
    assert house.meter.totals().max_charges == 2
    assert house.find("plain book", tenant="somebody")[0].document_id == other.id


class Watched:
    """Counts what the work of a process asks of chunker and ledger."""

    def __init__(self, house, monkeypatch):
        self.paid = []
        self.parser = Asking()
        self.cut = self.parser.pieces_of
        self.engine = house.worker("watched", self.parser)
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
def watched(house, monkeypatch):
    made = Watched(house, monkeypatch)
    yield made
    made.parser.close()


def changed_book(house):
    """Three slices, published; then the second one changed and asked for."""
    book = books.Book(36, paragraphs=1)
    found = house.indexed(book.pdf(), "book.pdf")
    book.pages[15] = book.new_page()
    return found, house.put(found.id, book.pdf(), "book.pdf")


@pytest.mark.g5
def test_a_slice_that_did_not_change_is_taken_over_without_being_run(house, watched):
    """Only the changed slice is cut and shown to the ledger; the others have their chunks from before."""
    found, taken = changed_book(house)
    before = house.texts(found)
    watched.work()
    assert watched.cut == [13]
    assert watched.paid == [12]
    told = [one.result for one in reads.tasks_of(house.db, taken.answer.run_id)]
    assert [each and each.get("taken_over") for each in told] == [None, 1, None, 1]
    after = house.texts(found)
    assert [number for number in range(36) if after[number] != before[number]] == [15]
    assert len(house.find("Inserted")) == 1
    house.tidy()
    assert house.texts(found) == after
    assert house.rows(found) == 36


def test_a_taken_over_slice_is_found_and_counted_like_one_that_was_run(house):
    """Scores after a take-over are those of a document indexed for the first time."""
    changed_book(house)
    house.work()
    with house.shelf.open(next(house.documents.walk("default", "shelf")).digest) as content:
        twin = house.indexed(content.read(), to="attic")
    assert twin.chunks == 36
    here = [(hit.page, round(hit.score, 9)) for hit in house.find("passage ledger lease")]
    there = [(hit.page, round(hit.score, 9)) for hit in house.find("passage ledger lease", where="attic")]
    assert here == there


@pytest.mark.parametrize("table", [chunks, word_counts], ids=["chunks", "counts"])
def test_a_slice_whose_old_rows_vanish_meanwhile_is_done_instead(house, watched, monkeypatch, table):
    """They were there when the take-over was decided and not when it was made: nothing is missing."""
    found, _ = changed_book(house)
    genuine = slices.published

    def vanishing(db, head_id):
        known = genuine(db, head_id)
        gone = delete(table).where(table.c.head_id == head_id, table.c.generation == 1)
        house.db.write("by_hand", lambda tx: tx.execute(gone))
        return known

    monkeypatch.setattr(slices, "published", vanishing)
    paid = house.paid()
    watched.work()
    assert watched.cut == [1, 13, 25]
    assert len(house.texts(found)) == 36
    assert house.paid(since=paid) == 1
    assert len(house.find("Inserted passage")) >= 1


def test_other_options_take_nothing_over(house, watched):
    """Slices of another chunk size are not those: all of it is cut again, what is known is not paid again."""
    book = books.Book(24, paragraphs=1)
    found = house.indexed(book.pdf(), "book.pdf")
    paid = house.paid()
    house.collections.change(WISH, "shelf", options={"chunk_size": 300})
    watched.work()
    assert watched.cut == [1, 13]
    assert house.paid(since=paid) == 0
    assert house.document(found.id).published_generation == 2


@pytest.mark.g5
def test_two_documents_with_the_same_pages_indexed_at_once_pay_once(house):
    """One worker waits for the other's order instead of sending its own."""
    book = books.Book(12, paragraphs=1)
    house.upload(book.pdf(), "one.pdf")
    book.pages.reverse()
    house.upload(book.pdf(), "two.pdf")
    house.meter.plan(latency=0.2)
    engines = [house.worker("one"), house.worker("two")]
    threads = [threading.Thread(target=each.run_until_idle) for each in engines]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.chunks for each in house.documents.walk("default", "shelf")] == [12, 12]
    assert (house.paid(), house.meter.totals().excess) == (12, 0)


def test_each_run_reports_what_was_paid_and_reused(house):
    """In its own books, which agree with the provider's."""
    found, taken = changed_book(house)
    first = reads.runs_of(house.db, found.head_id)[-1]
    paid = house.paid()
    house.work()
    old = reads.progress_of(house.db, first.run.id).spent
    new = reads.progress_of(house.db, taken.answer.run_id).spent
    assert (old.paid_calls, old.reused_calls) == (36, 0)
    assert (new.paid_calls, new.reused_calls) == (house.paid(since=paid), 11) == (1, 11)
    assert new.tokens > 0
    assert house.meter.totals().tokens == old.tokens + new.tokens


def test_another_actor_and_lane_change_nothing(house):
    """Who asks, and how urgently, is no reason to do it again."""
    found = house.indexed("The same tale.")
    wish = RequestContext(actor="somebody", lane="interactive", priority=0)
    assert house.documents.index(wish, found.id).disposition is Disposition.UNCHANGED
