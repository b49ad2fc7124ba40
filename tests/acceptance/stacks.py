"""The three stacks: embedded with SQLite, Redis with PostgreSQL, RabbitMQ with PostgreSQL.

A stack is a fresh database and a fresh broker of one scenario, with the environment that points a worker at
them. Servers are those of `make services-up`; what a scenario stops or flushes is a server of its own.
"""

import contextlib
import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from scripts.services import state
from tests.acceptance import servers
from tests.acceptance.brokers import Broker, FolderBroker, RabbitBroker, RedisBroker
from tests.statements.recording import python_path

ROOT = Path(__file__).resolve().parents[2]
EMBEDDED, REDIS, RABBITMQ = "embedded", "redis", "rabbitmq"
NAMES = (EMBEDDED, REDIS, RABBITMQ)
TITLES = {
    EMBEDDED: "embedded+SQLite",
    REDIS: "Redis+PostgreSQL",
    RABBITMQ: "RabbitMQ+PostgreSQL",
}
NEEDED = {EMBEDDED: (), REDIS: ("redis", "postgresql"), RABBITMQ: ("rabbitmq", "postgresql")}


class Stack:
    """One of the three, fresh; `server` and `database_server` are there where the scenario owns them."""

    def __init__(self, name: str, folder: Path, undo: contextlib.ExitStack, own: frozenset[str]) -> None:
        self.name, self.folder = name, folder
        self.data_dir = folder / "data"
        self.data_dir.mkdir()
        self.server: servers.Redis | servers.RabbitMQ | None = None
        self.database_server: servers.PostgreSQL | None = None
        self._undo = undo
        self.broker = self._broker("broker" in own)
        undo.callback(self.broker.close)
        self.database_url = self._database("database" in own)

    def _broker(self, own: bool) -> Broker:
        if self.name == EMBEDDED:
            return FolderBroker(self.data_dir / "broker")
        if own:
            self.server = servers.Redis() if self.name == REDIS else servers.RabbitMQ()
            self._undo.callback(self.server.close)
        return open_broker(self.name, self.server)

    def _database(self, own: bool) -> str:
        if self.name == EMBEDDED:
            return f"sqlite:///{self.data_dir}/holdfast.db"
        if own:
            self.database_server = servers.PostgreSQL()
            self._undo.callback(self.database_server.close)
            return named(self.database_server.url, "postgres")
        shared = address("postgresql")
        name = f"hf_acceptance_{secrets.token_hex(6)}"
        execute(shared, f'CREATE DATABASE "{name}"')
        self._undo.callback(execute, shared, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        return named(shared, name)

    @property
    def postgresql(self) -> bool:
        """Whether its database is a server."""
        return self.name != EMBEDDED

    def writable(self) -> bool:
        """Whether the database takes a write; on SQLite a frozen writer keeps everybody else from it."""
        if self.postgresql:
            return True
        connection = sqlite3.connect(self.data_dir / "holdfast.db", timeout=1.0, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
        finally:
            connection.close()
        return True

    def environment(self) -> dict[str, str]:
        """What points a process at this stack, and at nothing else."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        mine = {
            "PYTHONPATH": python_path(ROOT),
            "HOLDFAST_DATA_DIR": str(self.data_dir),
            "HOLDFAST_DATABASE_URL": self.database_url,
            "HOLDFAST_KINDS": "tests.acceptance.kinds:kinds",
        }
        if self.name != EMBEDDED:  # whose default it is
            mine["HOLDFAST_BROKER_URL"] = self.broker.url
        return kept | mine


def open_broker(name: str, server: servers.Redis | servers.RabbitMQ | None = None) -> Broker:
    """A fresh broker of this name, on the given server or on the shared one."""
    if name == REDIS:
        return RedisBroker(server.url if server else address("redis"), own=server is not None)
    if isinstance(server, servers.RabbitMQ):
        return RabbitBroker(server.url, server.management, own=True)
    entry = state.read()["rabbitmq"]
    return RabbitBroker(entry["url"], entry["management"], own=False)


@contextlib.contextmanager
def opened(name: str, own: frozenset[str] = frozenset()) -> Iterator[Stack]:
    """A stack that is gone at the end; `own` names what the scenario will stop: broker, database."""
    with contextlib.ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix=f"holdfast-{name}-"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        yield Stack(name, folder, undo, own)


def missing(name: str) -> str | None:
    """Why the stack cannot be had here; None when it can."""
    known = state.read()
    for service in NEEDED[name]:
        if "url" not in (entry := known.get(service, {})):
            return f"NO {service.upper()}: {entry.get('missing', 'not started: run `make services-up`')}"
    return None


def address(service: str) -> str:
    """Where a shared server listens."""
    return str(state.read()[service]["url"])


def named(server: str, database: str) -> str:
    """The address of a database on a server."""
    return urlsplit(server)._replace(path=f"/{database}").geturl()


def through(url: str, port: int) -> str:
    """The same address by way of a proxy on `port`."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}").geturl()


def place(url: str) -> tuple[str, int]:
    """Host and port of an address."""
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 0


def execute(server: str, statement: str) -> list[tuple]:
    """What the statement answers; it is committed."""
    with psycopg.connect(server, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []
