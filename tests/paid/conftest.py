"""Applications with paid calls, on each database."""

from collections.abc import Iterator

import pytest

from holdfast.testing.meter import Meter
from tests.paid.application import PayingApp


@pytest.fixture
def application(database_url: str) -> Iterator[PayingApp]:
    """An application on each database."""
    created = PayingApp(database_url)
    yield created
    created.close()


@pytest.fixture
def on_sqlite(sqlite_url: str) -> Iterator[PayingApp]:
    """An application on SQLite, for what does not depend on the database."""
    created = PayingApp(sqlite_url)
    yield created
    created.close()


@pytest.fixture
def keyed_meter() -> Iterator[Meter]:
    """A provider that charges each idempotency key once."""
    with Meter(honour_keys=True) as running:
        yield running
