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
            "The broker this worker consumes: `filesystem://PATH`, `redis://HOST:PORT/DB` or "
            "`amqp://USER:PASSWORD@HOST:PORT/VHOST` (`rediss`, `amqps` with TLS)."
        ),
        json_schema_extra={"shown": "`filesystem://DATA_DIR/broker`; the first of `BROKER_URLS` if set"},
    )
    broker_urls: Annotated[tuple[SecretStr, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=(
            "Every broker that wake-ups are published to, separated by commas; to move from one to another."
        ),
        json_schema_extra={"shown": "`BROKER_URL` alone"},
    )
    broker_visibility_timeout: Annotated[float, Field(ge=1, le=86_400)] = Field(
        default=3600.0,
        description="Redis only: seconds until an unacknowledged wake-up is delivered again.",
    )
    broker_restore_interval: Annotated[float, Field(ge=0.5, le=600)] = Field(
        default=2.0,
        description="Redis only: seconds between looks for unacknowledged wake-ups.",
    )
    broker_ca_file: Path | None = Field(
        default=None,
        description="Certificates to check a broker's TLS certificate with; unset: those of the system.",
    )
    events: bool = Field(
        default=False,
        description="Celery's own events and remote control, for Flower. They cost broker traffic.",
    )
    kinds: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=(
            "Kinds of work of your own: `module:name`, separated by commas, where `name` is a `Kind`, a list "
            "of them, or a function from `Supplies` to one."
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
            "Folders in which `KINDS`, `ANALYSERS` and providers of your own are looked for, besides the "
            "installed packages; separated as in `PATH`; `--python-path`. The current folder is "
            "not looked in."
        ),
    )
    worker_lanes: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=_LANES, description="Lanes that a worker serves, separated by commas."
    )
    worker_concurrency: Annotated[int, Field(ge=1, le=512)] = Field(
        default=2, description="Processes of a worker that carry out tasks."
    )
    worker_nice: Annotated[int, Field(ge=0, le=19)] = Field(
        default=0, description="How far they step back for the API on the same machine, as `nice` has it."
    )
    health_host: str = Field(
        default="127.0.0.1", description="Address on which a worker serves its health and metrics."
    )
    health_port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=0,
        description="Port of a worker's health and metrics; 0: a free one, which `holdfast status` shows.",
    )
    drain_timeout: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=25.0,
        description=(
            "Seconds that the tasks of a worker told to stop may take to end. Orders in flight are awaited "
            "until their own deadline (`ORDER_DEADLINE`), whatever is said here."
        ),
    )
    lease_backend: Literal["sql", "redis"] = Field(
        default="sql",
        description=(
            "Where leases are kept: in the database, or in Redis (slower recovery, fewer database writes)."
        ),
    )
    lease_ttl: Seconds = Field(
        default=0.0,
        validate_default=False,
        description="Seconds after the last renewal until another worker may take a task over.",
        json_schema_extra={"shown": "12.0; 120.0 with the `redis` backend"},
    )
    lease_renew_every: Seconds = Field(
        default=0.0,
        validate_default=False,
        description="Seconds between renewals of a lease; less than half of `LEASE_TTL`.",
        json_schema_extra={
            "shown": "a third of `LEASE_TTL` (4.0); a quarter with the `redis` backend (30.0)"
        },
    )
    sweep_interval: Annotated[float, Field(ge=0.05, le=600)] = Field(
        default=2.0,
        description=(
            "Seconds between sweeps. A dead worker's task is found within `LEASE_TTL` plus one of these."
        ),
    )
    queued_stuck_after: Seconds = Field(
        default=600.0,
        description="Seconds in a queue that claims nothing, after which a new request takes a run over.",
    )
    running_stuck_after: Seconds = Field(
        default=2700.0,
        description="Seconds without lease or sign of life after which a new request takes a run over.",
    )
    attempt_cap: Annotated[int, Field(ge=1, le=100)] = Field(
        default=3,
        description="Deaths of the one process that ran a task, without progress, before a run is abandoned.",
    )
    loss_cap: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=20,
        description=(
            "Disappearances in a row of the whole worker that ran a task, without progress, before a run is "
            "abandoned. From the fourth on it waits before it is tried again: 2 s, 4 s, up to a minute."
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
            raise ValueError(f"should name some of {', '.join(_LANES)}")
        return lanes
