"""What a request must look like, and what the records answer about themselves."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import records
from holdfast.core.errors import BadRequestError
from holdfast.core.records import Ask, RequestResult, Spent
from holdfast.core.states import Disposition, Lane

ASK = Ask(kind="index", subject="document:42")


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"kind": "a" * 40},
        {"kind": "follow_up-2"},
        {"subject": "webhook:a/b:C@d+e.f_g-h"},
        {"subject": "x:" + "y" * 200},
        {"tenant": "A.b_c-9"},
        {"tenant": "t" * 64},
        {"lane": "interactive"},
        {"lane": Lane.FOLLOW_UP},
        {"priority": 0},
        {"priority": 9},
        {"options": {"x": "y" * (records.MOST_OPTIONS - 8)}},
    ],
)
def test_a_well_formed_ask_is_answered_with_itself(change):
    """At the edge of each form, still inside."""
    ask = dataclasses.replace(ASK, **change)
    assert ask.checked() is ask


@pytest.mark.g6
@pytest.mark.parametrize(
    ("change", "code"),
    [
        *(({"kind": kind}, "bad_kind") for kind in ("", "Index", "1st", "a b", "a" * 41, "index\n", None, 7)),
        *(
            ({"subject": subject}, "bad_subject")
            for subject in (
                "",
                "document",
                "document:",
                ":42",
                "Doc:1",
                "d:/x",
                "d:a b",
                "x:" + "y" * 201,
                "d:1\n",
            )
        ),
        *(({"tenant": tenant}, "bad_tenant") for tenant in ("", ".a", "a/b", "t" * 65, "a\n", None)),
        *(({"lane": lane}, "bad_lane") for lane in ("", "fast", "BULK", None)),
        *(({"priority": priority}, "bad_priority") for priority in (-1, 10, True, 5.0, "5", None)),
        ({"options": {"x": "y" * records.MOST_OPTIONS}}, "options_too_large"),
        ({"options": {"x": "ü" * (records.MOST_OPTIONS // 2)}}, "options_too_large"),
        ({"options": {"x": {1, 2}}}, "not_json"),
        ({"options": {"x": float("nan")}}, "not_json"),
    ],
)
def test_each_malformed_part_is_refused_with_its_own_code(change, code):
    """The code says which part, the message what it should look like."""
    with pytest.raises(BadRequestError) as caught:
        dataclasses.replace(ASK, **change).checked()
    assert caught.value.code == code
    assert "; " in caught.value.message


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=4))
def test_a_fingerprint_does_not_show_the_order_of_options(options):
    """The same content and options are the same work, however the mapping was built."""
    backwards = dict(reversed(options.items()))
    one, two = (dataclasses.replace(ASK, options=each) for each in (options, backwards))
    assert one.fingerprint == two.fingerprint


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"content": "b"}, False),
        ({"options": {"a": 1}}, False),
        ({"pipeline": "p2"}, False),
        ({"priority": 0}, True),
        ({"lane": Lane.INTERACTIVE}, True),
        ({"force": True}, True),
        ({"actor": "somebody"}, True),
        ({"collection": "c"}, True),
    ],
)
def test_a_fingerprint_covers_what_would_be_done_and_nothing_else(change, same):
    """Content, options and pipeline; not who asks, how urgently or from where."""
    assert (dataclasses.replace(ASK, **change).fingerprint == ASK.fingerprint) is same


@pytest.mark.g1
@pytest.mark.parametrize("disposition", Disposition)
def test_three_dispositions_make_a_generation(disposition):
    """`created` is the same as "there is a new generation"."""
    answer = RequestResult(disposition, "", 1, "run", 1, None)
    assert answer.created is (disposition in {"accepted", "superseding", "takeover"})


def test_what_was_spent_adds_up_field_by_field():
    """Nothing is mixed up in the sum."""
    assert Spent(1, 2, 3, 4, 5) + Spent(10, 20, 30, 40, 50) == Spent(11, 22, 33, 44, 55)
