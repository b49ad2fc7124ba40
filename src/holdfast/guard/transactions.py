"""Transactions of the application: what is written here takes effect with their commit or not at all.

The statements of the store are executed by the application's own connection, whatever its driver is.
"""

from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.orm import Session

from holdfast.core.errors import BadRequestError, StoreTimeoutError
from holdfast.store.base import time_limits
from holdfast.store.base.database import OUT_OF_TIME, Database, Tx
from holdfast.store.base.statements import StatementResult, Values


class BorrowedTx(Tx):
    """A transaction that somebody else has begun and will end."""

    __slots__ = ()

    def __init__(self, db: Database, connection: Connection) -> None:
        self.name = "borrowed"
        self.db = db
        self.connection = connection
        self.again = False

    def execute(self, statement: Executable, values: Values = None) -> StatementResult:
        """Run one statement, through SQLAlchemy: the connection may have listeners, or another driver."""
        if time_limits.is_time_over():
            raise StoreTimeoutError(OUT_OF_TIME)
        result = self.connection.execute(statement, values)
        return StatementResult(result.all() if result.returns_rows else (), result.rowcount)


def borrowed(db: Database, using: Any) -> Tx:
    """The open transaction of an SQLAlchemy session or connection, also of an async one."""
    connection = _connection(using)
    if connection.dialect.name != db.engine.dialect.name:
        message = (
            f"the transaction is on {connection.dialect.name}, the tables of Holdfast are on "
            f"{db.engine.dialect.name}; they must be in the same database"
        )
        raise BadRequestError(message, code="other_database")
    return BorrowedTx(db, connection)


def _connection(using: Any) -> Connection:
    sync = getattr(using, "sync_session", None) or getattr(using, "sync_connection", None) or using
    if isinstance(sync, Session):
        return sync.connection()
    if isinstance(sync, Connection):
        return sync
    message = f"using= takes an SQLAlchemy session or connection, not {type(using).__name__}"
    raise BadRequestError(message, code="bad_transaction")
