"""At which revision a database is, and which one this code needs.

Every process asks when it starts. Alembic would take longer to import than the question takes, so this does
without it: migrations are files, and the name of each begins with its revision.
"""

from pathlib import Path

from sqlalchemy import Column, Engine, MetaData, Table, Text, inspect, select

from holdfast.core.errors import SchemaError
from holdfast.store.base import dialect

VERSION_TABLE = "holdfast_version"
SCRIPTS = Path(__file__).parent.parent / "migrations"
UNKNOWN = "the database is at revision {}, which this code does not know; install a newer holdfast"


def revisions() -> list[str]:
    """The revisions that this code knows, in order."""
    names = (path.name.partition("_")[0] for path in (SCRIPTS / "versions").glob("*_*.py"))
    return sorted(name for name in names if name.isdigit())


def known() -> str:
    """The revision that this code needs."""
    listed = revisions()
    if not listed:
        raise SchemaError("this installation has no migrations; install holdfast again")
    return listed[-1]


def current(engine: Engine) -> str | None:
    """The revision of the database, or None if it is empty."""
    # Without its schema: the search path of every connection finds it, as it does all other tables.
    table = Table(VERSION_TABLE, MetaData(), Column("version_num", Text))
    # Only a look: on SQLite a writing transaction would wait for one that the caller itself has open.
    with engine.connect().execution_options(**dialect.READ) as connection:
        if not inspect(connection).has_table(VERSION_TABLE, schema=dialect.schema_of(engine)):
            return None
        return connection.execute(select(table.c.version_num)).scalar()


def refuse_tables_without_prefix(engine: Engine) -> None:
    """Return unless the tables are from before the baseline, from which no migration leads."""
    names = set(inspect(engine).get_table_names(schema=dialect.schema_of(engine)))
    if {"heads", "word_counts", "journal"} <= names and "holdfast_heads" not in names:
        raise SchemaError(
            "this database was made by a preview of holdfast, whose tables had no prefix, and cannot be "
            "upgraded; use a new data folder or database, and index the documents again"
        )


def check(engine: Engine) -> None:
    """Return if the database is at the needed revision; otherwise SchemaError, which says what to run."""
    revision, latest = current(engine), known()
    if revision == latest:
        return
    if revision is None:
        refuse_tables_without_prefix(engine)
        message = "the database has no Holdfast tables yet; run: holdfast migrate"
    elif revision in revisions():
        message = f"the database is at revision {revision}, this code needs {latest}; run: holdfast migrate"
    else:
        message = UNKNOWN.format(revision)
    raise SchemaError(message)
