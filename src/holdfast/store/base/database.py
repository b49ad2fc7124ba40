"""Transactions: run as a whole, retried as a whole, and safe to repeat after a lost response.

`write` runs a body in one transaction. After a deadlock, a busy database, a lost connection or a COMMIT whose
response was lost, the body runs again with `tx.again` true. Every body recognises its own earlier effect by
an id drawn before the first try (claim token, run id, order id) and returns *landed* instead of doing it
twice. So "did it commit?" is never guessed.

Not covered: a body without such an id. There is none; `tests/races` loses the response of every transition.
"""

import contextlib
import logging
import os
import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, Row, exc

from holdfast import faults
from holdfast.core.errors import BadRequestError, StoreLockedError, StoreTimeoutError, StoreUnavailableError
from holdfast.core.records import Head, RunRecord
from holdfast.core.retry import Backoff
from holdfast.core.states import Status
from holdfast.store.base import dialect, time_limits
from holdfast.store.base.statements import StatementResult, Statements, Values

log = logging.getLogger(__name__)

T = TypeVar("T")

# Long enough for a lease to miss a renewal through no fault of its holder.
OUTAGE = 2.0
OUT_OF_TIME = "the time limit was reached; the rest is done in the next run"
BACKOFF = Backoff(first=0.01, factor=2.0, most=1.0)


