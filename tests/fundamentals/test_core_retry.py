"""When to try again."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.retry import Backoff, provider_delay

BACKOFF = Backoff(first=0.5, factor=2.0, most=60.0)
JITTER = st.floats(0.0, 1.0, exclude_max=True)


@pytest.mark.parametrize(
    ("attempt", "low", "high"),
    [(-1, 0.25, 0.5), (0, 0.25, 0.5), (1, 0.5, 1.0), (3, 2.0, 4.0), (7, 30.0, 60.0), (10**9, 30.0, 60.0)],
)
def test_delays_double_up_to_the_most_and_are_spread_over_half(attempt, low, high):
    """Without jitter half the delay, with all of it the whole; no attempt count is too large."""
    assert BACKOFF.delay(attempt, 0.0) == low
    assert BACKOFF.delay(attempt, 1.0) == high


@given(st.integers(0, 200), JITTER)
def test_a_delay_is_never_zero_and_never_over_the_most(attempt, jitter):
    """The crowd is spread, and nobody hammers."""
    assert 0 < BACKOFF.delay(attempt, jitter) <= 60.0


@pytest.mark.parametrize(
    ("retry_after", "delay"),
    [
        (None, 0.5),
        (0.0, 0.5),
        (-5.0, 0.5),
        (0.1, 0.5),
        (20.0, 20.0),
        (3600.0, 3600.0),
        (1e9, 3600.0),
        (math.nan, 0.5),
    ],
)
def test_the_provider_s_word_is_a_minimum_of_at_most_an_hour(retry_after, delay):
    """Too short a word does not shorten our own delay; an absurd one does not stop us for a day."""
    assert provider_delay(BACKOFF, 0, 1.0, retry_after) == delay
