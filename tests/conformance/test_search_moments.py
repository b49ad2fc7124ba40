"""A search sees one moment, whatever happens between its legs and whatever is kept from earlier ones (G3)."""

import threading

import numpy as np
import pytest
from sqlalchemy import delete, update

from holdfast.search import statistics, titles
from holdfast.search.searcher import Searcher
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import chunks, documents, word_counts
from holdfast.store.protocol import prune, publish_seq
from holdfast.store.search import search_reads as stored
from holdfast.store.search import title_reads
from holdfast.vectors.exact import ExactIndex
from tests.search.sample_documents import Shelf, meaning

pytestmark = pytest.mark.g3


@pytest.fixture(autouse=True, params=["by_index", "in_memory"])
def way(request, monkeypatch):
    if request.param == "by_index":
        monkeypatch.setattr(statistics, "MOST_POSTINGS", 0)
    return request.param


@pytest.fixture
def shelf(world):
    return Shelf(world.db)


class Interrupted(ExactIndex):
    """Something happens after the keyword leg and before the vector leg."""

    def __init__(self, happening):
        super().__init__()
        self.happening = happening

    def nearest(self, *words, **options):
        happening, self.happening = self.happening, lambda: None
        elsewhere = threading.Thread(target=happening)
        elsewhere.start()
        elsewhere.join()
        return super().nearest(*words, **options)


@pytest.mark.parametrize("happening", ["superseded", "deleted", "pruned"])
def test_a_document_that_changes_between_the_legs_is_seen_as_it_was_by_both(world, shelf, happening):
    """One snapshot serves every leg, on a cold start too; the next search sees the change."""
    shelf.publish("a", "copper coins")

    def change():
        if happening == "superseded":
            shelf.publish("a", "copper cans")
        else:
            shelf.delete("a")
        if happening == "pruned":
            prune.prune_generations(world.db)

    searcher = Searcher(world.db, meaning, vectors=Interrupted(change))
    hits = searcher.search("acme", "c", "copper")
    assert [(hit.text, hit.generation) for hit in hits.hits] == [("copper coins", 1)]
    assert {part.leg for part in hits.hits[0].parts} == {"keyword", "vector"}
    after = searcher.search("acme", "c", "copper")
    assert [hit.text for hit in after.hits] == (["copper cans"] if happening == "superseded" else [])


def test_a_reader_of_an_older_moment_neither_sees_nor_spoils_what_is_newer(world, shelf):
    """It makes its own from its snapshot, and what is kept stays at the newer stamp."""
    searcher = Searcher(world.db, meaning)
    shelf.publish("a", "copper coins")

    def change():
        shelf.publish("b", "copper cans")
        assert len(searcher.search("acme", "c", "copper").hits) == 2

    inner, searcher._vectors = searcher._vectors, Interrupted(change)
    searcher._vectors._snapshots = inner._snapshots
    assert len(searcher.search("acme", "c", "copper").hits) == 1
    reloads = []
    searcher._vectors.happening = lambda: reloads.append(1)
    assert len(searcher.search("acme", "c", "copper").hits) == 2


def kept(searcher, world):
    """What the searcher has in memory, and what a fresh one would load."""

    def body(tx):
        view = stored.view(tx, "acme", "c", stored.stamp(tx, "acme", "c").publish_seq)
        return [one._statistics.at(tx, "acme", "c", view) for one in (searcher, Searcher(world.db))]

    return world.db.read(body)


def test_the_difference_leads_to_the_same_statistics_as_loading_everything(world, shelf, way):
    """Documents come, change, shrink, go and come back; counts never drift."""
    if way == "by_index":
        pytest.skip("sums alone forget what is gone later")
    searcher = Searcher(world.db, meaning)
    rng = np.random.default_rng(7)
    nouns = [f"noun{n}" for n in range(30)]
    for step in range(25):
        name = f"d{rng.integers(6)}"
        if step % 5 == 4:
            shelf.delete(name)
        else:
            texts = [" ".join(rng.choice(nouns, 12)) for _ in range(1 + rng.integers(3))]
            shelf.publish(name, *texts)
        searcher.search("acme", "c", "noun1 noun2")
        grown, fresh = kept(searcher, world)
        assert (grown.chunks, grown.length) == (fresh.chunks, fresh.length)
        assert grown.frequencies(nouns) == fresh.frequencies(nouns)
        ours, anew = (
            one.search("acme", "c", "noun3 noun4") for one in (searcher, Searcher(world.db, meaning))
        )
        assert ours == anew


def test_only_the_difference_is_loaded(world, shelf, monkeypatch):
    """A publication costs its own document, not the collection."""
    monkeypatch.setattr(statistics, "_is_worn", lambda *_: False)
    loaded = []
    for name in ("counted", "vectors_of"):
        plain = getattr(stored, name)
        monkeypatch.setattr(
            stored, name, lambda tx, heads, plain=plain: loaded.append(len(heads)) or plain(tx, heads)
        )
    searcher = Searcher(world.db, meaning)
    for n in range(5):
        shelf.publish(f"d{n}", "copper")
    searcher.search("acme", "c", "copper")
    assert loaded == [5, 5]
    searcher.search("acme", "c", "tin")
    assert loaded == [5, 5]
    shelf.publish("d2", "copper tin")
    searcher.search("acme", "c", "tin")
    assert loaded == [5, 5, 1, 1]
    shelf.delete("d3")
    searcher.search("acme", "c", "tin")
    assert loaded == [5, 5, 1, 1, 0]


