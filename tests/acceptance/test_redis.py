"""Real workers on Redis and PostgreSQL."""

import pytest

from holdfast.chaos import stacks
from tests.acceptance import quick

pytestmark = pytest.mark.timeout(300)


class TestRedis(quick.Scenarios):
    stack = stacks.REDIS


@pytest.mark.chaos
@pytest.mark.parametrize("number", quick.rest(stacks.REDIS))
def test_every_scenario(number):
    """Every scenario that exists on this stack keeps every promise, in full length."""
    assert quick.story(stacks.REDIS, number).lost == 0
