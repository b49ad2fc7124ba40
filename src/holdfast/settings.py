"""Settings: one frozen object, and the only reader of the environment.

Values come from `HOLDFAST_*` variables, then from `holdfast.toml` in the current folder (the same names,
lower case, without the prefix), then from the defaults below. A name that no field has is an error, for a
misspelt setting that is silently ignored is found out in production. `load()` is the door: it turns every
mistake into a `SettingsError` of one line that never shows a value of a secret.
"""

import difflib
import os
import tomllib
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pydantic
import pydantic_settings
from pydantic import Field, SecretStr
from pydantic_settings import PydanticBaseSettingsSource

PREFIX = "HOLDFAST_"
FILE = "holdfast.toml"

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]

_DATABASE_SCHEMES = ("sqlite", "postgresql", "postgresql+psycopg")
_REDIS_SCHEMES = ("redis", "rediss", "unix")
_BROKER_SCHEMES = ("filesystem", "redis", "rediss", "amqp", "amqps")
_PROVIDER = r"^(local|openai|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$"
_LANES = ("interactive", "bulk", "follow-up")
# By backend: the lease time, and into how many parts renewals cut it.
_LEASE_DEFAULTS = {"sql": (12.0, 3), "redis": (120.0, 4)}


class SettingsError(Exception):
    """A setting is unknown, malformed or at odds with another; the message is one line and names it."""


