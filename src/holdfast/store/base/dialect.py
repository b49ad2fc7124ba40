"""Every difference between SQLite and PostgreSQL that matters to the store, in one place.

Both share one implementation of each transition. What differs: the clock, how a write transaction begins,
which errors mean "retry the whole transaction", how a list of keys is passed, and whether independent writes
can be sent in one statement.
"""

import json
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ARRAY,
    URL,
    BigInteger,
    Boolean,
    Connection,
    Delete,
    Double,
    Engine,
    Insert,
    Select,
    Text,
    Update,
    create_engine,
    event,
    exc,
    literal_column,
    make_url,
    select,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine

from holdfast.core.errors import BadRequestError
from holdfast.extras import MissingExtraError
from holdfast.store.base import time_limits

SIMULATED_CLOCK = "holdfast_now"
BUSY_TIMEOUT = 10.0

# Pages of the write-ahead log (16 MB) before a checkpoint. The busiest pages are in it many times and are
# copied once.
PAGES_TO_CHECKPOINT = 4000

# Seconds between attempts to get SQLite's write lock: short at first, then longer to save processor time.
SHORTEST_WAIT, LONGEST_WAIT = 0.0001, 0.002

# PostgreSQL: a process frozen inside a transaction keeps its row locks while it is frozen, as its kernel
# still answers keep-alives; meanwhile nothing it holds can be claimed, requested or cancelled. The server
# ends such a transaction after this time. When the process thaws, its connection is closed, it retries, and
# it is fenced out. (SQLite offers no such remedy: the frozen process keeps the only write lock.)
IDLE_IN_TRANSACTION_MS = 10_000
APPLICATION = "holdfast"  # the name of all our sessions
_SCHEMA = re.compile("(?!pg_)[a-z_][a-z0-9_]{0,62}")
_SEARCH_PATH = "-csearch_path={},public"
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

# What a connection is for, read by the hooks below: a writing transaction, one with a relaxed commit, a
# read-only one, or a single reading statement outside any transaction.
WRITE = {"holdfast_read": False, "holdfast_look": False, "holdfast_relaxed": False}
RELAXED = WRITE | {"holdfast_relaxed": True}
READ = WRITE | {"holdfast_read": True}
LOOK = READ | {"holdfast_look": True}

# PostgreSQL: serialisation failure, deadlock, lock not available, shutdowns, too many connections. Like every
# connection exception (class 08), these mean that the whole transaction may be retried.
AGAIN_STATES = frozenset({"25P03", "40001", "40P01", "55P03", "57P01", "57P02", "57P03", "57P05", "53300"})
AGAIN_SQLITE = ("locked", "busy", "disk i/o error", "interrupted", "unable to open")


class now(FunctionElement[float]):  # noqa: N801 - reads as SQL
    """Seconds since 1970 by the database clock.

    PostgreSQL: the start of the statement, not of the transaction (a long one would see an old time) and
    not `clock_timestamp()` (volatile, so no index could be used). SQLite: `julianday`, because
    `unixepoch('now', 'subsec')` is NULL before 3.42, which would make leases that never end.
    """

    inherit_cache = True
    type = Double()


@compiles(now, "postgresql")
def _now_postgresql(_element: Any, _compiler: Any, **_: Any) -> str:
    return "extract(epoch from statement_timestamp())::float8"


@compiles(now, "sqlite")
def _now_sqlite(_element: Any, compiler: Any, **_: Any) -> str:
    if getattr(compiler.dialect, "holdfast_simulated", False):
        return f"{SIMULATED_CLOCK}()"
    return "((julianday('now') - 2440587.5) * 86400.0)"


class KeyList(TypeDecorator[list[str]]):
    """A list of keys as one bound value: an array on PostgreSQL, a JSON list on SQLite."""

    impl = Text
    cache_ok = True
    of: TypeEngine[Any] = Text()

    def load_dialect_impl(self, dialect: Any) -> Any:
        """The type that carries the list on this dialect."""
        return dialect.type_descriptor(ARRAY(self.of) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Any, dialect: Any) -> Any:
        """The list as the driver takes it."""
        return list(value) if dialect.name == "postgresql" else json.dumps(list(value))


class Numbers(KeyList):
    """The same for integers."""

    cache_ok = True
    of = BigInteger()


