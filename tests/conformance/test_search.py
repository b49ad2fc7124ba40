"""What a search finds, says and leaves out, on both databases."""

import numpy as np
import pytest

from holdfast.core.errors import BadRequestError
from holdfast.search import statistics
from holdfast.search.searcher import Searcher
from holdfast.store.follow_ups import actions
from holdfast.store.views import reads
from tests.search.sample_documents import Shelf, meaning


@pytest.fixture(autouse=True, params=["by_index", "in_memory"])
def way(request, monkeypatch):
    """Collections are in memory; very large ones go by the full-text index. Both must say the same."""
    if request.param == "by_index":
        monkeypatch.setattr(statistics, "MOST_POSTINGS", 0)


@pytest.fixture
def shelf(world):
    return Shelf(world.db)


@pytest.fixture
def searcher(world):
    return Searcher(world.db, meaning)


def documents(found):
    return [hit.document_id for hit in found.hits]


def test_a_hit_says_where_it_stands_and_why_it_was_found(shelf, searcher):
    """Document, title, page, text, generation, place, and the rank in each leg."""
    shelf.publish("cats", "Dogs bark at night.", "Birds sing.", "The kitten sleeps all day on the sofa.")
    hits = searcher.search("acme", "c", "sleeping kittens")
    hit = hits.hits[0]
    assert (hit.document_id, hit.title, hit.page, hit.position) == ("cats", "Title of cats", 2, 2)
    assert (hit.generation, hit.slice, hits.publish_seq) == (1, 0, 1)
    assert hit.text == "The kitten sleeps all day on the sofa."
    assert [hit.snippet.text[start:end] for start, end in hit.snippet.marks] == ["kitten", "sleeps"]
    assert [(part.leg, part.rank) for part in hit.parts] == [("keyword", 1), ("vector", 1)]
    assert hits.legs == ("keyword", "vector")


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_every_mode_finds_the_best_chunk(shelf, searcher, mode):
    """Words, meaning, or both."""
    shelf.publish("a", "apples and pears", "the price of copper")
    shelf.publish("b", "trains run late")
    hits = searcher.search("acme", "c", "copper prices", mode=mode)
    assert documents(hits)[0] == "a"
    assert hits.hits[0].text == "the price of copper"
    assert {part.leg for part in hits.hits[0].parts} == (
        {"keyword", "vector"} if mode == "hybrid" else {mode}
    )


def test_without_an_embedding_the_words_answer_alone(world, shelf):
    """The provider is down, or there is none."""
    shelf.publish("a", "copper")
    for searcher in (Searcher(world.db), Searcher(world.db, lambda _text: None)):
        hits = searcher.search("acme", "c", "copper")
        assert documents(hits) == ["a"]
        assert hits.legs == ("keyword",)
        assert searcher.search("acme", "c", "copper", mode="vector").hits == ()


def test_keyword_mode_and_empty_queries_never_ask_for_an_embedding(world, shelf):
    """An embedding may cost money."""
    items = []
    searcher = Searcher(world.db, lambda text: items.append(text) or meaning(text))
    shelf.publish("a", "copper")
    searcher.search("acme", "c", "copper", mode="keyword")
    searcher.search("acme", "c", "  \n ")
    assert items == []
    searcher.search("acme", "c", "copper", embed=lambda text: items.append("other") or meaning(text))
    assert items == ["other"]


def test_only_the_named_documents_are_searched(shelf, searcher):
    """Unknown ones are nobody's."""
    for name in ("a", "b", "d"):
        shelf.publish(name, f"copper in {name}")
    assert set(documents(searcher.search("acme", "c", "copper", documents=["a", "d", "x"]))) == {"a", "d"}
    assert searcher.search("acme", "c", "copper", documents=[]).hits == ()
    assert searcher.search("acme", "c", "copper", documents=["x", "a\0"]).hits == ()


def test_a_filter_does_not_change_the_words_weights(shelf, searcher):
    """The statistics are the collection's, whatever part of it is looked at."""
    for name in ("a", "b", "d"):
        shelf.publish(name, f"copper {name}", "tin")
    everything = searcher.search("acme", "c", "copper tin", mode="keyword")
    one = searcher.search("acme", "c", "copper tin", mode="keyword", documents=["b"])
    scores = {hit.chunk_id: hit.parts[0].score for hit in everything.hits}
    assert [hit.parts[0].score for hit in one.hits] == [scores[hit.chunk_id] for hit in one.hits]
    assert len(one.hits) == 2


@pytest.mark.g3
def test_what_is_staged_superseded_or_deleted_is_not_found(shelf, searcher):
    """Only the published generation answers, at every step of a document's life."""
    claim = shelf.begin("a")
    staged = shelf.stage(claim, ["first copper"])
    assert searcher.search("acme", "c", "copper").hits == ()
    shelf.finish(claim, staged)
    assert [hit.text for hit in searcher.search("acme", "c", "copper").hits] == ["first copper"]
    claim = shelf.begin("a")
    staged = shelf.stage(claim, ["second copper"])
    assert [hit.text for hit in searcher.search("acme", "c", "copper").hits] == ["first copper"]
    shelf.finish(claim, staged)
    assert [(hit.text, hit.generation) for hit in searcher.search("acme", "c", "copper").hits] == [
        ("second copper", 2)
    ]
    shelf.delete("a")
    assert searcher.search("acme", "c", "copper").hits == ()


