"""Broker profiles: options that avoid the known failures of each broker's defaults.

Three kinds are supported: the embedded one (files in a folder), Redis and RabbitMQ. A profile says how a
worker consumes and how a sender publishes. Senders never wait long: the sweep replaces a wake-up that was not
sent, whereas a user notices a request that waits for a broker.
"""

import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from amqp.exceptions import NotFound
from kombu import Connection

from holdfast.bootstrap import close_to_others
from holdfast.core.errors import BadRequestError
from holdfast.worker import embedded_broker

# More unread wake-ups than this are redundant: each one keeps a worker going while there is work.
MOST_OUTSTANDING = 64
POLL_EVERY = 0.05
CONNECT_TIMEOUT = 30.0
SENDER_TIMEOUT = 3.0
HEARTBEAT = 30
HEALTH_CHECK = 30
_PORTS = {"redis": 6379, "rabbitmq": 5672}


@dataclass(frozen=True, slots=True)
class Tuning:
    """The settings that profiles depend on."""

    visibility_timeout: float = 3600.0
    restore_interval: float = 2.0
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker: its URL and connection options. `polled` brokers cannot share an event loop."""

    url: str = field(repr=False)
    kind: str
    consuming: Mapping[str, Any] = field(default_factory=dict)
    sending: Mapping[str, Any] = field(default_factory=dict)
    tls: Mapping[str, Any] | None = None
    polled: bool = False
    folder: Path | None = None

    @property
    def endpoint(self) -> tuple[str | None, int | None]:
        """Host and port."""
        parts = urlsplit(self.url)
        return parts.hostname, parts.port or _PORTS.get(self.kind)

    def __str__(self) -> str:
        """Return the URL without its password."""
        parts = urlsplit(self.url)
        if self.folder is not None:
            return f"filesystem://{self.folder}"
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
        user = f"{parts.username}@" if parts.username else ""
        return f"{parts.scheme}://{user}{host}{port}{parts.path}"

    def prepare(self) -> None:
        """Create the folders that the embedded broker needs. Raises OSError."""
        if self.folder is None:
            return
        for name in ("queue", "control"):
            (self.folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            close_to_others(self.folder / name)
        embedded_broker.tidy(self.folder / "queue")
        probe = self.folder / "queue" / ".writable"
        probe.touch()
        probe.unlink()

    def connection(self) -> Connection:
        """A connection for a sender; nothing is opened yet."""
        return Connection(
            self.url,
            # One attempt: kombu would sleep for seconds while the sender's other brokers wait.
            transport_options={**self.sending, "max_retries": 0, "interval_start": 0},
            connect_timeout=SENDER_TIMEOUT,
            heartbeat=HEARTBEAT if self.kind == "rabbitmq" else 0,
            ssl=dict(self.tls) if self.tls is not None else False,
        )

    def outstanding(self, connection: Connection, queue: str) -> int:
        """How many messages wait in `queue`; 0 if it does not exist yet."""
        if self.folder is not None:
            ending = f".{queue}.msg"
            with contextlib.suppress(FileNotFoundError):
                return sum(1 for each in (self.folder / "queue").iterdir() if each.name.endswith(ending))
            return 0
        if self.kind == "redis":
            return int(connection.default_channel.client.llen(queue))
        channel = connection.channel()  # its own: RabbitMQ closes the channel if the queue is missing
        try:
            return int(channel.queue_declare(queue, passive=True).message_count)
        except NotFound:
            return 0
        finally:
            channel.close()


def one_line(error: BaseException) -> str:
    """A driver's error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def broker(url: str, tuning: Tuning) -> Broker:
    """The profile of the broker at `url`. Raises BadRequestError for an invalid URL."""
    scheme = url.partition("://")[0]
    if scheme != "filesystem":
        _check(url, scheme)
    match scheme:
        case "filesystem":
            return _embedded(Path(url.removeprefix("filesystem://")))
        case "redis" | "rediss":
            return _redis(url, tuning, tls=scheme == "rediss")
        case _:
            return _rabbitmq(url, tuning, tls=scheme == "amqps")


def _check(url: str, scheme: str) -> None:
    try:
        parts = urlsplit(url)
        valid = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        # The error's text could show a part of the password.
        valid = False
    if not valid:
        message = (
            f"HOLDFAST_BROKER_URL {scheme}://… is not a valid URL; it should look like "
            f"{scheme}://USER:PASSWORD@HOST:PORT/NAME, with / # ? [ @ in the password written as "
            "%2F %23 %3F %5B %40"
        )
        raise BadRequestError(message, code="bad_setting") from None


def _embedded(folder: Path) -> Broker:
    queue = str(folder / "queue")
    options = {
        "data_folder_in": queue,
        "data_folder_out": queue,
        "control_folder": str(folder / "control"),
        "store_processed": False,
        "polling_interval": POLL_EVERY,
    }
    return Broker(f"{embedded_broker.NAME}://", "embedded", options, options, polled=True, folder=folder)


def _redis(url: str, tuning: Tuning, *, tls: bool) -> Broker:
    common: dict[str, Any] = {
        "visibility_timeout": tuning.visibility_timeout,
        # With the default (10 x 10 s) messages held by a dead worker stay unread for minutes.
        "unacked_restore_interval": tuning.restore_interval,
        "unacked_restore_throttle": 1,
        "retry_on_timeout": True,
        "socket_keepalive": True,
        "health_check_interval": HEALTH_CHECK,
    }
    return Broker(
        url,
        "redis",
        # Without a socket timeout a worker waits for ever on a connection that the network has dropped.
        {**common, "socket_connect_timeout": CONNECT_TIMEOUT, "socket_timeout": CONNECT_TIMEOUT},
        {
            **common,
            "socket_connect_timeout": SENDER_TIMEOUT,
            "socket_timeout": SENDER_TIMEOUT,
            "retry_on_timeout": False,
        },
        {"ssl_cert_reqs": ssl.CERT_REQUIRED, **_ca("ssl_ca_certs", tuning)} if tls else None,
    )


def _rabbitmq(url: str, tuning: Tuning, *, tls: bool) -> Broker:
    return Broker(
        url,
        "rabbitmq",
        # Do not wait for a server that was killed in the middle of an exchange.
        {"confirm_publish": True, "read_timeout": CONNECT_TIMEOUT, "write_timeout": CONNECT_TIMEOUT},
        {"confirm_publish": True, "read_timeout": SENDER_TIMEOUT, "write_timeout": SENDER_TIMEOUT},
        {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": None, **_ca("ca_certs", tuning)} if tls else None,
    )


def _ca(name: str, tuning: Tuning) -> dict[str, str]:
    ca_file = tuning.ca_file or ssl.get_default_verify_paths().cafile
    return {name: str(ca_file)} if ca_file else {}
