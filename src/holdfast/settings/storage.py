"""Where state, files and vectors are stored."""

import os
from pathlib import Path
from typing import Annotated, Literal

import pydantic
from pydantic import Field, SecretStr

from holdfast.settings import url_schemes

_DATABASE_SCHEMES = ("sqlite", "postgresql", "postgresql+psycopg")
_REDIS_SCHEMES = ("redis", "rediss", "unix")


def default_data_dir() -> Path:
    """One folder per user, whatever the current folder is."""
    share = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification says to ignore a relative path.
    if Path(share).is_absolute():
        return Path(share) / "holdfast"
    try:
        return Path.home() / ".local" / "share" / "holdfast"
    except RuntimeError:
        raise ValueError("set HOLDFAST_DATA_DIR: this user has no home folder") from None


class StorageSettings(pydantic.BaseModel):
    """Where state, files and vectors are stored."""

    data_dir: Path = Field(
        default=Path(),
        description="Folder for the embedded database, blobs and all other local files; `--data-dir`.",
        json_schema_extra={"shown": "`~/.local/share/holdfast`; in `XDG_DATA_HOME` if that is set"},
    )
    config: Path | None = Field(
        default=None,
        description=(
            "The settings file; `--config`. Default: `holdfast.toml` in the current folder, which "
            "may only set tuning options."
        ),
    )
    database_url: SecretStr = Field(
        default=SecretStr(""),
        description="Database for all state: `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/NAME`.",
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
        default=False,
        description="Use prepared statements on PostgreSQL; not behind a transaction-mode pooler.",
    )
    redis_url: SecretStr | None = Field(
        default=None,
        description="Redis for the `redis` lease backend: `redis://:PASSWORD@HOST:PORT/DB`.",
    )
    blobs_url: str | None = Field(
        default=None,
        description=(
            "S3 bucket for document files, needed for workers on several machines: "
            "`s3://BUCKET/PREFIX?endpoint=http://HOST:PORT&region=NAME`."
        ),
        json_schema_extra={"shown": "the folder `DATA_DIR/blobs`"},
    )
    blobs_access_key: SecretStr | None = Field(
        default=None, description="Access key id for the bucket; default: the AWS client's own lookup."
    )
    blobs_secret_key: SecretStr | None = Field(default=None, description="Secret key for the bucket.")
    blobs_cache: Annotated[int, Field(ge=16)] = Field(
        default=1024, description="Size of the bucket's local cache, `DATA_DIR/blob-cache`, in MiB."
    )
    vector_index: Literal["auto", "exact", "pgvector"] = Field(
        default="auto",
        description=(
            "Where vectors are compared. `exact`: in memory; `pgvector`: in PostgreSQL for collections of "
            "2,000 chunks or more; `auto`: in PostgreSQL, if it has the extension, from 256 MiB of vectors."
        ),
    )
    history_retention: Annotated[int, Field(ge=1, le=36_500)] | None = Field(
        default=None,
        description=(
            "Days to keep finished runs, journal and results; default: for ever. The ledger is always kept."
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
        """The default data folder."""
        return default_data_dir()
