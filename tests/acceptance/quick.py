"""The scenarios that every test run plays on each stack; `test_embedded.py` and its peers name the stack.

A seed of their own keeps them the same from run to run; `make chaos` draws another each time.
"""

import random
from collections.abc import Callable
from typing import ClassVar

import pytest

from holdfast.chaos import stacks
from holdfast.chaos.figures import Figures
from tests.acceptance.catalogue import BY_NUMBER, SCENARIOS
from tests.acceptance.servers import all_servers


def rest(stack: str) -> list[str]:
    """The numbers of the scenarios that exist on this stack, for the test that plays them all."""
    return [each.number for each in SCENARIOS if stack not in each.impossible]


class Scenarios:
    """One stack through the scenarios that are quick enough to be played every time."""

    stack: ClassVar[str]
    play: Callable[[str], Figures]

    @pytest.fixture(autouse=True)
    def _played(self, require):
        for service in stacks.NEEDED[self.stack]:
            require(service)
        self.play = lambda number: BY_NUMBER[number].run(
            all_servers(), self.stack, random.Random(number), quick=True
        )

    @pytest.mark.g1
    @pytest.mark.g6
    def test_a_hundred_requests_at_once(self):
        """Of a hundred requests of the same from eight processes one is accepted and 99 are refused."""
        assert self.play("1").ratio == "1.000"

    @pytest.mark.g4
    @pytest.mark.g5
    @pytest.mark.g7
    def test_kill_minus_nine(self):
        """Whole workers killed in the middle of an order lose nothing, and their tasks go on within 15 s."""
        figures = self.play("2")
        assert figures.recoveries
        assert figures.lost == 0

    @pytest.mark.g2
    @pytest.mark.g7
    def test_frozen_and_thawed(self):
        """A worker frozen beyond its lease and thawed writes nothing and sends only what it had begun."""
        assert self.play("3").recoveries

    @pytest.mark.g5
    def test_rolling_restart(self):
        """Three workers replaced one after another in the middle of their orders repeat no charge."""
        assert self.play("8").ratio == "1.000"

    @pytest.mark.g5
    @pytest.mark.g7
    def test_killed_while_a_relay_carries(self):
        """A worker killed with two orders open pays for nothing twice, at a provider without keys."""
        figures = self.play("16")
        assert figures.ratio == "1.000"
        assert figures.recoveries

    @pytest.mark.g1
    @pytest.mark.g3
    def test_replaced_and_cancelled(self):
        """Replaced and cancelled work makes no further paid call, and readers keep what was published."""
        assert self.play("11").ratio == "1.000"


def story(stack: str, number: str) -> Figures:
    """What the scenario measured in full length."""
    return BY_NUMBER[number].run(all_servers(), stack, random.Random(f"{stack} {number}"))
