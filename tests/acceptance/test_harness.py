"""The harness takes its servers and scenarios from whoever runs it, and says what became of each."""

import signal
import sys

import pytest

from holdfast.chaos import harness, stacks
from holdfast.chaos.catalogue import SCENARIOS, Scenario
from holdfast.chaos.expectations import ScenarioFailedError
from holdfast.chaos.figures import Figures
from holdfast.chaos.servers import Servers


@pytest.fixture(autouse=True)
def _arguments(monkeypatch):
    """No argument of pytest's own, and its signal handlers are back at the end."""
    monkeypatch.setattr(sys, "argv", ["chaos", "--seed", "1"])
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_stack_whose_servers_were_not_passed_in(capsys):
    """It starts no server itself: the stack is refused in one line that says why."""
    assert harness.main(Servers(missing={"redis": "not today"}), stack_names=(stacks.REDIS,)) == 2
    assert capsys.readouterr().err == "chaos: Redis+PostgreSQL is not to be had: NO REDIS: not today\n"


def test_a_broken_promise_does_not_hide_the_others(capsys):
    """Every scenario has its row, the broken one says so, and the exit code is 1."""

    def broken(stack, meter, rng):
        raise ScenarioFailedError("paid twice")

    def good(stack, meter, rng):
        return Figures(3, 3)

    played = [Scenario("a", "breaks", broken), Scenario("b", "holds", good)]
    assert harness.main(Servers(), played, (stacks.EMBEDDED,)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "paid twice" in lines
    assert "  a breaks  BROKEN 1/1: no figures" in lines
    assert "  b holds   1.000, lost 0, -" in lines


def test_every_scenario_has_a_number_of_its_own():
    """A row of the table is selected by its number."""
    assert len({each.number for each in SCENARIOS}) == len(SCENARIOS)
