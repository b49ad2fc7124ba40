"""Cached statements: what SQLAlchemy would compute for each execution is computed once.

The statements of the store are constants. From the second execution on, a statement is cached as its text,
the positions of its values and the conversions of its types; the rest is up to the driver. Rows are returned
as named tuples. SQLAlchemy executes everything else: a statement that needs more (a list expanded into its
text, values filled in by Python), one built for a single use, and every statement of a connection with event
listeners.

Not covered: when a connection turns out to be lost, only that one is discarded; the others of the pool are
discovered one by one, and `Database` retries as often as that takes.
"""

import weakref
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Delete, Executable, Insert, Select, Update, event, exc

from holdfast.store.base.dialect import lost_or_wrong

Values = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
Convert = Callable[[Any], Any]
KEPT = (Select, Insert, Update, Delete)
_ONE = (dict, Mapping)
TEXT, BINARY = 0, 1  # PostgreSQL's formats, as the driver names them


class StatementResult:
    """The result of a statement: its rows, and how many it changed."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: Sequence[Any], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def all(self) -> Sequence[Any]:
        """Every row."""
        return self._rows

    def first(self) -> Any | None:
        """The first row, or None."""
        return self._rows[0] if self._rows else None

    def one(self) -> Any:
        """The only row; an error if there is none or more than one."""
        if not self._rows:
            raise exc.NoResultFound("a row was required and none was found")
        if len(self._rows) > 1:
            raise exc.MultipleResultsFound("one row was required and several were found")
        return self._rows[0]

    def scalar(self) -> Any:
        """The first value of the first row, or None."""
        return self._rows[0][0] if self._rows else None

    def scalar_one(self) -> Any:
        """The first value of the only row."""
        return self.one()[0]


class _Ready:
    """One statement, compiled for one dialect and one set of values."""

    __slots__ = ("_columns", "_convert", "_defaults", "_dialect", "_pick", "_read", "_row", "many", "text")

    def __init__(
        self, compiled: Any, dialect: Any, columns: Sequence[Any], passed: Sequence[str], *, many: bool
    ) -> None:
        self.text = str(compiled)
        self.many = many
        self._dialect = dialect
        self._defaults = {name: value for name, value in compiled.params.items() if name not in passed}
        converts: dict[str, Convert] = {}
        for bind, name in compiled.bind_names.items():
            convert = bind.type.dialect_impl(dialect).bind_processor(dialect)
            if convert is not None:
                converts[name] = convert
        places = compiled.positiontup
        self._pick = None if places is None else _picker(places)
        self._convert: list[tuple[Any, Convert]] = (
            list(converts.items())
            if places is None
            else [(at, converts[name]) for at, name in enumerate(places) if name in converts]
        )
        self._columns = columns
        self._read: list[Convert | None] | None = None
        names = [column.key or "" for column in columns]
        row: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024 - known at run time
        self._row: Callable[[Sequence[Any]], Any] | None = partial(tuple.__new__, row) if names else None

    def values(self, values: Mapping[str, Any]) -> Any:
        """The values as the driver takes them: by position or, where there are no positions, by name."""
        if self._defaults:
            values = {**self._defaults, **values}
        if not self._convert:
            return values if self._pick is None else self._pick(values)
        converted: Any = dict(values) if self._pick is None else list(self._pick(values))
        for position, to in self._convert:
            converted[position] = to(converted[position])
        return converted

    def rows(self, cursor: Any) -> list[Any]:
        """The rows to fetch."""
        if self._row is None:
            return []
        if self._read is None:
            # The conversion of some types depends on what the server reports with its first response.
            self._read = [
                column.type.dialect_impl(self._dialect).result_processor(self._dialect, description[1])
                for column, description in zip(self._columns, cursor.description, strict=True)
            ]
            if not any(self._read):
                self._read = []
        make, read = self._row, self._read
        if not read:
            return list(map(make, cursor.fetchall()))
        return [
            make([value if to is None else to(value) for to, value in zip(read, row, strict=True)])
            for row in cursor.fetchall()
        ]


def _picker(names: Sequence[str]) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """A function that picks the values of these names, in this order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: [values[name] for name in names]


