"""A till at each sort of provider, on each database."""

import contextlib

import pytest

from holdfast.testing.meter import Meter
from tests.conformance.ledger.till import Till


@pytest.fixture
def unkeyed(world):
    """A provider that knows no idempotency keys: a resend may be charged again."""
    with Meter() as meter, contextlib.ExitStack() as stack:
        yield Till(world, meter, stack)


@pytest.fixture
def keyed(world):
    """A provider that honours idempotency keys: a resend is free."""
    with Meter(honour_keys=True) as meter, contextlib.ExitStack() as stack:
        yield Till(world, meter, stack)


@pytest.fixture(params=["keyed", "unkeyed"])
def till(request, world):
    """Either provider: what is told with it holds for both."""
    with Meter(honour_keys=request.param == "keyed") as meter, contextlib.ExitStack() as stack:
        yield Till(world, meter, stack)