class Settings(pydantic_settings.BaseSettings):
    """Every setting, checked and complete. Build it with `load()`."""

    model_config = pydantic_settings.SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        toml_file=FILE,
        frozen=True,
        extra="forbid",
        validate_default=True,
        hide_input_in_errors=True,
    )

    data_dir: Path = Field(
        default=Path("holdfast-data"),
        description="Folder for the embedded database, blobs and everything else kept on disk.",
    )
    database_url: SecretStr = Field(
        default=SecretStr(""),
        description="Where all state lives: `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/NAME`.",
        json_schema_extra={"shown": "`sqlite:///DATA_DIR/holdfast.db`"},
    )
    database_prepare: bool = Field(
        default=False, description="Prepare statements on PostgreSQL; not behind a transaction-mode pooler."
    )
    redis_url: SecretStr | None = Field(
        default=None,
        description="Redis for the `redis` lease backend: `redis://:PASSWORD@HOST:PORT/DB`.",
    )

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
            "Sorts of work of your own: `module:name`, separated by commas, where `name` is a `Kind`, a list "
            "of them, or a function from `Supplies` to one."
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
    api_threads: Annotated[int, Field(ge=1, le=100)] = Field(
        default=3, description="Requests that one API process works on at a time; more wait for their turn."
    )
    health_host: str = Field(
        default="127.0.0.1", description="Address on which a worker serves its health and metrics."
    )
    health_port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=0,
        description="Port of a worker's health and metrics; 0: a free one, which `holdfast status` shows.",
    )
    host: str = Field(
        default="127.0.0.1",
        description="Address on which the API is served; another than this machine's needs an API key first.",
    )
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=8642, description="Port of the API; 0: a free one, which `holdfast api` prints."
    )
    most_json: Annotated[int, Field(ge=1024)] = Field(
        default=16 * 1024 * 1024, description="Bytes that a text may have which is sent to the API as JSON."
    )
    body_pause: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=30.0, description="Seconds that a client may take for a head, or pause in body or answer."
    )
    api_rate: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        default=500.0, description="Requests a second that an API key may make of one process of the API."
    )
    api_concurrency: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=100, description="Requests of an API key that one process of the API carries out at once."
    )
    api_listeners: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=1000, description="Event streams of an API key that one process of the API keeps open."
    )
    api_clients: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=4000, description="Connections of clients that one process of the API keeps; more get 503."
    )
    api_connections: Annotated[int, Field(ge=1, le=200)] = Field(
        default=8, description="Database connections that the API keeps; when busy up to three times that."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="How workers write their log: lines for people, or JSON objects."
    )
    otel_url: str | None = Field(
        default=None, description="Collector of traces, like `http://HOST:4318/v1/traces` (extra `otel`)."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least serious lines that are written to the log."
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

    embedding_provider: Annotated[str, Field(pattern=_PROVIDER)] = Field(
        default="local",
        description=(
            "Who embeds: `openai`, a server of that wire format; `local`, a small model on board; or "
            "`module:name`, a function of yours that makes a provider."
        ),
    )
    embedding_base_url: str | None = Field(
        default=None,
        description="Address of the embedding server with its `/v1`; unset means the provider's own.",
    )
    embedding_model: str | None = Field(
        default=None, description="Name of the embedding model; unset means the provider's default."
    )
    embedding_api_key: SecretStr | None = Field(default=None, description="Key for the embedding server.")
    embedding_key_retention: Annotated[float, Field(ge=0)] = Field(
        default=0.0,
        description=(
            "Seconds for which the embedding server honours an `Idempotency-Key`; 0: it does not. "
            "With it, an order in doubt is sent again at no cost."
        ),
    )
    llm_provider: Annotated[str, Field(pattern=_PROVIDER)] = Field(
        default="local",
        description=(
            "Who writes answers: `openai`, a server of that wire format; `module:name`, a provider of yours; "
            "or `local`, a stand-in on board that copies out of the text and is no language model."
        ),
    )
    llm_base_url: str | None = Field(
        default=None,
        description="Address of the language model's server with its `/v1`; unset means the provider's own.",
    )
    llm_model: str | None = Field(
        default=None, description="Name of the language model; unset means the provider's default."
    )
    llm_api_key: SecretStr | None = Field(default=None, description="Key for the language model's server.")
    llm_key_retention: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="As `EMBEDDING_KEY_RETENTION`, for the language model's server."
    )

    chunk_size: Annotated[int, Field(ge=16, le=100_000)] = Field(
        default=256, description="Tokens that a chunk holds at most, unless a collection says otherwise."
    )
    slice_pages: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=12, description="Pages of a PDF that are one task, unless a collection says otherwise."
    )
    slice_rows: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=3000, description="Rows of a sheet that are one task, unless a collection says otherwise."
    )
    blobs_url: str | None = Field(
        default=None,
        description=(
            "A bucket for the bytes of documents, for workers on several machines: "
            "`s3://BUCKET/PREFIX?endpoint=http://HOST:PORT&region=NAME`."
        ),
        json_schema_extra={"shown": "the folder `DATA_DIR/blobs`"},
    )
    blobs_access_key: SecretStr | None = Field(
        default=None, description="Key id for the bucket; unset: what the AWS client finds by itself."
    )
    blobs_secret_key: SecretStr | None = Field(default=None, description="Secret key for the bucket.")
    blobs_cache: Annotated[int, Field(ge=16)] = Field(
        default=1024, description="Mebibytes of a bucket's content that are kept in `DATA_DIR/blob-cache`."
    )
    vector_index: Literal["auto", "exact", "pgvector"] = Field(
        default="auto",
        description=(
            "Where vectors are compared: `exact`: in memory; `pgvector`: inside PostgreSQL, from 2,000 "
            "chunks of a collection on; `auto`: inside PostgreSQL, if it has the extension, from 256 MiB of "
            "vectors on."
        ),
    )
    most_bytes: Annotated[int, Field(ge=1024)] = Field(
        default=256 * 1024 * 1024, description="Bytes that a document may have."
    )
    most_import: Annotated[int, Field(ge=1024)] = Field(
        default=10 * 1024**3, description="Bytes that a bundle may have; unpacked, four times as many."
    )
    parse_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=60.0, description="Seconds that reading one slice of a document may take."
    )
    parse_memory: Annotated[int, Field(ge=64, le=65_536)] = Field(
        default=512, description="Mebibytes that the process which reads documents may use."
    )
    fetch_private: bool = Field(
        default=False, description="Allow documents from private, loopback and link-local addresses."
    )

    analysers: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=(
            "Functions of your own that actions may run over documents: `module:name`, separated by commas."
        ),
    )
    webhook_private: bool = Field(
        default=False,
        description="Allow webhooks and callbacks to private, loopback and link-local addresses.",
    )
    webhook_key: Annotated[SecretStr, Field(min_length=32)] | None = Field(
        default=None, description="Makes the secrets drawn for webhooks, so that the database holds none."
    )
    webhook_seconds: Annotated[float, Field(gt=0, le=300)] = Field(
        default=15.0, description="Seconds that the receiver of a webhook has to answer."
    )
    webhook_give_up_after: Annotated[float, Field(gt=0, le=30 * 86_400)] = Field(
        default=86_400.0, description="Seconds for which a webhook that does not land is tried again."
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
        default=3, description="Claims over an expired lease without progress before a run is abandoned."
    )

    in_doubt: Literal["resend", "park"] = Field(
        default="resend",
        description="An order whose outcome a crash hid is sent again with its key, or kept for a person.",
    )
    park_above: Annotated[Decimal, Field(ge=0)] | None = Field(
        default=None,
        description="Price in US dollars above which an order in doubt waits for a person anyway.",
    )
    order_deadline: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=60.0,
        description="Seconds that one paid exchange may take in all; then its connection is closed.",
    )
    pay_concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        default=4, description="Orders that one task may have in flight at once."
    )
    pay_wait: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=30.0,
        description="Seconds to wait for a worker that pays for the same input, before a task is put back.",
    )

    drain_timeout: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=25.0, description="Seconds that a worker told to stop may spend on settling its orders."
    )
    history_retention: Annotated[int, Field(ge=1, le=36_500)] | None = Field(
        default=None,
        description=(
            "Days that ended runs, journal and results are kept; unset keeps them for ever. The ledger stays."
        ),
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[pydantic_settings.BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  part of the hook's shape
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments win over the environment, the environment over the file."""
        file = pydantic_settings.TomlConfigSettingsSource(settings_cls)
        return init_settings, env_settings, file

    @pydantic.model_validator(mode="before")
    @classmethod
    def _complete(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Fills in the defaults that depend on other settings."""
        data_dir = Path(given.get("data_dir") or cls.model_fields["data_dir"].default).expanduser().absolute()
        filled = {**given, "data_dir": data_dir}
        filled.setdefault("database_url", f"sqlite:///{data_dir}/holdfast.db")
        for name in ("analysers", "broker_urls", "kinds", "worker_lanes"):
            if isinstance(value := given.get(name), str):
                filled[name] = tuple(part.strip() for part in value.split(",") if part.strip())
        published = filled.get("broker_urls") or ()
        if not given.get("broker_url"):
            filled["broker_url"] = published[0] if published else f"filesystem://{data_dir}/broker"
        if not published:
            filled["broker_urls"] = (filled["broker_url"],)
        ttl, parts = _LEASE_DEFAULTS.get(str(given.get("lease_backend", "sql")), _LEASE_DEFAULTS["sql"])
        filled.setdefault("lease_ttl", ttl)
        try:
            filled.setdefault("lease_renew_every", float(filled["lease_ttl"]) / parts)
        except (TypeError, ValueError):
            # A lease time that is no number is reported by its own check; any renewal does until then.
            filled.setdefault("lease_renew_every", ttl / parts)
        return filled

    @pydantic.field_validator("database_url")
    @classmethod
    def _known_database(cls, url: SecretStr) -> SecretStr:
        return _with_scheme(url, _DATABASE_SCHEMES)

    @pydantic.field_validator("broker_url")
    @classmethod
    def _known_broker(cls, url: SecretStr) -> SecretStr:
        return _with_scheme(url, _BROKER_SCHEMES)

    @pydantic.field_validator("broker_urls")
    @classmethod
    def _known_brokers(cls, urls: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        return tuple(_with_scheme(url, _BROKER_SCHEMES) for url in urls)

    @pydantic.field_validator("worker_lanes")
    @classmethod
    def _known_lanes(cls, lanes: tuple[str, ...]) -> tuple[str, ...]:
        if not lanes or not set(lanes) <= set(_LANES):
            raise ValueError(f"should name some of {', '.join(_LANES)}")
        return lanes

    @pydantic.field_validator("redis_url")
    @classmethod
    def _known_redis(cls, url: SecretStr | None) -> SecretStr | None:
        return None if url is None else _with_scheme(url, _REDIS_SCHEMES)

    @pydantic.field_validator("embedding_base_url", "llm_base_url")
    @classmethod
    def _web_address(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError("should start with http:// or https://")
        return None if url is None else url.rstrip("/")

    @pydantic.model_validator(mode="after")
    def _agree(self) -> Self:
        """Settings that contradict each other are refused at the start, not at the first lease or order."""
        if self.lease_renew_every * 2 >= self.lease_ttl:
            raise ValueError(
                f"{PREFIX}LEASE_RENEW_EVERY ({self.lease_renew_every:g}) should be less than half of "
                f"{PREFIX}LEASE_TTL ({self.lease_ttl:g}), so that one lost renewal does not lose the lease"
            )
        if self.vector_index == "pgvector" and self.database_url.get_secret_value().startswith("sqlite"):
            raise ValueError(
                f"{PREFIX}VECTOR_INDEX is pgvector, so {PREFIX}DATABASE_URL should be PostgreSQL"
            )
        if (self.blobs_access_key is None) != (self.blobs_secret_key is None):
            raise ValueError(f"{PREFIX}BLOBS_ACCESS_KEY and {PREFIX}BLOBS_SECRET_KEY belong together")
        if self.lease_backend == "redis" and self.redis_url is None:
            raise ValueError(f"{PREFIX}LEASE_BACKEND is redis, so {PREFIX}REDIS_URL is needed")
        published = {url.get_secret_value() for url in self.broker_urls}
        if self.broker_url.get_secret_value() not in published:
            raise ValueError(
                f"{PREFIX}BROKER_URL should be one of {PREFIX}BROKER_URLS, or nothing wakes its workers"
            )
        for part in ("embedding", "llm"):
            openai = getattr(self, f"{part}_provider") == "openai"
            name = f"{PREFIX}{part.upper()}"
            if openai and not getattr(self, f"{part}_base_url") and not getattr(self, f"{part}_api_key"):
                raise ValueError(
                    f"{name}_PROVIDER is openai, so {name}_API_KEY is needed, "
                    f"or {name}_BASE_URL of a server that asks for none"
                )
        if self.llm_provider == "local" and (self.llm_base_url or self.llm_api_key):
            # Else the stand-in would answer in the name of the server that was meant.
            raise ValueError(f"{PREFIX}LLM_PROVIDER is local; set it to openai to use the server you name")
        return self


def load() -> Settings:
    """The settings of this process.

    Raises `SettingsError` for anything unknown, malformed or contradictory.
    """
    file = _read_file(Path(FILE))
    _refuse_unknown((name for name in os.environ if name.upper().startswith(PREFIX)), prefix=PREFIX, place="")
    _refuse_unknown(file, prefix="", place=f" in {FILE}")
    try:
        return Settings()
    except pydantic_settings.SettingsError as error:
        raise SettingsError(str(error)) from None
    except pydantic.ValidationError as error:
        # From None: pydantic's own text would follow in a traceback.
        raise SettingsError(
            "; ".join(_explain(each, file) for each in error.errors(include_input=False))
        ) from None


def _with_scheme(url: SecretStr, schemes: tuple[str, ...]) -> SecretStr:
    if url.get_secret_value().partition("://")[0] not in schemes:
        raise ValueError(f"should start with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    return url


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path.name} cannot be read: {error}") from None


def _refuse_unknown(names: Iterable[str], *, prefix: str, place: str) -> None:
    known = {(prefix + field.upper() if prefix else field) for field in Settings.model_fields}
    for name in sorted(names):
        spelt = name.upper() if prefix else name
        if spelt not in known:
            close = difflib.get_close_matches(spelt.lower(), [each.lower() for each in known], n=1, cutoff=0)
            suggestion = close[0].upper() if prefix else close[0]
            raise SettingsError(f"{name}{place} is not a setting; the closest is {suggestion}")


def _explain(error: Any, file: dict[str, Any]) -> str:
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    if not error["loc"]:
        return message
    name = str(error["loc"][0])
    in_file = name in file and PREFIX + name.upper() not in os.environ
    return f"{f'{name} in {FILE}' if in_file else PREFIX + name.upper()} {message}"
