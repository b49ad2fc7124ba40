"""Bring a database to the revision this code knows, and say so when it is not there.

Migrations run with the release before them still working: they add first and remove one release later, and
they give up on a lock after a few seconds rather than queue the whole service up behind them.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from holdfast.core.errors import SchemaError
from holdfast.store import dialect

SCRIPTS = Path(__file__).parent / "migrations"


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config


def known() -> str:
    """The revision this code was written for."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise SchemaError("this installation has no migrations; install holdfast again")
    return head


def current(engine: Engine) -> str | None:
    """The revision the database is at, or None when it is empty."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(url: str, revision: str = "head") -> str:
    """The database at `url` is at `revision` (default: the newest); answers it."""
    engine = dialect.build(url, pool_size=1, prepare=False, simulated=False)
    try:
        config = _config()
        config.attributes["engine"] = engine
        command.upgrade(config, revision)
        return current(engine) or ""
    finally:
        engine.dispose()


def check(engine: Engine) -> None:
    """Return if the database is at the known revision; otherwise SchemaError, which says what to run."""
    found, wanted = current(engine), known()
    if found == wanted:
        return
    revisions = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if found is None:
        message = "the database has no Holdfast tables yet; run: holdfast migrate"
    elif found in revisions:
        message = f"the database is at revision {found}, this code needs {wanted}; run: holdfast migrate"
    else:
        message = (
            f"the database is at revision {found}, which this code does not know; install a newer holdfast"
        )
    raise SchemaError(message)
