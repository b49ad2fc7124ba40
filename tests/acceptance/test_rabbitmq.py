"""Real workers on RabbitMQ and PostgreSQL."""

import pytest

from holdfast.chaos import stacks
from tests.acceptance import quick

pytestmark = pytest.mark.timeout(300)


class TestRabbitMQ(quick.Scenarios):
    stack = stacks.RABBITMQ


@pytest.mark.chaos
@pytest.mark.parametrize("number", quick.rest(stacks.RABBITMQ))
def test_every_scenario(number):
    """Every scenario that exists on this stack keeps every promise, in full length."""
    assert quick.story(stacks.RABBITMQ, number).lost == 0
