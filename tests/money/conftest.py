"""Houses of the API, and of indexing with a metering provider, for stories about money."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.documents.parse.parser import Parser
from holdfast.testing.meter import Meter
from tests.api.house import Client
from tests.api.house import House as ApiHouse


@pytest.fixture
def house(database_url: str, tmp_path: Path, meter: Meter) -> Iterator[ApiHouse]:
    """An API whose documents are embedded by a provider that charges."""
    made = priced(database_url, tmp_path, meter)
    yield made
    made.close()


@pytest.fixture
def small(sqlite_url: str, tmp_path: Path, meter: Meter) -> Iterator[ApiHouse]:
    """The same on the embedded database alone, with low limits per key."""
    made = priced(sqlite_url, tmp_path, meter, api_rate=5.0, api_concurrency=2, api_listeners=1)
    yield made
    made.close()


def priced(url: str, folder: Path, meter: Meter, **more: object) -> ApiHouse:
    return ApiHouse(
        url,
        folder / "data",
        embedding_provider="openai",
        embedding_base_url=meter.base_url,
        **{"embedding_model": "text-embedding-3-small"} | more,
    )


@pytest.fixture
def client(house: ApiHouse) -> Client:
    return house.client


@pytest.fixture
def parser() -> Iterator[Parser]:
    made = Parser()
    yield made
    made.close()
