"""The tables of Holdfast in a database of Django.

They belong to Holdfast's own migrations, which run after those of Django, whenever `migrate` does. The app
has no migrations of Django's kind: its models are not managed, so that `makemigrations` has nothing to say.
"""

from typing import Any

from django.conf import settings
from django.db import connections
from sqlalchemy import URL

from holdfast.core.errors import BadRequestError
from holdfast.guard import django_connections
from holdfast.store.base import dialect, migrate, revisions


def alias() -> str:
    """The database that has the tables: HOLDFAST_DATABASE of the project's settings, or `default`."""
    return str(getattr(settings, "HOLDFAST_DATABASE", "default"))


def url(name: str | None = None) -> str:
    """The address of that database, or of another alias."""
    address: URL = django_connections.DjangoDatabase(name or alias()).url
    return address.render_as_string(hide_password=False)


def after_migrate(using: str, verbosity: int = 1, stdout: Any = None, **_: Any) -> None:
    """The tables are there and at this release, if they belong into the database that was migrated."""
    if using != alias():
        return
    try:
        address = url()
    except BadRequestError as error:
        # A test database in memory, or one that Holdfast cannot use: nobody has used a guard yet.
        if verbosity >= 2:
            _say(stdout, f"Holdfast: no tables in {using}: {error.message}")
        return
    if _is_current(address):
        return
    connections[using].close()  # an open connection to SQLite may hold a lock
    revision = migrate.upgrade(address)
    if verbosity >= 1:
        _say(stdout, f"Holdfast: tables in {using} are at revision {revision}")


def _is_current(address: str) -> bool:
    engine = dialect.build(address, pool_size=1, prepare=False, simulated=False)
    try:
        return revisions.current(engine) == revisions.known()
    finally:
        engine.dispose()


def _say(stdout: Any, line: str) -> None:
    if stdout is None:
        print(line)  # noqa: T201 - as Django does where a caller passes no stream
    else:
        stdout.write(f"{line}\n")
