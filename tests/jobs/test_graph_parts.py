"""Windows, names, communities and answers: pure rules, on what is usual and on what is not."""

import json
import random

import pytest

from holdfast.core.errors import WorkError
from holdfast.kinds import (
    communities,
    graph_answers,
    graph_descriptions,
    graph_layout,
    graph_names,
    graph_windows,
)
from holdfast.kinds.communities import Community


def texts(count, words=100):
    chance = random.Random(7)
    return [" ".join(str(chance.random()) for _ in range(words // 4)) for _ in range(count)]


def test_windows_hold_every_chunk_once_and_an_edit_stays_in_its_window():
    """A changed chunk changes its window, an inserted one hardly more; equal chunks take linear time."""
    chunks = texts(200)
    cut = graph_windows.windows(chunks)
    assert [at for one in cut for at in range(one.first, one.last + 1)] == list(range(200))
    assert len(cut) <= 0.3 * len(chunks) * 1.5
    known = {one.text for one in cut}
    edited = [*chunks[:90], f"{chunks[90]} and more", *chunks[91:]]
    assert sum(one.text not in known for one in graph_windows.windows(edited)) == 1
    inserted = [*chunks[:90], "something new " * 40, *chunks[90:]]
    assert sum(one.text not in known for one in graph_windows.windows(inserted)) <= 3
    assert len(graph_windows.windows(["the same again " * 50] * 20_000)) > 1000
    assert [one.text for one in graph_windows.windows(["word"])] == ["word"]
    assert graph_windows.windows([]) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Harbour", "harbours"),
        ("ﬁsh", "FISH"),
        ("Companies", "company"),
        ("Ann  Archer", "ann-archer"),
        ("\uff21nn", "ann"),
    ],
)
def test_spellings_of_one_name(one, other):
    """Form of letters, case, article and plural do not make another name."""
    assert graph_names.normalised(one) == graph_names.normalised(other) != ""


def test_names_that_are_asked_about_together():
    """The same first word, initials, another order; a block has no more than a model can look at."""
    names = ["ann", "ann archer", "archer ann", "world health organization", "who", "ben baker"]
    assert graph_names.blocks(names) == [
        ["ann", "ann archer"],
        ["ann archer", "archer ann"],
        ["who", "world health organization"],
    ]
    many = [f"new place {number}" for number in range(1000)]
    assert max(map(len, graph_names.blocks(many))) <= graph_names.MOST_BLOCK
    merged = graph_names.merged(["a", "ab", "abc", "d"], [["a", "ab"], ["ab", "abc"], ["d", "x"]])
    assert merged == {"a": "abc", "ab": "abc", "abc": "abc", "d": "d"}


def graph(size, seed=1):
    chance = random.Random(seed)
    items = [f"{chance.getrandbits(64):016x}" for _ in range(size)]
    edges = {}
    for at, item in enumerate(items):
        for _ in range(3):
            other = items[
                chance.randrange(size)
                if chance.random() < 0.1
                else (at // 25 * 25 + chance.randrange(25)) % size
            ]
            if item != other:
                edges[min(item, other), max(item, other)] = float(chance.randint(1, 3))
    return items, edges


def stored(listed):
    levels = {}
    for one in listed:
        for member in one.members:
            levels.setdefault(one.level, {})[member] = one.name
    return levels


@pytest.mark.parametrize("size", [1, 2, 11, 60, 700])
def test_communities_hold_everything_once_and_stay(size):
    """Every item in one community of level 1, none over ten, and the next run finds the same."""
    items, edges = graph(size)
    listed = communities.communities(items, edges, {})
    assert sorted(member for one in listed if one.level == 1 for member in one.members) == sorted(items)
    assert max(len(one.members) for one in listed) <= communities.MOST
    upper = [member for one in listed if one.level > 1 for member in one.members]
    assert len(upper) == len(set(upper))
    assert communities.communities(reversed(items), edges, stored(listed)) == listed
    places = graph_layout.positions(listed)
    assert set(places) == {*items, *(one.name for one in listed)}
    assert all(0 <= number <= 1 for position in places.values() for number in position)


@pytest.mark.parametrize("shape", ["star", "clique", "chain", "nothing"])
def test_communities_of_extreme_graphs_stay(shape):
    """One that everything is connected to, all with all, a chain, and no edge at all."""
    items = [f"{number:03d}" for number in range(64)]
    edges = {
        "star": {("000", other): 1.0 for other in items[1:]},
        "clique": {(one, other): 1.0 for one in items for other in items if one < other},
        "chain": {(items[at], items[at + 1]): 1.0 for at in range(63)},
        "nothing": {},
    }[shape]
    listed = communities.communities(items, edges, {})
    assert max(len(one.members) for one in listed) <= communities.MOST
    assert communities.communities(items, edges, stored(listed)) == listed


def test_a_new_entity_changes_the_community_that_it_joins():
    """All others are what they were, and what was left alone by a deletion may join another."""
    items, edges = graph(400)
    before = communities.communities(items, edges, {})
    edges = {**edges, ("new", items[7]): 2.0}
    after = communities.communities([*items, "new"], edges, stored(before))
    old = {one.members for one in before if one.level == 1}
    assert sum(one.members not in old for one in after if one.level == 1) <= 2
    assert {one.name for one in before if one.level > 2} == {one.name for one in after if one.level > 2}


@pytest.mark.long
def test_twenty_thousand_entities():
    """The community step takes seconds."""
    items, edges = graph(20_000)
    listed = communities.communities(items, edges, {})
    assert sum(len(one.members) for one in listed if one.level == 1) == 20_000
    homes = {member: one.name for one in listed if one.level == 1 for member in one.members}
    assert communities.modularity(homes, edges) > 0.3
    assert isinstance(listed[0], Community)


def answer(said, reason="stop"):
    content = said if isinstance(said, str) else json.dumps(said)
    return json.dumps({"content": content, "finish_reason": reason}).encode()


def test_answers_are_read_as_far_as_they_are_whole():
    """In a fence, among prose, cut off, with wrong types, repeated without end; nothing else is taken."""
    ann = {"name": "Ann", "type": 7, "description": ["?"]}
    fenced = f"Here:\n```json\n{json.dumps({'entities': [ann, 'Ben', None], 'relations': {}})}\n```"
    assert [one.name for one in graph_answers.extraction(answer(fenced)).entities] == ["Ann"]
    cut = (
        '{"entities": [{"name": "Ann"}, {"name": "Ben"}], "relations": [{"source": "Ann", "target": "Ben"}, '
    )
    read = graph_answers.extraction(answer(cut, "length"))
    assert ([one.name for one in read.entities], len(read.relations)) == (["Ann", "Ben"], 1)
    endless = '{"entities": [' + '{"name": "Ann"}, ' * 5000
    assert len(graph_answers.extraction(answer(endless)).entities) == 1
    assert not graph_answers.extraction(answer({"entities": [], "relations": []}))
    for wrong, code in (
        ("No.", "bad_answer"),
        ("[1, 2]", "bad_answer"),
        ('{"entities": [{"na', "answer_cut"),
    ):
        with pytest.raises(WorkError) as error:
            graph_answers.extraction(answer(wrong, "length" if code == "answer_cut" else "stop"))
        assert error.value.code == code


def test_a_new_text_changes_one_group_of_a_description():
    """Groups are small, hold everything, and depend on the texts alone."""
    fragments = [f"It was seen in the year {number}." for number in range(60)]
    groups = graph_descriptions.groups(fragments)
    assert sorted(text for group in groups for text in group) == sorted(fragments)
    assert 2 <= max(map(len, groups)) <= graph_descriptions.MOST_GROUP
    assert graph_descriptions.groups(fragments[::-1]) == groups
    more = graph_descriptions.groups([*fragments, "It was sold."])
    assert sum(group not in groups for group in more) <= 2
