"""A document comes in, is indexed, is found; then the same again, changed, or asked for by many at once."""

import threading

import pytest

from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.states import Disposition, Status
from holdfast.service.documents import Upload
from holdfast.service.requests import RequestContext
from holdfast.store.library import documents
from holdfast.store.protocol import claims
from tests.indexing.house import WISH, endings

STORY = "The lighthouse keeper counted the ships. Nobody answered the bell."
OTHER = "A gardener planted seven quinces. The frost took none of them."


def test_an_upload_is_queued_then_indexing_then_published(house):
    """Nothing is visible before the publication; after it the words are found, on their page."""
    taken = house.upload(STORY, "keeper.txt")
    assert (taken.disposition, taken.document.status) == (Disposition.ACCEPTED, Status.QUEUED)
    claim = house.open_claim()
    assert house.document(taken.document.id).status is Status.RUNNING
    assert house.find("lighthouse") == []
    claims.release(house.db, claim, "by hand")
    assert endings(house.work()) == ["published"]
    found = house.document(taken.document.id)
    assert (found.status, found.published_generation, found.visible) == (Status.SUCCESS, 1, True)
    (hit,) = house.find("lighthouse")
    assert (hit.document_id, hit.title, hit.generation) == (found.id, "keeper.txt", 1)
    assert house.texts(found) == [STORY]


def test_an_upload_wakes_the_workers_of_its_lane(house):
    """After the commit, a message says that there is work; an upload of known bytes sends none."""
    house.upload(STORY)
    assert house.sender.lanes == {"bulk": 1}
    house.upload(STORY)
    assert house.sender.lanes == {"bulk": 1}


@pytest.mark.g6
def test_the_same_bytes_again_are_unchanged(house):
    """The answer names the document that has them, under whatever name they come; nothing is paid."""
    first = house.indexed(STORY, "keeper.txt")
    paid = house.paid()
    again = house.upload(STORY, "copy.txt")
    assert (again.disposition, again.document.id) == (Disposition.UNCHANGED, first.id)
    assert house.work() == []
    assert house.paid(since=paid) == 0


@pytest.mark.g6
def test_the_same_bytes_while_they_are_indexed_are_a_duplicate(house):
    """The answer names the run that is under way."""
    first = house.upload(STORY)
    house.open_claim()
    again = house.upload(STORY)
    assert again.disposition is Disposition.DUPLICATE
    assert (again.document.id, again.answer.run_id) == (first.document.id, first.answer.run_id)


def test_the_same_bytes_in_another_collection_are_another_document(house):
    """A document lives in one collection; a search in one never finds those of another."""
    first = house.indexed(STORY)
    second = house.indexed(STORY, to="attic")
    assert first.id != second.id
    assert [hit.document_id for hit in house.find("lighthouse")] == [first.id]
    assert [hit.document_id for hit in house.find("lighthouse", where="attic")] == [second.id]


@pytest.mark.g3
def test_new_content_supersedes_and_the_old_answers_until_it_is_there(house):
    """PUT makes a new generation at once; a reader sees the old text, then the new one."""
    found = house.indexed(STORY)
    taken = house.put(found.id, OTHER)
    assert (taken.disposition, taken.answer.generation) == (Disposition.SUPERSEDING, 2)
    assert house.texts(found) == [STORY]
    assert len(house.find("lighthouse")) == 1
    house.work()
    assert house.texts(found) == [OTHER]
    assert house.find("lighthouse") == []
    assert [hit.generation for hit in house.find("quinces")] == [2]


@pytest.mark.g1
def test_new_content_while_the_old_is_indexed_makes_that_stale(house):
    """Whoever works on the old one is fenced out; only the latest content is ever published."""
    taken = house.upload(STORY)
    house.open_claim()
    again = house.put(taken.document.id, OTHER)
    assert again.disposition is Disposition.SUPERSEDING
    house.work()
    assert house.texts(house.document(taken.document.id)) == [OTHER]
    assert house.document(taken.document.id).published_generation == 2


