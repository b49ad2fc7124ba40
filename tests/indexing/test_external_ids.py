"""External ids: the same id again is the same document, from any client and however often."""

import hashlib
import random
import threading

import pytest
from sqlalchemy import func, select

from holdfast.core.errors import BadRequestError, ConflictError, GenerationMovedError, HoldfastError
from holdfast.kinds.import_ import ImportLimits
from holdfast.service.transfer import Transfer
from holdfast.service.uploads import Upload
from holdfast.store.base.schema import documents
from tests.documents import files
from tests.indexing.install import WISH

FIRST = "The lighthouse keeper oils the lamp.\n\nThe ferry crosses at noon."
EXPECTED = {"same_external_id", "same_content", "unknown_document"}
SECOND = "The lighthouse keeper oils the lamp.\n\nThe ferry crosses at midnight."


def pushed(install, content, external_id="cms/7", **more):
    return install.upload(content, external_id=external_id, source="text", **more)


def test_the_same_id_with_new_bytes_is_a_new_generation_of_the_same_document(install):
    """The old version answers until the new one is indexed, and only what changed is paid."""
    install.collections.change(WISH, "shelf", options={"chunk_size": 16})
    old = pushed(install, FIRST).document
    install.work()
    paid = install.paid()
    taken = pushed(install, SECOND)
    assert (taken.disposition, taken.document.id, taken.document.generation) == ("superseding", old.id, 2)
    assert [hit.document_id for hit in install.find("noon")] == [old.id]
    install.work()
    assert install.find("noon") == []
    assert install.paid() == paid + 1


def test_the_same_bytes_change_nothing_but_what_is_given_is_updated(install):
    """No run and no generation; a title and metadata that come along replace those of the document."""
    old = pushed(install, FIRST, title="Old", metadata={"year": 1}, labels=["a"]).document
    install.work()
    same = pushed(install, FIRST)
    assert (same.disposition, same.document.generation) == ("unchanged", 1)
    assert (same.document.title, dict(same.document.metadata), same.document.labels) == (
        "Old", {"year": 1}, ("a",)
    )  # fmt: skip
    new = pushed(install, FIRST, title="New", metadata={"year": 2}, labels=[]).document
    assert (new.id, new.title, dict(new.metadata), new.labels) == (old.id, "New", {"year": 2}, ())
    assert new.generation == 1
    assert install.work() == []


def test_two_ids_with_the_same_bytes_are_two_documents_and_paid_once(install):
    """Changing or deleting one leaves the other; a plain upload of those bytes is a document of its own."""
    one = pushed(install, FIRST, "cms/1").document
    install.work()
    paid = install.paid()
    two = pushed(install, FIRST, "cms/2").document
    plain = install.upload(FIRST).document
    install.work()
    assert len({one.id, two.id, plain.id}) == 3
    assert install.paid() == paid
    assert install.upload(FIRST).document.id == plain.id
    install.documents.delete(WISH, one.id)
    assert {hit.document_id for hit in install.find("lighthouse")} == {two.id, plain.id}


def test_the_id_of_a_deleted_document_is_free_again(install):
    """The next upload with it is a new document."""
    old = pushed(install, FIRST).document
    install.documents.delete(WISH, old.id)
    new = pushed(install, FIRST)
    assert new.document.id != old.id
    assert new.answer.created


