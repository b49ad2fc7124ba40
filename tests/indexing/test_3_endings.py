"""Runs that end before their time: cancelled, failed, deleted. What was published is never half gone."""

import threading

import pytest
from sqlalchemy import update

from holdfast import faults
from holdfast.core.errors import NotFoundError
from holdfast.core.states import Disposition, Status
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.base.schema import documents, heads, runs
from holdfast.store.library import document_members, document_requests
from tests.documents import files, pdfs
from tests.indexing import books
from tests.indexing.install import WISH, endings

OLD = "The old windmill turned all night."
BAD = {
    "no_text": (pdfs.scan(2), "scan.pdf"),
    "encrypted": (pdfs.make(["secret words"], password="sesame"), "locked.pdf"),
    "broken_file": (b"%PDF-1.7\n" + b"\x00garbage" * 50, "torn.pdf"),
    "machine_data": (b"!function(e){return e&&e.a?[1,2]:{}}();" * 400, "tides.min.js"),
    "old_office": (files.compound_file({"WordDocument": b"x" * 5000}), "letter.doc"),
    "unknown_format": (files.compound_file({"VisioDocument": b"x" * 5000}), "plan.vsd"),
    "unsafe_archive": (files.archive({"../a.txt": b"outside"}), "things.zip"),
}


def test_a_cancelled_document_never_starts(install):
    """Queued work is closed; a document that was never published is not indexed again by itself."""
    taken = install.upload(OLD)
    assert install.documents.cancel(WISH, taken.document.id) is True
    assert install.work() == []
    assert install.document(taken.document.id).status is Status.IDLE
    assert install.documents.cancel(WISH, taken.document.id) is False
    assert install.upload(OLD).disposition is Disposition.ACCEPTED


@pytest.mark.g3
def test_a_cancel_in_the_middle_leaves_the_old_generation(install):
    """Some slices are done when the new generation is cancelled; the old text answers and nothing is open."""
    document = install.indexed(books.plain(30), "book.pdf")
    old = install.texts(document)
    install.put(document.id, books.plain(30, "leaf"))
    assert endings(install.work(most=2)) == ["planned", "finished"]
    assert install.documents.cancel(WISH, document.id)
    assert install.work() == []
    assert install.texts(document) == old
    after = install.document(document.id)
    assert (after.status, after.published_generation) == (Status.SUCCESS, 1)
    install.tidy()
    assert install.rows(document) == len(old)


@pytest.mark.g3
@pytest.mark.parametrize("code", sorted(BAD))
def test_a_failure_has_a_code_and_the_old_generation_answers(install, code):
    """The reason reaches the document in words; the text of before is still found."""
    document = install.indexed(OLD)
    content, name = BAD[code]
    install.put(document.id, content, name)
    assert endings(install.work()) == ["failed"]
    after = install.document(document.id)
    run = install.run(after)
    assert (after.status, run.error_code) == (Status.FAILED, code)
    assert len(run.error_message) > 20
    assert (after.published_generation, install.texts(after)) == (1, [OLD])
    assert len(install.find("windmill")) == 1


@pytest.mark.g3
def test_a_failed_slice_fails_the_whole_and_a_retry_pays_only_the_rest(install):
    """The provider rejects one slice: nothing of the new generation is seen; asked again, it is published."""
    document = install.indexed(OLD)
    install.put(document.id, books.plain(36), "book.pdf")
    install.meter.plan(script=["answer", {"do": "fail", "status": 400, "charge": False}])
    assert "failed" in endings(install.work())
    assert install.texts(document) == [OLD]
    charged = install.paid()
    assert install.documents.index(WISH, document.id).disposition is Disposition.ACCEPTED
    install.work()
    assert len(install.texts(document)) == 36
    assert install.paid(since=charged) == 36 - 12
    assert install.meter.totals().excess == 0


def test_a_failed_document_may_be_asked_for_again(install):
    """The same bytes after a failure are accepted, not called unchanged."""
    taken = install.upload(pdfs.scan(1), "scan.pdf")
    install.work()
    assert install.upload(pdfs.scan(1), "scan.pdf").disposition is Disposition.ACCEPTED
    assert install.document(taken.document.id).generation == 2


@pytest.mark.g2
def test_deleting_a_document_while_it_is_indexed_stops_the_work(install):
    """At once nothing of it is found, its worker is fenced out, and every chunk is pruned."""
    document = install.indexed(books.plain(30), "book.pdf")
    install.put(document.id, books.plain(30, "leaf"))
    install.work(most=2)
    install.documents.delete(WISH, document.id)
    assert install.find("plain book") == []
    assert install.texts(document) == []
    assert install.work() == []
    with pytest.raises(NotFoundError):
        install.document(document.id)
    install.tidy()
    assert install.rows(document) == 0


@pytest.mark.g2
def test_deleting_a_collection_while_it_is_indexed_takes_all_of_it(install):
    """Published, queued and half done documents: none is found, none goes on, none is left."""
    first = install.indexed(OLD, to="attic")
    half = install.upload(books.plain(30), "book.pdf", to="attic").document
    install.work(most=2)
    install.upload("Never begun.", to="attic")
    document = install.indexed(OLD)
    assert install.collections.delete(WISH, "attic").deleted == 3
    assert install.work() == []
    assert "attic" not in [each.id for each in install.collections.all("default")]
    with pytest.raises(NotFoundError):
        install.find("windmill", where="attic")
    install.tidy()
    assert (install.rows(first), install.rows(half), install.rows(document)) == (0, 0, 1)


def test_a_collection_made_again_is_empty(install):
    """Nothing of the deleted one comes back with its name, and the same bytes are a new document."""
    old = install.indexed(OLD, to="attic")
    install.collections.delete(WISH, "attic")
    new = install.indexed("A new thing.", to="attic")
    assert install.find("windmill", where="attic") == []
    assert [each.id for each in install.documents.walk("default", "attic")] == [new.id]
    assert install.indexed(OLD, to="attic").id != old.id


class CutOffError(Exception):
    """The process ended here."""


def cut_off(*_, **__):
    raise CutOffError


def test_a_deletion_that_was_cut_off_can_be_asked_for_again(install, monkeypatch):
    """After a crash between its two halves nothing is visible, and the document can still be deleted."""
    document = install.indexed(OLD)
    monkeypatch.setattr(document_members, "remove", cut_off)
    with pytest.raises(CutOffError):
        install.documents.delete(WISH, document.id)
    monkeypatch.undo()
    assert install.find("windmill") == []
    install.documents.delete(WISH, document.id)
    with pytest.raises(NotFoundError):
        install.document(document.id)


def test_a_collection_whose_deletion_was_cut_off_does_not_come_back_with_its_documents(install, monkeypatch):
    """A crash leaves documents in a collection that is gone; made again, it is empty."""
    install.indexed(OLD, to="attic")
    monkeypatch.setattr(install.collections.rounds, "begin", cut_off)
    with pytest.raises(CutOffError):
        install.collections.delete(WISH, "attic")
    monkeypatch.undo()
    install.collections.make(WISH, "attic")
    assert install.find("windmill", where="attic") == []
    assert list(install.documents.walk("default", "attic")) == []


@pytest.mark.g1
def test_asking_for_a_document_that_is_being_deleted_does_not_bring_it_back(install, monkeypatch):
    """The document goes away between the look and the request: refused, and nothing is visible or queued."""
    document = install.indexed(OLD)
    other = install.client()
    genuine = document_requests.ask

    def late(db, about, request):
        other.delete(WISH, document.id)
        return genuine(db, about, request)

    monkeypatch.setattr(document_requests, "ask", late)
    with pytest.raises(NotFoundError) as caught:
        install.documents.index(WISH, document.id, force=True)
    assert caught.value.code == "unknown_document"
    assert install.work() == []
    assert install.find("windmill") == []


@pytest.mark.g1
def test_indexing_again_never_brings_old_content_back(install, monkeypatch):
    """The content changes between the look and the request: the request is for what is there now."""
    document = install.indexed(OLD)
    genuine = document_requests.ask

    def late(db, about, request):
        monkeypatch.undo()
        install.put(document.id, "Something new.")
        return genuine(db, about, request)

    monkeypatch.setattr(document_requests, "ask", late)
    install.documents.index(WISH, document.id, force=True)
    install.work()
    assert install.find("windmill") == []
    assert [hit.document_id for hit in install.find("new")] == [document.id]


