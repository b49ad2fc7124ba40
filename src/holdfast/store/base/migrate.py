"""Bring a database to the revision that this code needs, or report that it is not there.

Migrations run while the previous release is still working: they add first and remove one release later, and
they give up on a lock after a few seconds instead of blocking the whole service.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Engine, inspect
from sqlalchemy.schema import CreateSchema

from holdfast.core.errors import BadRequestError, SchemaError
from holdfast.store.base import dialect, statistics

VERSION_TABLE = "holdfast_version"
SCRIPTS = Path(__file__).parent.parent / "migrations"
_UNKNOWN = "the database is at revision {}, which this code does not know; install a newer holdfast"


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config


def known() -> str:
    """The revision that this code needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise SchemaError("this installation has no migrations; install holdfast again")
    return head


def current(engine: Engine) -> str | None:
    """The revision of the database, or None if it is empty."""
    with engine.connect() as connection:
        where = {"version_table": VERSION_TABLE, "version_table_schema": dialect.schema_of(engine)}
        context = MigrationContext.configure(connection, opts=where)
        return context.get_current_revision()


def upgrade(url: str, revision: str = "head") -> str:
    """The database at `url` is at `revision` (default: the newest). Returns it.

    Raises SchemaError if the database is newer than that, or at an unknown revision.
    """
    engine = dialect.build(url, pool_size=1, prepare=False, simulated=False)
    try:
        config = _config()
        config.attributes["engine"] = engine
        _refuse_tables_without_prefix(engine)
        if (schema := dialect.schema_of(engine)) is not None:
            with engine.begin() as connection:
                connection.execute(CreateSchema(schema, if_not_exists=True))
        _refuse_to_go_back(ScriptDirectory.from_config(config), current(engine), revision)
        command.upgrade(config, revision)
        statistics.write(engine)
        return current(engine) or ""
    except CommandError as error:
        message = f"{error}; omit --to for the latest revision"
        raise BadRequestError(message, code="bad_revision") from error
    finally:
        engine.dispose()


def _refuse_tables_without_prefix(engine: Engine) -> None:
    """Return unless the tables are from before the baseline, from which no migration leads."""
    names = set(inspect(engine).get_table_names(schema=dialect.schema_of(engine)))
    if {"heads", "word_counts", "journal"} <= names and "holdfast_heads" not in names:
        raise SchemaError(
            "this database was made by a preview of holdfast, whose tables had no prefix, and cannot be "
            "upgraded; use a new data folder or database, and index the documents again"
        )


def _refuse_to_go_back(scripts: ScriptDirectory, current_revision: str | None, revision: str) -> None:
    """Return if `current_revision` can be upgraded to `revision`. Alembic reports an unknown `revision`."""
    if current_revision is None:
        return
    if current_revision not in _revisions(scripts):
        raise SchemaError(_UNKNOWN.format(current_revision))
    target = scripts.get_revision(revision)
    if current_revision not in {each.revision for each in scripts.iterate_revisions(target.revision, "base")}:
        raise SchemaError(
            f"the database is at revision {current_revision}, which is newer than "
            f"{target.revision}, and there is no way back; restore a backup from before the upgrade"
        )


def _revisions(scripts: ScriptDirectory) -> set[str]:
    return {script.revision for script in scripts.walk_revisions()}


def check(engine: Engine) -> None:
    """Return if the database is at the needed revision; otherwise SchemaError, which says what to run."""
    revision, latest = current(engine), known()
    if revision == latest:
        return
    if revision is None:
        _refuse_tables_without_prefix(engine)
        message = "the database has no Holdfast tables yet; run: holdfast migrate"
    elif revision in _revisions(ScriptDirectory.from_config(_config())):
        message = f"the database is at revision {revision}, this code needs {latest}; run: holdfast migrate"
    else:
        message = _UNKNOWN.format(revision)
    raise SchemaError(message)