class key_in(FunctionElement[bool]):  # noqa: N801 - reads as SQL
    """`key_in(column, bindparam("keys", type_=Keys()))`: one statement text for any number of keys."""

    inherit_cache = True
    type = Boolean()

    def self_group(self, against: Any = None) -> Any:  # noqa: ARG002 - the parent's signature
        """Itself: next to other conditions SQLite would get `… IN (…) = 1`, which uses no index."""
        return self


@compiles(key_in, "postgresql")
def _key_in_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    column, keys = list(element.clauses)
    return f"{compiler.process(column, **kw)} = ANY({compiler.process(keys, **kw)})"


@compiles(key_in, "sqlite")
def _key_in_sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    column, keys = list(element.clauses)
    return (
        f"{compiler.process(column, **kw)} IN (SELECT value FROM json_each({compiler.process(keys, **kw)}))"  # noqa: S608 - compiled parts only
    )


class in_usual_order(FunctionElement[str]):  # noqa: N801 - reads as SQL
    """A text compared in the order of another column's index, whatever the order of its own column.

    Subjects are compared byte by byte on PostgreSQL, and no index over a column of the default order could be
    used for a comparison with them.
    """

    inherit_cache = True
    type = Text()


@compiles(in_usual_order, "postgresql")
def _in_usual_order_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    return f'({compiler.process(element.clauses, **kw)}) COLLATE "default"'


@compiles(in_usual_order, "sqlite")
def _in_usual_order_sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    return str(compiler.process(element.clauses, **kw))


class bytewise(FunctionElement[str]):  # noqa: N801 - reads as SQL
    """A text compared byte by byte, whatever the order of its column; so Python compares texts as well."""

    inherit_cache = True
    type = Text()


@compiles(bytewise, "postgresql")
def _bytewise_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    return f'({compiler.process(element.clauses, **kw)}) COLLATE "C"'


@compiles(bytewise, "sqlite")
def _bytewise_sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    return str(compiler.process(element.clauses, **kw))


class only_tested(FunctionElement[str]):  # noqa: N801 - reads as SQL
    """A column used to filter rows, not to look them up.

    Without statistics SQLite would scan everything of a tenant rather than look up the keys of a list. So
    would PostgreSQL while the tables are new, and it would keep that plan until it has statistics.
    """

    inherit_cache = True
    type = Text()


@compiles(only_tested)
def _only_tested(element: Any, compiler: Any, **kw: Any) -> str:
    return f"({compiler.process(element.clauses, **kw)} || '')"


# Tells our advisory locks from those of the database's other users: "HOLD".
QUEUE_CLASS = 0x484F4C44


class queue_to_share(FunctionElement[None]):  # noqa: N801 - reads as SQL
    """Selected next to a row locked for share: a transaction waiting to change it goes first.

    PostgreSQL lets new sharers overtake a waiting changer, for ever if sharers overlap: sixteen workers
    staging one document delayed a finish, and would delay a cancel, until they stopped. Advisory locks queue
    in order. They end with the transaction, so they work behind a pooler. SQLite has one writer.
    """

    inherit_cache = True


class queue_to_change(FunctionElement[None]):  # noqa: N801 - reads as SQL
    """The counterpart of `queue_to_share`."""

    inherit_cache = True


@compiles(queue_to_share, "postgresql")
def _share_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    key = compiler.process(element.clauses, **kw)
    return f"pg_advisory_xact_lock_shared({QUEUE_CLASS}, mod({key}, 2147483647)::int)"


@compiles(queue_to_change, "postgresql")
def _change_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    key = compiler.process(element.clauses, **kw)
    return f"pg_advisory_xact_lock({QUEUE_CLASS}, mod({key}, 2147483647)::int)"


@compiles(queue_to_share, "sqlite")
@compiles(queue_to_change, "sqlite")
def _queue_sqlite(_element: Any, _compiler: Any, **_: Any) -> str:
    return "NULL"


Write = Insert | Update | Delete


