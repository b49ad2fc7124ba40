"""A house whose collections have actions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.house import Client, House
from tests.webhooks.receiver import Receiver

ANALYSER = "tests.actions.analysers:lengths"


def _house(url: str, folder: Path) -> House:
    return House(url, folder, webhook_private=True, analysers=(ANALYSER, "tests.actions.analysers:bad"))


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    made = _house(database_url, tmp_path / "data")
    yield made
    made.close()


@pytest.fixture
def client(house: House) -> Client:
    return house.client


@pytest.fixture
def small(sqlite_url: str, tmp_path: Path) -> Iterator[House]:
    """A house for what does not depend on the database."""
    made = _house(sqlite_url, tmp_path / "data")
    yield made
    made.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made
