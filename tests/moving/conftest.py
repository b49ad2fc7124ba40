"""A house on each database."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.house import Client, House


@pytest.fixture(autouse=True)
def _no_settings_of_this_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    made = House(database_url, tmp_path / "data")
    yield made
    made.close()


@pytest.fixture
def client(house: House) -> Client:
    """Somebody on this machine, while there are no keys."""
    return house.client
