"""The servers that scenarios need. The caller passes them in; this package starts none."""

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

REDIS, RABBITMQ, POSTGRESQL = "redis", "rabbitmq", "postgresql"


class BrokerServer(Protocol):
    """A Redis or RabbitMQ that belongs to one scenario. `management` is RabbitMQ's HTTP API, with user and
    password, and empty for a Redis.
    """

    url: str
    management: str

    def stop(self) -> None:
        """It is down; its data stays."""

    def start(self) -> None:
        """It is up again on the same port with the same data."""

    def close(self) -> None:
        """It is down and its data is gone."""


class DatabaseServer(Protocol):
    """A PostgreSQL that belongs to one scenario."""

    url: str

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """It is down; its data stays. SIGINT is a fast shutdown, SIGQUIT as a power cut."""

    def start(self) -> None:
        """It is up again on the same port with the same data."""

    def close(self) -> None:
        """It is down and its data is gone."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Without any, only the embedded stack can be had.

    `urls` has the URL of each shared server by service, `management` the one of RabbitMQ's HTTP API.
    `missing` says why a service has no URL. `start_broker` (by service) and `start_database` start a server
    that the scenario owns: it may be stopped, flushed and restarted, and is closed at the end.
    """

    urls: Mapping[str, str] = field(default_factory=dict)
    management: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    start_broker: Mapping[str, Callable[[], BrokerServer]] = field(default_factory=dict)
    start_database: Callable[[], DatabaseServer] | None = None
