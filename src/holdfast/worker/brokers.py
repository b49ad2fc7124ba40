"""What each broker needs, learnt from what goes wrong with its defaults.

Three sorts are known: the embedded one (files in a folder), Redis and RabbitMQ. A profile says how a worker
consumes and how a sender publishes. Senders never wait long: a wake-up that is not sent is made good by the
sweep, while a request that waits for a broker is felt by a person.
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

# More unread wake-ups than this say nothing new: each one makes a worker go on while there is work.
MOST_OUTSTANDING = 64
POLL_EVERY = 0.05
CONNECT_TIMEOUT = 30.0
SENDER_TIMEOUT = 3.0
HEARTBEAT = 30
HEALTH_CHECK = 30
_PORTS = {"redis": 6379, "rabbitmq": 5672}


@dataclass(frozen=True, slots=True)
class Tuning:
    """The settings that a profile takes into account."""

    visibility_timeout: float = 3600.0
    restore_interval: float = 2.0
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker: where it is, and how to talk to it. `polled` brokers cannot share an event loop."""

    address: str = field(repr=False)
    sort: str
    consuming: Mapping[str, Any] = field(default_factory=dict)
    sending: Mapping[str, Any] = field(default_factory=dict)
    tls: Mapping[str, Any] | None = None
    polled: bool = False
    folder: Path | None = None

    @property
    def place(self) -> tuple[str | None, int | None]:
        """Host and port."""
        parts = urlsplit(self.address)
        return parts.hostname, parts.port or _PORTS.get(self.sort)

    def __str__(self) -> str:
        """Return the address without its password."""
        parts = urlsplit(self.address)
        if self.folder is not None:
            return f"filesystem://{self.folder}"
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
        user = f"{parts.username}@" if parts.username else ""
        return f"{parts.scheme}://{user}{host}{port}{parts.path}"

    def prepare(self) -> None:
        """What must be there before the first message is. Raises OSError."""
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
            self.address,
            # One try: kombu would sleep for seconds, and the other brokers of a sender wait meanwhile.
            transport_options={**self.sending, "max_retries": 0, "interval_start": 0},
            connect_timeout=SENDER_TIMEOUT,
            heartbeat=HEARTBEAT if self.sort == "rabbitmq" else 0,
            ssl=dict(self.tls) if self.tls is not None else False,
        )

    def outstanding(self, connection: Connection, queue: str) -> int:
        """How many messages wait in `queue`; 0 when nobody has made it yet."""
        if self.folder is not None:
            ending = f".{queue}.msg"
            with contextlib.suppress(FileNotFoundError):
                return sum(1 for each in (self.folder / "queue").iterdir() if each.name.endswith(ending))
            return 0
        if self.sort == "redis":
            return int(connection.default_channel.client.llen(queue))
        channel = connection.channel()  # its own: RabbitMQ closes the channel that asks for what is not there
        try:
            return int(channel.queue_declare(queue, passive=True).message_count)
        except NotFound:
            return 0
        finally:
            channel.close()


def told(error: BaseException) -> str:
    """What a driver says, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def broker(url: str, tuning: Tuning) -> Broker:
    """The profile of the broker at `url`. Raises BadRequestError for an address that cannot be one."""
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
        known = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        # Its text would show a piece of the password: that is where such addresses break apart.
        known = False
    if not known:
        message = (
            f"HOLDFAST_BROKER_URL {scheme}://… is no address; it should be like "
            f"{scheme}://USER:PASSWORD@HOST:PORT/NAME, with / # ? [ @ in a password written as "
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
        # The default of ten times ten seconds leaves what a dead worker held unread for minutes.
        "unacked_restore_interval": tuning.restore_interval,
        "unacked_restore_throttle": 1,
        "retry_on_timeout": True,
        "socket_keepalive": True,
        "health_check_interval": HEALTH_CHECK,
    }
    return Broker(
        url,
        "redis",
        # Without a socket timeout a worker waits for ever on a connection that the network has forgotten.
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
        # A server that is killed in the middle of a conversation must not be waited for.
        {"confirm_publish": True, "read_timeout": CONNECT_TIMEOUT, "write_timeout": CONNECT_TIMEOUT},
        {"confirm_publish": True, "read_timeout": SENDER_TIMEOUT, "write_timeout": SENDER_TIMEOUT},
        {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": None, **_ca("ca_certs", tuning)} if tls else None,
    )


def _ca(name: str, tuning: Tuning) -> dict[str, str]:
    found = tuning.ca_file or ssl.get_default_verify_paths().cafile
    return {name: str(found)} if found else {}
