"""PostgreSQL sessions that keep their locks because their process froze while sending several statements.

The server itself ends the session of a process that froze between two statements of a transaction
(`dialect.IDLE_IN_TRANSACTION_MS`). It does not if the process froze while sending several at once, as the
driver does in `executemany`: the server stops its clock at the first message and then waits for the rest for
ever, with the rows of the task and its head locked. The sweep ends such sessions; when the process thaws, its
connection is closed, it retries, and it is fenced out. Ending one's own sessions needs no privilege.
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
    """Sessions that had waited in a transaction for `after` seconds are being ended. Returns how many.

    None on SQLite, where a process frozen in a transaction keeps the only write lock.
    """
    if not db.postgresql:
        return 0
    # No row is written, so there is nothing to commit; ending a session twice does no harm.
    return len(db.look(END, {"seconds": after}))
