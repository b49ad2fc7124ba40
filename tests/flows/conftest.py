"""An installation on each database, whose provider is a meter, with functions of its user."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.meter import Meter
from tests.commands import caller
from tests.flows.install import MODULE, FlowsInstall
from tests.jobs.install import Author


@pytest.fixture
def author() -> Author:
    return Author()


@pytest.fixture
def meter(author: Author) -> Iterator[Meter]:
    with Meter(chat=author, honour_keys=True) as running:
        yield running


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of the user's functions can be imported."""
    (tmp_path / "harbour_steps.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])


@pytest.fixture
def install(
    database_url: str, tmp_path: Path, meter: Meter, author: Author, functions: None
) -> Iterator[FlowsInstall]:
    installation = FlowsInstall(database_url, tmp_path / "data", meter, author)
    yield installation
    installation.close()


@pytest.fixture
def small(
    sqlite_url: str, tmp_path: Path, meter: Meter, author: Author, functions: None
) -> Iterator[FlowsInstall]:
    """An installation for what no database decides."""
    installation = FlowsInstall(sqlite_url, tmp_path / "data", meter, author)
    yield installation
    installation.close()


@pytest.fixture
def holdfast(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """`holdfast("flow", "list")` runs a command in this process; answers exit code, output and complaint."""
    return caller(monkeypatch, capsys)
