"""An installation on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.install import ApiInstall, Client


@pytest.fixture
def install(database_url: str, tmp_path: Path) -> Iterator[ApiInstall]:
    installation = ApiInstall(database_url, tmp_path / "data", webhook_private=True)
    yield installation
    installation.close()


@pytest.fixture
def small(sqlite_url: str, tmp_path: Path) -> Iterator[ApiInstall]:
    """An installation for what is decided before any database is asked; its limits are low."""
    installation = ApiInstall(
        sqlite_url, tmp_path / "data", most_bytes=200_000, most_json=20_000, body_pause=1.0
    )
    yield installation
    installation.close()


@pytest.fixture
def client(install: ApiInstall) -> Client:
    """Somebody on this machine, while there are no keys."""
    return install.client
