"""The real store on SQLite files in memory, with a scheduling point at every statement and every commit.

The hooks sit between SQLAlchemy and the driver. A connection that asks for the write lock while another has
it waits in the schedule, as it would in PostgreSQL; after the busy timeout it gets SQLite's own error.
Engines are kept from seed to seed (their compiled statements are dear); the rows are not.
"""

import contextlib
import re
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from sqlalchemy import event, exc

from holdfast.faults import Crash
from holdfast.store.base import dialect, migrate, schema
from holdfast.store.base.database import Database
from holdfast.store.features import open_database
from tests.simulation.world import Actor, World

BUSY_TIMEOUT = 10.0
TABLE = re.compile(r"\s*(?:UPDATE|INSERT INTO|INSERT OR \w+ INTO|DELETE FROM)\s+\"?(\w+)")


class Locks:
    """Who has the one write lock of the database, who waits for it, and which connections were cut."""

    def __init__(self, world: World, storage: "Storage") -> None:
        self.world = world
        self.storage = storage
        self.holder: Actor | None = None
        self.connection: sqlite3.Connection | None = None
        self.waiters: list[Actor] = []
        self.cut: list[sqlite3.Connection] = []
        self.touched: dict[str, None] = {}
        self.held_since = 0.0

    def acquire(self, actor: Actor, connection: sqlite3.Connection) -> None:
        """The write lock, after waiting for it in the schedule."""
        give_up = self.world.time + BUSY_TIMEOUT
        while self.holder is not None:
            self.waiters.append(actor)
            try:
                self.world.block(max(0.0, give_up - self.world.time))
            finally:
                if actor in self.waiters:
                    self.waiters.remove(actor)
            if self.holder is not None and self.world.time >= give_up:
                raise sqlite3.OperationalError("database is locked")
        self.holder, self.connection = actor, connection
        self.held_since = self.world.time
        self.touched.clear()

    def release(self, connection: sqlite3.Connection) -> None:
        """The lock is free if `connection` had it, and one of the waiters goes on."""
        if self.connection is not connection:
            return
        self.holder = self.connection = None
        if self.waiters:
            waiter = self.world.rng.choice(self.waiters)
            self.waiters.remove(waiter)
            self.world.wake(waiter, self.world.latency() / 4)

    def cut_holder(self) -> None:
        """The server drops the connection that has the lock: its transaction is rolled back."""
        connection = self.connection
        if connection is not None:
            connection.rollback()
            self.cut.append(connection)
            self.release(connection)

    def abandon(self, actor: Actor) -> None:
        """An actor that is gone holds nothing."""
        if self.holder is actor and self.connection is not None:
            _roll_back(self.connection)
            self.release(self.connection)
        if actor in self.waiters:
            self.waiters.remove(actor)


