"""Real workers on the embedded default: SQLite, and a folder as broker."""

import pytest

from holdfast.chaos import stacks
from tests.acceptance import quick

pytestmark = pytest.mark.timeout(300)


class TestEmbedded(quick.Scenarios):
    stack = stacks.EMBEDDED


@pytest.mark.chaos
@pytest.mark.parametrize("number", quick.rest(stacks.EMBEDDED))
def test_every_scenario(number):
    """Every scenario that exists on this stack keeps every promise, in full length."""
    assert quick.story(stacks.EMBEDDED, number).lost == 0
