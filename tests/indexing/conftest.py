"""Fixtures of the indexing tests: an installation on each database, and one for the commands."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.documents.parse.parser import Parser
from holdfast.testing.meter import Meter
from tests.commands import caller
from tests.indexing.install import IndexingInstall


@pytest.fixture(scope="session")
def parser() -> Iterator[Parser]:
    """One parser with its child for all stories that leave it alive."""
    running = Parser()
    yield running
    running.close()


@pytest.fixture
def meter() -> Iterator[Meter]:
    """A provider that charges, honours keys, and keeps the bill."""
    with Meter(honour_keys=True) as running:
        yield running


@pytest.fixture
def install(database_url: str, tmp_path: Path, meter: Meter, parser: Parser) -> Iterator[IndexingInstall]:
    installation = IndexingInstall(database_url, tmp_path / "data", meter, parser)
    yield installation
    installation.close()


@pytest.fixture
def installed(
    database_url: str, tmp_path: Path, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The settings of an installation that pays at the meter, in the environment of this process."""
    mine = {
        "HOLDFAST_DATA_DIR": str(tmp_path / "data"),
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_EMBEDDING_PROVIDER": "openai",
        "HOLDFAST_EMBEDDING_BASE_URL": meter.base_url,
        "HOLDFAST_EMBEDDING_API_KEY": "key",
        "HOLDFAST_EMBEDDING_KEY_RETENTION": "86400",
        "HOLDFAST_ORDER_DEADLINE": "20",
        "HOLDFAST_WORKER_CONCURRENCY": "1",
    }
    for name, value in mine.items():
        monkeypatch.setenv(name, value)
    return mine


@pytest.fixture
def holdfast(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """`holdfast("search", "x")` runs a command in this process; answers exit code, output and complaint."""
    return caller(monkeypatch, capsys)
