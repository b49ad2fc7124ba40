"""The order in which the journal is read, and up to which row, on each dialect.

A position is a transaction and a number. SQLite has one writer: all its transactions count as 0, numbers
appear in order, and every visible row is settled. This is spelled out in SQL, because SQLite uses no index to
compare a pair whose second part is the primary key.
"""

from typing import Any

from sqlalchemy import BigInteger, Boolean, ColumnElement
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class own_transaction(FunctionElement[int]):  # noqa: N801 - reads as SQL
    """The number of the transaction that writes a row."""

    inherit_cache = True
    type = BigInteger()


@compiles(own_transaction, "postgresql")
def _own_transaction_postgresql(_element: Any, _compiler: Any, **_: Any) -> str:
    return "pg_current_xact_id()::text::bigint"


@compiles(own_transaction, "sqlite")
def _own_transaction_sqlite(_element: Any, _compiler: Any, **_: Any) -> str:
    return "'0'"


class _comparison(FunctionElement[bool]):  # noqa: N801 - reads as SQL
    inherit_cache = True
    type = Boolean()
    sign = ""

    def __init__(self, *parts: ColumnElement[int]) -> None:
        """`xid` and `id` of a row, then of a position."""
        super().__init__(*parts)

    def self_group(self, against: Any = None) -> Any:  # noqa: ARG002 - the parent's signature
        """Itself: next to other conditions SQLite would get `… = 1`, which uses no index."""
        return self


class is_settled(_comparison):  # noqa: N801 - reads as SQL
    """True for a row before which no other can appear any more, by its `xid`.

    As this statement sees it, every transaction with a number below the oldest open one has ended.
    """

    inherit_cache = True


@compiles(is_settled, "postgresql")
def _is_settled_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    return (
        f"{compiler.process(element.clauses, **kw)} < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    )


@compiles(is_settled, "sqlite")
def _is_settled_sqlite(_element: Any, _compiler: Any, **_: Any) -> str:
    return "1 = 1"


class is_open(_comparison):  # noqa: N801 - reads as SQL
    """True for a visible row before which others may still appear, by its `xid`."""

    inherit_cache = True


@compiles(is_open, "postgresql")
def _is_open_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    return (
        f"{compiler.process(element.clauses, **kw)} >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    )


@compiles(is_open, "sqlite")
def _is_open_sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    return f"{compiler.process(element.clauses, **kw)} > 0"


class comes_after(_comparison):  # noqa: N801 - reads as SQL
    """True for a row after a position."""

    inherit_cache = True
    sign = ">"


class comes_up_to(_comparison):  # noqa: N801 - reads as SQL
    """True for a row at or before a position."""

    inherit_cache = True
    sign = "<="


@compiles(_comparison, "postgresql")
def _compared_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    xid, number, of_xid, of_number = (compiler.process(each, **kw) for each in element.clauses)
    return f"({xid}, {number}) {element.sign} ({of_xid}, {of_number})"


@compiles(_comparison, "sqlite")
def _compared_sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    xid, number, of_xid, of_number = (compiler.process(each, **kw) for each in element.clauses)
    return f"({xid} = 0 * {of_xid} AND {number} {element.sign} {of_number})"