@pytest.mark.g6
def test_content_that_another_document_has_is_refused_with_its_id(house):
    """A PUT cannot make two documents of a collection equal; both stay as they are."""
    first, second = house.indexed(STORY), house.indexed(OTHER)
    with pytest.raises(BadRequestError) as caught:
        house.put(second.id, STORY)
    assert caught.value.code == "same_content"
    assert first.id in caught.value.message
    assert house.texts(second) == [OTHER]
    assert house.document(second.id).digest == second.digest


def test_the_content_of_a_deleted_document_may_come_again(house):
    """The bytes are free again: an upload of them is a new document."""
    first = house.indexed(STORY)
    house.documents.delete(WISH, first.id)
    second = house.indexed(STORY)
    assert second.id != first.id
    assert [hit.document_id for hit in house.find("lighthouse")] == [second.id]


def test_text_is_a_document_with_a_title(house):
    """What was typed is indexed like a file."""
    taken = house.documents.add(WISH, "shelf", [Upload(STORY.encode(), title="A note", source="text")])[0]
    house.work()
    found = house.document(taken.document.id)
    assert (found.title, found.source, found.format) == ("A note", "text", "text")
    assert [hit.title for hit in house.find("lighthouse")] == ["A note"]


def test_a_search_by_words_and_meaning_pays_for_the_question_once(house):
    """Both legs take part; the same question again costs nothing."""
    house.indexed(STORY)
    before = house.paid()
    for _ in range(2):
        found = house.searching.search("default", "shelf", "lighthouse keeper")
        assert found.legs == ("keyword", "vector")
        assert len(found.hits) == 1
    assert house.paid(since=before) == 1


@pytest.mark.g6
def test_nothing_can_be_empty(house):
    """Zero bytes are refused at the door, before anything is asked for."""
    with pytest.raises(BadRequestError) as caught:
        house.upload(b"", "nothing.txt")
    assert caught.value.code == "empty"
    assert documents.page(house.db, "default", "shelf") == []


def test_unknown_documents_and_collections_say_so(house):
    """Each has its code, also for another tenant's."""
    found = house.indexed(STORY)
    with pytest.raises(NotFoundError) as caught:
        house.documents.add(WISH, "nowhere", [Upload(b"text")])
    assert caught.value.code == "unknown_collection"
    with pytest.raises(NotFoundError) as caught:
        house.documents.get("somebody", found.id)
    assert caught.value.code == "unknown_document"
    with pytest.raises(NotFoundError):
        house.searching.search("somebody", "shelf", "lighthouse")


@pytest.mark.g1
def test_eight_uploads_of_the_same_bytes_at_once_are_one_document(house):
    """One is accepted, the others are told of it; one run, one charge."""
    clients = [house.client() for _ in range(8)]
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
    house.work()
    assert len(documents.page(house.db, "default", "shelf")) == 1
    assert house.paid() == 1


@pytest.mark.g6
def test_two_documents_given_the_same_content_at_once_do_not_become_equal(house):
    """One PUT wins, the other is refused with the winner's id."""
    first, second = house.indexed(STORY), house.indexed(OTHER)
    clients = {first.id: house.client(), second.id: house.client()}
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


def test_many_uploads_at_once_are_answered_in_their_order(house):
    """Known, new and twice the same in one call: each upload has its own answer."""
    known = house.indexed(STORY)
    texts = [OTHER, STORY, OTHER, *(f"Tale number {number}." for number in range(40))]
    answers = house.documents.add(WISH, "shelf", [Upload(text.encode()) for text in texts])
    said = [taken.disposition.value for taken in answers]
    assert said == ["accepted", "unchanged", "duplicate", *["accepted"] * 40]
    assert answers[1].document.id == known.id
    assert answers[0].document.id == answers[2].document.id
    assert len(house.work()) == 41