Seen = weakref.WeakKeyDictionary[Any, dict[Any, _Ready | None]]


class Statements:
    """The statements that one database has executed, cached."""

    def __init__(self) -> None:
        self._seen: Seen = weakref.WeakKeyDictionary()

    def on(self, connection: Connection) -> "Executing":
        """An executor of statements in the connection's current transaction."""
        return Executing(self._seen, connection)


class Executing:
    """Executes the statements of one transaction."""

    __slots__ = ("_connection", "_cursor", "_heard", "_seen")

    def __init__(self, seen: Seen, connection: Connection) -> None:
        self._seen = seen
        self._connection = connection
        self._cursor: Any = connection.connection.cursor()
        self._heard = bool(connection.dispatch.before_cursor_execute)

    def execute(self, statement: Executable, values: Values) -> StatementResult:
        """Run one statement."""
        ready = None if self._heard else self._ready(statement, values)
        if ready is None:
            result = self._connection.execute(statement, values)
            return StatementResult(result.all() if result.returns_rows else (), result.rowcount)
        return self._executed(ready, values)

    def in_binary(self, statement: Executable, values: Values) -> StatementResult:
        """Run one statement on PostgreSQL, with results in its binary format."""
        ready = None if self._heard else self._ready(statement, values)
        if ready is None:
            event.listen(self._connection, "before_cursor_execute", _ask_for_binary)
            try:
                return StatementResult(self._connection.execute(statement, values).all(), 0)
            finally:
                event.remove(self._connection, "before_cursor_execute", _ask_for_binary)
        self._cursor.format = BINARY
        try:
            return self._executed(ready, values)
        finally:
            self._cursor.format = TEXT

    def _executed(self, ready: _Ready, values: Values) -> StatementResult:
        cursor, dialect = self._cursor, self._connection.dialect
        try:
            if ready.many:
                dialect.do_executemany(cursor, ready.text, [ready.values(each) for each in values or ()])  # type: ignore[arg-type]
            else:
                dialect.do_execute(cursor, ready.text, ready.values(values or {}))  # type: ignore[arg-type]
            return StatementResult(ready.rows(cursor), cursor.rowcount)
        except dialect.loaded_dbapi.Error as error:
            raise lost_or_wrong(self._connection, ready.text, error, cursor) from error

    def _ready(self, statement: Any, values: Any) -> _Ready | None:
        known = self._seen.get(statement)
        if known is None:
            if isinstance(statement, KEPT):
                self._seen[statement] = {}
            return None
        many = not _is_one(values)
        names = tuple((values[0] if many else values) or ())
        try:
            return known[many, names]
        except KeyError:
            ready = known[many, names] = _prepare(statement, self._connection.dialect, many, names)
            return ready


def _ask_for_binary(_connection: Any, cursor: Any, *_: Any) -> None:
    cursor.format = BINARY


def _is_one(values: Values) -> bool:
    """True for the values of one execution. Testing for a dict is faster than for any mapping."""
    return values is None or isinstance(values, _ONE)


def _prepare(statement: Any, dialect: Any, many: bool, names: Sequence[str]) -> _Ready | None:
    """The compiled statement; None if each execution needs more than its values."""
    compiled = statement.compile(dialect=dialect, column_keys=list(names) or None, for_executemany=many)
    columns = list(statement.exported_columns)
    needs_more = (
        (many and columns)
        or compiled.post_compile_params
        or compiled.literal_execute_params
        or compiled.escaped_bind_names
        or compiled.insert_prefetch
        or compiled.update_prefetch
    )
    return None if needs_more else _Ready(compiled, dialect, columns, names, many=many)
