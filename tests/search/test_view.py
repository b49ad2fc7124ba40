"""What a view shows beside one that is known."""

import random

from holdfast.store.search.search_reads import CollectionSnapshot


def test_what_is_gone_and_what_is_new_is_told_of_any_two_views():
    """Heads come, go, change their generation, all at once or not at all."""
    numbers = random.Random(5)
    for _ in range(300):
        known = {head: numbers.randrange(1, 3) for head in numbers.sample(range(8), numbers.randrange(8))}
        shown = {head: numbers.randrange(1, 3) for head in numbers.sample(range(8), numbers.randrange(8))}
        gone, fresh = CollectionSnapshot(1, shown).since(known)
        assert sorted(gone) == [head for head in sorted(known) if shown.get(head) != known[head]]
        assert sorted(fresh) == [head for head in sorted(shown) if known.get(head) != shown[head]]


def test_the_same_question_is_answered_once():
    """Words and vectors are brought to a view from the same one before."""
    view, known = CollectionSnapshot(2, {1: 1, 2: 2}), {1: 1, 2: 1}
    first = view.since(known)
    known[1] = 7  # whoever looks again would find it
    assert view.since(known) == first == ([2], [2])