def test_threads_that_search_a_cold_collection_load_it_once(world, shelf, monkeypatch):
    """The others wait for the first instead of loading the same again."""
    loaded = []
    plain = stored.vectors_of
    monkeypatch.setattr(stored, "vectors_of", lambda tx, heads: loaded.append(1) or plain(tx, heads))
    for n in range(5):
        shelf.publish(f"d{n}", "copper")
    searcher = Searcher(world.db, meaning)
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(searcher.search("acme", "c", "copper")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loaded == [1]
    assert len(set(answers)) == 1


def test_a_published_document_whose_rows_are_missing_does_not_break_the_search(world, shelf):
    """The drift check will find it; until then the rest answers."""
    shelf.publish("a", "copper coins")
    shelf.publish("b", "copper cans")
    world.write(delete(chunks).where(chunks.c.text == "copper coins"))
    world.write(delete(word_counts))
    assert Searcher(world.db, meaning).search("acme", "c", "copper").hits[0].document_id == "b"


@pytest.mark.parametrize("late", [0.0, 5.0])
def test_a_new_title_is_found_and_the_old_one_is_not(world, shelf, late):
    """Titles are kept by what was read when; one that was stamped before that and committed after is seen."""
    shelf.publish("a", "copper")
    shelf.publish("b", "tin")
    searcher = Searcher(world.db)

    def by_title(word):
        return [hit.document_id for hit in searcher.search("acme", "c", word).hits]

    assert (by_title("zanzibar"), sorted(by_title("title"))) == ([], ["a", "b"])

    def rename(tx):
        new = update(documents).where(documents.c.id == "b").values(title="Zanzibar", updated_at=now() - late)
        tx.execute(new)
        publish_seq.bump(tx, "acme", "c")

    world.db.write("by_hand", rename)
    assert (by_title("zanzibar"), by_title("title")) == (["b"], ["a"])


def test_titles_that_did_not_change_are_not_read_again(world, shelf, monkeypatch):
    """A publication costs the titles of the last seconds, not all of them."""
    for n in range(5):
        shelf.publish(f"d{n}", "copper")
    searcher = Searcher(world.db)
    searcher.search("acme", "c", "copper")
    world.write(update(documents).values(updated_at=now() - 3600))
    searcher._titles = titles.TitleCache()
    searcher.search("acme", "c", "copper")
    seen = []
    plain = title_reads.titles
    monkeypatch.setattr(
        title_reads, "titles", lambda *values, **options: seen.append(plain(*values, **options)) or seen[-1]
    )
    shelf.publish("new", "copper")
    searcher.search("acme", "c", "copper")
    assert [[row.id for row in rows] for rows in seen] == [["new"]]


def test_many_publications_leave_few_blocks(world, shelf, monkeypatch, way):
    """What was published one by one is put together, and answers as if loaded at once."""
    monkeypatch.setattr(statistics, "TIERS", (6, 12))
    monkeypatch.setattr(statistics, "MOST_SMALL", 2)
    searcher = Searcher(world.db, meaning)
    for n in range(20):
        shelf.publish(f"d{n}", f"copper tin{n % 3}", "lead")
        searcher.search("acme", "c", "copper")
    shelf.publish("d3", "copper tin0")
    shelf.delete("d4")
    searcher.search("acme", "c", "copper")
    grown, fresh = kept(searcher, world)
    assert len(grown.blocks) <= 2 + 2 + 40 // 12
    assert grown.has_postings == (way == "in_memory")
    if grown.has_postings:
        assert grown.frequencies(["copper", "tin0", "lead"]) == [19, 7, 18]
    assert fresh.frequencies(["copper", "tin0", "lead"]) == [19, 7, 18]
    assert (grown.chunks, grown.length) == (fresh.chunks, fresh.length)


def test_sums_that_still_count_too_much_of_what_is_gone_are_made_anew(world, shelf, monkeypatch):
    """Without postings nobody knows which terms went with a document."""
    monkeypatch.setattr(statistics, "MOST_POSTINGS", 0)
    searcher = Searcher(world.db, meaning)
    for n in range(20):
        shelf.publish(f"d{n}", "copper")
    searcher.search("acme", "c", "copper")
    shelf.delete("d0")
    assert kept(searcher, world)[0].frequencies(["copper"]) == [20]
    shelf.delete("d1")
    shelf.delete("d2")
    grown, fresh = kept(searcher, world)
    assert grown.frequencies(["copper"]) == fresh.frequencies(["copper"]) == [17]


def test_counts_that_do_not_fit_the_chunks_are_made_anew_from_their_words(world, shelf):
    """Those of another release, or of a slice that lost a row."""
    shelf.publish("a", "copper coins", "tin")
    shelf.publish("b", "copper cans", "copper")
    world.write(update(word_counts).values(terms=b"\x01"))
    grown, _ = kept(Searcher(world.db, meaning), world)
    assert grown.frequencies(["copper", "tin"]) == [3, 1]
    world.write(delete(chunks).where(chunks.c.text == "tin"))
    assert kept(Searcher(world.db, meaning), world)[0].chunks == 3


def test_a_title_that_is_read_once_more_is_not_taken_apart_once_more(shelf, monkeypatch):
    """While much is published each search reads the latest titles again; only what is new in them costs."""
    taken: list[str] = []
    real = titles._terms
    monkeypatch.setattr(titles, "_terms", lambda *called: taken.append(called) or real(*called))
    searcher = Searcher(shelf.db)
    for name in ("a", "b", "c"):
        shelf.publish(name, "copper coins")
        assert searcher.search(shelf.tenant, shelf.collection, "title").hits
    assert len(taken) == 3
