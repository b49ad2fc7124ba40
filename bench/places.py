"""Fresh, migrated databases to measure on, each gone afterwards."""

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import create_engine, make_url, text

from holdfast.store.base import dialect, migrate
from scripts.services import state

POSTGRESQL, SQLITE = "postgresql", "sqlite"
ROOT = Path(__file__).resolve().parents[1]


class NoServerError(Exception):
    """The private PostgreSQL is not up."""


def server() -> str:
    """The address of the private PostgreSQL; its user may create databases."""
    entry = state.read().get(POSTGRESQL, {"missing": "not started"})
    if "url" not in entry:
        raise NoServerError(f"no PostgreSQL ({entry.get('missing', 'still starting')}): run `make bench`")
    return str(entry["url"])


@contextlib.contextmanager
def empty_postgresql() -> Iterator[str]:
    """The address of a database with nothing in it."""
    name = f"hf_bench_{secrets.token_hex(6)}"
    _admin(f'CREATE DATABASE "{name}"')
    try:
        yield make_url(server()).set(database=name).render_as_string(hide_password=False)
    finally:
        _admin(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@contextlib.contextmanager
def fresh(kind: str) -> Iterator[str]:
    """The address of a database of this kind with our tables and no row."""
    with contextlib.ExitStack() as stack:
        if kind == POSTGRESQL:
            url = stack.enter_context(empty_postgresql())
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-"))
            url = f"sqlite:///{folder}/holdfast.db"
        migrate.upgrade(url)
        yield url


def settle() -> None:
    """What was written before is on disk now, so that no checkpoint of it falls into the next measurement."""
    _admin("CHECKPOINT")


def version() -> str:
    """The server's version."""
    engine = create_engine(dialect.parse(server()))
    with engine.connect() as connection:
        found = connection.execute(text("SHOW server_version")).scalar_one()
    engine.dispose()
    return str(found).split()[0]


def _admin(statement: str) -> None:
    engine = create_engine(dialect.parse(server()), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
