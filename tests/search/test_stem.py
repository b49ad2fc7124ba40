"""Endings: what should meet meets, and what should not does not."""

from itertools import product
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.stem import keeps_prefix, stem

ENDINGS = ("ing", "ings", "ed", "eds", "ies", "ied", "ly", "eedly", "ingly", "er", "y", "'s")


@pytest.mark.parametrize(
    "family",
    [
        "index indexes indexed indexing indices",
        "connect connected connecting connection connections",
        "retry retries retried retrying",
        "queue queues queued queueing",
        "recover recovers recovered recovery",
        "deliver delivered delivery deliveries",
        "run runs running ran",
        "write writes written wrote writing",
        "child children",
        "analysis analyses analyse analyze analysing",
        "colour color colours colored",
        "organise organize organisation organizing",
        "centre center centres",
        "travel travelled traveled travelling",
        "vaccine vaccines vaccination vaccinated",
        "relate related relation relational",
        "happy happiness happily",
        "tie ties tied tying",
        "nation national nationalize",
        "hope hopes hoping hopeful hopefully",
        "fail failed failing fails",
        "size sizes sized sizing",
        "agree agreed agreeing",
        "defence defense defences",
        "die dies dying died",
    ],
)
def test_forms_of_one_word_share_a_stem(family):
    """A query in one form finds the others."""
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize(
    "strangers",
    [
        "university universe",
        "policy police",
        "organ organize",
        "general generate generic",
        "import important",
        "past paste",
        "news new",
        "hop hope",
        "bed be bee",
        "sing sin",
        "ear early",
        "on only",
        "even evening",
    ],
)
def test_strangers_are_kept_apart(strangers):
    """Rules of endings alone would drive these together."""
    words = strangers.split()
    assert len({stem(word) for word in words}) == len(words)


@pytest.mark.parametrize("word", ["", "a", "is", "x2", "日本", "naïve", "42", "élan"])
def test_what_is_no_english_word_stays_as_it_is(word):
    """Short words, numbers and other alphabets."""
    assert stem(word) == word


def test_the_first_letters_of_a_stem_are_those_of_the_word_where_it_is_said_so():
    """Every word of two letters and an ending, for short words are where the rules change most."""
    letters = [one + other for one, other in product(ascii_lowercase, repeat=2)]
    for word in (start + more + end for start in letters for more in ("", "y", "e") for end in ENDINGS):
        assert not keeps_prefix(word) or stem(word)[:2] == word[:2]


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=30))
def test_a_stem_is_never_empty_and_hardly_longer(word):
    """Whatever letters come, something is left, in small letters."""
    result = stem(word)
    assert result.isalpha()
    assert result.islower()
    assert len(result) <= len(word) + 2
