"""Queries that somebody made up to break things, and collections too large to look through."""

import random
import string

import pytest
from sqlalchemy import func, select, text

from holdfast.search import keyword, statistics, tokenizer
from holdfast.search.searcher import Searcher
from holdfast.store.base.schema import chunks
from holdfast.store.search import search_reads as stored
from tests.search.sample_documents import Shelf, meaning


@pytest.fixture
def shelf(world):
    return Shelf(world.db)


@pytest.fixture(params=["by_index", "in_memory"])
def searcher(request, world, monkeypatch):
    if request.param == "by_index":
        monkeypatch.setattr(statistics, "MOST_POSTINGS", 0)
    return Searcher(world.db, meaning)


NASTY = [
    "",
    " \t\n",
    "\0",
    "cop\0per",
    "to be or not to be",
    '"',
    '"copper',
    "'",
    "copper'; DROP TABLE chunks; --",
    "copper OR",
    "NEAR(copper tin, 2)",
    "NOT copper",
    "copper AND NOT tin",
    "cop*",
    "^copper",
    "words:copper",
    "{words} : copper",
    "copper:*",
    "copper <-> tin",
    "!copper & tin | (lead",
    "a\\",
    "\\",
    "%s %(tenant)s :tenant ? $1",
    "\ud800copper",
    "copper\ufdd0",
    "🙂 🙂",
    "-",
    "'s 's",
    "﷽",
    "ß" * 500,
    "x" * 50_000,
    "copper " * 10_000,
]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_no_query_is_an_error(shelf, searcher, mode):
    """Operators and quotes of both full-text languages are words like others, or nothing."""
    shelf.publish("a", "copper tin", "lead")
    for query in NASTY:
        hits = searcher.search("acme", "c", query, mode=mode)
        if mode == "keyword" and "copper" in tokenizer.analyse(query):
            assert hits.hits[0].text == "copper tin"


def test_a_query_of_ten_thousand_words_finds_by_its_rarest(shelf, searcher):
    """Not every word can be looked for; those that tell most are."""
    rng = random.Random(3)
    common = ["".join(rng.choices(string.ascii_lowercase, k=7)) for _ in range(90)]
    for n in range(6):
        shelf.publish(f"d{n}", *(" ".join(rng.sample(common, 60)) for _ in range(5)))
    shelf.publish("rare", "platypus")
    query = " ".join([*rng.choices(common, k=10_000), "platypus"])
    hits = searcher.search("acme", "c", query, 50, mode="keyword").hits
    assert len(hits) == 31
    assert "rare" in {hit.document_id for hit in hits}


def test_strange_names_of_tenants_collections_and_documents_find_nothing(shelf, searcher):
    """A name that no database can hold belongs to nobody."""
    shelf.publish("a", "copper")
    for name in ("\0", "c\0", "\ud800", "%", "c'--", "", "C"):
        assert searcher.search("acme", name, "copper").hits == ()
        assert searcher.search(name, "c", "copper").hits == ()
        assert searcher.search("acme", "c", "copper", documents=[name]).hits == ()


@pytest.fixture
def crowd(world, shelf):
    """Six hundred chunks in which a few words are everywhere."""
    rng = random.Random(5)
    for n in range(12):
        texts = []
        for m in range(50):
            number = n * 50 + m
            some = [word for word, share in SHARES.items() if rng.random() < share]
            texts.append(" ".join([*some, f"number{number}", f"tenth{number % 10}"]))
        shelf.publish(f"d{n}", *texts, embed=None)
    return shelf


SHARES = {"copper": 0.9, "coin": 0.5, "kettle": 0.4, "roof": 0.3}


@pytest.fixture
def bounded(monkeypatch):
    monkeypatch.setattr(statistics, "MOST_POSTINGS", 0)
    for name, bound in (("EXPECTED", 40), ("MOST", 80)):
        monkeypatch.setattr(keyword, name, bound)
    items = []
    plain = stored.candidates

    def counting(*values, **options):
        result = plain(*values, **options)
        items.append(len(result))
        return result

    monkeypatch.setattr(stored, "candidates", counting)
    return items


@pytest.mark.parametrize(
    "query",
    ["copper", "copper coin", "copper coin kettle roof", "copper tenth3", "tenth1 tenth2 tenth3 coin"],
)
def test_common_words_are_bounded_and_the_best_are_still_found(world, crowd, bounded, query):
    """However common the words, no statement brings more than the bound, and a best chunk is among them."""
    best = Searcher(world.db).search("acme", "c", query, mode="keyword")
    assert bounded
    assert max(bounded) <= 80
    assert sum(bounded) <= 400
    exact = _everything(world, query)
    assert best.hits[0].parts[0].score >= 0.9 * exact[0]


def _everything(world, query):
    """The scores of all chunks, without any bound."""

    def body(tx):
        view = stored.view(tx, "acme", "c", stored.stamp(tx, "acme", "c").publish_seq)
        counted = Searcher(world.db)._statistics.at(tx, "acme", "c", view)
        terms = keyword.terms_of(tokenizer.analyse(query), counted)
        rows = stored.words_of(tx, list(view.heads))
        scores, _ = keyword.bm25.scores([row.words for row in rows], terms.known, counted.average)
        return sorted(scores.tolist(), reverse=True)

    return world.db.read(body)


def test_a_rare_word_is_found_among_common_ones(world, crowd, bounded):
    """The rarest words are looked for alone."""
    hits = Searcher(world.db).search("acme", "c", "copper coin number377", mode="keyword").hits
    assert "number377" in hits[0].text


def test_the_full_text_index_forgets_what_is_deleted(world, shelf):
    """No term of a deleted chunk stays behind to be looked through."""
    shelf.publish("a", "copper coins", "tin cans")
    world.write(chunks.delete().where(chunks.c.text == "tin cans"))
    if world.db.postgresql:
        assert world.count(chunks) == 1
        return
    world.write(text("INSERT INTO holdfast_chunk_words(holdfast_chunk_words) VALUES ('integrity-check')"))
    rows = world.rows(text("SELECT rowid FROM holdfast_chunk_words WHERE holdfast_chunk_words MATCH 'tin'"))
    assert rows == []
    assert world.row(select(func.count()).select_from(chunks))[0] == 1
