"""A house on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.house import Client, House


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    made = House(database_url, tmp_path / "data")
    yield made
    made.close()


@pytest.fixture
def client(house: House) -> Client:
    """Somebody on this machine, while there are no keys."""
    return house.client