@pytest.mark.g1
def test_of_many_who_push_one_new_id_at_once_one_document_comes(install):
    """Different bytes from eight clients: one row, whose generations follow each other, the last one wins."""
    clients = [install.client() for _ in range(8)]
    go, results = threading.Barrier(len(clients)), []

    def push(number):
        go.wait()
        upload = Upload(f"Version number {number}.".encode(), external_id="cms/new", source="text")
        results.append(clients[number].add(WISH, "shelf", [upload])[0])

    threads = [threading.Thread(target=push, args=(number,)) for number in range(len(clients))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({each.document.id for each in results}) == 1
    assert sorted(each.answer.generation for each in results) == list(range(1, 9))
    rows = install.db.look(select(func.count().label("number")).select_from(documents))
    assert rows[0].number == 1
    last = max(results, key=lambda each: each.answer.generation)
    install.work()
    (hit,) = install.find("version")
    assert install.documents.get("default", hit.document_id).digest == last.document.digest


def disturb(install, number, surprises):
    """A client that pushes, moves, names and deletes whatever is there; refusals are no surprise."""
    client, draw = install.client(), random.Random(number)
    carrier = Transfer(
        client._engine, install.shelf, install.collections, client, ImportLimits(), allow_private=True
    )
    for _ in range(15):
        here, there = draw.sample(["shelf", "attic"], 2)
        name, text = f"cms/{draw.randrange(3)}", f"Version {draw.randrange(4)}."
        try:
            client.add(WISH, here, [Upload(text.encode(), external_id=name, source="text")])
            one = draw.choice(list(client.walk("default", here))).id
            draw.choice([
                lambda one=one, there=there: carrier.move(WISH, one, there),
                lambda one=one, name=name: client.change(WISH, one, external_id=name),
                lambda one=one: client.delete(WISH, one),
            ])()  # fmt: skip
        except HoldfastError as error:
            surprises += [error] if error.code not in EXPECTED else []
        except IndexError:
            pass  # nothing is there just now


@pytest.mark.g1
def test_pushes_moves_and_deletions_at_once_leave_one_document_for_each_id(install):
    """In each collection; and each has the content that its last push said."""
    install.collections.make(WISH, "attic")
    surprises = []
    threads = [threading.Thread(target=disturb, args=(install, at, surprises)) for at in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert surprises == []
    install.work()
    left = [each for where in ("shelf", "attic") for each in install.documents.walk("default", where)]
    named = [(each.collection, each.external_id) for each in left if each.external_id]
    assert len(named) == len(set(named))
    for each in left:
        assert hashlib.sha256("".join(install.texts(each)).encode()).hexdigest() == each.digest


def test_an_expected_generation_guards_a_push(install):
    """An older one, or one of a document that is not there, changes nothing."""
    pushed(install, FIRST)
    upload = Upload(SECOND.encode(), external_id="cms/7", source="text")
    with pytest.raises(GenerationMovedError):
        install.documents.add(WISH, "shelf", [upload], expect_generation=7)
    other = Upload(SECOND.encode(), external_id="cms/8", source="text")
    with pytest.raises(GenerationMovedError):
        install.documents.add(WISH, "shelf", [other], expect_generation=1)
    assert [each.external_id for each in install.documents.walk("default", "shelf")] == ["cms/7"]
    assert install.documents.add(WISH, "shelf", [upload], expect_generation=1)[0].document.generation == 2


def test_new_content_may_equal_that_of_another_document(install):
    """The rule of same bytes is for documents without an external id."""
    plain, other = (install.upload(text).document for text in (FIRST, SECOND))
    one = pushed(install, FIRST, "cms/1").document
    assert install.put(one.id, SECOND).disposition == "superseding"
    with pytest.raises(BadRequestError, match=other.id):
        install.put(plain.id, SECOND)


def test_an_archive_with_an_external_id_gets_its_new_files(install):
    """What is inside has no id of its own; what the new archive lacks is gone."""
    old = install.upload(files.archive({"a.txt": b"Tide.", "b.txt": b"Moon."}), "a.zip", external_id="z")
    install.work()
    new = install.upload(files.archive({"a.txt": b"Tide.", "c.txt": b"Star."}), "a.zip", external_id="z")
    install.work()
    assert new.document.id == old.document.id
    children = install.documents.around(new.document).children
    assert [each.name for each in children] == ["a.txt", "c.txt"]
    assert {each.external_id for each in install.documents.walk("default", "shelf")} == {None, "z"}


def test_an_external_id_that_cannot_be_stored_is_refused(install):
    """Empty, blank, too long, with control characters or half of a character."""
    for bad in ("", " ", "x" * 501, "a\0b", "a\nb", "\ud800"):
        with pytest.raises(BadRequestError) as refused:
            pushed(install, FIRST, bad)
        assert refused.value.code == "bad_external_id"


def test_one_request_names_an_id_once(install):
    """Which of two contents should win would be chance."""
    uploads = [Upload(text.encode(), external_id="x") for text in (FIRST, SECOND)]
    with pytest.raises(BadRequestError, match="twice"):
        install.documents.add(WISH, "shelf", uploads)


def test_the_longest_ids_of_four_byte_characters_are_told_apart(install):
    """The index holds all of them."""
    ends = [pushed(install, FIRST, "\U0001f30a" * 499 + end).document.id for end in "ab"]
    assert len(set(ends)) == 2


def test_an_id_that_another_document_has_can_be_taken_by_nobody(install):
    """By setting it on a second document, a conflict that names the first; a free one can be set."""
    one = pushed(install, FIRST).document
    plain = install.upload(SECOND).document
    with pytest.raises(ConflictError, match=one.id):
        install.documents.change(WISH, plain.id, external_id="cms/7")
    changed = install.documents.change(WISH, plain.id, external_id="cms/8")
    assert changed.document.external_id == "cms/8"
    assert pushed(install, FIRST, "cms/8").document.id == plain.id
