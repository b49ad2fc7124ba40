"""An installation on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.looks.install import SourcesInstall


@pytest.fixture
def install(database_url: str, tmp_path: Path) -> Iterator[SourcesInstall]:
    installation = SourcesInstall(database_url, tmp_path / "data", tmp_path / "folder")
    yield installation
    installation.close()


@pytest.fixture
def small(sqlite_url: str, tmp_path: Path) -> Iterator[SourcesInstall]:
    """For what no database decides."""
    installation = SourcesInstall(sqlite_url, tmp_path / "data", tmp_path / "folder")
    yield installation
    installation.close()
