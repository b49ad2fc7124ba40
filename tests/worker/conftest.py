"""Workers on real brokers. Each test has an installation of its own and leaves no process behind."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import cli
from holdfast.chaos.brokers import RabbitBroker, RedisBroker
from tests.worker.install import WorkerInstall
from tests.worker.programs import NURSERY

SORTS = ("embedded", "redis", "rabbitmq")


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


@pytest.fixture
def on_postgresql(postgresql_url: str, tmp_path: Path) -> Iterator[WorkerInstall]:
    """PostgreSQL and the embedded broker."""
    install = WorkerInstall(tmp_path, postgresql_url)
    yield install
    install.clear()


@pytest.fixture(scope="module")
def shared(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerInstall]:
    """SQLite and the embedded broker, for all tests of a file."""
    folder = tmp_path_factory.mktemp("shared")
    shutil.copyfile(sqlite_template, folder / "holdfast.db")
    install = WorkerInstall(folder, f"sqlite:///{folder}/holdfast.db")
    yield install
    install.clear()


@pytest.fixture(scope="module")
def redis_broker(require: Callable[[str], str]) -> Iterator[RedisBroker]:
    """A Redis database that no other test uses meanwhile."""
    created = RedisBroker(require("redis"), own=False)
    yield created
    created.close()


@pytest.fixture(scope="module")
def rabbit_broker(require: Callable[[str], str], services: dict[str, Any]) -> Iterator[RabbitBroker]:
    """A virtual host that no other test uses."""
    created = RabbitBroker(require("rabbitmq"), services["rabbitmq"]["management"], own=False)
    yield created
    created.close()


@pytest.fixture(params=SORTS)
def broker_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty broker of each sort."""
    if request.param == "embedded":
        return f"filesystem://{tmp_path}/broker"
    result = request.getfixturevalue("redis_broker" if request.param == "redis" else "rabbit_broker")
    result.flush()
    return result.url


@pytest.fixture
def everywhere(sqlite_url: str, tmp_path: Path, broker_url: str) -> Iterator[WorkerInstall]:
    """SQLite and a broker of each sort."""
    install = WorkerInstall(tmp_path, sqlite_url, broker_url)
    yield install
    install.clear()


@pytest.fixture
def holdfast(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """`holdfast("status", broker_url=…)` runs a command here; answers exit code, output and complaint."""

    def call(*words: str, **settings: str) -> tuple[int, str, str]:
        for name, value in settings.items():
            monkeypatch.setenv(f"HOLDFAST_{name.upper()}", str(value))
        monkeypatch.setattr(sys, "argv", ["holdfast", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return call
