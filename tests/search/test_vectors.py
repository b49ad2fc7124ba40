"""Vectors in memory: the nearest are the nearest, through every change."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import vectors
from holdfast.store.search.snapshot_cache import SnapshotCache
from holdfast.vectors import matrix
from holdfast.vectors.matrix import Matrix


def made(head, number, seed, dimensions=8):
    rows = np.random.default_rng(seed).standard_normal((number, dimensions)).astype(np.float32)
    ids = [head * 1000 + n for n in range(number)]
    return ids, rows, matrix.block(ids, [head] * number, [vectors.encode(row) for row in rows])


def by_hand(rows, query, k):
    """The ids of the k nearest, by the definition of the cosine."""
    scores = {
        number: float(row @ query / (np.linalg.norm(row) * np.linalg.norm(query)))
        for number, row in rows.items()
    }
    return sorted(scores, key=lambda number: (-round(scores[number], 6), number))[:k]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.booleans()), min_size=1, max_size=40),
    st.integers(0, 10_000),
)
def test_after_any_changes_the_nearest_are_those_of_all_that_is_left(steps, seed):
    """Heads come, are replaced and go; blocks are masked, merged and shared, and none is changed."""
    current, held = Matrix(), {}
    query = np.random.default_rng(seed).standard_normal(8).astype(np.float32)
    for step, (head, number, again) in enumerate(steps):
        ids, rows, block = made(head, number, seed + step)
        before = current
        state = before.nearest(vectors.normalised(query), 5)
        current = current.changed([head], [block] if again else [])
        held = {key: row for key, row in held.items() if key // 1000 != head}
        if again:
            held |= dict(zip(ids, rows, strict=True))
        assert len(current) == len(held)
        items = [one.chunk_id for one in current.nearest(vectors.normalised(query), 5)]
        assert items == by_hand(held, query, 5)
        assert before.nearest(vectors.normalised(query), 5) == state


def test_a_filter_leaves_only_the_heads_asked_for(monkeypatch):
    """In a block where they are few, and in one where they are all."""
    held = {}
    blocks = []
    for head in range(4):
        ids, rows, block = made(head, 30, head)
        held |= dict(zip(ids, rows, strict=True))
        blocks.append(block)
    whole = Matrix().changed((), [matrix._merged(blocks)])
    query = np.ones(8, dtype=np.float32)
    for expected in ([1], [0, 1, 2, 3], [7], []):
        rows = {number: row for number, row in held.items() if number // 1000 in expected}
        items = [one.chunk_id for one in whole.nearest(vectors.normalised(query), 10, expected)]
        assert items == by_hand(rows, query, 10)


def test_small_blocks_are_merged_and_half_empty_ones_rewritten():
    """Many publications do not leave many blocks, nor many deletions many dead rows."""
    current = Matrix()
    for head in range(100):
        current = current.changed((), [made(head, 2, head)[2]])
    assert len(current.blocks) <= matrix.MOST_SMALL
    assert len(current) == 200
    current = current.changed(range(90), ())
    assert len(current) == 20
    assert sum(len(block.ids) for block in current.blocks) <= 40


def test_equal_vectors_come_in_the_order_of_their_ids():
    """The same query gives the same list, however the blocks lie."""
    one = matrix.block([5, 3], [1, 1], [vectors.encode([1, 0])] * 2)
    two = matrix.block([4, 1], [2, 2], [vectors.encode([2, 0])] * 2)
    result = Matrix().changed((), [one, two]).nearest(np.array([1, 0], dtype=np.float32), 3)
    assert [each.chunk_id for each in result] == [1, 3, 4]


@pytest.mark.parametrize(
    "strange", [[0, 0, 0], [np.nan, 1, 0], [np.inf, 0, 0], [1e38, 1e38, 1e38], [1e-40, 0, 0]]
)
def test_a_strange_vector_has_length_one_or_none_at_all(strange):
    """Too long, too short, not a number: never an error, never a score above one."""
    length = np.linalg.norm(vectors.normalised(np.array(strange, dtype=np.float32)))
    assert np.isclose(length, 1.0, atol=1e-3) or length == 0.0


def test_bytes_become_the_vector_that_was_encoded():
    """Little-endian float32, and nothing else is a vector."""
    assert vectors.decode(vectors.encode([1, -2.5])).tolist() == [1.0, -2.5]
    for result in (b"", b"123", b"12345"):
        with pytest.raises(ValueError, match="no vector"):
            vectors.decode(result)


@dataclass(frozen=True)
class Thing:
    publish_seq: int
    nbytes: int = 10


def test_the_least_recently_used_collections_go_when_the_budget_is_full():
    """What is asked for stays, and the last one is kept whatever its size."""
    saved = SnapshotCache(25)
    for name in ("a", "b", "a", "c"):
        saved.at(("t", name), 1, lambda old: old or Thing(1))
    made = []
    for name in ("a", "c", "b"):
        saved.at(("t", name), 1, lambda old, name=name: made.append(name) or Thing(1))
    assert made == ["b"]
    saved.at(("t", "large"), 1, lambda _old: Thing(1, 1000))
    assert saved.nbytes == 1000


def test_an_older_stamp_is_served_but_not_kept():
    """What is kept never goes back in time."""
    saved = SnapshotCache(100)
    name = ("t", "c")
    saved.at(name, 5, lambda _old: Thing(5))
    assert saved.at(name, 4, lambda old: Thing(old.publish_seq - 1)).publish_seq == 4
    assert saved.at(name, 5, lambda _old: pytest.fail("loaded again")).publish_seq == 5


def test_a_failed_load_is_not_kept_and_blocks_nobody():
    """The next reader tries again."""
    saved = SnapshotCache(100)
    with pytest.raises(ZeroDivisionError):
        saved.at(("t", "c"), 1, lambda _old: 1 // 0)
    answers = []
    other = threading.Thread(target=lambda: answers.append(saved.at(("t", "c"), 1, lambda _old: Thing(1))))
    other.start()
    other.join(timeout=60)
    assert answers == [Thing(1)]