def test_a_moved_document_is_found_where_it_went(world, shelf, searcher):
    """Both collections have a new stamp."""
    shelf.publish("a", "copper")
    shelf.publish("b", "copper tin")
    assert set(documents(searcher.search("acme", "c", "copper"))) == {"a", "b"}
    head = reads.head(world.db, "acme", "index", "document:a")
    actions.move(world.db, head.id, "other")
    assert documents(searcher.search("acme", "c", "copper")) == ["b"]
    assert documents(searcher.search("acme", "other", "copper")) == ["a"]


def test_other_kinds_of_the_same_subject_are_not_searched(world, shelf, searcher):
    """The questions made of a document are no part of its text."""
    shelf.publish("a", "copper")
    claim = world.start(kind="qa", subject="document:a", tenant="acme", collection="c")
    shelf.finish(claim, shelf.stage(claim, ["copper questions"]))
    assert [hit.text for hit in searcher.search("acme", "c", "copper").hits] == ["copper"]


def test_two_collections_and_two_tenants_know_nothing_of_each_other(world, shelf, searcher):
    """Neither hits nor scores change with what others have; an unknown collection is an empty one."""
    shelf.publish("a", "copper coins", "tin cans")
    before = searcher.search("acme", "c", "copper cans", mode="keyword")
    for tenant, collection in (("acme", "d"), ("rival", "c")):
        other = Shelf(world.db, tenant, collection)
        for number in range(20):
            other.publish(f"{tenant}-{collection}-{number}", "copper copper copper", "cans")
    for asking in (searcher, Searcher(world.db, meaning)):
        assert asking.search("acme", "c", "copper cans", mode="keyword") == before
    assert searcher.search("rival", "d", "copper").hits == ()
    assert searcher.search("nobody", "c", "copper") == searcher.search("acme", "nothing", "copper")


def test_a_model_change_never_compares_what_cannot_be_compared(world, shelf):
    """Old generations answer with their own model; a query of other dimensions meets only its like."""
    wide = lambda text: meaning(text, 48)
    shelf.publish("old", "copper coins", embed=meaning, model="small")
    shelf.publish("new", "copper cans", embed=wide, model="large")
    shelf.publish("odd", "copper kettles", embed=lambda _text: np.zeros(3), model="none")
    searcher = Searcher(world.db)
    small = searcher.search("acme", "c", "coins", mode="vector", embed=meaning)
    large = searcher.search("acme", "c", "coins", mode="vector", embed=wide)
    assert (documents(small), documents(large)) == (["old"], ["new"])
    strange = searcher.search("acme", "c", "copper", embed=lambda _text: np.ones(7))
    assert set(documents(strange)) == {"old", "new", "odd"}
    same_size = searcher.search("acme", "c", "coins", mode="vector", embed=meaning, model="large")
    assert same_size.hits == ()


def test_vectors_of_two_providers_are_never_compared(world, shelf, searcher):
    """A model of the same name and length at another provider is another model."""
    shelf.publish("old", "copper coins", provider="north")
    shelf.publish("new", "copper cans", provider="south")

    def found(**by):
        return sorted(documents(searcher.search("acme", "c", "copper", mode="vector", model="m", **by)))

    assert [found(provider=name) for name in ("north", "south", "west")] == [["old"], ["new"], []]
    assert found() == ["new", "old"]


def test_a_chunk_without_a_vector_or_without_words_is_found_by_the_other_leg(world, shelf, searcher):
    """A drift, or a picture with a caption of stop words: no reason to fail."""
    shelf.publish("bare", "copper kettle", embed=None)
    shelf.publish("mute", "to be or not to be", embed=lambda _text: meaning("tin whistle"))
    assert documents(searcher.search("acme", "c", "copper kettle", mode="keyword")) == ["bare"]
    assert documents(searcher.search("acme", "c", "tin whistle")) == ["mute"]


@pytest.mark.parametrize(("k", "mode"), [(0, "hybrid"), (-3, "hybrid"), (5, "magic")])
def test_a_question_that_makes_no_sense_is_refused(searcher, k, mode):
    """With what to ask instead."""
    with pytest.raises(BadRequestError):
        searcher.search("acme", "c", "copper", k, mode=mode)


def test_k_bounds_the_hits_and_equals_come_in_a_fixed_order(shelf, searcher):
    """Of chunks that score alike, the one stored first."""
    shelf.publish("a", *["copper"] * 7)
    hits = searcher.search("acme", "c", "copper", 5)
    assert [hit.position for hit in hits.hits] == [0, 1, 2, 3, 4]
    assert len(searcher.search("acme", "c", "copper", 100).hits) == 7
