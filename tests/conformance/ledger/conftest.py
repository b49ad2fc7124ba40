"""A till at each sort of provider, on each database."""

import contextlib

import pytest

from holdfast.testing.meter import Meter
from tests.conformance.ledger.metered_ledger import MeteredLedger


@pytest.fixture
def unkeyed(world):
    """A provider that knows no idempotency keys: a resend may be charged again."""
    with Meter() as meter, contextlib.ExitStack() as stack:
        yield MeteredLedger(world, meter, stack)


@pytest.fixture
def keyed(world):
    """A provider that honours idempotency keys: a resend is free."""
    with Meter(honour_keys=True) as meter, contextlib.ExitStack() as stack:
        yield MeteredLedger(world, meter, stack)


@pytest.fixture(params=["keyed", "unkeyed", "on_board"])
def till(request, world):
    """Any provider: what is told with it holds for all. One on board is intended and marked sent at once."""
    with Meter(honour_keys=request.param != "unkeyed") as meter, contextlib.ExitStack() as stack:
        yield MeteredLedger(world, meter, stack, in_process=request.param == "on_board")


@pytest.fixture(params=["keyed", "unkeyed"])
def afar(request, world):
    """A provider over a network: an order is intended before it is sent, and may be asked to wait."""
    with Meter(honour_keys=request.param == "keyed") as meter, contextlib.ExitStack() as stack:
        yield MeteredLedger(world, meter, stack)


@pytest.fixture
def on_board(world):
    """A provider in this process, as far as the ledger can tell: intended and marked sent at once."""
    with Meter(honour_keys=True) as meter, contextlib.ExitStack() as stack:
        yield MeteredLedger(world, meter, stack, in_process=True)
