"""How documents are cut and embedded: by collection, by document, and changed later."""

import pytest

from holdfast.core.errors import BadRequestError
from holdfast.core.states import Disposition
from holdfast.service.documents import Upload
from tests.documents.prose import Prose
from tests.indexing import books
from tests.indexing.house import WISH

PROSE = "\n\n".join(Prose(3).paragraphs(12))
WRONG = [
    {"chunk_sise": 100},
    {"provider": "somebody"},
    {"chunk_size": "large"},
    {"chunk_size": 100.5},
    {"chunk_size": 1},
    {"chunk_size": True},
    {"overlap": 200},
    {"slice_pages": 0},
    {"slice_rows": "all"},
    {"delimiter": 7},
    {"model": None},
    {"model": ""},
    {"model": "a\x00b"},
]


@pytest.mark.g6
def test_an_option_that_cannot_be_followed_is_refused(house):
    """Unknown names and senseless values, for a collection or a document, before anything is made."""
    for options in WRONG:
        with pytest.raises(BadRequestError, match=next(iter(options)).partition("_")[0]):
            house.collections.make(WISH, "attic", options=options)
        with pytest.raises(BadRequestError):
            house.documents.add(WISH, "shelf", [Upload(b"text", options=options)])
    assert [each.id for each in house.collections.all("default")] == ["shelf"]
    assert list(house.documents.walk("default", "shelf")) == []


def test_a_collection_has_options_and_a_document_may_have_its_own(house):
    """Smaller chunks are more chunks; the document's word counts before the collection's."""
    house.collections.make(WISH, "fine", options={"chunk_size": 32})
    default = house.indexed(PROSE)
    fine = house.indexed(PROSE, to="fine")
    own = house.indexed(f"{PROSE} ", to="fine", options={"chunk_size": 256})
    assert len(house.texts(fine)) > 2 * len(house.texts(default))
    assert len(house.texts(own)) == len(house.texts(default))


def test_slices_follow_the_collection(house):
    """Ten pages to a slice are three tasks for thirty pages, and one for the plan."""
    house.collections.make(WISH, "thick", options={"slice_pages": 10})
    house.upload(books.plain(30), "book.pdf", to="thick")
    assert len(house.work()) == 4


@pytest.mark.g3
def test_a_new_chunk_size_makes_a_new_generation_of_every_document(house):
    """They are superseded at the lowest priority; the old chunks answer until each is done."""
    first, second = house.indexed(PROSE), house.indexed(f"Another. {PROSE}")
    before = [len(house.texts(each)) for each in (first, second)]
    requested = house.collections.change(WISH, "shelf", options={"chunk_size": 32}).requested
    assert requested == 2
    assert [len(house.texts(each)) for each in (first, second)] == before
    run = house.run(house.document(first.id))
    assert (run.disposition, run.priority) == (Disposition.SUPERSEDING, 9)
    house.upload("An urgent thing.")
    assert house.work(most=1)[0].claim.priority == 5
    house.work()
    after = [len(house.texts(each)) for each in (first, second)]
    assert all(new > 2 * old for new, old in zip(after, before, strict=True))


def test_a_new_model_embeds_everything_anew_and_the_old_one_is_still_known(house):
    """Every chunk is paid for with the new model; going back costs nothing."""
    found = house.indexed(PROSE)
    chunks = len(house.texts(found))
    before = house.paid()
    house.collections.change(WISH, "shelf", options={"model": "text-embedding-3-large"})
    house.work()
    assert house.paid(since=before) == chunks
    house.collections.change(WISH, "shelf", options={"model": None})
    house.work()
    assert house.document(found.id).published_generation == 3
    assert house.paid(since=before) == chunks


def test_a_change_that_changes_nothing_asks_for_nothing(house):
    """A new title, and options that are what they were."""
    house.indexed(PROSE)
    options = {"chunk_size": 256}
    change = house.collections.change(WISH, "shelf", title="The shelf", options=options)
    assert (change.collection.title, change.requested) == ("The shelf", 0)
    assert house.work() == []


def test_an_option_that_is_taken_back_is_the_default_again(house):
    """None removes it."""
    house.collections.make(WISH, "fine", options={"chunk_size": 32, "slice_pages": 3})
    changed = house.collections.change(WISH, "fine", options={"chunk_size": None}).collection
    assert changed.options == {"slice_pages": 3}


@pytest.mark.g1
def test_options_changed_while_a_document_is_indexed_supersede_that_run(house):
    """The run has its options frozen; the one that is published has the new ones."""
    taken = house.upload(PROSE)
    house.open_claim()
    house.collections.change(WISH, "shelf", options={"chunk_size": 32})
    house.work()
    found = house.document(taken.document.id)
    assert found.published_generation == 2
    assert len(house.texts(found)) > 20
