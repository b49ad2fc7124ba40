"""Settings: one frozen object, and the only reader of the environment.

Values come from `HOLDFAST_*` variables, then from a file (the same names in lower case, without the prefix),
then from the defaults. The file is the one named by `HOLDFAST_CONFIG`, otherwise `holdfast.toml` in the
current folder, which may not set everything (`trust`). An unknown name is an error: a misspelt setting that
is silently ignored shows only in production. `load()` turns every mistake into a one-line `SettingsError`
that never shows a secret.
"""

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pydantic
import pydantic_settings
from pydantic_settings import PydanticBaseSettingsSource

from holdfast.settings import storage, trust
from holdfast.settings.documents import DocumentSettings
from holdfast.settings.payments import PayingSettings
from holdfast.settings.service import ServiceSettings
from holdfast.settings.storage import StorageSettings
from holdfast.settings.workers import WorkerSettings

PREFIX = "HOLDFAST_"
FILE = "holdfast.toml"

# By backend: the lease time, and into how many parts renewals cut it.
_LEASE_DEFAULTS = {"sql": (12.0, 3), "redis": (120.0, 4)}


class SettingsError(Exception):
    """A setting is unknown, malformed or contradicts another; the message is one line and names it."""


@dataclass(frozen=True, slots=True)
class _File:
    """The contents of a settings file, and its name for messages."""

    values: Mapping[str, Any] = field(default_factory=dict)
    name: str = FILE
    chosen: bool = False


_file: ContextVar[_File] = ContextVar("settings_file")


class Settings(
    DocumentSettings,
    PayingSettings,
    ServiceSettings,
    WorkerSettings,
    StorageSettings,
    pydantic_settings.BaseSettings,
):
    """Every setting, checked and complete. Build it with `load()`."""

    model_config = pydantic_settings.SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        validate_default=True,
        hide_input_in_errors=True,
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
        """Arguments win over the environment, the environment over the file that `load` has read."""
        values = dict(_file.get(_File()).values)
        return init_settings, env_settings, pydantic_settings.InitSettingsSource(settings_cls, values)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fills in the defaults that depend on other settings."""
        data_dir = Path(values.get("data_dir") or storage.default_data_dir()).expanduser().absolute()
        filled = {**values, "data_dir": data_dir}
        filled.setdefault("database_url", f"sqlite:///{data_dir}/holdfast.db")
        for name in (
            "analysers",
            "broker_urls",
            "flow_functions",
            "kinds",
            "parsers",
            "source_buckets",
            "source_folders",
            "worker_lanes",
        ):
            if isinstance(value := values.get(name), str):
                filled[name] = tuple(part.strip() for part in value.split(",") if part.strip())
        if isinstance(folders := values.get("python_path"), str):
            filled["python_path"] = tuple(
                Path(part).expanduser().absolute() for part in folders.split(os.pathsep) if part
            )
        published = filled.get("broker_urls") or ()
        if not values.get("broker_url"):
            filled["broker_url"] = published[0] if published else f"filesystem://{data_dir}/broker"
        if not published:
            filled["broker_urls"] = (filled["broker_url"],)
        ttl, parts = _LEASE_DEFAULTS.get(str(values.get("lease_backend", "sql")), _LEASE_DEFAULTS["sql"])
        filled.setdefault("lease_ttl", ttl)
        try:
            filled.setdefault("lease_renew_every", float(filled["lease_ttl"]) / parts)
        except (TypeError, ValueError):
            # A lease time that is no number is reported by its own check; any renewal does until then.
            filled.setdefault("lease_renew_every", ttl / parts)
        return filled

    @property
    def database(self) -> str:
        """The URL of the database with the schema in it, as the store takes it."""
        url = self.database_url.get_secret_value()
        if self.database_schema is None:
            return url
        return f"{url}{'&' if '?' in url else '?'}schema={self.database_schema}"

    @pydantic.model_validator(mode="after")
    def _keep_apart(self) -> Self:
        """What all tenants' documents are stored in cannot be a source for one of them."""
        buckets = {each.partition("@")[0] for each in self.source_buckets}
        if self.blobs_url and urlsplit(self.blobs_url).netloc in buckets:
            raise ValueError(
                f"{PREFIX}SOURCE_BUCKETS names the bucket of {PREFIX}BLOBS_URL, which has all documents"
            )
        return self

    @pydantic.model_validator(mode="after")
    def _agree(self) -> Self:
        """Contradictory settings are rejected at startup, not at the first lease or order."""
        if self.lease_renew_every * 2 >= self.lease_ttl:
            raise ValueError(
                f"{PREFIX}LEASE_RENEW_EVERY ({self.lease_renew_every:g}) must be less than half of "
                f"{PREFIX}LEASE_TTL ({self.lease_ttl:g}), so that one failed renewal does not lose the lease"
            )
        if self.vector_index == "pgvector" and self.database_url.get_secret_value().startswith("sqlite"):
            raise ValueError(
                f"{PREFIX}VECTOR_INDEX is pgvector, so {PREFIX}DATABASE_URL must be a PostgreSQL URL"
            )
        if self.database_schema and self.database_url.get_secret_value().startswith("sqlite"):
            raise ValueError(f"{PREFIX}DATABASE_SCHEMA is set, so {PREFIX}DATABASE_URL should be PostgreSQL")
        if (self.blobs_access_key is None) != (self.blobs_secret_key is None):
            raise ValueError(f"set both {PREFIX}BLOBS_ACCESS_KEY and {PREFIX}BLOBS_SECRET_KEY, or neither")
        if self.lease_backend == "redis" and self.redis_url is None:
            raise ValueError(f"{PREFIX}LEASE_BACKEND is redis, so {PREFIX}REDIS_URL is required")
        published = {url.get_secret_value() for url in self.broker_urls}
        if self.broker_url.get_secret_value() not in published:
            raise ValueError(
                f"{PREFIX}BROKER_URL must be one of {PREFIX}BROKER_URLS, or its workers are never woken"
            )
        for part in ("embedding", "llm"):
            chosen = getattr(self, f"{part}_provider")
            openai = chosen == "openai" and chosen not in self.providers
            name = f"{PREFIX}{part.upper()}"
            if openai and not getattr(self, f"{part}_base_url") and not getattr(self, f"{part}_api_key"):
                raise ValueError(
                    f"{name}_PROVIDER is openai, so {name}_API_KEY is required, "
                    f"or {name}_BASE_URL of a server that needs no key"
                )
        if self.llm_provider == "local" and (self.llm_base_url or self.llm_api_key):
            # Otherwise the stand-in would answer in place of the configured server.
            raise ValueError(f"{PREFIX}LLM_PROVIDER is local; set it to openai to use the configured server")
        return self


