"""What things cost: whole nano-dollars, rounded up, by a table that has a version."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger.prices import DEFAULT, MILLION, NANO, Price, PriceTable, ProviderPrices, dollars, split

OWN = {"brand-new": Price(dollars(3))}
TABLE = PriceTable("2026-a", {"small": Price(dollars(0.02)), "free": Price(0)})


def test_a_million_tokens_cost_what_the_list_says():
    """Two cents for a million tokens are twenty million nano-dollars."""
    assert TABLE.cost("small", MILLION) == dollars(0.02) == 20_000_000


@pytest.mark.parametrize(("tokens", "cost"), [(0, 0), (1, 20), (3, 60)])
def test_a_single_token_is_not_free(tokens, cost):
    """The unit is small enough that the cheapest token has a price."""
    assert TABLE.cost("small", tokens) == cost


def test_fractions_are_rounded_up():
    """A bill never promises less than it will cost."""
    odd = PriceTable("odd", {"tiny": Price(1), "talker": Price(1, 3)})
    assert odd.cost("tiny", 1) == 1
    assert odd.cost("tiny", MILLION + 1) == 2
    assert odd.cost("talker", MILLION // 2, MILLION // 2) == 2


def test_an_unknown_model_has_no_price_rather_than_an_invented_one():
    """A model that the table has not heard of costs nobody knows what; a local one costs nothing by name."""
    assert TABLE.cost("brand-new", MILLION, MILLION) is None
    own = replace(TABLE, providers={"mine": ProviderPrices(free=True), "fair": ProviderPrices(OWN)})
    assert own.cost("brand-new", MILLION, provider="mine") == 0
    assert own.cost("brand-new", MILLION, provider="fair") == 3 * NANO
    assert own.cost("small", MILLION, provider="fair") == TABLE.cost("small", MILLION)
    assert TABLE.cost("free", MILLION) == DEFAULT.cost("local", MILLION) == 0


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**6), min_size=1, max_size=50))
def test_a_shared_price_adds_up_exactly(total, weights):
    """Sharing an order's price among its calls loses and invents nothing."""
    shares = split(total, weights)
    assert sum(shares) == total
    assert all(share >= 0 for share in shares)
    assert len(shares) == len(weights)


def test_equal_weights_share_alike():
    """To within one nano-dollar."""
    assert split(10, [1, 1, 1]) == [3, 3, 4]
    assert split(7, [0, 0]) == [3, 4]
