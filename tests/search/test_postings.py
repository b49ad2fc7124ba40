"""Postings in blocks: whatever comes, goes and is put together, the answer is that of counting."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search import postings, term_counts

NAMES = [f"t{n}" for n in range(12)]
NUMBERS = term_counts.numbers_of(NAMES)
CHUNKS = st.lists(st.lists(st.sampled_from(NAMES), max_size=8).map(" ".join), min_size=1, max_size=4)
DOCUMENTS = st.lists(CHUNKS, min_size=1, max_size=5)


def made(documents, first=0):
    """A block of these documents, numbered from `first` on; a chunk has its head's number times a hundred."""
    heads = [first + at for at, chunks in enumerate(documents) for _ in chunks]
    ids = [100 * (first + at) + row for at, chunks in enumerate(documents) for row in range(len(chunks))]
    slices = [term_counts.decode(term_counts.encode(chunks)[2]) for chunks in documents]
    return postings.block(ids, heads, slices)


def said(documents, first=0, gone=()):
    """What each chunk says, by its id."""
    return {
        100 * (first + at) + row: Counter(words.split())
        for at, chunks in enumerate(documents)
        if first + at not in gone
        for row, words in enumerate(chunks)
    }


def check(block, expected):
    result = {name: block.of(number) for name, number in zip(NAMES, NUMBERS, strict=True)}
    for name, (rows, times) in result.items():
        assert dict(zip(block.ids[rows].tolist(), times.tolist(), strict=True)) == {
            chunk: words[name] for chunk, words in expected.items() if name in words
        }
    assert block.frequencies(NUMBERS).tolist() == [
        sum(name in words for words in expected.values()) for name in NAMES
    ]
    assert len(block) == len(expected)
    assert block.length == sum(words.total() for words in expected.values())


@given(DOCUMENTS)
def test_a_block_knows_which_chunks_have_a_term(documents):
    """Looked through at first, sorted after many questions: the change of form is not to be seen."""
    block = made(documents)
    check(block, said(documents))
    assert not block.entries.is_sorted
    block.frequencies(np.arange(60, dtype=np.uint32))
    assert block.entries.is_sorted
    check(block, said(documents))


@given(DOCUMENTS, DOCUMENTS, st.sets(st.integers(0, 9)), st.booleans())
def test_what_is_gone_does_not_count_before_or_after_blocks_are_put_together(one, two, gone, is_sorted):
    """Documents of two blocks go; then the blocks become one."""
    blocks = [made(one), made(two, len(one))]
    if is_sorted:
        for block in blocks:
            block.frequencies(np.arange(60, dtype=np.uint32))
    left = [block.without(np.array(sorted(gone), dtype=np.int64)) for block in blocks]
    check(left[0], said(one, 0, gone))
    check(left[1], said(two, len(one), gone))
    check(postings.merged(left), said(one, 0, gone) | said(two, len(one), gone))
    check(blocks[0], said(one))


@given(DOCUMENTS, DOCUMENTS)
def test_a_bare_block_knows_how_many_and_not_which(one, two):
    """It keeps no postings, alone and put together with others."""
    blocks = [made(one).bare(), made(two, len(one)).bare()]
    both = postings.merged(blocks)
    for block, documents in ((blocks[0], one), (both, one + two)):
        expected = said(documents)
        assert block.frequencies(NUMBERS).tolist() == [
            sum(name in words for words in expected.values()) for name in NAMES
        ]
        assert not block.postings
    assert len(both) == len(said(one + two))


def test_postings_are_sorted_in_parts(monkeypatch):
    """So that the copies stay small; the seams are not to be seen."""
    monkeypatch.setattr(postings, "_AT_ONCE", 3)
    documents = [[" ".join(NAMES[at : at + 4]) for at in range(6)]] * 3
    block = made(documents)
    block.frequencies(np.arange(60, dtype=np.uint32))
    check(block, said(documents))
