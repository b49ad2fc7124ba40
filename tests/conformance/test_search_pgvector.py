"""Search with the vectors inside PostgreSQL: the same suite, and what is this index's alone."""

import secrets

import numpy as np
import pytest
from sqlalchemy import text, update

from holdfast.search.searcher import Searcher
from holdfast.store.base.schema import documents
from holdfast.store.features import open_database
from holdfast.store.follow_ups import actions
from holdfast.store.search import nearest_vectors
from holdfast.store.search import search_reads as stored
from holdfast.store.search import vector_tables as tables
from holdfast.store.views import reads
from holdfast.vectors.exact import ExactIndex
from holdfast.vectors.pgvector import PgvectorIndex
from holdfast.vectors.pgvector_sync import Filling
from tests.conformance import test_search as suite
from tests.search.sample_documents import Shelf, meaning

pytestmark = pytest.mark.postgresql

TABLES = "chunk_vectors, vector_heads, vector_stamps, vector_spaces"
# Every story of the suite, told again with the fixtures below.
globals().update({name: story for name, story in vars(suite).items() if name.startswith("test_")})


@pytest.fixture
def database_url(postgresql_url):
    return postgresql_url


@pytest.fixture(autouse=True)
def made(world):
    """The tables are gone after the test, so that the database can serve the next one."""
    yield
    world.write(text(f"DROP TABLE IF EXISTS {TABLES}"))


@pytest.fixture
def shelf(world):
    return Shelf(world.db)


@pytest.fixture
def filling(world):
    return Filling(world.db, least=1, large=0)


class Filled(Searcher):
    """The tables are brought up to date before every question."""

    def __init__(self, db, embed, filling):
        super().__init__(db, embed, vectors=PgvectorIndex(ExactIndex(budget=0)))
        self.filling = filling

    def search(self, *asked, **how):
        self.filling.round()
        return super().search(*asked, **how)


@pytest.fixture
def searcher(world, filling):
    return Filled(world.db, meaning, filling)


def crowd(shelf, documents=30, each=100, dimensions=32, seed=7):
    """Vectors in loose groups, as embeddings are."""
    numbers = np.random.default_rng(seed)
    centres = numbers.standard_normal((40, dimensions))
    for document in range(documents):
        rows = centres[numbers.integers(40, size=each)] + 0.6 * numbers.standard_normal((each, dimensions))
        known = {f"word{document}x{n}": row.astype(np.float32) for n, row in enumerate(rows)}
        shelf.publish(f"d{document}", *known, embed=known.__getitem__)
    return [centres[n % 40] + 0.6 * numbers.standard_normal(dimensions) for n in range(40)]


def nearest(world, vectors, asked, k=10, **how):
    result = Searcher(world.db, vectors=vectors).search(
        "acme", "c", "x", k, mode="vector", embed=lambda _: asked, **how
    )
    return [(hit.chunk_id, hit.score) for hit in result.hits]


def test_at_least_95_of_100_that_are_nearest_are_found_and_scored_alike(world, shelf, filling, monkeypatch):
    """Recall at ten against the exact index, by the HNSW index and nothing else."""
    requested = crowd(shelf)
    assert filling.round() == 3000
    exact, inside = ExactIndex(), PgvectorIndex(ExactIndex())
    monkeypatch.setattr(inside, "_exact", None)  # whoever falls back now is found out
    monkeypatch.setattr(inside, "_beside", None)
    hits = expected = 0
    for each in requested:
        right = dict(nearest(world, exact, each))
        result = dict(nearest(world, inside, each))
        expected += len(right)
        hits += len(right.keys() & result.keys())
    assert hits / expected >= 0.95
    among = [nearest(world, index, requested[0], documents=["d3"]) for index in (exact, inside)]
    assert among[0] == among[1]


def test_the_index_of_the_space_is_what_is_asked(world, shelf, filling):
    """The plan goes through HNSW: without it, a large collection would be sorted for each question."""
    crowd(shelf, documents=20)
    filling.round()
    world.write(text("ANALYZE"))

    def look(tx):
        stored.stamp(tx, "acme", "c")  # sets the transaction up as every search does
        space = tables.spaces_of(tx, "acme", "c")[0]
        message = "EXPLAIN " + nearest_vectors.NEAR.format(space=space.id, dimensions=space.dimensions)
        values = {"tenant": "acme", "collection": "c", "query": str([1.0] * 32), "most": 100}
        return [row[0] for row in tx.all(text(message), values)]

    plan = world.db.read(look)
    assert any("holdfast_chunk_vectors_" in line for line in plan), plan


