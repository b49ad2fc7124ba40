"""The facts about applications that somebody else wrote, and about the servers that they name."""

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast import extras
from holdfast.doctor import redaction
from holdfast.doctor.facts import (
    AppFacts,
    ClientFacts,
    DatabaseFacts,
    Declared,
    DoctorFacts,
    Endpoint,
    InstallationFacts,
    RabbitFacts,
    RedisFacts,
)
from holdfast.doctor.probes import machine

PACKAGES = (
    "holdfast",
    "celery",
    "kombu",
    "amqp",
    "billiard",
    "redis",
    "celery-once",
    "celery-singleton",
    "celery-heimdall",
    "celery-redbeat",
    "openai",
    "anthropic",
    "sqlalchemy",
    "psycopg",
)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Facts about some applications, and what could not be gathered."""

    apps: tuple[AppFacts, ...] = ()
    redis: tuple[RedisFacts, ...] = ()
    rabbitmq: tuple[RabbitFacts, ...] = ()
    databases: tuple[DatabaseFacts, ...] = ()
    clients: tuple[ClientFacts, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Gathered") -> "Gathered":
        """The facts of both."""
        return Gathered(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(slots=True)
class ServerList:
    """The servers that applications name, each once, with what it is used for."""

    redis: dict[Endpoint, tuple[str, list[str], Mapping[str, Any]]] = field(default_factory=dict)
    rabbitmq: dict[Endpoint, tuple[str, Mapping[str, Any] | bool]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, url: str | None, used_as: str, tls: Any = None) -> None:
        """The server of this URL will be examined."""
        if not url:
            return
        endpoint = redaction.endpoint(url)
        if endpoint.kind == "redis":
            _, uses, _ = self.redis.setdefault(endpoint, (url, [], tls if isinstance(tls, Mapping) else {}))
            if used_as not in uses:
                uses.append(used_as)
        elif endpoint.kind == "rabbitmq" and used_as == "broker":
            self.rabbitmq.setdefault(endpoint, (url, tls or False))
        elif used_as == "broker" and endpoint.kind not in {"filesystem", "memory"}:
            self.notes.append(f"{endpoint.shown} was not examined: only Redis and RabbitMQ are known")

    def probed(self, management: str | None = None) -> Gathered:
        """The facts about every one of them."""
        redis: list[RedisFacts] = []
        rabbitmq: list[RabbitFacts] = []
        if self.redis:
            from holdfast.doctor.probes import redis_server  # noqa: PLC0415 - only who uses Redis waits for it

            redis = [redis_server.probe(url, uses, tls=tls) for url, uses, tls in self.redis.values()]
        if self.rabbitmq:
            from holdfast.doctor.probes import rabbitmq_server  # noqa: PLC0415 - likewise

            rabbitmq = [
                rabbitmq_server.probe(url, management, tls=tls) for url, tls in self.rabbitmq.values()
            ]
        return Gathered(redis=tuple(redis), rabbitmq=tuple(rabbitmq), notes=tuple(self.notes))


def applications(
    names: Sequence[str], *, offline: bool, management: str | None = None, folder: Path | None = None
) -> Gathered:
    """The facts about these Celery applications. Raises BadRequestError for one that cannot be loaded."""
    extras.require(("celery",), "holdfast doctor --app")
    from holdfast.doctor.probes import celery_app, clients  # noqa: PLC0415 - Celery takes a moment to load

    apps, servers = [], ServerList()
    guards: dict[int, Any] = {}
    for name in names:
        app = celery_app.load(name)
        apps.append(celery_app.facts_of(app, name))
        tls = app.conf.broker_use_ssl
        servers.add(celery_app.broker_url(app), "broker", tls)
        backend = app.conf.result_backend
        if isinstance(backend, str) and backend.startswith("redis"):
            servers.add(backend, "results", app.conf.redis_backend_use_ssl)
        servers.add(celery_app.lock_url(app.conf, app.tasks.values()), "locks")
        guards |= {
            id(task.holdfast_guard): task.holdfast_guard
            for task in app.tasks.values()
            if hasattr(task, "holdfast_guard")
        }
    gathered = Gathered(tuple(apps), clients=clients.probe(folder or Path.cwd()))
    if offline:
        return gathered
    return gathered + servers.probed(management) + _guarded(list(guards.values()))


def _guarded(guards: Sequence[Any]) -> Gathered:
    """The databases of guards; each once."""
    if not guards:
        return Gathered()
    from holdfast.doctor.probes import databases  # noqa: PLC0415 - only guards need SQLAlchemy

    leases: dict[str, float] = {}
    for guard in guards:
        leases.setdefault(guard.address(), guard.lease)
    return Gathered(
        databases=tuple(databases.probe(url, "a guard", lease=lease) for url, lease in leases.items())
    )


def assembled(
    gathered: Gathered,
    declared: Declared,
    own: InstallationFacts | None = None,
    *,
    folder: Path | None = None,
    offline: bool = False,
) -> DoctorFacts:
    """All facts together, with those of this machine; `folder` is where data is stored."""
    return DoctorFacts(
        apps=gathered.apps,
        redis=gathered.redis,
        rabbitmq=gathered.rabbitmq,
        databases=gathered.databases,
        clients=gathered.clients,
        installation=own,
        machine=machine.probe(folder),
        declared=declared,
        versions=versions(),
        offline=offline,
        notes=gathered.notes,
    )


def versions() -> dict[str, str]:
    """The releases of the packages that matter, as installed here."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed
