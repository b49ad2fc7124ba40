"""Two looks at once, frozen and killed ones, sources and collections that go meanwhile: all of it once."""

import threading

import pytest
from sqlalchemy import select

from holdfast import faults
from holdfast.core.errors import NotFoundError
from holdfast.core.records import Fenced
from holdfast.core.states import Disposition
from holdfast.store.base.schema import runs
from holdfast.store.base.schema import source_items as items_table
from holdfast.store.base.schema import sources as sources_table
from holdfast.store.library import document_members, source_items
from tests.conformance.conftest import failing_once
from tests.looks.install import LANES, WISH, counts

FILES = 5


@pytest.fixture
def five(install):
    """A folder with five files, whose first look is requested."""
    for number in range(FILES):
        install.write(f"{number}.txt", f"Page {number} of five.")
    return install.add()


@pytest.mark.g1
def test_a_double_click_is_one_look(install, five):
    """A second request while a look is queued or running is a duplicate of it."""
    answers = [install.sources.refresh(WISH, five) for _ in range(3)]
    assert {answer.disposition for answer in answers} == {Disposition.DUPLICATE}
    install.work()
    assert len(install.shelf()) == FILES
    assert set(install.index_runs().values()) == {1}


@pytest.mark.g2
def test_a_frozen_look_that_wakes_up_changes_nothing(install, five):
    """Frozen before it writes an item and overtaken by another worker, it is fenced out; nothing doubles."""
    frozen, go_on = threading.Event(), threading.Event()
    sleeper = install.process("sleeper")
    done = []

    def before_taking(*arguments):
        if threading.current_thread().name == "sleeper" and not frozen.is_set():
            frozen.set()
            assert go_on.wait(60)
        return taken(*arguments)

    taken = source_items.take
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_items, "take", before_taking)
        thread = threading.Thread(
            target=lambda: done.append(sleeper.engine.executor.run_next(LANES)), name="sleeper"
        )
        thread.start()
        assert frozen.wait(60)
        install.lose()
        install.begin()
        go_on.set()
        thread.join(60)
    assert done[0].ending.value in {"fenced_out", "released"}
    assert counts(install.again(five)) == {"new": FILES}
    install.work()
    assert set(install.index_runs().values()) == {1}
    assert len(install.shelf()) == FILES


@pytest.mark.g2
def test_the_claim_of_an_overtaken_look_can_write_nothing(install, five):
    """Every write of a look is refused once another holds its task."""
    old = install.claim()
    install.lose()
    install.begin()
    item = install.sources.items(five)[0]
    assert isinstance(source_items.remove(install.db, old, item, delete_document=True), Fenced)
    assert isinstance(source_items.forget(install.db, old, [item.external_id]), Fenced)
    gone = source_items.ItemState.GONE
    assert isinstance(source_items.set_state(install.db, old, [item.external_id], gone), Fenced)
    assert isinstance(source_items.fail(install.db, old, item), Fenced)
    assert len(install.shelf()) == FILES


class KilledError(BaseException):
    """Ends a look as kill -9 would: nothing catches it."""


@pytest.mark.g4
@pytest.mark.parametrize("when", ["take_item.commit", "take_item.committed"])
def test_a_look_killed_half_way_is_taken_up_and_counts_each_item_once(install, five, when):
    """Another worker goes on; what was taken in before is neither indexed nor counted twice."""
    written = []

    def die(name: str) -> None:
        if name == when:
            written.append(name)
            if len(written) == 3:
                raise KilledError

    with faults.armed(die), pytest.raises(KilledError):
        install.begin()
    assert 0 < len(install.shelf()) < FILES
    install.lose()
    install.work()
    assert counts(install.again(five)) == {"new": FILES}
    assert set(install.index_runs().values()) == {1}


@pytest.mark.parametrize("documents", ["keep", "delete"])
def test_a_source_removed_while_it_is_looked_at(install, five, documents):
    """The look ends at its next write; then the documents stay, or go in the background, as requested."""
    removed = []

    def remove(name: str) -> None:
        if name == "take_item.committed" and not removed:
            removed.append(name)
            install.sources.remove(WISH, install.again(five), delete_documents=documents == "delete")

    with faults.armed(remove):
        ended = install.begin()
    assert ended is not None
    assert ended.ending.value == "fenced_out"
    with pytest.raises(NotFoundError):
        install.again(five)
    install.work()
    assert len(install.shelf()) == (1 if documents == "keep" else 0)
    left = install.db.read(lambda tx: (tx.all(select(items_table)), tx.all(select(sources_table))))
    assert left == ([], [])


