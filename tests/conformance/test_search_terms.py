# ruff: noqa: RUF001 - letters that look alike are what is tested
"""A term is one token, the same one, to both full-text indexes; and both rank alike."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from holdfast.search import keyword, statistics, tokenizer
from holdfast.search.searcher import Searcher
from holdfast.store.features import open_database
from holdfast.store.search import search_reads as stored
from tests.search import judging
from tests.search.sample_documents import Shelf, meaning

# Every script, and often the characters that mean something to somebody.
TEXTS = st.lists(
    st.one_of(
        st.text(min_size=1, max_size=12),
        st.text(
            alphabet="aZ9_-'’.,ßİéо日本ひ한ไทयाीאלּَا½ﬁ①\u00ad\u200d\u0301\ua7ba\U0001e900\U0002ebf0",
            min_size=1,
        ),
        st.sampled_from(['"', "OR", "NEAR(a b)", "*", ":", "\\", "'", "a&b|c!", "\0", "\ud800"]),
    ),
    min_size=1,
    max_size=8,
).map(" ".join)


def tokens(tx, joined):
    """The tokens that the database's index makes of the terms of one chunk."""
    if tx.db.postgresql:
        statement = "SELECT tsvector_to_array(array_to_tsvector(string_to_array(:words, ' ')))"
        return set(tx.one(text(statement), {"words": joined})[0])
    tx.execute(text("DELETE FROM looked_at"))
    tx.execute(text("INSERT INTO looked_at(words) VALUES (:words)"), {"words": joined})
    return {row[0] for row in tx.all(text("SELECT term FROM looked_at_terms"))}


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(written=TEXTS)
def test_every_term_is_exactly_one_token(world, written):
    """Whatever the text, the index holds its terms and nothing else."""
    terms = tokenizer.analyse(written)
    for term in terms:
        assert 0 < len(term) <= tokenizer.LONGEST
        assert all(letter.isalnum() for letter in term if letter.isascii())
        assert not any(letter.isspace() for letter in term)
    if not terms:
        return

    def body(tx):
        if not tx.db.postgresql:
            row = tx.one(text("SELECT sql FROM sqlite_master WHERE name = 'holdfast_chunk_words'"))[0]
            options = row.partition("tokenize")[2].partition(",")[0]
            tx.execute(
                text(f"CREATE VIRTUAL TABLE IF NOT EXISTS looked_at USING fts5(words, tokenize{options})")
            )
            tx.execute(
                text("CREATE VIRTUAL TABLE IF NOT EXISTS looked_at_terms USING fts5vocab(looked_at, 'row')")
            )
        return tokens(tx, " ".join(terms))

    assert world.db.write("by_hand", body) == set(terms)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(written=TEXTS)
def test_what_was_written_is_found_by_its_own_words(world, monkeypatch, written):
    """The index that the migrations made answers for any text, and for terms alone and together."""
    monkeypatch.setattr(statistics, "MOST_POSTINGS", 0)
    terms = tokenizer.analyse(written)
    if not terms:
        return
    shelf = Shelf(world.db)
    shelf.publish("a", written.replace("\0", " ").replace("\ud800", " "), embed=None)
    for expected in (
        [(terms[0],)],
        [tuple(dict.fromkeys(terms))[:20]],
        [(term,) for term in set(terms)][:20],
    ):
        result = world.db.read(
            lambda tx, wanted=expected: stored.candidates(tx, "acme", "c", wanted, most=10)
        )
        assert len(result) == 1
    assert Searcher(world.db).search("acme", "c", written, mode="keyword").hits


def test_the_most_and_longest_terms_that_a_text_can_have_are_stored(world):
    """A tsvector may not exceed a megabyte, and the run must not fail for it."""
    rng = random.Random(1)
    letters = [chr(code) for code in range(0x1E922, 0x1E944)]  # four bytes each
    text = " ".join("".join(rng.choices(letters, k=45)) for _ in range(tokenizer.MOST_TERMS + 10))
    Shelf(world.db).publish("a", text, embed=None)
    assert len(set(tokenizer.analyse(text))) == tokenizer.MOST_TERMS
    assert Searcher(world.db).search("acme", "c", text[:45], mode="keyword").hits


@pytest.mark.parametrize("term", ["", "a b", 'a"', "a'", "a\\", "a\0"])
def test_what_is_no_term_is_never_sent(world, term):
    """A term that would need quoting did not come from the analysis."""
    with pytest.raises(ValueError, match="not a term"):
        world.db.read(lambda tx: stored.candidates(tx, "acme", "c", [("b",), (term,)], most=10))


@pytest.mark.postgresql
def test_both_databases_rank_alike(sqlite_url, postgresql_url, monkeypatch):
    """The same documents, the same queries: the same chunks, in the same order, with the same scores."""
    monkeypatch.setattr(statistics, "MOST_POSTINGS", 0)
    monkeypatch.setattr(keyword, "EXPECTED", 20)
    monkeypatch.setattr(keyword, "MOST", 60)
    answers = []
    for url in (sqlite_url, postgresql_url):
        db = open_database(url, pause=lambda _seconds: None)
        shelf = Shelf(db)
        for topic, passages in judging.by_topic().items():
            shelf.publish(topic, *passages.values())
        searcher = Searcher(db, meaning)
        answers.append([_plain(searcher.search("acme", "c", query)) for query in judging.queries()])
        db.close()
    assert answers[0] == answers[1]
    assert all(answers[0])


def _plain(found):
    return [
        (
            hit.document_id,
            hit.position,
            round(hit.score, 9),
            [(part.leg, part.rank, part.score) for part in hit.parts],
        )
        for hit in found.hits
    ]
