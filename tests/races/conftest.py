"""The arena of a race, and the meter that keeps the bill."""

import pytest

import holdfast
from holdfast.testing.meter import Meter
from tests.races import actor
from tests.races.arena import Arena


def pytest_report_header() -> str:
    """Which copy of the source is on trial: a mutant must be the one that is run."""
    return f"holdfast: {holdfast.__file__}"


@pytest.fixture(autouse=True)
def cast():
    """No process outlives its story."""
    yield actor.CAST
    while actor.CAST:
        actor.CAST.pop().clean_up()


@pytest.fixture
def arena(database_url):
    """An arena on each dialect."""
    arena = Arena(database_url)
    yield arena
    arena.close()


@pytest.fixture
def pg_arena(postgresql_url):
    """An arena on PostgreSQL, for stories that need two writers inside their transactions at once."""
    arena = Arena(postgresql_url)
    yield arena
    arena.close()


@pytest.fixture
def keyed_meter():
    """A provider that honours idempotency keys."""
    with Meter(honour_keys=True) as meter:
        yield meter


@pytest.fixture
def unkeyed_meter():
    """A provider that has never heard of idempotency keys."""
    with Meter() as meter:
        yield meter


@pytest.fixture(params=["keyed", "unkeyed"])
def meter(request):
    """Both sorts of provider, one after the other."""
    return request.getfixturevalue(f"{request.param}_meter")