def load() -> Settings:
    """The settings of this process.

    Raises `SettingsError` for anything unknown, malformed, contradictory or not allowed in the file.
    """
    file = _read_file(os.environ.get(f"{PREFIX}CONFIG", ""))
    _refuse_unknown(
        (name for name in os.environ if name.upper().startswith(PREFIX)), prefix=PREFIX, suffix=""
    )
    _refuse_unknown(file.values, prefix="", suffix=f" in {file.name}")
    _refuse_untrusted(file)
    reset = _file.set(file)
    try:
        return Settings()
    except pydantic_settings.SettingsError as error:
        raise SettingsError(str(error)) from None
    except pydantic.ValidationError as error:
        # From None: pydantic's own text would follow in a traceback.
        raise SettingsError(
            "; ".join(_explain(each, file) for each in error.errors(include_input=False))
        ) from None
    finally:
        _file.reset(reset)


def choose(**options: str | Path | None) -> None:
    """Command-line options override the environment, in this process and its children."""
    for name, value in options.items():
        if value is not None:
            os.environ[PREFIX + name.upper()] = str(value)


def _read_file(chosen: str) -> _File:
    path = Path(chosen or FILE).expanduser()
    name = str(path)
    try:
        return _File(tomllib.loads(path.read_text(encoding="utf-8")), name, chosen=bool(chosen))
    except FileNotFoundError:
        if not chosen:
            return _File()
        raise SettingsError(f"{PREFIX}CONFIG names {name}, which does not exist") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{name} cannot be read: {error}") from None


def _refuse_untrusted(file: _File) -> None:
    """Raise SettingsError, naming the remedy, if the file sets what it may not."""
    for name in sorted(file.values):
        if name in trust.NO_FILE:
            raise SettingsError(
                f"{name} cannot be set in a file; use --{name.replace('_', '-')} or {PREFIX}{name.upper()}"
            )
        if not file.chosen and name not in trust.ANY_FILE:
            raise SettingsError(
                f"{name} cannot be set by a {FILE} merely found in the current folder; if you trust the "
                f"file, name it: --config {FILE}, or {PREFIX}CONFIG={FILE}"
            )


def _refuse_unknown(names: Iterable[str], *, prefix: str, suffix: str) -> None:
    known = {(prefix + field.upper() if prefix else field) for field in Settings.model_fields}
    for name in sorted(names):
        spelt = name.upper() if prefix else name
        if spelt not in known:
            close = difflib.get_close_matches(spelt.lower(), [each.lower() for each in known], n=1, cutoff=0)
            suggestion = close[0].upper() if prefix else close[0]
            raise SettingsError(f"{name}{suffix} is not a setting; the closest is {suggestion}")


def _explain(error: Any, file: _File) -> str:
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    if not error["loc"]:
        return message
    name = str(error["loc"][0])
    if name == "providers" and len(error["loc"]) > 1:
        table, *keys = (str(each) for each in error["loc"][1:] if each != "[key]")
        suffix = f" in {file.name}" if name in file.values else ""
        return f"[providers.{table}]{suffix} {'.'.join(keys)}{': ' if keys else ''}{message}"
    in_file = name in file.values and not os.environ.get(PREFIX + name.upper())
    return f"{f'{name} in {file.name}' if in_file else PREFIX + name.upper()} {message}"
