"""A browser, and an installation of real processes: API, worker, and a provider that charges."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from holdfast.testing.meter import Meter
from scripts.services import packages
from tests.api.house import House
from tests.page.reader import Api, Reader
from tests.worker.premises import Premises
from tests.worker.programs import NURSERY, Program

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
LEASE = {"lease_ttl": "3", "lease_renew_every": "0.7", "sweep_interval": "0.3"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. While it is there an event loop runs in this thread: other files may need theirs."""
    where = packages.found("chromium")
    if where is None:
        reason = "NO CHROMIUM: run `make services-up` as root, or: apt-get install chromium"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as player:
        made = player.chromium.launch(executable_path=where, args=list(FLAGS))
        yield made
        made.close()


class Stand:
    """An installation on the embedded default, as `holdfast api` and `holdfast worker` make it."""

    def __init__(self, folder: Path) -> None:
        self.meter = Meter(honour_keys=True).start()
        self.premises = Premises(folder, f"sqlite:///{folder}/data/holdfast.db")
        provider = self.meter.base_url
        self.changes = {
            **LEASE,
            "kinds": "",
            "embedding_provider": "openai",
            "embedding_base_url": provider,
            "embedding_api_key": "test",
            "embedding_key_retention": "3600",
        }
        done = self.premises.command("migrate", **self.changes)
        assert done.returncode == 0, done.stderr
        self.port = 0
        self.api: Program | None = None
        self.worker: Program | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self) -> None:
        """The API answers; a second time, under the same address."""
        self.api = self.premises.start("api", **self.changes | {"port": str(self.port)})
        said = self.api.says(r"holdfast api: http://127\.0\.0\.1:(\d+)", 60)
        self.port = int(said[1])

    def work(self) -> None:
        """A worker is ready."""
        self.worker = self.premises.worker("--concurrency", "1", **self.changes)

    def close(self) -> None:
        self.meter.release()
        for program in self.premises.programs:
            program.clear()
        self.meter.close()


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    made = Stand(tmp_path_factory.mktemp("page"))
    try:
        made.serve()
        made.work()
        yield made
    finally:
        made.close()
        NURSERY.close()


@pytest.fixture
def api(stand: Stand) -> Api:
    return Api(stand.address)


@pytest.fixture
def house(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """An API on each database, for what is asked without a browser."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)
    made = House(database_url, tmp_path / "data")
    yield made
    made.close()


@pytest.fixture
def look(browser: Browser) -> Iterator[Callable[..., Reader]]:
    """`look(address)` opens a window; at the end it must have had nothing to complain about."""
    made: list[Reader] = []

    def opened(address: str, **how: Any) -> Reader:
        made.append(Reader(browser, address, **how))
        return made[-1]

    yield opened
    for each in made:
        each.close()


@pytest.fixture
def reader(look: Callable[..., Reader], stand: Stand) -> Reader:
    """Somebody who looks at the installation."""
    return look(stand.address)
