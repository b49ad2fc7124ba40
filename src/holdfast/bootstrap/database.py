"""The database of these settings: found, migrated, or explained in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.bootstrap import data_folder
from holdfast.settings import Settings
from holdfast.store.base import dialect, migrate
from holdfast.store.base.driver_errors import answering

T = TypeVar("T")


def migrated(settings: Settings, revision: str = "head") -> str:
    """The database of these settings is at `revision`; answers it. The embedded one is made if need be."""
    url = settings.database
    if (file := sqlite_file(url)) is not None:
        data_folder.make(settings, file)
    return reached(lambda: migrate.upgrade(url, revision))


def reached(ask: Callable[[], T]) -> T:
    """The answer of `ask`; what the database driver raises instead is told in one line."""
    message = "the database gave no answer ({}); check that it runs and that HOLDFAST_DATABASE_URL is right"
    with answering(message):
        return ask()


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite URL; None for any other database."""
    return dialect.sqlite_file(url)
