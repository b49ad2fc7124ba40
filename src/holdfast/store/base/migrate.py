"""Bring a database to the revision that this code needs.

Migrations run while the previous release is still working: they add first and remove one release later, and
they give up on a lock after a few seconds instead of blocking the whole service.
"""

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.schema import CreateSchema

from holdfast.core.errors import BadRequestError, SchemaError
from holdfast.store.base import dialect, revisions, statistics


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(revisions.SCRIPTS).replace("%", "%%"))
    return config


def upgrade(url: str, revision: str = "head") -> str:
    """The database at `url` is at `revision` (default: the newest). Returns it.

    Raises SchemaError if the database is newer than that, or at an unknown revision.
    """
    engine = dialect.build(url, pool_size=1, prepare=False, simulated=False)
    try:
        config = _config()
        config.attributes["engine"] = engine
        revisions.refuse_tables_without_prefix(engine)
        if (schema := dialect.schema_of(engine)) is not None:
            with engine.begin() as connection:
                connection.execute(CreateSchema(schema, if_not_exists=True))
        _refuse_to_go_back(ScriptDirectory.from_config(config), revisions.current(engine), revision)
        command.upgrade(config, revision)
        statistics.write(engine)
        return revisions.current(engine) or ""
    except CommandError as error:
        message = f"{error}; omit --to for the latest revision"
        raise BadRequestError(message, code="bad_revision") from error
    finally:
        engine.dispose()


def _refuse_to_go_back(scripts: ScriptDirectory, current_revision: str | None, revision: str) -> None:
    """Return if `current_revision` can be upgraded to `revision`. Alembic reports an unknown `revision`."""
    if current_revision is None:
        return
    if current_revision not in revisions.revisions():
        raise SchemaError(revisions.UNKNOWN.format(current_revision))
    target = scripts.get_revision(revision)
    if current_revision not in {each.revision for each in scripts.iterate_revisions(target.revision, "base")}:
        raise SchemaError(
            f"the database is at revision {current_revision}, which is newer than "
            f"{target.revision}, and there is no way back; restore a backup from before the upgrade"
        )
