"""How long the transactions of one thread may wait, and how long they may take."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Connection, exc

LOCKED_STATE, CANCELLED_STATE = "55P03", "57014"

# PostgreSQL: milliseconds that a transaction of this thread waits for a row; by default for ever.
_lock_wait: ContextVar[int | None] = ContextVar("lock_wait", default=None)


def lock_wait() -> int | None:
    """The milliseconds of `waiting_for_rows`; None without it."""
    return _lock_wait.get()


@contextlib.contextmanager
def waiting_for_rows(seconds: float) -> Iterator[None]:
    """No transaction in this block waits longer for a row on PostgreSQL: it raises StoreLockedError.

    SQLite has no row locks, and waits for its only write lock for a limited time.
    """
    token = _lock_wait.set(round(seconds * 1000))
    try:
        yield
    finally:
        _lock_wait.reset(token)


def waited_in_vain(error: exc.DBAPIError) -> bool:
    """True if a row was locked for longer than this thread may wait for it."""
    return _lock_wait.get() is not None and getattr(error.orig, "sqlstate", None) == LOCKED_STATE


# When the caller's time is over, by the monotonic clock; by default never.
_time_over: ContextVar[float | None] = ContextVar("time_over", default=None)
# Steps of SQLite's virtual machine between two checks of the clock: a fraction of a millisecond.
STEPS_BETWEEN_LOOKS = 20_000


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """The database calls of this block take `seconds` at most in total, then StoreTimeoutError.

    PostgreSQL ends a statement that takes longer, SQLite interrupts it, and no further statement begins. Not
    covered: anything else that the block does.
    """
    token = _time_over.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _time_over.reset(token)


def time_left() -> float | None:
    """The seconds left of the time limit, at least 0.001; None without one."""
    over = _time_over.get()
    return None if over is None else max(0.001, over - time.monotonic())


def is_time_over() -> bool:
    """True if there is a time limit and it has passed."""
    over = _time_over.get()
    return over is not None and time.monotonic() >= over


def ran_out_of_time(error: exc.DBAPIError) -> bool:
    """True if the database stopped because the time limit of this block was reached."""
    if _time_over.get() is None:
        return False
    return getattr(error.orig, "sqlstate", None) == CANCELLED_STATE or (
        is_time_over() and "interrupted" in str(error.orig).lower()
    )


@contextlib.contextmanager
def interrupted_in_time(connection: Connection) -> Iterator[None]:
    """SQLite's part of `time_limit`, for the statements of one transaction."""
    if _time_over.get() is None or connection.dialect.name != "sqlite":
        yield
        return
    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(is_time_over, STEPS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        with contextlib.suppress(sqlite3.ProgrammingError):  # the connection was lost meanwhile
            driver.set_progress_handler(None, 0)
