"""The pytest plugin: fixtures for tests of guarded tasks. Nothing is imported before a test uses one."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holdfast import Guard
    from holdfast.testing import GuardTester, Meter


@pytest.fixture(scope="session")
def _holdfast_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the tables, to be copied."""
    from holdfast.store.base import migrate  # noqa: PLC0415 - see the module's docstring

    path = tmp_path_factory.mktemp("holdfast") / "template.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def holdfast_database(_holdfast_template: Path, tmp_path: Path) -> str:
    """The URL of a fresh SQLite file with the tables of Holdfast."""
    path = tmp_path / "holdfast-test.db"
    shutil.copyfile(_holdfast_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def guard_tester(request: pytest.FixtureRequest) -> Iterator["Callable[..., GuardTester]"]:
    """`guard_tester(guard)`: the tasks of the guard run in this process, on a database of the test.

    `guard_tester(guard, database=url)` uses another one; `database=None` that of the guard itself.
    """
    from holdfast.testing.guarded import GuardTester  # noqa: PLC0415

    testers: list[GuardTester] = []

    def tester(guard: "Guard", database: str | None = "") -> GuardTester:
        url = request.getfixturevalue("holdfast_database") if database == "" else database
        testers.append(GuardTester(guard, url))
        return testers[-1]

    yield tester
    for each in testers:
        each.close()


@pytest.fixture
def holdfast_meter() -> Iterator["Meter"]:
    """A server that stands in for a paid provider and counts what it charged."""
    from holdfast.testing.meter import Meter  # noqa: PLC0415

    with Meter() as running:
        yield running
