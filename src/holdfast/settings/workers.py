"""Brokers, workers, leases and the sweep."""

from pathlib import Path
from typing import Annotated, Literal

import pydantic
import pydantic_settings
from pydantic import Field, SecretStr

from holdfast.settings import url_schemes
from holdfast.settings.types import Seconds

_BROKER_SCHEMES = ("filesystem", "redis", "rediss", "amqp", "amqps")
_LANES = ("interactive", "bulk", "follow-up")


class WorkerSettings(pydantic.BaseModel):
    """Brokers, workers, leases and the sweep."""

    broker_url: SecretStr = Field(
        default=SecretStr(""),
        description=(
            "The broker this worker consumes from: `filesystem://PATH`, `redis://HOST:PORT/DB` or "
            "`amqp://USER:PASSWORD@HOST:PORT/VHOST` (`rediss`, `amqps` with TLS)."
        ),
        json_schema_extra={"shown": "`filesystem://DATA_DIR/broker`; the first of `BROKER_URLS` if set"},
    )
    broker_urls: Annotated[tuple[SecretStr, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=(
            "Comma-separated brokers that wake-ups are published to; for migrating between brokers."
        ),
        json_schema_extra={"shown": "`BROKER_URL` alone"},
    )
    broker_visibility_timeout: Annotated[float, Field(ge=1, le=86_400)] = Field(
        default=3600.0,
        description="Redis only: seconds before an unacknowledged wake-up is redelivered.",
    )
    broker_restore_interval: Annotated[float, Field(ge=0.5, le=600)] = Field(
        default=2.0,
        description="Redis only: seconds between checks for unacknowledged wake-ups.",
    )
    broker_ca_file: Path | None = Field(
        default=None,
        description="CA certificates for verifying the broker's TLS certificate; default: the system's.",
    )
    events: bool = Field(
        default=False,
        description="Enable Celery's events and remote control, e.g. for Flower. They add broker traffic.",
    )
    kinds: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=(
            "Your own kinds of work: comma-separated `module:name`, where `name` is a `Kind`, a list "
            "of them, or a function that takes `Supplies` and returns one."
        ),
    )
    installed_kinds: bool = Field(
        default=True,
        description=(
            "Load the kinds that installed packages bring by an entry point in the group `holdfast.kinds`."
        ),
    )
    python_path: Annotated[tuple[Path, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=(
            "Folders searched for `KINDS`, `ANALYSERS` and your own providers, besides installed packages; "
            "separated as in `PATH`; `--python-path`. The current folder is not searched."
        ),
    )
    worker_lanes: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=_LANES, description="Comma-separated lanes that a worker serves."
    )
    worker_concurrency: Annotated[int, Field(ge=1, le=512)] = Field(
        default=2, description="Processes per worker that run tasks."
    )
    worker_nice: Annotated[int, Field(ge=0, le=19)] = Field(
        default=0, description="`nice` value of these processes, to favour an API on the same machine."
    )
    health_host: str = Field(
        default="127.0.0.1", description="Address on which a worker serves health checks and metrics."
    )
    health_port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=0,
        description="Port for health checks and metrics; 0 picks a free one, which `holdfast status` shows.",
    )
    drain_timeout: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=25.0,
        description=(
            "Seconds that a stopping worker gives its tasks to finish. Orders in flight are awaited until "
            "their own deadline (`ORDER_DEADLINE`) regardless."
        ),
    )
    lease_backend: Literal["sql", "redis"] = Field(
        default="sql",
        description=(
            "Where leases are stored: in the database, or in Redis (slower recovery, fewer database writes)."
        ),
    )
    lease_ttl: Seconds = Field(
        default=0.0,
        validate_default=False,
        description="Seconds after the last renewal before another worker may take over a task.",
        json_schema_extra={"shown": "12.0; 120.0 with the `redis` backend"},
    )
    lease_renew_every: Seconds = Field(
        default=0.0,
        validate_default=False,
        description="Seconds between lease renewals; must be less than half of `LEASE_TTL`.",
        json_schema_extra={
            "shown": "a third of `LEASE_TTL` (4.0); a quarter with the `redis` backend (30.0)"
        },
    )
    sweep_interval: Annotated[float, Field(ge=0.05, le=600)] = Field(
        default=2.0,
        description=(
            "Seconds between sweeps. A dead worker's task is recovered within `LEASE_TTL` plus one interval."
        ),
    )
    queued_stuck_after: Seconds = Field(
        default=600.0,
        description="Seconds a run may wait in an idle queue before a new request takes it over.",
    )
    running_stuck_after: Seconds = Field(
        default=2700.0,
        description="Seconds without a lease or heartbeat after which a new request takes over a run.",
    )
    attempt_cap: Annotated[int, Field(ge=1, le=100)] = Field(
        default=3,
        description="A run is abandoned after this many process crashes on one task without progress.",
    )
    loss_cap: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=20,
        description=(
            "A run is abandoned after this many consecutive losses of the whole worker running a task, "
            "without progress. From the fourth on, retries wait 2 s, 4 s, up to a minute."
        ),
    )

    @pydantic.field_validator("broker_url")
    @classmethod
    def _known_broker(cls, url: SecretStr) -> SecretStr:
        return url_schemes.checked(url, _BROKER_SCHEMES)

    @pydantic.field_validator("broker_urls")
    @classmethod
    def _known_brokers(cls, urls: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        return tuple(url_schemes.checked(url, _BROKER_SCHEMES) for url in urls)

    @pydantic.field_validator("worker_lanes")
    @classmethod
    def _known_lanes(cls, lanes: tuple[str, ...]) -> tuple[str, ...]:
        if not lanes or not set(lanes) <= set(_LANES):
            raise ValueError(f"should be one or more of {', '.join(_LANES)}")
        return lanes