@pytest.mark.g3
def test_what_is_published_is_found_before_it_is_in_the_tables(world, shelf, filling):
    """New, replaced, moved and deleted documents, at every step as the snapshot says."""
    searcher = Searcher(world.db, meaning, vectors=PgvectorIndex(ExactIndex()))

    def texts(collection="c"):
        return sorted(hit.text for hit in searcher.search("acme", collection, "copper", mode="vector").hits)

    shelf.publish("a", "copper one")
    filling.round()
    assert texts() == ["copper one"]
    shelf.publish("b", "copper two")
    shelf.publish("a", "copper three")
    assert texts() == ["copper three", "copper two"]
    filling.round()
    assert texts() == ["copper three", "copper two"]
    actions.move(world.db, reads.head(world.db, "acme", "index", "document:b").id, "other")
    assert (texts(), texts("other")) == (["copper three"], ["copper two"])
    shelf.delete("a")
    assert texts() == []
    filling.round()
    assert (texts(), texts("other")) == ([], ["copper two"])
    assert (
        world.row(
            text("SELECT count(*) FROM holdfast_chunk_vectors JOIN holdfast_vector_heads USING (head_id)")
        )[0]
        <= 1
    )


def test_without_the_extension_or_the_right_to_it_memory_answers(world, shelf, filling, caplog):
    """Nothing fails; what is not there yet is found when it comes."""
    shelf.publish("a", "copper")
    now = [0.0]
    index = PgvectorIndex(ExactIndex(), clock=lambda: now[0])
    searcher = Searcher(world.db, meaning, vectors=index)
    assert len(searcher.search("acme", "c", "copper", mode="vector").hits) == 1
    world.write(text("DROP EXTENSION IF EXISTS vector CASCADE"))
    world.write(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
    role = f"hf_weak_{secrets.token_hex(4)}"
    world.write(text(f"CREATE ROLE {role} LOGIN PASSWORD 'weak'"))
    world.write(text(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"))
    weak = open_database(world.db.engine.url.set(username=role, password="weak").render_as_string(False))
    try:
        assert Filling(weak, least=1, large=0).round() == 0
        assert "cannot be created" in caplog.text
    finally:
        weak.close()
        world.write(text(f"DROP OWNED BY {role}"))
        world.write(text(f"DROP ROLE {role}"))
    assert filling.round() == 1
    now[0] += 31
    assert len(searcher.search("acme", "c", "copper", mode="vector").hits) == 1
    assert index._there
    world.write(text("DROP EXTENSION vector CASCADE"))
    now[0] += 31
    assert len(searcher.search("acme", "c", "copper", mode="vector").hits) == 1
    assert filling.round() == 1


def test_small_collections_stay_out_and_an_emptied_one_leaves(world, shelf):
    """The bounds are those of the setting; an index of nothing is dropped."""
    shelf.publish("a", "copper one", "copper two")
    assert Filling(world.db, least=2).round() == 0
    large = Filling(world.db, least=1, large=4 * 32)
    assert large.round() == 2
    shelf.delete("a")
    world.write(update(documents).values(deleted=True))
    assert large.round() == 0
    assert (
        world.rows(text("SELECT FROM holdfast_vector_spaces UNION ALL SELECT FROM holdfast_vector_stamps"))
        == []
    )
    assert world.rows(text("SELECT FROM pg_indexes WHERE indexname LIKE 'holdfast_chunk_vectors%'")) == []


def test_two_fillers_at_once_do_the_work_once(world, shelf, filling):
    """Whoever finds another at it leaves it alone; a thread of the sweep does the same and says nothing."""
    shelf.publish("a", "copper")
    filling.round()
    shelf.publish("b", "tin")
    with world.db.engine.connect() as other:
        other.execute(tables._LOCK)
        with pytest.raises(tables.BusyError):
            filling.round()
        filling()
        filling._thread.join(60)
        assert not filling._thread.is_alive()
    assert filling.round() == 1


def test_memory_alone_answers_only_while_there_are_no_tables_to_ask(world, shelf, filling):
    """Whether there are any is looked up from time to time; tables that are there are always asked."""
    time = [1000.0]
    index = PgvectorIndex(ExactIndex(), clock=lambda: time[0])
    shelf.publish("a", "copper one")
    assert not index.is_at("acme", "c", 1)
    searcher = Searcher(world.db, meaning, vectors=index)
    hits = searcher.search("acme", "c", "copper")
    assert index.is_at("acme", "c", hits.publish_seq)
    filling.round()
    time[0] += 60
    assert not index.is_at("acme", "c", hits.publish_seq)
    assert searcher.search("acme", "c", "copper", seen=hits.publish_seq) == hits
    assert not index.is_at("acme", "c", hits.publish_seq)
