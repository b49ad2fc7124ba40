"""A document comes in, is indexed, is found; then the same again, changed, or asked for by many at once."""

import threading

import pytest

from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.states import Disposition, Status
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.library import documents
from holdfast.store.protocol import claims
from tests.indexing.install import WISH, endings

STORY = "The lighthouse keeper counted the ships. Nobody answered the bell."
OTHER = "A gardener planted seven quinces. The frost took none of them."


def test_an_upload_is_queued_then_indexing_then_published(install):
    """Nothing is visible before the publication; after it the words are found, on their page."""
    taken = install.upload(STORY, "keeper.txt")
    assert (taken.disposition, taken.document.status) == (Disposition.ACCEPTED, Status.QUEUED)
    claim = install.open_claim()
    assert install.document(taken.document.id).status is Status.RUNNING
    assert install.find("lighthouse") == []
    claims.release(install.db, claim, "by hand")
    assert endings(install.work()) == ["published"]
    document = install.document(taken.document.id)
    assert (document.status, document.published_generation, document.visible) == (Status.SUCCESS, 1, True)
    (hit,) = install.find("lighthouse")
    assert (hit.document_id, hit.title, hit.generation) == (document.id, "keeper.txt", 1)
    assert install.texts(document) == [STORY]


def test_an_upload_wakes_the_workers_of_its_lane(install):
    """After the commit, a message says that there is work; an upload of known bytes sends none."""
    install.upload(STORY)
    assert install.sender.lanes == {"bulk": 1}
    install.upload(STORY)
    assert install.sender.lanes == {"bulk": 1}


@pytest.mark.g6
def test_the_same_bytes_again_are_unchanged(install):
    """The answer names the document that has them, under whatever name they come; nothing is paid."""
    first = install.indexed(STORY, "keeper.txt")
    paid = install.paid()
    again = install.upload(STORY, "copy.txt")
    assert (again.disposition, again.document.id) == (Disposition.UNCHANGED, first.id)
    assert install.work() == []
    assert install.paid(since=paid) == 0


@pytest.mark.g6
def test_the_same_bytes_while_they_are_indexed_are_a_duplicate(install):
    """The answer names the run that is under way."""
    first = install.upload(STORY)
    install.open_claim()
    again = install.upload(STORY)
    assert again.disposition is Disposition.DUPLICATE
    assert (again.document.id, again.answer.run_id) == (first.document.id, first.answer.run_id)


def test_the_same_bytes_in_another_collection_are_another_document(install):
    """A document lives in one collection; a search in one never finds those of another."""
    first = install.indexed(STORY)
    second = install.indexed(STORY, to="attic")
    assert first.id != second.id
    assert [hit.document_id for hit in install.find("lighthouse")] == [first.id]
    assert [hit.document_id for hit in install.find("lighthouse", where="attic")] == [second.id]


@pytest.mark.g3
def test_new_content_supersedes_and_the_old_answers_until_it_is_there(install):
    """PUT makes a new generation at once; a reader sees the old text, then the new one."""
    document = install.indexed(STORY)
    taken = install.put(document.id, OTHER)
    assert (taken.disposition, taken.answer.generation) == (Disposition.SUPERSEDING, 2)
    assert install.texts(document) == [STORY]
    assert len(install.find("lighthouse")) == 1
    install.work()
    assert install.texts(document) == [OTHER]
    assert install.find("lighthouse") == []
    assert [hit.generation for hit in install.find("quinces")] == [2]


@pytest.mark.g1
def test_new_content_while_the_old_is_indexed_makes_that_stale(install):
    """Whoever works on the old one is fenced out; only the latest content is ever published."""
    taken = install.upload(STORY)
    install.open_claim()
    again = install.put(taken.document.id, OTHER)
    assert again.disposition is Disposition.SUPERSEDING
    install.work()
    assert install.texts(install.document(taken.document.id)) == [OTHER]
    assert install.document(taken.document.id).published_generation == 2


@pytest.mark.g6
def test_content_that_another_document_has_is_refused_with_its_id(install):
    """A PUT cannot make two documents of a collection equal; both stay as they are."""
    first, second = install.indexed(STORY), install.indexed(OTHER)
    with pytest.raises(BadRequestError) as caught:
        install.put(second.id, STORY)
    assert caught.value.code == "same_content"
    assert first.id in caught.value.message
    assert install.texts(second) == [OTHER]
    assert install.document(second.id).digest == second.digest


