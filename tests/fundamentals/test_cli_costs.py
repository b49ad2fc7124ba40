"""What the command line asks before it spends."""

import contextlib
import io
import os
import sys

import pytest
from rich.console import Console

from holdfast.cli import costs
from holdfast.ledger.estimates import Forecast
from holdfast.service.estimates import Estimate

FREE = Forecast(known_calls=2)
PRICED = Forecast(calls=1, cost=5)
UNPRICED = Forecast(calls=1, unpriced_calls=1)


@pytest.fixture
def agreed(monkeypatch):
    """`agreed(forecast, "y")`: whether the work may begin after this answer at a terminal, and the output."""
    with contextlib.ExitStack() as undo:

        def ask(forecast, answer, *, yes=False, terminal=True):
            ours, theirs = os.openpty()
            undo.callback(os.close, ours)
            os.write(ours, f"{answer}\n".encode())
            monkeypatch.setattr(sys, "stdin", undo.enter_context(os.fdopen(theirs)))
            console = Console(file=io.StringIO(), force_terminal=terminal)
            estimate = Estimate(1, 0, forecast, "a-model", "table", exact=True, estimated_from="texts")
            may_begin = costs.agreed(console, estimate, "the job", yes=yes)
            return may_begin, console.file.getvalue()

        yield ask


@pytest.mark.parametrize("forecast", [PRICED, UNPRICED])
@pytest.mark.parametrize(("answer", "may_begin"), [("y", True), ("yes", True), ("n", False), ("", False)])
def test_what_costs_or_has_no_price_begins_after_a_yes(agreed, forecast, answer, may_begin):
    """No price is not a price of nothing: a person is asked as well."""
    begins, shown = agreed(forecast, answer)
    assert begins is may_begin
    assert ("unpriced" in shown) is bool(forecast.unpriced_calls)
    assert "Continue?" in shown


@pytest.mark.parametrize("how", [{"yes": True}, {"terminal": False}])
def test_nobody_is_asked_who_said_yes_or_is_not_there(agreed, how):
    """`--yes`, or a script."""
    assert agreed(UNPRICED, "n", **how)[0]


def test_what_costs_nothing_begins_at_once(agreed):
    """All of it was paid before."""
    begins, shown = agreed(FREE, "n")
    assert begins
    assert "Continue?" not in shown
