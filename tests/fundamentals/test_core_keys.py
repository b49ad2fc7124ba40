"""Two paid inputs have one key if and only if they are the same input."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.core import keys
from holdfast.core.errors import BadRequestError

TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
PARAMS = st.dictionaries(TEXT, JSON, max_size=3)
FIELDS = ["tenant", "provider", "endpoint", "model", "text"]
CALL = st.fixed_dictionaries(dict.fromkeys(FIELDS, TEXT) | {"params": PARAMS})
SAMPLE = {"tenant": "t", "provider": "p", "endpoint": "e", "model": "m", "text": "x", "params": {"n": 1}}


@pytest.mark.g5
@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=4))
def test_moving_a_field_boundary_changes_the_digest(one, two):
    """("ab", "c") and ("a", "bc") and ("abc",) are different inputs, whatever the letters."""
    assert (keys.digest(*one) == keys.digest(*two)) == (one == two)


@pytest.mark.g5
@given(st.text(min_size=1, max_size=12), st.data())
def test_one_text_cut_in_two_places_is_two_inputs(text, data):
    """The same letters in the same order, cut elsewhere, never collide."""
    here, there = (data.draw(st.integers(0, len(text))) for _ in range(2))
    assume(here != there)
    assert keys.digest(text[:here], text[here:]) != keys.digest(text[:there], text[there:])


@pytest.mark.g5
@given(CALL, CALL)
def test_calls_share_a_key_only_if_they_are_equal(one, two):
    """Equal in every field, parameters compared as JSON: exactly then it is one paid input."""
    same = all(one[name] == two[name] for name in FIELDS) and keys.canonical(one["params"]) == keys.canonical(
        two["params"]
    )
    assert (keys.call_key(**one) == keys.call_key(**two)) == same


@pytest.mark.g5
@pytest.mark.parametrize("field", [*FIELDS, "params"])
def test_every_field_matters(field):
    """Above all the tenant: B must not learn, from a call that costs nothing, what A has asked."""
    changed = SAMPLE | {field: {"n": 2} if field == "params" else "other"}
    assert keys.call_key(**changed) != keys.call_key(**SAMPLE)


def test_the_key_of_a_known_input_never_changes():
    """A new spelling of keys would make everybody pay again: this one may change only with KEY_VERSION."""
    assert keys.call_key(**SAMPLE) == "862691cf10cf439f3eda1a96af9a298804b290b40ff0f6d402c8027017b574b9"


@given(PARAMS)
def test_the_canonical_spelling_is_one_and_can_be_read_back(params):
    """The order in which a mapping was built does not show, and nothing is lost."""
    spelled = keys.canonical(params)
    assert json.loads(spelled) == params
    assert keys.canonical(dict(reversed(params.items()))) == spelled
    assert keys.canonical(json.loads(spelled)) == spelled


def test_the_canonical_spelling_is_short_and_sorted():
    """No spaces, sorted keys, letters as they are."""
    assert keys.canonical({"b": [1, 2.5, None], "a": {"ü": True}}) == '{"a":{"ü":true},"b":[1,2.5,null]}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"raw", object(), {"a": 1, 2: "b"}])
def test_what_has_no_single_spelling_is_refused(value):
    """NaN, sets, bytes, objects and keys of mixed sorts have no one JSON spelling."""
    with pytest.raises(BadRequestError) as caught:
        keys.canonical({"value": value} if not isinstance(value, dict) else value)
    assert caught.value.code == "not_json"


def test_text_that_is_not_unicode_still_has_a_digest():
    """A lone surrogate, as a broken file name may hold one, is digested and not mistaken for another."""
    assert keys.digest("\ud800") != keys.digest("\ud801")


def test_a_digest_is_64_hex_digits():
    """256 bits: a collision would hand one input's result to another."""
    assert len(keys.digest()) == 64
    assert set(keys.digest("a")) <= set("0123456789abcdef")
