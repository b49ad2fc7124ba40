"""Opens and migrates the configured database; errors are reported in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.bootstrap import data_folder
from holdfast.settings import Settings
from holdfast.store.base import dialect
from holdfast.store.base.driver_errors import answering

T = TypeVar("T")


def migrated(settings: Settings, revision: str = "head") -> str:
    """Migrate the database to `revision` and return it. Creates the embedded database if missing."""
    url = settings.database
    if (file := sqlite_file(url)) is not None:
        data_folder.make(settings, file)
    # Alembic is imported by those who migrate: it would be a tenth of the start of every command.
    from holdfast.store.base import migrate  # noqa: PLC0415

    return reached(lambda: migrate.upgrade(url, revision))


def reached(ask: Callable[[], T]) -> T:
    """The result of `ask`; a driver's error becomes a one-line error."""
    message = "the database does not answer ({}); check that it runs and that HOLDFAST_DATABASE_URL is right"
    with answering(message):
        return ask()


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite URL; None for any other database."""
    return dialect.sqlite_file(url)