class Tx:
    """One open transaction. `again` is true if an earlier try may have committed.

    `name` names its fault points; the transaction may change it once it knows what it does.
    """

    __slots__ = ("_execute", "_executing", "again", "connection", "db", "name")

    def __init__(self, db: "Database", connection: Connection, *, again: bool, name: str = "") -> None:
        self.name = name
        self.db = db
        self.connection = connection
        self.again = again
        self._executing = db.statements.on(connection)
        self._execute = self._executing.execute

    def execute(self, statement: Executable, values: Values = None) -> StatementResult:
        """Run one statement."""
        if time_limits.is_time_over():
            raise StoreTimeoutError(OUT_OF_TIME)
        return self._execute(statement, values)

    def one(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Row[Any] | None:
        """The first row of a statement, or None."""
        return self.execute(statement, values).first()

    def all(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Row[Any]]:
        """All rows of a statement."""
        return self.execute(statement, values).all()

    def in_binary(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Row[Any]]:
        """All rows of a statement, sent as stored: PostgreSQL's text format doubles every byte."""
        if not self.db.postgresql:
            return self.all(statement, values)
        return self._executing.in_binary(statement, values).all()

    def together(self, writes: dialect.Together, values: Mapping[str, Any]) -> None:
        """Execute independent writes with the fewest round trips."""
        writes.execute(self.execute, values, postgresql=self.db.postgresql)


class Hook:
    """What a feature adds to transitions of the protocol, which knows no feature. Does nothing by default.

    Each method runs inside the transaction of the transition, under its locks: its writes take effect with
    the transition or not at all. It may run more than once, so it must have no effect outside. Methods that
    return a number say how many tasks became due in the lane of follow-ups.
    """

    def after_publish(self, tx: Tx, head: Head, generation: int, run_id: str) -> int:  # noqa: ARG002
        """The generation has been published; the head is locked for change."""
        return 0

    def after_end(self, tx: Tx, run_id: str, status: Status, code: str | None, message: str | None) -> int:  # noqa: ARG002
        """The run has ended, published or not."""
        return 0

    def made_due(self, tx: Tx, head_id: int, generation: int, status: Status) -> int:  # noqa: ARG002
        """How many tasks became due when this generation ended so; called after a lost response."""
        return 0

    def after_prune(self, tx: Tx, head: Head, run: RunRecord) -> None:
        """Everything that the end of the run made obsolete is deleted; the head is locked for change."""

    def prune_history(self, tx: Tx, older_than: float, limit: int) -> int:  # noqa: ARG002
        """Rows older than so many seconds are deleted, at most `limit`. Returns how many."""
        return 0


class Database:
    """The database as the transitions see it. `hooks` are those of the features, in order."""

    def __init__(
        self,
        url: str,
        *,
        hooks: Sequence[Hook],
        pool_size: int = 5,
        prepare: bool = False,
        simulated: bool = False,
        patience: float = 20.0,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        token: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self.engine = dialect.build(url, pool_size=pool_size, prepare=prepare, simulated=simulated)
        self.hooks = tuple(hooks)
        self._idle: list[Connection] = []
        self._is_closed = False
        self._of_parent: list[Connection] = []
        self._most_idle = pool_size
        self.statements = Statements()
        self.token = token
        self._patience = patience
        self.pause = pause
        self._clock = clock
        self._jitter = jitter
        self._pid = os.getpid()
        self._away_since: float | None = None
        self._back_at: float | None = None

    @property
    def postgresql(self) -> bool:
        """True on PostgreSQL."""
        return dialect.is_postgresql(self.engine)

    def write(self, name: str, body: Callable[[Tx], T], *, relaxed: bool = False) -> T:
        """The result of `body`, whose effects are committed. `name` names its fault points.

        A `relaxed` commit survives a crash of any process. On SQLite a power cut may lose it until a later
        full commit is confirmed, so use it only for changes that no caller has been told about.

        Raises StoreUnavailableError if the database stays unreachable; whether it committed is then unknown.
        """
        mode = dialect.RELAXED if relaxed else dialect.WRITE

        def attempt(again: bool) -> T:
            with self._connect(mode) as connection, connection.begin() as transaction:
                tx = Tx(self, connection, again=again, name=name)
                answer, verb = body(tx), tx.name
                del tx  # SQLite does not commit while a cursor of it is open
                faults.point(f"{verb}.commit")
                transaction.commit()
            faults.point(f"{verb}.committed")
            return answer

        return self._persist(attempt)

    def read(self, body: Callable[[Tx], T]) -> T:
        """The result of `body`, which read one snapshot of the database and wrote nothing."""

        def attempt(again: bool) -> T:
            with self._connect(dialect.READ) as connection, connection.begin():
                return body(Tx(self, connection, again=again))

        return self._persist(attempt)

    def look(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Row[Any]]:
        """The rows of one read-only statement. It is its own snapshot and needs no transaction.

        Under a time limit it runs in a transaction, which carries the limit.
        """
        if time_limits.time_left() is not None:
            return self.read(lambda tx: tx.all(statement, values))

        def attempt(_again: bool) -> Sequence[Row[Any]]:
            with self._connect(dialect.LOOK) as connection:
                return self.statements.on(connection).execute(statement, values).all()

        return self._persist(attempt)

    def first(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Row[Any] | None:
        """The first row of `look`, or None."""
        rows = self.look(statement, values)
        return rows[0] if rows else None

    def _persist(self, attempt: Callable[[bool], T]) -> T:
        started, tries = self._clock(), 0
        while True:
            if time_limits.is_time_over():
                raise StoreTimeoutError(OUT_OF_TIME)
            try:
                answer = attempt(tries > 0)
            except exc.TimeoutError as error:
                raise StoreUnavailableError("no free database connection; lower the concurrency") from error
            except exc.DBAPIError as error:
                _raise_what_is_final(error)
                if self._clock() - started > self._patience:
                    raise StoreUnavailableError(_explain(error)) from error
            else:
                self._note_back()
                return answer
            tries += 1
            if self._away_since is None:
                self._away_since = self._clock()
            self.pause(BACKOFF.delay(tries, self._jitter()))

    def _note_back(self) -> None:
        since, self._away_since = self._away_since, None
        if since is not None and self._clock() - since > OUTAGE:
            self._back_at = self._clock()

    def was_away(self, within: float) -> bool:
        """True if this process saw an outage that ended within the last `within` seconds or ends now."""
        now = self._clock()
        if self._away_since is not None and now - self._away_since > OUTAGE:
            return True
        return self._back_at is not None and now - self._back_at < within

    @contextlib.contextmanager
    def _connect(self, mode: Mapping[str, bool]) -> Iterator[Connection]:
        """A connection for one transaction.

        If its transaction succeeded it is kept as it is, since resetting it would cost more time than most
        statements. Any other goes back to the pool, which cleans it up.
        """
        connection, ended_well = self._taken(), False
        try:
            with time_limits.interrupted_in_time(connection):
                yield connection.execution_options(**mode)
            ended_well = not connection.in_transaction() and not connection.invalidated
        finally:
            if self._is_closed:
                # Its pool is gone: nobody would close it after us.
                connection.invalidate()
                connection.close()
            elif ended_well and len(self._idle) < self._most_idle:
                self._idle.append(connection)
            else:
                connection.close()

    def _taken(self) -> Connection:
        self._let_go_of_the_parents()
        try:
            return self._idle.pop()
        except IndexError:
            return self.engine.connect()

    def _let_go_of_the_parents(self) -> None:
        """A forked child must not use its parent's sockets; it drops them without closing them."""
        if self._pid != os.getpid():
            self._of_parent, self._idle = self._idle, []
            self.engine.dispose(close=False)
            self._pid = os.getpid()

    def close(self) -> None:
        """All idle connections are closed; one that is in use is closed when its transaction ends."""
        self._let_go_of_the_parents()
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
        self.engine.dispose()


def _raise_what_is_final(error: exc.DBAPIError) -> None:
    """Return if the transaction may be retried; otherwise raise the final error."""
    if time_limits.ran_out_of_time(error):
        raise StoreTimeoutError(OUT_OF_TIME) from error
    if time_limits.waited_in_vain(error):
        raise StoreLockedError("a row that is needed here is locked by someone else; try again") from error
    if not dialect.may_try_again(error):
        if isinstance(error, exc.OperationalError | exc.InternalError):
            # Disk full, read-only, out of memory: a problem of the database, not of the statement.
            raise StoreUnavailableError(_explain(error)) from error
        if isinstance(error, exc.DataError):
            log.warning("the database refused a value: %s", type(error.orig).__name__)
            raise BadRequestError("a value of the request cannot be kept") from error
        raise error


# What SQLite and PostgreSQL report when the disk fails.
DISK_TROUBLE = ("disk is full", "disk i/o error", "readonly database", "no space left")


def _explain(error: exc.DBAPIError) -> str:
    first = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    if any(words in first.lower() for words in DISK_TROUBLE):
        return f"the database cannot be written to ({first}); free disk space or fix its folder"
    return (
        f"the database does not answer ({first}); check that it runs and that HOLDFAST_DATABASE_URL is right"
    )
