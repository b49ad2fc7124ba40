"""A browser, and an installation of real processes: API, worker, and a provider that charges."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from scripts.services import packages
from tests.api.install import ApiInstall
from tests.page.browser_user import Api, Reader
from tests.page.live_service import FLAGS, LiveService
from tests.worker.programs import NURSERY


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
        created = player.chromium.launch(executable_path=where, args=list(FLAGS))
        yield created
        created.close()


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    installation = LiveService(tmp_path_factory.mktemp("page"))
    try:
        installation.serve()
        installation.work()
        yield installation
    finally:
        installation.close()
        NURSERY.close()


@pytest.fixture
def api(stand: LiveService) -> Api:
    return Api(stand.address)


@pytest.fixture
def install(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiInstall]:
    """An API on each database, for what is asked without a browser."""
    installation = ApiInstall(database_url, tmp_path / "data", webhook_private=True)
    yield installation
    installation.close()


@pytest.fixture
def look(browser: Browser) -> Iterator[Callable[..., Reader]]:
    """`look(address)` opens a window; at the end it must have had nothing to complain about."""
    items: list[Reader] = []

    def opened(address: str, **how: Any) -> Reader:
        items.append(Reader(browser, address, **how))
        return items[-1]

    yield opened
    for each in items:
        each.close()


@pytest.fixture
def reader(look: Callable[..., Reader], stand: LiveService) -> Reader:
    """Somebody who looks at the installation."""
    return look(stand.address)
