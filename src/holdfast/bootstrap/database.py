"""The database of these settings: found, migrated, or explained in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import exc

from holdfast.bootstrap import data_folder
from holdfast.core.errors import StoreUnavailableError
from holdfast.settings import Settings
from holdfast.store.base import dialect, migrate

T = TypeVar("T")


def migrated(settings: Settings, revision: str = "head") -> str:
    """The database of these settings is at `revision`; answers it. The embedded one is made if need be."""
    url = settings.database_url.get_secret_value()
    if (file := sqlite_file(url)) is not None:
        data_folder.make(settings, file)
    return reached(lambda: migrate.upgrade(url, revision))


def reached(ask: Callable[[], T]) -> T:
    """The answer of `ask`; what the database driver raises instead is told in one line."""
    try:
        return ask()
    except exc.DBAPIError as error:
        said = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        message = (
            f"the database gave no answer ({said[0]}); check that it runs and that "
            "HOLDFAST_DATABASE_URL is right"
        )
        raise StoreUnavailableError(message) from error


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite address; None for any other database."""
    parsed = dialect.parse(url)
    return Path(parsed.database) if parsed.drivername == "sqlite" and parsed.database else None
