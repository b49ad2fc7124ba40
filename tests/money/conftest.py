"""Houses of the API, and of indexing with a metering provider, for stories about money."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.documents.parse.parser import Parser
from holdfast.testing.meter import Meter
from tests.api.install import ApiInstall, Client


@pytest.fixture
def install(database_url: str, tmp_path: Path, meter: Meter) -> Iterator[ApiInstall]:
    """An API whose documents are embedded by a provider that charges."""
    installation = priced(database_url, tmp_path, meter)
    yield installation
    installation.close()


@pytest.fixture
def small(sqlite_url: str, tmp_path: Path, meter: Meter) -> Iterator[ApiInstall]:
    """The same on the embedded database alone, with low limits per key."""
    installation = priced(sqlite_url, tmp_path, meter, api_rate=5.0, api_concurrency=2, api_listeners=1)
    yield installation
    installation.close()


def priced(url: str, folder: Path, meter: Meter, **more: object) -> ApiInstall:
    return ApiInstall(
        url,
        folder / "data",
        embedding_provider="openai",
        embedding_base_url=meter.base_url,
        **{"embedding_model": "text-embedding-3-small"} | more,
    )


@pytest.fixture
def client(install: ApiInstall) -> Client:
    return install.client


@pytest.fixture
def parser() -> Iterator[Parser]:
    created = Parser()
    yield created
    created.close()