def test_a_collection_deleted_while_its_source_is_looked_at(install, five):
    """The look ends, no document appears in what is gone, and nothing is left of the source."""
    deleted = []

    def delete(name: str) -> None:
        if name == "take_item.committed" and not deleted:
            deleted.append(name)
            install.services.collections.delete(WISH, "shelf")

    with faults.armed(delete):
        install.begin()
    install.work()
    assert install.shelf() == {}
    left = install.db.read(lambda tx: (tx.all(select(items_table)), tx.all(select(sources_table))))
    assert left == ([], [])
    install.services.collections.make(WISH, "shelf")
    assert install.sources.all("default", "shelf") == []


def test_two_sources_over_the_same_files_index_each_once(install, five):
    """Both look at the same time; each file is one document, which stays until neither holds it."""
    other = install.add(prune=True)
    install.work()
    assert len(install.shelf()) == FILES
    assert set(install.index_runs().values()) == {1}
    install.sources.remove(WISH, install.again(five), delete_documents=True)
    install.work()
    assert len(install.shelf()) == FILES
    install.sources.remove(WISH, install.again(other), delete_documents=True)
    install.work()
    assert install.shelf() == {}


OTHER_ITEM = {
    "tenant": "default",
    "source": "other",
    "external_id": "x",
    "version": "1",
    "name": "x",
    "url": None,
    "state": "current",
    "error_code": None,
    "error_message": None,
    "look": 1,
    "change": "",
}


@pytest.fixture
def ended(monkeypatch):
    """The ids of the documents whose removal was brought to its end."""
    ids = []
    end = document_members.end_removal

    def record(db, tenant, document_ids, actor):
        ids.extend(document_ids)
        end(db, tenant, document_ids, actor)

    monkeypatch.setattr(document_members, "end_removal", record)
    return ids


def test_a_removal_that_is_rolled_back_deletes_no_document_that_is_shared_by_now(small, monkeypatch):
    """The first try is rolled back, and before the second another item has the document: it stays."""
    small.write("a.txt", "Apples are red.")
    small.write("b.txt", "Bananas are yellow.")
    source = small.add(prune=True)
    small.work()
    document = small.shelf()["a.txt"]
    (small.folder / "a.txt").unlink()
    tries = []

    def own_document(tx, tenant, collection, item):
        tries.append(item.external_id)
        if len(tries) == 2:
            tx.execute(source_items.PUT, OTHER_ITEM | {"document": item.document})
        return own(tx, tenant, collection, item)

    own = source_items.own_document
    monkeypatch.setattr(source_items, "own_document", own_document)
    with failing_once("remove_item.commit"):
        small.look(source)
    small.work()
    assert tries == ["a.txt", "a.txt"]
    assert small.shelf()["a.txt"].visible
    assert small.shelf()["a.txt"].id == document.id


def test_a_removal_whose_answer_was_lost_is_brought_to_its_end(install, ended):
    """It was committed; the second try finds nothing to remove, and still knows what the first removed."""
    install.write("a.txt", "Apples are red.")
    install.write("b.txt", "Bananas are yellow.")
    source = install.add(prune=True)
    install.work()
    document = install.shelf()["a.txt"]
    (install.folder / "a.txt").unlink()
    with failing_once("remove_item.committed"):
        install.look(source)
    assert ended == [document.id]
    assert set(install.shelf()) == {"b.txt"}


@pytest.mark.parametrize("point", ["none", "take_item.commit", "take_item.committed"])
def test_a_document_that_an_item_leaves_for_another_is_removed_by_the_source(install, ended, point):
    """Its removal is brought to its end as any other is, and the history has it under the source's name."""
    install.write("a.txt", "Apples are red.")
    install.write("b.txt", "Bananas are yellow.")
    source = install.add()
    install.work()
    document = install.shelf()["b.txt"]
    install.write("b.txt", "Apples are red.")
    with failing_once(point):
        install.look(source)
    assert ended == [document.id]
    removals = select(runs.c.actor).where(runs.c.reason == "delete")
    actors = {row.actor for row in install.db.read(lambda tx: tx.all(removals))}
    assert actors == {f"source:{source.id}"}