class Storage:
    """The database files of one Python process, and the engines that simulated processes borrow."""

    def __init__(self) -> None:
        shared = Path("/dev/shm")
        position = shared if shared.is_dir() else None
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-sim-", dir=position)
        folder = Path(self._folder.name)
        template = folder / "template.db"
        migrate.upgrade(f"sqlite:///{template}")
        self.path = folder / "world.db"
        shutil.copy(template, self.path)
        self.world: World | None = None
        self.check: Any = None
        self.weather: Any = None
        self._databases: list[Database] = []
        self._borrowed = 0
        self.reader = sqlite3.connect(self.path, isolation_level=None)
        self._empty = [f"DELETE FROM {table.name}" for table in reversed(schema.metadata.sorted_tables)]
        self._tables: dict[str, str] = {}

    def close(self) -> None:
        """Connections and files are gone."""
        self.reader.close()
        for database in self._databases:
            database.close()
        self._folder.cleanup()

    def begin(self, world: World, check: Any, weather: Any) -> None:
        """The database is empty and belongs to `world`."""
        reader = self.reader
        reader.execute("BEGIN IMMEDIATE")
        for statement in self._empty:
            reader.execute(statement)
        reader.execute("DELETE FROM sqlite_sequence")
        reader.execute("COMMIT")
        self.world, self.check, self.weather = world, check, weather
        self._borrowed = 0
        world.locks = Locks(world, self)

    def finish(self) -> None:
        """No world has the database."""
        self.world = None

    def borrow(self) -> Database:
        """A database object that nobody else has in this world."""
        if self._borrowed == len(self._databases):
            self._databases.append(self._build())
        self._borrowed += 1
        return self._databases[self._borrowed - 1]

    def _build(self) -> Database:
        database = open_database(
            f"sqlite:///{self.path}",
            simulated=True,
            pool_size=8,
            # Looked up at each call: the process that has this database changes.
            pause=lambda seconds: self._host.sleep(seconds),  # noqa: PLW0108
            clock=lambda: self._host.clock(),  # noqa: PLW0108
            jitter=lambda: self._host.jitter(),  # noqa: PLW0108
            token=lambda: self._host.token(),  # noqa: PLW0108
        )
        engine = database.engine

        @event.listens_for(engine, "connect")
        def _connect(connection: sqlite3.Connection, _record: Any) -> None:
            connection.create_function(
                dialect.SIMULATED_CLOCK, 0, lambda: self.world.database_now() if self.world else 0.0
            )

        with engine.connect():
            pass
        hooks = engine.dialect
        plain, plain_many = hooks.do_execute, hooks.do_executemany

        def execute(cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
            self._before(cursor.connection, statement)
            plain(cursor, statement, parameters, context)

        def execute_many(cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
            self._before(cursor.connection, statement)
            plain_many(cursor, statement, parameters, context)

        def commit(proxied: Any) -> None:
            self._commit(proxied.dbapi_connection)

        def rollback(proxied: Any) -> None:
            connection = proxied.dbapi_connection
            connection.rollback()
            if self.world is not None:
                self.world.locks.release(connection)

        hooks.do_execute, hooks.do_executemany = execute, execute_many
        hooks.do_commit, hooks.do_rollback = commit, rollback
        return database

    @property
    def _host(self) -> Any:
        return self.world.current.process.host

    def _before(self, connection: sqlite3.Connection, statement: str) -> None:
        world = self.world
        if world is None or world.current is None:
            return
        world.step(statement)
        actor = world.current
        locks = world.locks
        if locks.cut and connection in locks.cut:
            locks.cut.remove(connection)
            _roll_back(connection)
            raise lost("the connection was closed by the server")
        self.weather.before_statement(actor, connection, statement)
        if statement == "BEGIN IMMEDIATE":
            locks.acquire(actor, connection)
        elif locks.connection is connection:
            table = self._tables.get(statement)
            if table is None:
                match = TABLE.match(statement)
                table = self._tables[statement] = match.group(1).removeprefix("holdfast_") if match else ""
            if table:
                locks.touched[table] = None

    def _commit(self, connection: sqlite3.Connection) -> None:
        world = self.world
        if world is None or world.current is None or world.locks.connection is not connection:
            if world is not None and world.current is not None and connection in world.locks.cut:
                world.locks.cut.remove(connection)
                raise lost("the connection was closed by the server")
            connection.commit()
            return
        actor = world.current
        world.step("COMMIT")
        if connection in world.locks.cut:
            world.locks.cut.remove(connection)
            raise lost("the connection was closed by the server")
        self.weather.before_commit(actor, connection)
        connection.commit()
        touched = list(world.locks.touched)
        world.locks.release(connection)
        self.check.after_commit(actor, touched)
        if actor.process.dead:
            raise Crash


def lost(why: str) -> exc.OperationalError:
    """What SQLAlchemy raises when the connection is gone."""
    return exc.OperationalError(
        why, {}, sqlite3.OperationalError(f"disk I/O error: {why}"), connection_invalidated=True
    )


def _roll_back(connection: sqlite3.Connection) -> None:
    with contextlib.suppress(sqlite3.ProgrammingError):  # already closed, which rolls back too
        connection.rollback()
