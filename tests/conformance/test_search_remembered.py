"""A search from memory, without a snapshot: the one statement that reads its hits is its moment (G3)."""

import threading

import pytest
from sqlalchemy import delete, text, update

from holdfast.search import statistics
from holdfast.search.searcher import Searcher
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import chunks, documents
from holdfast.store.protocol import prune, publish_seq
from holdfast.store.search import search_reads as stored
from tests.search.sample_documents import Shelf, meaning

pytestmark = pytest.mark.g3


@pytest.fixture
def shelf(world):
    return Shelf(world.db)


@pytest.fixture
def searcher(world):
    return Searcher(world.db, meaning)


def seen(world, collection="c"):
    return world.db.read(lambda tx: stored.stamp(tx, "acme", collection)).publish_seq


def ask(world, searcher, words, **how):
    """As the service does: the stamp first, then the question."""
    return searcher.search("acme", "c", words, seen=seen(world), **how)


def anew(world, words, **how):
    return Searcher(world.db, meaning).search("acme", "c", words, **how)


@pytest.fixture
def no_snapshot(world, monkeypatch):
    """Call it, and whoever opens a snapshot from then on fails."""

    def fail(_body):
        raise AssertionError("a snapshot was opened")

    return lambda: monkeypatch.setattr(world.db, "read", fail)


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_what_is_in_memory_answers_the_same_without_a_snapshot(world, shelf, searcher, mode, no_snapshot):
    """To the last digit of every score, titles and snippets too."""
    for n in range(6):
        shelf.publish(f"d{n}", f"copper tin{n % 3} lead{n}", "copper copper", f"silver {n}")
    first = ask(world, searcher, "copper tin1", mode=mode)
    right, at = anew(world, "copper tin1", mode=mode), seen(world)
    no_snapshot()
    again = searcher.search("acme", "c", "copper tin1", mode=mode, seen=at)
    assert again == first == right
    assert [hit.snippet for hit in again.hits] == [hit.snippet for hit in right.hits]
    assert {hit.title for hit in again.hits} <= {f"Title of d{n}" for n in range(6)}
    if mode == "keyword":
        assert searcher.search("acme", "c", "nothing", mode=mode, seen=at).hits == ()


@pytest.mark.parametrize("happening", ["superseded", "deleted", "pruned", "added", "renamed"])
def test_a_change_after_the_ranking_is_answered_at_its_own_moment(
    world, shelf, searcher, happening, monkeypatch
):
    """No hit of the old ranking is shown with what is there by now."""
    shelf.publish("a", "copper coins", "copper cups")
    shelf.publish("b", "tin")
    assert len(ask(world, searcher, "copper").hits) == 3

    def change():
        if happening == "superseded":
            shelf.publish("a", "copper cans")
        elif happening == "added":
            shelf.publish("c", "copper copper")
        elif happening == "renamed":
            world.db.write("by_hand", rename)
        else:
            shelf.delete("a")
        if happening == "pruned":
            prune.prune_generations(world.db)

    def rename(tx):
        tx.execute(update(documents).where(documents.c.id == "b").values(title="Copper", updated_at=now()))
        publish_seq.bump(tx, "acme", "c")

    plain = stored.chunks_at
    monkeypatch.setattr(stored, "chunks_at", lambda *asked: change() or plain(*asked))
    result = ask(world, searcher, "copper")
    assert result == anew(world, "copper")
    assert result.publish_seq == seen(world)


def test_a_stamp_that_memory_has_left_behind_is_not_answered_by_memory(world, shelf, searcher):
    """Somebody else's search brought it further in the meantime; so did a publication nobody searched."""
    shelf.publish("a", "copper coins")
    old = seen(world)
    shelf.publish("b", "copper cans")
    ask(world, searcher, "copper")
    assert searcher.search("acme", "c", "copper", seen=old) == anew(world, "copper")
    late = seen(world)
    shelf.publish("a", "copper cups")
    assert searcher.search("acme", "c", "copper", seen=late) == anew(world, "copper")


