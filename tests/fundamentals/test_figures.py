"""Amounts, times and sizes are written one way, wherever they are shown."""

import pytest

from holdfast.service import formatting

AMOUNTS = [
    (0, "$0.00", "$0.00"),
    (740, "$0.000000740", "<$0.0001"),
    (797_000, "$0.000797", "$0.0008"),
    (50_000_000, "$0.050000", "$0.0500"),
    (1_234_567_000_000, "$1,234.57", "$1,234.57"),
]
LENGTHS = [
    (None, formatting.NOTHING),
    (0.0, "0 ms"),
    (0.0404, "40 ms"),
    (0.97, "1.0 s"),
    (9.97, "10 s"),
    (90.0, "1.5 min"),
    (36_000.0, "10 h"),
    (86_400.0, "1.0 d"),
]


@pytest.mark.parametrize(("nano", "exact", "rounded"), AMOUNTS)
def test_money_is_exact_in_tables_and_rounded_for_looking(nano, exact, rounded):
    """What is less than can be shown is said to be less, never nothing."""
    assert (formatting.money(nano), formatting.coarse(nano)) == (exact, rounded)


@pytest.mark.parametrize(("seconds", "text"), LENGTHS)
def test_a_length_of_time_has_its_largest_fitting_unit(seconds, text):
    """From milliseconds to days."""
    assert formatting.span(seconds) == text


def test_counts_and_sizes():
    """One call, two calls; bytes to gigabytes."""
    assert (formatting.count(1, "call"), formatting.count(2000, "call")) == ("1 call", "2,000 calls")
    assert [formatting.size(number) for number in (5, 2800, 241_000, 3_200_000_000)] == [
        "5 B",
        "2.8 kB",
        "241 kB",
        "3.2 GB",
    ]
