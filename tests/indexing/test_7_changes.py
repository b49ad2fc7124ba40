"""A document's own options and title, and collections that come and go, changed by several at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert, update

from holdfast import faults
from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.states import Disposition, Status
from holdfast.service.documents import Upload
from holdfast.store.base.schema import budgets
from tests.documents.prose import Prose
from tests.indexing.house import WISH

PROSE = "\n\n".join(Prose(3).paragraphs(12))
USED_UP = {"tenant": "default", "scope": "tenant", "hard_limit": 0, "spent": 1}


def use_up(house):
    house.db.write("by_hand", lambda tx: tx.execute(insert(budgets), USED_UP))


@pytest.mark.g3
def test_a_documents_own_options_make_a_new_generation_of_it_alone(house):
    """The old one answers until then; an option taken away is the collection's again, and costs nothing."""
    one, other = house.indexed(PROSE), house.indexed(f"{PROSE} more")
    before = house.texts(one)
    taken = house.documents.change(WISH, one.id, options={"chunk_size": 32})
    assert taken.disposition is Disposition.SUPERSEDING
    assert house.texts(house.document(one.id)) == before
    house.work()
    assert len(house.texts(house.document(one.id))) > 2 * len(before)
    assert house.document(other.id).generation == 1
    same = house.documents.change(WISH, one.id, options={"chunk_size": 32})
    assert same.disposition is Disposition.UNCHANGED
    paid = house.paid()
    house.documents.change(WISH, one.id, options={"chunk_size": None})
    house.work()
    assert (house.texts(house.document(one.id)), house.paid(paid)) == (before, 0)
    assert house.document(one.id).options == {}


def test_a_title_changes_at_once_and_nothing_is_done_for_it(house):
    """No generation, no run; and a title of nothing but spaces is none."""
    found = house.indexed(PROSE, "old name.txt")
    taken = house.documents.change(WISH, found.id, title="  A new\n name ")
    assert (taken.document.title, taken.disposition) == ("A new name", Disposition.UNCHANGED)
    assert (taken.document.generation, house.work()) == (1, [])
    assert house.find(PROSE.split()[0])[0].title == "A new name"
    with pytest.raises(NotFoundError):
        house.documents.change(WISH, "nobody", title="x")
    with pytest.raises(BadRequestError):
        house.documents.change(WISH, found.id, title="y", options={"chunk_sise": 3})
    assert house.document(found.id).title == "A new name"


def test_two_who_change_different_options_at_once_both_have_their_way(house):
    """Each on top of the other's, whoever was first."""
    found = house.indexed(PROSE)
    gate = threading.Barrier(2)

    def change(client, options):
        gate.wait()
        client.change(WISH, found.id, options=options)

    clients = house.client(), house.client()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(change, clients, [{"chunk_size": 64}, {"overlap": 8}]))
    assert house.document(found.id).options == {"chunk_size": 64, "overlap": 8}
    house.work()
    assert house.document(found.id).status is Status.SUCCESS


@pytest.mark.g6
def test_a_refused_change_leaves_the_document_as_it_was(house):
    """Over budget: neither the new content nor the new options are what the document wants."""
    found = house.indexed(PROSE)
    use_up(house)
    for taken in (
        house.put(found.id, "Other words altogether."),
        house.documents.change(WISH, found.id, title="new", options={"chunk_size": 32}),
    ):
        assert taken.disposition is Disposition.REFUSED
        now = house.document(found.id)
        assert (now.digest, now.title, now.options) == (found.digest, found.title, found.options)
    house.db.write("by_hand", lambda tx: tx.execute(update(budgets).values(hard_limit=None)))
    assert house.documents.index(WISH, found.id).disposition is Disposition.UNCHANGED


def paused(house, point, meanwhile):
    """The next time `point` is met, `meanwhile` happens first."""
    met = []

    def handler(name):
        if name == point and not met:
            met.append(name)
            meanwhile()

    return faults.armed(handler)


def test_what_is_uploaded_into_a_collection_made_again_survives_the_one_who_deleted_it(house):
    """Between the deletion of a collection and that of its documents, somebody makes it again."""
    house.upload("Old copper.", "old.txt", to="attic")
    house.work()
    other, kept = house.client(), []

    def make_again():
        house.collections.make(WISH, "attic")
        kept.append(other.add(WISH, "attic", [Upload(b"New copper.", "new.txt")])[0].document.id)

    with paused(house, "remove_collection.committed", make_again):
        house.collections.delete(WISH, "attic")
    house.work()
    assert [each.id for each in house.documents.walk("default", "attic")] == kept
    assert [hit.document_id for hit in house.find("copper", where="attic")] == kept


def test_of_two_who_make_a_deleted_collection_again_neither_takes_the_others_documents(house):
    """The second is slow: it has seen what was left over, and then the first one is done and at work."""
    house.upload("Old copper.", "old.txt", to="attic")
    house.work()
    with pytest.raises(InterruptedError), paused(house, "remove_collection.committed", interrupted):
        house.collections.delete(WISH, "attic")
    other, kept = house.client(), []

    def be_quicker():
        house.collections.make(WISH, "attic")
        kept.append(other.add(WISH, "attic", [Upload(b"New copper.", "new.txt")])[0].document.id)

    with paused(house, "make_collection.committed", be_quicker):
        house.collections.make(WISH, "attic")
    house.work()
    assert len(kept) == 1
    assert [each.id for each in house.documents.walk("default", "attic")] == kept
    assert [hit.document_id for hit in house.find("copper", where="attic")] == kept


def interrupted():
    raise InterruptedError
