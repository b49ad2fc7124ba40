"""Where state, bytes and vectors lie."""

import os
from pathlib import Path
from typing import Annotated, Literal

import pydantic
from pydantic import Field, SecretStr

from holdfast.settings import url_schemes

_DATABASE_SCHEMES = ("sqlite", "postgresql", "postgresql+psycopg")
_REDIS_SCHEMES = ("redis", "rediss", "unix")


def default_data_dir() -> Path:
    """One place for each person, whatever folder a command is started in."""
    share = os.environ.get("XDG_DATA_HOME", "")
    # The specification says that a relative path there is to be ignored.
    if Path(share).is_absolute():
        return Path(share) / "holdfast"
    try:
        return Path.home() / ".local" / "share" / "holdfast"
    except RuntimeError:
        raise ValueError("HOLDFAST_DATA_DIR is needed, for this user has no home folder") from None


class StorageSettings(pydantic.BaseModel):
    """Where state, bytes and vectors lie."""

    data_dir: Path = Field(
        default=Path(),
        description="Folder for the embedded database, blobs and everything else kept on disk; `--data-dir`.",
        json_schema_extra={"shown": "`~/.local/share/holdfast`; in `XDG_DATA_HOME` if that is set"},
    )
    config: Path | None = Field(
        default=None,
        description=(
            "The settings file; `--config`. Unset: `holdfast.toml` in the current folder, which "
            "may only tune."
        ),
    )
    database_url: SecretStr = Field(
        default=SecretStr(""),
        description="Where all state lives: `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/NAME`.",
        json_schema_extra={"shown": "`sqlite:///DATA_DIR/holdfast.db`"},
    )
    database_schema: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$")] | None = Field(
        default=None,
        description=(
            "A PostgreSQL schema of its own for every table; `holdfast migrate` creates it. Small letters, "
            "digits and `_`. Not behind a transaction-mode pooler."
        ),
        json_schema_extra={"shown": "the first of the role's `search_path`, usually `public`"},
    )
    database_prepare: bool = Field(
        default=False, description="Prepare statements on PostgreSQL; not behind a transaction-mode pooler."
    )
    redis_url: SecretStr | None = Field(
        default=None,
        description="Redis for the `redis` lease backend: `redis://:PASSWORD@HOST:PORT/DB`.",
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
    history_retention: Annotated[int, Field(ge=1, le=36_500)] | None = Field(
        default=None,
        description=(
            "Days that ended runs, journal and results are kept; unset keeps them for ever. The ledger stays."
        ),
    )

    @pydantic.field_validator("database_url")
    @classmethod
    def _known_database(cls, url: SecretStr) -> SecretStr:
        return url_schemes.checked(url, _DATABASE_SCHEMES)

    @pydantic.field_validator("redis_url")
    @classmethod
    def _known_redis(cls, url: SecretStr | None) -> SecretStr | None:
        return None if url is None else url_schemes.checked(url, _REDIS_SCHEMES)

    @staticmethod
    def usual_data_dir() -> Path:
        """Where data lies unless somebody says otherwise."""
        return default_data_dir()
