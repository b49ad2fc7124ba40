"""An installation on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.install import ApiInstall, Client


@pytest.fixture
def install(database_url: str, tmp_path: Path) -> Iterator[ApiInstall]:
    installation = ApiInstall(database_url, tmp_path / "data")
    yield installation
    installation.close()


@pytest.fixture
def client(install: ApiInstall) -> Client:
    """Somebody on this machine, while there are no keys."""
    return install.client
