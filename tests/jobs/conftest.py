"""An installation on each database, with a meter for a model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.testing.meter import Meter
from tests.jobs.install import Author, JobsInstall


@pytest.fixture
def author() -> Author:
    return Author()


@pytest.fixture
def meter(author: Author) -> Iterator[Meter]:
    with Meter(chat=author) as running:
        yield running


@pytest.fixture
def install(database_url: str, tmp_path: Path, meter: Meter, author: Author) -> Iterator[JobsInstall]:
    installation = JobsInstall(database_url, tmp_path / "data", meter, author)
    yield installation
    installation.close()


@pytest.fixture
def small(sqlite_url: str, tmp_path: Path, meter: Meter, author: Author) -> Iterator[JobsInstall]:
    """An installation for what no database decides."""
    installation = JobsInstall(sqlite_url, tmp_path / "data", meter, author)
    yield installation
    installation.close()
