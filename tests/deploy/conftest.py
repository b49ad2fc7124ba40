"""Real processes, for what is delivered to watch and run them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.install import WorkerInstall
from tests.worker.programs import NURSERY


@pytest.fixture(autouse=True, scope="session")
def _nursery() -> Iterator[None]:
    yield
    NURSERY.close()


@pytest.fixture
def install(sqlite_url: str, tmp_path: Path) -> Iterator[WorkerInstall]:
    """SQLite and the embedded broker."""
    install = WorkerInstall(tmp_path, sqlite_url)
    yield install
    install.clear()
