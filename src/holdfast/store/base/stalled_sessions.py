"""Sessions of PostgreSQL that keep their locks for a process which was frozen in the middle of a hand-over.

The server itself ends the session of a process that is frozen between two statements of a transaction
(`dialect.IDLE_IN_TRANSACTION_MS`). It does not end one that was frozen while it handed over several at once,
as the driver does in `executemany`: the server stops its clock with the first message that comes, and then
waits for the rest for ever, with the rows of the task and its head locked. Whoever sweeps ends such a
session; the thawed process meets a cut connection, tries again, and is fenced out. One's own sessions may be
ended without any privilege.
"""

from sqlalchemy import Boolean, ColumnElement, false, literal_column, text

from holdfast.store.base import dialect
from holdfast.store.base.database import Database

AFTER = dialect.IDLE_IN_TRANSACTION_MS / 1000
_STALLED = (
    "FROM pg_stat_activity"
    " WHERE datname = current_database() AND usename = current_user AND application_name = '{name}'"
    " AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND wait_event = 'ClientRead'"
    " AND state_change < clock_timestamp() - make_interval(secs => {seconds})"
).format(name=dialect.APPLICATION, seconds="{seconds}")
END = text(f"SELECT pg_terminate_backend(pid) AS ended {_STALLED.format(seconds=':seconds')}")


def waiting(db: Database) -> ColumnElement[bool]:
    """The condition under which there is a session to end."""
    if not db.postgresql:
        return false()
    return literal_column(f"EXISTS (SELECT 1 {_STALLED.format(seconds=AFTER)})", Boolean())


def end(db: Database, *, after: float = AFTER) -> int:
    """How many sessions had waited in a transaction for `after` seconds, and have been told to end.

    None on SQLite, where a process that is frozen in a transaction keeps the one write lock.
    """
    if not db.postgresql:
        return 0
    # No row is written, so there is nothing to commit; told twice, a session ends all the same.
    return len(db.look(END, {"seconds": after}))
