"""A document's own options and title, and collections that come and go, changed by several at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert, update

from holdfast import faults
from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.states import Disposition, Status
from holdfast.service.uploads import Upload
from holdfast.store.base.schema import budgets
from tests.documents.prose import Prose
from tests.indexing.install import WISH

PROSE = "\n\n".join(Prose(3).paragraphs(12))
USED_UP = {"tenant": "default", "scope": "tenant", "hard_limit": 0, "spent": 1}


def use_up(install):
    install.db.write("by_hand", lambda tx: tx.execute(insert(budgets), USED_UP))


@pytest.mark.g3
def test_a_documents_own_options_make_a_new_generation_of_it_alone(install):
    """The old one answers until then; an option taken away is the collection's again, and costs nothing."""
    one, other = install.indexed(PROSE), install.indexed(f"{PROSE} more")
    before = install.texts(one)
    taken = install.documents.change(WISH, one.id, options={"chunk_size": 32})
    assert taken.disposition is Disposition.SUPERSEDING
    assert install.texts(install.document(one.id)) == before
    install.work()
    assert len(install.texts(install.document(one.id))) > 2 * len(before)
    assert install.document(other.id).generation == 1
    same = install.documents.change(WISH, one.id, options={"chunk_size": 32})
    assert same.disposition is Disposition.UNCHANGED
    paid = install.paid()
    install.documents.change(WISH, one.id, options={"chunk_size": None})
    install.work()
    assert (install.texts(install.document(one.id)), install.paid(paid)) == (before, 0)
    assert install.document(one.id).options == {}


def test_a_title_changes_at_once_and_nothing_is_done_for_it(install):
    """No generation, no run; and a title of nothing but spaces is none."""
    document = install.indexed(PROSE, "old name.txt")
    taken = install.documents.change(WISH, document.id, title="  A new\n name ")
    assert (taken.document.title, taken.disposition) == ("A new name", Disposition.UNCHANGED)
    assert (taken.document.generation, install.work()) == (1, [])
    assert install.find(PROSE.split()[0])[0].title == "A new name"
    with pytest.raises(NotFoundError):
        install.documents.change(WISH, "nobody", title="x")
    with pytest.raises(BadRequestError):
        install.documents.change(WISH, document.id, title="y", options={"chunk_sise": 3})
    assert install.document(document.id).title == "A new name"


def test_two_who_change_different_options_at_once_both_have_their_way(install):
    """Each on top of the other's, whoever was first."""
    document = install.indexed(PROSE)
    gate = threading.Barrier(2)

    def change(client, options):
        gate.wait()
        client.change(WISH, document.id, options=options)

    clients = install.client(), install.client()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(change, clients, [{"chunk_size": 64}, {"overlap": 8}]))
    assert install.document(document.id).options == {"chunk_size": 64, "overlap": 8}
    install.work()
    assert install.document(document.id).status is Status.SUCCESS


@pytest.mark.g6
def test_a_refused_change_leaves_the_document_as_it_was(install):
    """Over budget: neither the new content nor the new options are what the document wants."""
    document = install.indexed(PROSE)
    use_up(install)
    for taken in (
        install.put(document.id, "Other words altogether."),
        install.documents.change(WISH, document.id, title="new", options={"chunk_size": 32}),
    ):
        assert taken.disposition is Disposition.REFUSED
        now = install.document(document.id)
        assert (now.digest, now.title, now.options) == (document.digest, document.title, document.options)
    install.db.write("by_hand", lambda tx: tx.execute(update(budgets).values(hard_limit=None)))
    assert install.documents.index(WISH, document.id).disposition is Disposition.UNCHANGED


def paused(install, point, meanwhile):
    """The next time `point` is met, `meanwhile` happens first."""
    met = []

    def handler(name):
        if name == point and not met:
            met.append(name)
            meanwhile()

    return faults.armed(handler)


def test_what_is_uploaded_into_a_collection_made_again_survives_the_one_who_deleted_it(install):
    """Between the deletion of a collection and that of its documents, somebody makes it again."""
    install.upload("Old copper.", "old.txt", to="attic")
    install.work()
    other, saved = install.client(), []

    def make_again():
        install.collections.make(WISH, "attic")
        saved.append(other.add(WISH, "attic", [Upload(b"New copper.", "new.txt")])[0].document.id)

    with paused(install, "remove_collection.committed", make_again):
        install.collections.delete(WISH, "attic")
    install.work()
    assert [each.id for each in install.documents.walk("default", "attic")] == saved
    assert [hit.document_id for hit in install.find("copper", where="attic")] == saved


def test_of_two_who_make_a_deleted_collection_again_neither_takes_the_others_documents(install):
    """The second is slow: it has seen what was left over, and then the first one is done and at work."""
    install.upload("Old copper.", "old.txt", to="attic")
    install.work()
    with pytest.raises(InterruptedError), paused(install, "remove_collection.committed", interrupted):
        install.collections.delete(WISH, "attic")
    other, saved = install.client(), []

    def be_quicker():
        install.collections.make(WISH, "attic")
        saved.append(other.add(WISH, "attic", [Upload(b"New copper.", "new.txt")])[0].document.id)

    with paused(install, "make_collection.committed", be_quicker):
        install.collections.make(WISH, "attic")
    install.work()
    assert len(saved) == 1
    assert [each.id for each in install.documents.walk("default", "attic")] == saved
    assert [hit.document_id for hit in install.find("copper", where="attic")] == saved


def interrupted():
    raise InterruptedError
