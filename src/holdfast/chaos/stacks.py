"""The three stacks: embedded with SQLite, Redis with PostgreSQL, RabbitMQ with PostgreSQL.

A stack is a fresh database and a fresh broker of one scenario, with the environment that points a worker at
them. Servers are passed in; what a scenario stops or flushes is a server of its own.
"""

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.chaos import databases
from holdfast.chaos.brokers import BrokerControl, FolderBroker, RabbitBroker, RedisBroker
from holdfast.chaos.expectations import ScenarioFailedError
from holdfast.chaos.servers import POSTGRESQL, BrokerServer, DatabaseServer, Servers

EMBEDDED, REDIS, RABBITMQ = "embedded", "redis", "rabbitmq"
NAMES = (EMBEDDED, REDIS, RABBITMQ)
TITLES = {
    EMBEDDED: "embedded+SQLite",
    REDIS: "Redis+PostgreSQL",
    RABBITMQ: "RabbitMQ+PostgreSQL",
}
NEEDED = {EMBEDDED: (), REDIS: (REDIS, POSTGRESQL), RABBITMQ: (RABBITMQ, POSTGRESQL)}
# The extras beside those of every worker.
EXTRAS = {EMBEDDED: (), REDIS: ("redis", "postgres"), RABBITMQ: ("postgres",)}


class Stack:
    """One of the three, fresh; `server` and `database_server` are there where the scenario owns them."""

    def __init__(
        self, servers: Servers, name: str, folder: Path, undo: contextlib.ExitStack, own: frozenset[str]
    ) -> None:
        self.servers, self.name, self.folder = servers, name, folder
        self.data_dir = folder / "data"
        self.data_dir.mkdir()
        self.server: BrokerServer | None = None
        self.database_server: DatabaseServer | None = None
        self._undo = undo
        self.broker = self._broker("broker" in own)
        undo.callback(self.broker.close)
        self.database_url = self._database("database" in own)

    def _broker(self, own: bool) -> BrokerControl:
        if self.name == EMBEDDED:
            return FolderBroker(self.data_dir / "broker")
        if own:
            self.server = self.servers.start_broker[self.name]()
            self._undo.callback(self.server.close)
        return open_broker(self.servers, self.name, self.server)

    def _database(self, own: bool) -> str:
        if self.name == EMBEDDED:
            return f"sqlite:///{self.data_dir}/holdfast.db"
        if own and self.servers.start_database is not None:
            self.database_server = self.servers.start_database()
            self._undo.callback(self.database_server.close)
            return named(self.database_server.url, "postgres")
        shared = self.servers.urls[POSTGRESQL]
        name = f"hf_chaos_{secrets.token_hex(6)}"
        databases.execute(shared, f'CREATE DATABASE "{name}"')
        self._undo.callback(databases.execute, shared, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        return named(shared, name)

    @property
    def postgresql(self) -> bool:
        """Whether its database is a server."""
        return self.name != EMBEDDED

    def own_broker_server(self) -> BrokerServer:
        """The server of its broker, which the scenario owns."""
        if self.server is None:
            raise ScenarioFailedError("the scenario has no broker server of its own")
        return self.server

    def own_database_server(self) -> DatabaseServer:
        """The server of its database, which the scenario owns."""
        if self.database_server is None:
            raise ScenarioFailedError("the scenario has no database server of its own")
        return self.database_server

    def writable(self) -> bool:
        """Whether the database takes a write; on SQLite a frozen writer keeps everybody else from it."""
        return self.postgresql or databases.is_writable(self.data_dir / "holdfast.db")

    def environment(self) -> dict[str, str]:
        """What points a process at this stack, and at nothing else."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        mine = {
            "HOLDFAST_DATA_DIR": str(self.data_dir),
            "HOLDFAST_DATABASE_URL": self.database_url,
            "HOLDFAST_KINDS": "holdfast.chaos.kinds:kinds",
        }
        if self.name != EMBEDDED:  # whose default it is
            mine["HOLDFAST_BROKER_URL"] = self.broker.url
        return inherited | mine


def open_broker(servers: Servers, name: str, server: BrokerServer | None = None) -> BrokerControl:
    """A fresh broker of this name, on this server or on the shared one."""
    own = server is not None
    url = server.url if server is not None else servers.urls[name]
    if name == REDIS:
        return RedisBroker(url, own=own)
    return RabbitBroker(url, server.management if server is not None else servers.management, own=own)


@contextlib.contextmanager
def opened(servers: Servers, name: str, own: frozenset[str] = frozenset()) -> Iterator[Stack]:
    """A stack that is gone at the end; `own` names what the scenario will stop: broker, database."""
    with contextlib.ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix=f"holdfast-{name}-"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        yield Stack(servers, name, folder, undo, own)


def missing(servers: Servers, name: str) -> str | None:
    """Why the stack cannot be had with these servers; None when it can."""
    for service in NEEDED[name]:
        if service not in servers.urls:
            return f"NO {service.upper()}: {servers.missing.get(service, 'no server was passed in')}"
    return None


def named(server: str, database: str) -> str:
    """The URL of a database on a server."""
    return urlsplit(server)._replace(path=f"/{database}").geturl()


def through(url: str, port: int) -> str:
    """The same URL by way of a proxy on `port`."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}").geturl()


def host_and_port(url: str) -> tuple[str, int]:
    """Host and port of a URL."""
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 0