class Together:
    """Independent writes: one statement on PostgreSQL, one after another on SQLite.

    On PostgreSQL all parts see the same snapshot, so no two of them may touch the same row or need each
    other's effect. Guards must have been tested on locked rows before: no row counts are returned.
    """

    def __init__(self, *parts: Write) -> None:
        self._parts = [(part, frozenset(part.compile(dialect=sqlite.dialect()).params)) for part in parts]
        self._joined: Select[Any] = select(literal_column("1").label("one")).add_cte(
            *(part.cte(f"part_{n}") for n, part in enumerate(parts))
        )

    def execute(
        self, execute: Callable[[Any, Mapping[str, Any]], Any], values: Mapping[str, Any], *, postgresql: bool
    ) -> None:
        """Execute every part with the same bound values."""
        if postgresql:
            execute(self._joined, values)
            return
        for part, names in self._parts:
            execute(part, {name: value for name, value in values.items() if name in names})


def is_postgresql(engine: Engine) -> bool:
    """True on PostgreSQL."""
    return engine.dialect.name == "postgresql"


def parse(url: str) -> URL:
    """The URL of a supported database, with its driver filled in.

    `?schema=NAME` becomes the first of the search path, for every session. `public` stays in it: an extension
    that others have created there is used.
    """
    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        message = "the database URL is not valid; use sqlite:///path or postgresql://user@host/name"
        raise BadRequestError(message, code="bad_database_url") from error
    if parsed.drivername in {"postgresql", "postgres", "postgresql+psycopg"}:
        parsed = parsed.set(drivername="postgresql+psycopg")
        return _in_schema(parsed, str(parsed.query["schema"])) if "schema" in parsed.query else parsed
    if parsed.drivername in {"sqlite", "sqlite+pysqlite"}:
        return parsed.set(drivername="sqlite")
    message = (
        f"database {parsed.drivername!r} is not supported; use sqlite:///path or postgresql://user@host/name"
    )
    raise BadRequestError(message, code="bad_database_url")


def _in_schema(url: URL, schema: str) -> URL:
    if not _SCHEMA.fullmatch(schema):
        message = "the schema of the database has small letters, digits and _, and does not begin with pg_"
        raise BadRequestError(message, code="bad_database_url")
    options = f"{url.query.get('options', '')} {_SEARCH_PATH.format(schema)}".strip()
    return url.difference_update_query(["schema"]).update_query_dict({"options": options})


