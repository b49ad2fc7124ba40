"""Servers of a scenario's own, which it may stop, start, restart and flush. The shared ones are left alone.

They are made by the modules behind `make services-up`, in a folder of the scenario, and come back on the same
port with the same data.
"""

import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

from holdfast.chaos.servers import POSTGRESQL, RABBITMQ, REDIS, Servers
from holdfast.chaos.waiting import until
from scripts.services import postgresql, rabbitmq, redis, state
from scripts.services.packages import program
from scripts.services.process import Process, identify, spawn, stop

BACK_WITHIN = 60.0


def all_servers() -> Servers:
    """The shared servers of `make services-up`, and those below for scenarios that need one to themselves."""
    known = state.read()
    shared = {name: entry for name, entry in known.items() if "url" in entry}
    started = {name: entry.get("missing", "still starting") for name, entry in known.items()}
    return Servers(
        urls={name: str(entry["url"]) for name, entry in shared.items()},
        management=str(shared.get(RABBITMQ, {}).get("management", "")),
        missing=dict.fromkeys((REDIS, RABBITMQ, POSTGRESQL), "not started: run `make services-up`") | started,
        start_broker={REDIS: Redis, RABBITMQ: RabbitMQ},
        start_database=PostgreSQL,
    )


class Redis:
    """A Redis that keeps what it was told over a restart."""

    management = ""

    def __init__(self) -> None:
        self._folder = _folder()
        self._entry = redis.start(self._folder, lambda _: None)
        self.url = self._entry["url"]

    def stop(self) -> None:
        """It is down; its data stays."""
        stop(_process(self._entry), signal.SIGTERM)

    def start(self) -> None:
        """It is up again where it was."""
        conf, log = self._folder / "redis.conf", self._folder / "server.log"
        self._entry |= _entry(spawn([program("redis-server"), str(conf)], log))
        until(lambda: redis.healthy(self._entry), BACK_WITHIN, "Redis does not come back")

    def close(self) -> None:
        """It is down and its data is gone."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class RabbitMQ:
    """A RabbitMQ that keeps its durable queues over a restart."""

    def __init__(self) -> None:
        self._folder = _folder()
        self.entry = rabbitmq.start(self._folder, lambda _: None)
        self.url = self.entry["url"]
        self.management = self.entry["management"]
        folder = Path(f"/proc/{self.entry['pid']}/environ").read_bytes().decode().split("\0")
        self._environment = dict(line.split("=", 1) for line in folder if "=" in line)

    def stop(self) -> None:
        """It is down, without a chance to put its queues in order; its data stays."""
        stop(_process(self.entry), signal.SIGKILL, patience=20)

    def start(self) -> None:
        """It is up again where it was."""
        pidfile, log = self._folder / "pid", self._folder / "log" / "stdout.log"
        pidfile.unlink(missing_ok=True)
        spawn([program("rabbitmq-server")], log, self._environment)
        until(lambda: rabbitmq.healthy(self.entry), BACK_WITHIN, "RabbitMQ does not come back")
        result = identify(int(pidfile.read_text()))
        assert result is not None
        self.entry |= _entry(result)

    def close(self) -> None:
        """It is down and its data is gone."""
        self.stop()
        stop(_process(self.entry["companion"]))
        shutil.rmtree(self._folder, ignore_errors=True)


class PostgreSQL:
    """A PostgreSQL that can be restarted, in order or as by a power cut."""

    def __init__(self) -> None:
        self._folder = _folder()
        self._entry = postgresql.start(self._folder, lambda _: None)
        self.url = self._entry["url"]

    def log(self) -> str:
        """What it has said since it was made."""
        return Path(self._entry["log"]).read_text()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """It is down; its data stays. SIGINT is a fast shutdown, SIGQUIT leaves the recovery to the start."""
        stop(_process(self._entry), how)

    def start(self) -> None:
        """It is up again where it was."""
        user = postgresql._user()
        home = postgresql._home(self._folder, user)
        programs = postgresql._reachable(postgresql._programs(), home, user)
        data, log = home / "data", home / "server.log"
        words = ["-w", "-t", "60", "-D", data, "-l", log, "-o", f"-p {self._entry['port']}", "start"]

        def started() -> bool:
            # Backends of a killed server hold its shared memory for a moment.
            postgresql._clear_stale_lock(data)
            return postgresql._as(user, [programs / "pg_ctl", *words]).returncode == 0

        until(started, BACK_WITHIN, "PostgreSQL does not come back", every=0.5)
        result = identify(int((data / "postmaster.pid").read_text().split()[0]))
        assert result is not None
        self._entry |= _entry(result)

    def close(self) -> None:
        """It is down and its data is gone."""
        self.stop()
        postgresql.remove(self._folder)
        shutil.rmtree(self._folder, ignore_errors=True)


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="holdfast-acceptance-"))
    folder.chmod(0o711)  # PostgreSQL's user passes through
    return folder


def _process(entry: dict[str, Any]) -> Process:
    return Process(entry["pid"], entry["born"])


def _entry(process: Process) -> dict[str, Any]:
    return {"pid": process.pid, "born": process.born}
