"""An installation whose collections have actions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.install import ApiInstall, Client
from tests.webhooks.receiver import Receiver

ANALYSER = "tests.actions.analysers:lengths"


def _house(url: str, folder: Path) -> ApiInstall:
    return ApiInstall(url, folder, webhook_private=True, analysers=(ANALYSER, "tests.actions.analysers:bad"))


@pytest.fixture
def install(database_url: str, tmp_path: Path) -> Iterator[ApiInstall]:
    created = _house(database_url, tmp_path / "data")
    yield created
    created.close()


@pytest.fixture
def client(install: ApiInstall) -> Client:
    return install.client


@pytest.fixture
def small(sqlite_url: str, tmp_path: Path) -> Iterator[ApiInstall]:
    """An installation for what does not depend on the database."""
    created = _house(sqlite_url, tmp_path / "data")
    yield created
    created.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as created:
        yield created