def test_the_content_of_a_deleted_document_may_come_again(install):
    """The bytes are free again: an upload of them is a new document."""
    first = install.indexed(STORY)
    install.documents.delete(WISH, first.id)
    second = install.indexed(STORY)
    assert second.id != first.id
    assert [hit.document_id for hit in install.find("lighthouse")] == [second.id]


def test_text_is_a_document_with_a_title(install):
    """What was typed is indexed like a file."""
    taken = install.documents.add(WISH, "shelf", [Upload(STORY.encode(), title="A note", source="text")])[0]
    install.work()
    document = install.document(taken.document.id)
    assert (document.title, document.source, document.format) == ("A note", "text", "text")
    assert [hit.title for hit in install.find("lighthouse")] == ["A note"]


def test_a_search_by_words_and_meaning_pays_for_the_question_once(install):
    """Both legs take part; the same question again costs nothing."""
    install.indexed(STORY)
    before = install.paid()
    for _ in range(2):
        hits = install.searching.search("default", "shelf", "lighthouse keeper")
        assert hits.legs == ("keyword", "vector")
        assert len(hits.hits) == 1
    assert install.paid(since=before) == 1


@pytest.mark.g6
def test_nothing_can_be_empty(install):
    """Zero bytes are refused at the door, before anything is asked for."""
    with pytest.raises(BadRequestError) as caught:
        install.upload(b"", "nothing.txt")
    assert caught.value.code == "empty"
    assert documents.page(install.db, "default", "shelf") == []


def test_unknown_documents_and_collections_say_so(install):
    """Each has its code, also for another tenant's."""
    document = install.indexed(STORY)
    with pytest.raises(NotFoundError) as caught:
        install.documents.add(WISH, "nowhere", [Upload(b"text")])
    assert caught.value.code == "unknown_collection"
    with pytest.raises(NotFoundError) as caught:
        install.documents.get("somebody", document.id)
    assert caught.value.code == "unknown_document"
    with pytest.raises(NotFoundError):
        install.searching.search("somebody", "shelf", "lighthouse")


@pytest.mark.g1
def test_eight_uploads_of_the_same_bytes_at_once_are_one_document(install):
    """One is accepted, the others are told of it; one run, one charge."""
    clients = [install.client() for _ in range(8)]
    barrier = threading.Barrier(8)
    answers = []

    def come(client):
        barrier.wait()
        answers.extend(client.add(RequestContext(), "shelf", [Upload(STORY.encode(), "keeper.txt")]))

    threads = [threading.Thread(target=come, args=(client,)) for client in clients]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({taken.document.id for taken in answers}) == 1
    said = sorted(taken.disposition.value for taken in answers)
    assert said == ["accepted"] + ["duplicate"] * 7
    install.work()
    assert len(documents.page(install.db, "default", "shelf")) == 1
    assert install.paid() == 1


@pytest.mark.g6
def test_two_documents_given_the_same_content_at_once_do_not_become_equal(install):
    """One PUT wins, the other is refused with the winner's id."""
    first, second = install.indexed(STORY), install.indexed(OTHER)
    clients = {first.id: install.client(), second.id: install.client()}
    barrier = threading.Barrier(2)
    answers = {}

    def come(document_id):
        barrier.wait()
        try:
            clients[document_id].put_content(WISH, document_id, Upload(b"The third tale."))
            answers[document_id] = "won"
        except BadRequestError as error:
            answers[document_id] = error.message

    threads = [threading.Thread(target=come, args=(each,)) for each in clients]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    (winner,) = [name for name, answer in answers.items() if answer == "won"]
    (loser,) = set(answers) - {winner}
    assert winner in answers[loser]


def test_many_uploads_at_once_are_answered_in_their_order(install):
    """Known, new and twice the same in one call: each upload has its own answer."""
    known = install.indexed(STORY)
    texts = [OTHER, STORY, OTHER, *(f"Tale number {number}." for number in range(40))]
    answers = install.documents.add(WISH, "shelf", [Upload(text.encode()) for text in texts])
    said = [taken.disposition.value for taken in answers]
    assert said == ["accepted", "unchanged", "duplicate", *["accepted"] * 40]
    assert answers[1].document.id == known.id
    assert answers[0].document.id == answers[2].document.id
    assert len(install.work()) == 41