def test_what_is_not_in_memory_is_asked_of_a_snapshot(world, shelf, searcher, monkeypatch):
    """Some documents alone, words of titles, a collection too large for memory, another collection."""
    shelf.publish("a", "copper coins")
    shelf.publish("b", "copper cans")
    elsewhere = Shelf(world.db, collection="other")
    elsewhere.publish("x", "copper kettle")
    for _ in range(2):
        assert ask(world, searcher, "copper", documents=["b"]) == anew(world, "copper", documents=["b"])
        assert ask(world, searcher, "title copper") == anew(world, "title copper")
        there = searcher.search("acme", "other", "copper", seen=seen(world, "other"))
        assert [hit.text for hit in there.hits] == ["copper kettle"]
        assert searcher.search("acme", "none", "copper", seen=0).hits == ()
    monkeypatch.setattr(statistics, "MOST_POSTINGS", 0)
    large = Searcher(world.db, meaning)
    for _ in range(2):
        assert ask(world, large, "copper") == anew(world, "copper")


def test_hits_whose_rows_are_all_missing_leave_the_others_to_answer(world, shelf, searcher):
    """The drift check will find them; the search says what a new process would."""
    shelf.publish("a", "copper coins")
    shelf.publish("b", "tin cans")
    ask(world, searcher, "copper", mode="keyword")
    world.write(delete(chunks).where(chunks.c.text == "copper coins"))
    assert ask(world, searcher, "copper", mode="keyword").hits == ()


def test_readers_beside_a_publisher_see_one_whole_generation(world, shelf, searcher):
    """Each answer has every chunk of one generation and none of another."""
    shelf.publish("a", "copper 1 one", "copper 1 two", "copper 1 three")
    wrong, done = [], threading.Event()

    def read():
        while not done.is_set():
            hits = ask(world, searcher, "copper").hits
            said = sorted(hit.text for hit in hits)
            number = hits[0].generation if hits else 0
            if said != sorted(f"copper {number} {each}" for each in ("one", "two", "three")):
                wrong.append((number, said))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(2, 22):
            shelf.publish("a", *(f"copper {number} {each}" for each in ("one", "two", "three")))
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert wrong == []


def test_hits_and_their_titles_are_looked_up_by_key(world, shelf):
    """Also in a database without statistics of chunks and heads: what a tenant has is not gone through."""
    for n in range(3):
        shelf.publish(f"d{n}", "copper")
    if world.db.postgresql:
        # Of an empty table it cannot tell one index from another.
        world.write(text("ANALYZE holdfast_documents"))
    compiled = stored.CHUNKS_AT.compile(dialect=world.db.engine.dialect)
    values = {"tenant": "acme", "collection": "c", "ids": [1] if world.db.postgresql else "[1]"}

    def explain(tx):
        driver = tx.connection.connection.cursor()
        if world.db.postgresql:
            tx.execute(text("SET LOCAL enable_seqscan = off"))
            driver.execute(f"EXPLAIN {compiled}", compiled.params | values)
        else:
            items = [(compiled.params | values)[name] for name in compiled.positiontup]
            driver.execute(f"EXPLAIN QUERY PLAN {compiled}", items)
        return "\n".join(str(row) for row in driver.fetchall())

    plan = world.db.read(explain)
    if world.db.postgresql:
        assert "Index Cond: ((tenant = holdfast_heads.tenant) AND (id = (substr(" in plan, plan
        assert "holdfast_heads_pk" in plan, plan
    else:
        assert "SEARCH holdfast_chunks USING INTEGER PRIMARY KEY" in plan, plan
        assert "SEARCH holdfast_heads USING INTEGER PRIMARY KEY" in plan, plan
        assert "SEARCH holdfast_documents USING INDEX sqlite_autoindex_holdfast_documents_1" in plan, plan


def test_the_stamp_is_read_with_what_it_shows(world, shelf):
    """One statement tells what two do, of an empty collection and of none as well."""
    shelf.publish("a", "copper")
    shelf.publish("b", "tin")
    shelf.publish("a", "lead")
    Shelf(world.db, collection="empty").publish("x", "zinc")
    Shelf(world.db, collection="empty").delete("x")

    def both(tx, collection):
        stamp, view = stored.stamp_and_view(tx, "acme", collection)
        plain = stored.stamp(tx, "acme", collection)
        assert stamp.publish_seq == plain.publish_seq == view.publish_seq
        assert abs(stamp.read_at - plain.read_at) < 60
        assert view == stored.view(tx, "acme", collection, plain.publish_seq)
        return sorted(view.heads.values())

    items = [world.db.read(lambda tx, name=name: both(tx, name)) for name in ("c", "empty", "none") * 3]
    assert items == [[1, 2], [], []] * 3
