"""Applications whose tasks are guarded, on each database."""

from collections.abc import Iterator

import pytest

from tests.guard.application import GuardedApp


@pytest.fixture
def application(database_url: str) -> Iterator[GuardedApp]:
    """An application on each database."""
    created = GuardedApp(database_url)
    yield created
    created.close()


@pytest.fixture
def on_sqlite(sqlite_url: str) -> Iterator[GuardedApp]:
    """An application on SQLite, for what does not depend on the database."""
    created = GuardedApp(sqlite_url)
    yield created
    created.close()
