"""Workers of an application in real processes, and what they have left in its tables."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from sqlalchemy import create_engine, text

from holdfast.store.base import dialect
from tests.guard.application import until

ROOT = Path(__file__).resolve().parents[2]


class Shop:
    """The application, its workers and a client of it in this process."""

    def __init__(self, broker: str, backend: str, database: str, folder: Path, **options: str) -> None:
        self._folder = folder
        self.environment = {
            "SHOP_BROKER": broker,
            "SHOP_BACKEND": backend,
            "SHOP_DATABASE": database,
            "SHOP_QUEUE": f"shop-{secrets.token_hex(4)}",
            **{f"SHOP_{name.upper()}": value for name, value in options.items()},
        }
        self.engine = create_engine(dialect.parse(database))
        self._workers: list[subprocess.Popen[bytes]] = []
        self.module = _fresh_module(self.environment)
        self.module.metadata.create_all(self.engine)

    def worker(self, *, processes: int = 1, pool: str = "prefork") -> subprocess.Popen[bytes]:
        """A worker was started; it takes messages when it is ready."""
        name = f"w{len(self._workers)}-{secrets.token_hex(3)}"
        command = [sys.executable, "-m", "celery", "-A", "tests.guard.shop", "worker", "-n", name]
        options = ["-c", str(processes), "--pool", pool, "--without-mingle", "--without-gossip", "-l", "INFO"]
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, *options],
                cwd=ROOT,
                env=os.environ | self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._workers.append(process)
        until(lambda: " ready." in (self._folder / f"{name}.log").read_text(errors="replace"), 60)
        return process

    def starts(self, name: str | None = None) -> list[int]:
        """The processes in which tasks were started, in order."""
        query = (
            "SELECT pid FROM shop_starts" + ("" if name is None else " WHERE name = :name") + " ORDER BY id"
        )
        with self.engine.connect() as connection:
            return [row.pid for row in connection.execute(text(query), {"name": name} if name else {})]

    def effects(self) -> dict[str, int]:
        """How often each effect took place."""
        with self.engine.connect() as connection:
            rows = connection.execute(text("SELECT name, count(*) AS times FROM shop_effects GROUP BY name"))
            return {row.name: row.times for row in rows}

    def stop(self) -> None:
        """No process is left."""
        for worker in self._workers:
            kill_all(worker)
        self.module.guard.close()
        self.module.app.close()
        self.module.engine.dispose()
        self.engine.dispose()

    def logs(self) -> str:
        """What the workers have said."""
        return "".join(path.read_text(errors="replace") for path in self._folder.glob("w*.log"))


def kill_all(worker: "subprocess.Popen[bytes]", number: int = signal.SIGKILL) -> float:
    """The worker and its pool get the signal; when that was."""
    at = time.monotonic()
    try:
        os.killpg(worker.pid, number)
    except ProcessLookupError:
        return at
    if number == signal.SIGKILL:
        worker.wait(20)
    return at


def _fresh_module(environment: Mapping[str, str]) -> ModuleType:
    """The application, imported with this environment."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        sys.modules.pop("tests.guard.shop", None)
        import tests.guard.shop as module  # noqa: PLC0415 - reads the environment

        return module
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