def schema_of(engine: Engine) -> str | None:
    """The schema that the address names; None for the usual one."""
    match = re.search(_SEARCH_PATH.format("(.+)"), str(engine.url.query.get("options", "")))
    return match[1] if match else None


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite URL; None for any other database."""
    parsed = parse(url)
    return Path(parsed.database) if parsed.drivername == "sqlite" and parsed.database else None


def build(url: str, *, pool_size: int, prepare: bool, simulated: bool) -> Engine:
    """An engine set up for the protocol: durable, with explicit transactions."""
    parsed = parse(url)
    if parsed.drivername == "sqlite":
        return _build_sqlite(parsed, pool_size=pool_size, simulated=simulated)
    try:
        engine = create_engine(
            parsed,
            pool_size=pool_size,
            max_overflow=pool_size * 2,
            pool_timeout=30,
            # Transactions are begun below: a statement outside a transaction is then one round trip, and no
            # connection has to switch its mode and back for it.
            isolation_level="AUTOCOMMIT",
            # Behind a transaction-mode pooler a prepared statement may be on another connection.
            connect_args={
                "prepare_threshold": 5 if prepare else None,
                "connect_timeout": 10,
                "keepalives_idle": 15,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 30_000,
                "application_name": APPLICATION,
            },
        )
    except ModuleNotFoundError as error:
        raise MissingExtraError("postgres", "PostgreSQL") from error

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        # A statement, as poolers reject start-up options they do not know.
        connection.autocommit = True
        connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get("holdfast_look", False) or "isolation_level" in options:
            return  # one statement that is its own transaction, or a mode that the driver handles
        driver: Any = connection.connection.driver_connection
        begin = BEGIN_READ if options.get("holdfast_read", False) else "BEGIN"
        if (wait := time_limits.lock_wait()) is not None:
            # Until the end of the transaction, since a pooler's connection then serves another client.
            begin += f"; SET LOCAL lock_timeout = {wait}"
        if (left := time_limits.time_left()) is not None:
            begin += f"; SET LOCAL statement_timeout = {left * 1000:.0f}"
        try:
            driver.execute(begin, prepare=False)
        except connection.dialect.loaded_dbapi.Error as error:
            raise lost_or_wrong(connection, "BEGIN", error) from error

    return engine


def _build_sqlite(parsed: URL, *, pool_size: int, simulated: bool) -> Engine:
    if not parsed.database or parsed.database == ":memory:":
        message = "SQLite needs a file, because several processes share it; use sqlite:///path"
        raise BadRequestError(message, code="bad_database_url")
    timeout = 0 if simulated else BUSY_TIMEOUT
    engine = create_engine(
        parsed,
        pool_size=pool_size,
        max_overflow=pool_size * 2,
        pool_timeout=30,
        connect_args={"timeout": timeout, "check_same_thread": False},
    )
    engine.dialect.holdfast_simulated = simulated  # type: ignore[attr-defined]
    turns: dict[int, threading.Lock] = {}  # per process: a forked child does not share its parent's

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        # The driver's own transactions would not begin on SELECT. With None it begins none, and the "begin"
        # hook below opens each one explicitly.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute(f"PRAGMA synchronous={'OFF' if simulated else 'FULL'}")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA journal_size_limit=67108864")
        cursor.execute(f"PRAGMA wal_autocheckpoint={PAGES_TO_CHECKPOINT}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A deferred transaction that upgrades to write fails at once, whatever the busy timeout is.
        if connection.get_execution_options().get("holdfast_read", False):
            connection.exec_driver_sql("BEGIN")
            return
        if not simulated:
            _flush_or_not(connection)
        if simulated or not _began_to_write(connection, turns.setdefault(os.getpid(), threading.Lock())):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _flush_or_not(connection: Connection) -> None:
    """The next commit waits for the disk, unless it is relaxed.

    The write-ahead log is one file, read as far as it is intact: a commit that waits for the disk also makes
    all earlier ones durable, whichever process wrote them.
    """
    level = "NORMAL" if connection.get_execution_options().get("holdfast_relaxed", False) else "FULL"
    if connection.info.get("holdfast_synchronous", "FULL") != level:
        driver: Any = connection.connection.driver_connection
        driver.execute(f"PRAGMA synchronous={level}")
        connection.info["holdfast_synchronous"] = level


def _began_to_write(connection: Connection, write_lock: threading.Lock) -> bool:
    """True if the transaction has the write lock; if False, a last try shows why not.

    Writers hold the lock for a millisecond. SQLite's own wait sleeps for 1, 2, 5, 10, ... ms regardless, so a
    busy worker may miss many chances. One thread of a process polls for the lock and the others wait for that
    thread: thirty polling threads would keep a processor busy.
    """
    driver: Any = connection.connection.driver_connection
    wait = min(BUSY_TIMEOUT, time_limits.time_left() or BUSY_TIMEOUT)
    give_up = time.monotonic() + wait
    if not write_lock.acquire(timeout=wait):
        return False
    try:
        return _looked_for_the_lock(driver, give_up)
    finally:
        write_lock.release()


def _looked_for_the_lock(driver: Any, give_up: float) -> bool:
    wait = SHORTEST_WAIT
    driver.execute("PRAGMA busy_timeout=0")
    try:
        while time.monotonic() < give_up:
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    return False
            else:
                return True
            time.sleep(wait)
            wait = min(1.5 * wait, LONGEST_WAIT)
        return False
    finally:
        driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT * 1000:.0f}")


def lost_or_wrong(connection: Connection, text: str, error: Exception, cursor: Any = None) -> BaseException:
    """The driver's error as a SQLAlchemy error; a lost connection is discarded."""
    sql_dialect = connection.dialect
    lost = sql_dialect.is_disconnect(error, connection.connection.dbapi_connection, cursor)  # type: ignore[arg-type]
    if lost:
        connection.invalidate(error)
    return exc.DBAPIError.instance(
        text, {}, error, sql_dialect.loaded_dbapi.Error, connection_invalidated=lost, dialect=sql_dialect
    )


def may_try_again(error: exc.DBAPIError) -> bool:
    """True if the whole transaction may be run again: it did not happen, or its response was lost."""
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state in AGAIN_STATES or state.startswith("08")
    if not isinstance(error, exc.OperationalError):
        return False
    text = str(error.orig).lower()
    if "psycopg" in type(error.orig).__module__:
        return True  # no SQL state: the connection was refused, closed or timed out
    return any(word in text for word in AGAIN_SQLITE)
