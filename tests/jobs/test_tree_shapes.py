"""How texts are put together under summaries: whole, the same every time, and local."""

import random

import numpy as np
import pytest

from holdfast.kinds import neighbour_groups, pivots
from holdfast.kinds.neighbour_groups import GroupRules
from holdfast.vectors.encoding import normalised


def texts(number, seed=0):
    return [f"text {seed} {at}" for at in range(number)]


def matrix(some):
    """A fixed vector for each text, with neighbours somewhat alike."""
    rows = [
        np.random.default_rng(int(neighbour_groups.digest(one)[:8], 16)).standard_normal(16) for one in some
    ]
    return normalised(np.array(rows, dtype=np.float32))


def grouped(some, most=12):
    digests = [neighbour_groups.digest(one) for one in some]
    return [
        tuple(some[at] for at in part)
        for part in neighbour_groups.groups(digests, matrix(some), GroupRules(most))
    ]


@pytest.mark.parametrize("most", [4, 5, 12, 32])
def test_every_text_is_in_exactly_one_group_of_the_right_size(most):
    """In order, none too large, none too small where there are enough, down to one root."""
    rules = GroupRules(most)
    for number in (1, 2, 3, 5, 6, 7, 11, 12, 13, 40, 333):
        level = texts(number)
        while len(level) > 1:
            parts = grouped(level, most)
            assert [one for part in parts for one in part] == level
            assert all(len(part) <= most for part in parts)
            assert len(parts) == 1 or all(len(part) >= rules.least for part in parts)
            level = ["+".join(part)[:50] + str(at) for at, part in enumerate(parts)]


def test_equal_texts_have_an_order_too():
    """A document that repeats one line a thousand times gives groups, not one cut or a cut everywhere."""
    parts = grouped(["the same"] * 1000)
    assert sum(map(len, parts)) == 1000
    assert all(3 <= len(part) <= 12 for part in parts)


def test_an_edit_changes_the_groups_around_it_alone():
    """Of two hundred texts one is changed, inserted or removed: nearly all groups are as before."""
    rng = random.Random(7)
    before = texts(200)
    changed = []
    for _ in range(60):
        at = rng.randrange(200)
        after = list(before)
        after[at : at + rng.randrange(2)] = [f"new {rng.random()}"] * rng.randrange(2)
        changed.append(len(set(grouped(after)) - set(grouped(before))))
    assert sum(changed) / len(changed) <= 1.6
    assert max(changed) <= 4


def vectors(names, topics=6):
    """Names as items, around a few topics."""
    centres = matrix([f"topic {at}" for at in range(topics)])
    return {
        name: normalised(centres[at % topics] + 0.6 * matrix([name])[0])
        for at, name in enumerate(sorted(names))
    }


@pytest.mark.parametrize("number", [1, 2, 12, 13, 100, 500])
def test_every_item_is_in_exactly_one_cluster(number):
    """None too large; none of a single member, unless there is one alone."""
    items = vectors(texts(number))
    clusters = pivots.clustered(items, [], 12)
    assert sorted(name for each in clusters for name in each.members) == sorted(items)
    assert all(len(each.members) <= 12 for each in clusters)
    assert number == 1 or all(len(each.members) >= 2 for each in clusters)


def test_the_order_of_items_decides_nothing_and_nothing_changed_changes_nothing():
    """The same clusters from any order, and again from what was stored."""
    items = vectors(texts(100))
    first = pivots.clustered(items, [], 12)
    shuffled = dict(sorted(items.items(), key=lambda item: hash(item[0])))
    assert pivots.clustered(shuffled, [], 12) == first
    assert pivots.clustered(shuffled, first, 12) == first


def test_identical_items_are_divided_all_the_same():
    """Vectors that say nothing (zeros, or all the same) still give clusters of the right size."""
    items = {name: np.zeros(8, dtype=np.float32) for name in texts(50)}
    clusters = pivots.clustered(items, [], 12)
    assert all(2 <= len(each.members) <= 12 for each in clusters)
    assert pivots.clustered(items, clusters, 12) == clusters


def test_an_edit_changes_the_clusters_that_it_touches():
    """Fifty times an item is added, replaced or removed: few clusters differ, and they stay tight."""
    rng = random.Random(3)
    items = vectors(texts(100))
    stored = pivots.clustered(items, [], 12)
    changed = []
    for step in range(50):
        before = {each.members for each in stored}
        if rng.random() < 0.7:
            del items[rng.choice(sorted(items))]
        if rng.random() < 0.8:
            items |= vectors([f"new {step}", f"other {step}"][:1], topics=1 + rng.randrange(6))
        stored = pivots.clustered(items, stored, 12)
        changed.append(len({each.members for each in stored} - before))
    fresh = pivots.clustered(items, [], 12)
    assert sum(changed) / 50 <= 2.5
    assert cohesion(stored, items) >= 0.95 * cohesion(fresh, items)


def cohesion(clusters, items):
    """The mean cosine of items with the mean of their cluster."""
    means = {
        name: float(items[name] @ normalised(np.mean([items[one] for one in each.members], axis=0)))
        for each in clusters
        for name in each.members
    }
    return sum(means.values()) / len(means)