@pytest.mark.g1
def test_an_upload_of_bytes_that_a_document_had_a_moment_ago_is_another_document(install, monkeypatch):
    """They are looked up while that document gets other content, which stays."""
    if not install.db.postgresql:
        pytest.skip("SQLite has one writer: nobody writes beside an open transaction")
    document = install.indexed(OLD)
    genuine = document_requests.insert_or_get

    def late(*about):
        known = genuine(*about)
        monkeypatch.undo()
        install.put(document.id, "Something new.")
        return known

    monkeypatch.setattr(document_requests, "insert_or_get", late)
    other = install.upload(OLD).document
    install.work()
    assert other.id != document.id
    assert [hit.document_id for hit in install.find("new")] == [document.id]
    assert [hit.document_id for hit in install.find("windmill")] == [other.id]


@pytest.mark.g1
def test_new_content_for_a_document_that_is_being_deleted_does_not_bring_it_back(install, monkeypatch):
    """As above, for a PUT."""
    document = install.indexed(OLD)
    genuine = document_requests.set_source

    def late(db, about, source, *rest, **more):
        install.client().delete(WISH, document.id)
        return genuine(db, about, source, *rest, **more)

    monkeypatch.setattr(document_requests, "set_source", late)
    with pytest.raises(NotFoundError):
        install.put(document.id, "Something new.")
    assert install.work() == []
    assert install.find("new") == []


@pytest.mark.g1
def test_a_document_asked_for_between_the_halves_of_its_deletion_is_gone(install, monkeypatch):
    """Its head was deleted, its row not yet, when a request came: the deletion looks once more."""
    document = install.indexed(OLD)
    genuine = document_members.remove

    def late(*about, **more):
        assert install.client().index(WISH, document.id).answer.created
        return genuine(*about, **more)

    monkeypatch.setattr(document_members, "remove", late)
    install.documents.delete(WISH, document.id)
    assert install.work() == []
    assert install.find("windmill") == []


@pytest.mark.g1
def test_uploads_and_deletions_of_the_same_bytes_at_once_leave_one_truth(install):
    """Whatever the order, what is found afterwards is exactly what is listed, and it is published."""
    failures = []

    def come_and_go(client, number):
        try:
            for _ in range(8):
                taken = client.add(RequestContext(), "shelf", [Upload(OLD.encode())])[0]
                if number % 2:
                    client.delete(RequestContext(), taken.document.id)
        except NotFoundError:
            pass  # somebody else deleted it first
        except Exception as error:  # noqa: BLE001  any other is the finding
            failures.append(error)

    clients = [install.client() for _ in range(4)]
    threads = [
        threading.Thread(target=come_and_go, args=(client, number)) for number, client in enumerate(clients)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    install.work()
    listed = list(install.documents.walk("default", "shelf"))
    assert len(listed) <= 1
    assert [hit.document_id for hit in install.find("windmill")] == [each.id for each in listed]


@pytest.mark.g4
@pytest.mark.parametrize("place", ["add_documents.commit", "add_documents.committed"])
def test_an_upload_that_is_cut_off_is_there_with_its_request_or_not_at_all(install, place):
    """A crash around the commit: either nothing happened, or the document is queued."""

    def cut(point):
        if point == place:
            raise CutOffError

    with faults.armed(cut), pytest.raises(CutOffError):
        install.upload(OLD)
    listed = list(install.documents.walk("default", "shelf"))
    happened = place == "add_documents.committed"
    assert len(listed) == happened
    assert len(install.work()) == happened
    assert len(install.find("windmill")) == happened


def stranded(install, document):
    """The run is as a death between its last slice and its publication would leave it, were they apart."""

    def body(tx):
        live = {"status": "running", "finished_at": None}
        tx.execute(update(runs).where(runs.c.id == document.run_id).values(**live))
        unpublished = {"status": "running", "published_generation": 0, "visible": False}
        tx.execute(update(heads).where(heads.c.id == document.head_id).values(**unpublished))
        facts = {"pages": None, "format": None, "chunks": None, "properties": None}
        tx.execute(update(documents).where(documents.c.id == document.id).values(**facts))

    install.db.write("by_hand", body)


@pytest.mark.g4
def test_a_stranded_run_is_published_with_the_facts_of_its_document(install):
    """The sweep leaves that to a task, so that the hook of the kind writes pages and properties."""
    document = install.indexed(books.plain(30), "book.pdf")
    stranded(install, document)
    assert install.document(document.id).pages is None
    install.engine.sweep()
    install.work()
    document = install.document(document.id)
    assert (document.status, document.published_generation) == (Status.SUCCESS, 1)
    assert (document.pages, document.format, document.chunks) == (30, "pdf", 30)
