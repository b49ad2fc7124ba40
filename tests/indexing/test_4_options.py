"""How documents are cut and embedded: by collection, by document, and changed later."""

import pytest

from holdfast.core.errors import BadRequestError
from holdfast.core.states import Disposition
from holdfast.service.uploads import Upload
from tests.documents.prose import Prose
from tests.indexing import books
from tests.indexing.install import WISH

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
    {"language": "xx"},
    {"parsers": "subtitles"},
    {"parsers": {"pdv": "holdfast"}},
    {"parsers": {"pdf": "nobody:Parser"}},
    {"delimiter": 7},
    {"model": None},
    {"model": ""},
    {"model": "a\x00b"},
]


@pytest.mark.g6
def test_an_option_that_cannot_be_followed_is_refused(install):
    """Unknown names and senseless values, for a collection or a document, before anything is made."""
    for options in WRONG:
        with pytest.raises(BadRequestError, match=next(iter(options)).partition("_")[0]):
            install.collections.make(WISH, "attic", options=options)
        with pytest.raises(BadRequestError):
            install.documents.add(WISH, "shelf", [Upload(b"text", options=options)])
    assert [each.id for each in install.collections.all("default")] == ["shelf"]
    assert list(install.documents.walk("default", "shelf")) == []


def test_a_collection_has_options_and_a_document_may_have_its_own(install):
    """Smaller chunks are more chunks; the document's word counts before the collection's."""
    install.collections.make(WISH, "fine", options={"chunk_size": 32})
    default = install.indexed(PROSE)
    fine = install.indexed(PROSE, to="fine")
    own = install.indexed(f"{PROSE} ", to="fine", options={"chunk_size": 256})
    assert len(install.texts(fine)) > 2 * len(install.texts(default))
    assert len(install.texts(own)) == len(install.texts(default))


def test_slices_follow_the_collection(install):
    """Ten pages to a slice are three tasks for thirty pages, and one for the plan."""
    install.collections.make(WISH, "thick", options={"slice_pages": 10})
    install.upload(books.plain(30), "book.pdf", to="thick")
    assert len(install.work()) == 4


@pytest.mark.g3
def test_a_new_chunk_size_makes_a_new_generation_of_every_document(install):
    """They are superseded at the lowest priority; the old chunks answer until each is done."""
    first, second = install.indexed(PROSE), install.indexed(f"Another. {PROSE}")
    before = [len(install.texts(each)) for each in (first, second)]
    requested = install.collections.change(WISH, "shelf", options={"chunk_size": 32}).requested
    assert requested == 2
    assert [len(install.texts(each)) for each in (first, second)] == before
    run = install.run(install.document(first.id))
    assert (run.disposition, run.priority) == (Disposition.SUPERSEDING, 9)
    install.upload("An urgent thing.")
    assert install.work(most=1)[0].claim.priority == 5
    install.work()
    after = [len(install.texts(each)) for each in (first, second)]
    assert all(new > 2 * old for new, old in zip(after, before, strict=True))


def test_a_new_model_embeds_everything_anew_and_the_old_one_is_still_known(install):
    """Every chunk is paid for with the new model; going back costs nothing."""
    document = install.indexed(PROSE)
    chunks = len(install.texts(document))
    before = install.paid()
    install.collections.change(WISH, "shelf", options={"model": "text-embedding-3-large"})
    install.work()
    assert install.paid(since=before) == chunks
    install.collections.change(WISH, "shelf", options={"model": None})
    install.work()
    assert install.document(document.id).published_generation == 3
    assert install.paid(since=before) == chunks


def test_a_change_that_changes_nothing_asks_for_nothing(install):
    """A new title, and options that are what they were."""
    install.indexed(PROSE)
    options = {"chunk_size": 256}
    change = install.collections.change(WISH, "shelf", title="The shelf", options=options)
    assert (change.collection.title, change.requested) == ("The shelf", 0)
    assert install.work() == []


def test_an_option_that_is_taken_back_is_the_default_again(install):
    """None removes it."""
    install.collections.make(WISH, "fine", options={"chunk_size": 32, "slice_pages": 3})
    changed = install.collections.change(WISH, "fine", options={"chunk_size": None}).collection
    assert changed.options == {"slice_pages": 3}


@pytest.mark.g1
def test_options_changed_while_a_document_is_indexed_supersede_that_run(install):
    """The run has its options frozen; the one that is published has the new ones."""
    taken = install.upload(PROSE)
    install.open_claim()
    install.collections.change(WISH, "shelf", options={"chunk_size": 32})
    install.work()
    document = install.document(taken.document.id)
    assert document.published_generation == 2
    assert len(install.texts(document)) > 20
