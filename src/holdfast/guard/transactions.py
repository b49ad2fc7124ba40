"""Transactions of the application: what is written here takes effect with their commit or not at all.

The statements of the store are executed by the application's own connection, whatever its driver is.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Dialect, Executable
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.util.concurrency import in_greenlet

from holdfast.core.errors import BadRequestError, StoreTimeoutError
from holdfast.guard import django_connections
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


@contextlib.contextmanager
def borrowed(db: Database, using: Any) -> Iterator[Tx]:
    """The open transaction of an SQLAlchemy session or connection, or of Django's connection."""
    wrapper = django_connections.django_connection(using)
    with contextlib.ExitStack() as stack:
        if wrapper is None:
            connection = _connection(using)
        else:
            connection = stack.enter_context(django_connections.lent(wrapper))
        if connection.dialect.name != db.engine.dialect.name:
            message = (
                f"the transaction is on {connection.dialect.name}, the tables of Holdfast are on "
                f"{db.engine.dialect.name}; they must be in the same database"
            )
            raise BadRequestError(message, code="other_database")
        yield BorrowedTx(db, connection)


def _connection(using: Any) -> Connection:
    sync = getattr(using, "sync_session", None) or getattr(using, "sync_connection", None) or using
    if isinstance(sync, Session | scoped_session):
        _check_greenlet(sync.get_bind().dialect)
        return sync.connection()
    if isinstance(sync, Connection):
        _check_greenlet(sync.dialect)
        return sync
    message = (
        f"using= takes an SQLAlchemy session or connection, or Django's connection, "
        f"not {type(using).__name__}"
    )
    raise BadRequestError(message, code="bad_transaction")


def _check_greenlet(dialect: Dialect) -> None:
    """Return unless the driver is an async one and this is not the inside of `run_sync`."""
    if dialect.is_async and not in_greenlet():
        message = (
            "an async session is used inside run_sync: "
            "await session.run_sync(lambda sync: task.request(…, using=sync))"
        )
        raise BadRequestError(message, code="bad_transaction")
