"""Django's connections: their address for the guard, and their open transactions for the store.

Inside `transaction.atomic()` the statements of the store are executed by Django's own connection to the
database: that of psycopg, which Django prefers to psycopg2 where both are installed, or of sqlite3.
SQLAlchemy is lent that connection without the right to end anything: the transaction is Django's to commit or
to roll back.
"""

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, exc

from holdfast.core.errors import BadRequestError
from holdfast.extras import MissingExtraError

# Options of Django's backends that a driver does not know.
_OF_DJANGO = frozenset(
    {"assume_role", "isolation_level", "pool", "server_side_binding", "cursor_factory", "context"}
)
_lent: "ContextVar[_LentConnection]" = ContextVar("holdfast_lent_connection")


class DjangoDatabase:
    """A database of `settings.DATABASES`, by its alias; read when it is needed, as tests change the name."""

    def __init__(self, alias: str) -> None:
        self._alias = alias

    @property
    def url(self) -> URL:
        """The address of the database as it is now."""
        try:
            from django.db import connections  # noqa: PLC0415 - an extra
            from django.utils.connection import ConnectionDoesNotExist  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise MissingExtraError("django", "Guard(django=…)") from error
        try:
            wrapper = connections[self._alias]
        except ConnectionDoesNotExist as error:
            message = f"settings.DATABASES has no {self._alias!r}; pass one of its aliases as django="
            raise BadRequestError(message, code="bad_database") from error
        return url_of(wrapper.vendor, wrapper.settings_dict)


def url_of(vendor: str, settings: dict[str, Any]) -> URL:
    """The address of a database, from an entry of `settings.DATABASES`."""
    name = str(settings.get("NAME") or "")
    if vendor == "sqlite":
        if not name or ":memory:" in name or "mode=memory" in name:
            message = (
                "Django uses a SQLite database in memory, which workers cannot share; for tests set "
                'DATABASES["default"]["TEST"] = {"NAME": BASE_DIR / "test.sqlite3"}'
            )
            raise BadRequestError(message, code="bad_database")
        return URL.create("sqlite", database=name)
    if vendor != "postgresql":
        message = f"a {vendor} database cannot have the tables of Holdfast; use PostgreSQL or SQLite"
        raise BadRequestError(message, code="bad_database")
    options = {
        key: str(value)
        for key, value in (settings.get("OPTIONS") or {}).items()
        if key not in _OF_DJANGO and isinstance(value, str | int)
    }
    host = str(settings.get("HOST") or "")
    if host.startswith("/"):  # the folder of a socket
        options["host"], host = host, ""
    return URL.create(
        "postgresql",
        username=settings.get("USER") or None,
        password=settings.get("PASSWORD") or None,
        host=host or None,
        port=int(settings["PORT"]) if settings.get("PORT") else None,
        database=name or None,
        query=options,
    )


def django_connection(using: Any) -> Any | None:
    """Django's connection if `using` is one, or its alias; None if it is something else."""
    if "django.db" not in sys.modules:
        return None
    from django.db import connections  # noqa: PLC0415 - an extra
    from django.db.backends.base.base import BaseDatabaseWrapper  # noqa: PLC0415

    if isinstance(using, str) and using in connections:
        return connections[using]
    # `django.db.connection` stands for the connection of this thread.
    return using if isinstance(using, BaseDatabaseWrapper) or hasattr(using, "settings_dict") else None


@contextlib.contextmanager
def lent(wrapper: Any) -> Iterator[Connection]:
    """SQLAlchemy's connection over that of Django, in whose open transaction all statements are executed.

    Errors of the driver leave the block as Django's own, and mark the transaction as broken as Django does.
    """
    if not wrapper.in_atomic_block and wrapper.get_autocommit():
        message = "Django's connection has no open transaction; call this inside `with transaction.atomic():`"
        raise BadRequestError(message, code="no_transaction")
    wrapper.ensure_connection()
    engine = _engine("postgresql+psycopg" if wrapper.vendor == "postgresql" else "sqlite")
    token = _lent.set(_LentConnection(wrapper.connection))
    try:
        with wrapper.wrap_database_errors, _as_the_driver_says(), engine.connect() as connection:
            yield connection
    finally:
        _lent.reset(token)


@contextlib.contextmanager
def _as_the_driver_says() -> Iterator[None]:
    try:
        yield
    except exc.DBAPIError as error:
        if error.orig is None:
            raise
        raise error.orig from error


@cache
def _engine(driver: str) -> Engine:
    """An engine whose connections are those that are lent to it."""
    # hstore is looked up with the driver's own connection, and no column of ours is one.
    options: dict[str, Any] = {"use_native_hstore": False} if driver.startswith("postgresql") else {}
    return create_engine(f"{driver}://", creator=_lent.get, poolclass=NullPool, **options)


class _LentConnection:
    """A connection of a driver, as SQLAlchemy sees it: it can be used, but neither ended nor set up."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """A cursor of the driver's own class: that of Django's psycopg puts values into the text."""
        if type(self._raw).__module__.startswith("psycopg."):
            import psycopg  # noqa: PLC0415 - an extra

            return psycopg.Cursor(self._raw)
        return self._raw.cursor(*args, **kwargs)

    def commit(self) -> None:
        """Nothing: the transaction is Django's."""

    def rollback(self) -> None:
        """Nothing, likewise. SQLAlchemy rolls back when it returns a connection to a pool."""

    def close(self) -> None:
        """Nothing, likewise."""

    def create_function(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: SQLAlchemy would replace functions that Django has defined on SQLite."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)
