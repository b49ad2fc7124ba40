"""Keys of calls: whatever the arguments contain, a subject is well formed, and no two are mixed up."""

import inspect

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.records import SUBJECT, TASK_NAME
from holdfast.guard import subjects


def _subject(template, **values):
    signature = inspect.signature(eval(f"lambda {', '.join(values)}: None"))
    return subjects.KeyTemplate(template, signature).subject((), values)


@given(st.text(max_size=300), st.text(max_size=300))
def test_different_values_make_different_subjects(one, other):
    """Also values that contain what the template separates them by."""
    first, second = _subject("a:{x}:{y}", x=one, y=other), _subject("a:{x}:{y}", x=other, y=one)
    assert SUBJECT.fullmatch(first)
    assert (first == second) == (one == other)


@given(st.text(max_size=10))
def test_a_value_and_its_escaped_form_are_two(value):
    """What a value is written as cannot be passed as another value."""
    subject = _subject("a:{x}", x=value)
    assert _subject("a:{x}", x=subject.removeprefix("a:")) == subject or value != subject.removeprefix("a:")
    escaped = subject.removeprefix("a:")
    assert escaped == value or _subject("a:{x}", x=escaped) != subject


@given(st.text(min_size=1, max_size=300))
def test_every_name_of_a_task_is_a_kind(name):
    """Two names are two kinds, and none is that of a kind of Holdfast."""
    kind = subjects.kind_of(name)
    assert TASK_NAME.fullmatch(kind)
    assert subjects.kind_of(f"{name}x") != kind


def test_it_does_not_matter_how_an_argument_is_passed():
    """By position, by name or by its default: the same call."""

    def build(report_id, pages=1): ...

    calls = [((7,), {}), ((), {"report_id": 7}), ((7, 1), {}), ((7,), {"pages": 1})]
    assert len({subjects.fingerprint(build, args, kwargs) for args, kwargs in calls}) == 1
    assert subjects.fingerprint(build, (7, 2), {}) != subjects.fingerprint(build, (7,), {})
