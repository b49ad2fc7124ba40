"""An installation whose gateway leads to the meter, on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.testing.meter import Meter
from tests.gateway.install import GatewayInstall


@pytest.fixture
def install(database_url: str, tmp_path: Path, meter: Meter) -> Iterator[GatewayInstall]:
    """On each database."""
    installation = GatewayInstall(database_url, tmp_path / "data", meter)
    yield installation
    meter.release()
    installation.close()


@pytest.fixture
def quick(sqlite_url: str, tmp_path: Path, meter: Meter) -> Iterator[GatewayInstall]:
    """On SQLite, for what no database decides."""
    installation = GatewayInstall(sqlite_url, tmp_path / "data", meter)
    yield installation
    meter.release()
    installation.close()
