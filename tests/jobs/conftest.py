"""A house on each database, with a meter for a model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.testing.meter import Meter
from tests.jobs.house import Author, House


@pytest.fixture
def author() -> Author:
    return Author()


@pytest.fixture
def meter(author: Author) -> Iterator[Meter]:
    with Meter(chat=author) as running:
        yield running


@pytest.fixture
def house(database_url: str, tmp_path: Path, meter: Meter, author: Author) -> Iterator[House]:
    made = House(database_url, tmp_path / "data", meter, author)
    yield made
    made.close()


@pytest.fixture
def small(sqlite_url: str, tmp_path: Path, meter: Meter, author: Author) -> Iterator[House]:
    """A house for what no database decides."""
    made = House(sqlite_url, tmp_path / "data", meter, author)
    yield made
    made.close()
