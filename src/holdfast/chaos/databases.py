"""Databases from the outside: made, removed and asked without the store's own connections."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.extras import LazyModule

if TYPE_CHECKING:
    import psycopg
else:
    psycopg = LazyModule("psycopg")


def execute(server: str, statement: str) -> list[tuple[Any, ...]]:
    """The rows that the statement returns, if any; it is committed. It is the harness's own text."""
    with psycopg.connect(server, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def is_writable(file: Path) -> bool:
    """Whether SQLite takes a write; a frozen writer keeps everybody else from it."""
    connection = sqlite3.connect(file, timeout=1.0, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True
