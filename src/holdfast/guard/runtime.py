"""What one process needs to guard tasks: a database, an engine and, in workers, the sweep.

It is opened when it is first needed, so that a database that is down at import does not matter, and anew
after a fork.
"""

import contextlib
import logging
import os
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast.core.errors import HoldfastError, SchemaError
from holdfast.engine import events
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.event_tracing import EventTracer
from holdfast.engine.sweep import SweepRules
from holdfast.leases.base import DATABASE_TERMS, LeaseTerms
from holdfast.leases.sql import SqlLeases
from holdfast.ledger.exchanges import Policy
from holdfast.ledger.prices import DEFAULT, PriceTable
from holdfast.providers.base import Provider
from holdfast.store.base import dialect, revisions
from holdfast.store.base.database import Database
from holdfast.store.base.driver_errors import answering
from holdfast.store.features import open_database
from holdfast.telemetry import traces

log = logging.getLogger(__name__)

UNREACHABLE = "the database is unreachable ({}); check that it is running and that its URL is correct"


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """How a guard works; the same in every process of the application."""

    url: str
    terms: LeaseTerms = DATABASE_TERMS
    rules: SweepRules = field(default_factory=SweepRules)
    policy: Policy = field(default_factory=Policy)
    prices: PriceTable = DEFAULT
    patience: float = 20.0
    otel_url: str | None = None


class GuardRuntime:
    """The guard in one process."""

    def __init__(
        self,
        options: GuardOptions,
        providers: Mapping[str, Provider],
        *,
        watched: bool,
    ) -> None:
        self.options = options
        self.pid = os.getpid()
        traces.begin(options.otel_url)
        with answering(UNREACHABLE):
            self.db = _opened(options)
        self.watch = open_database(options.url, pool_size=1, patience=options.terms.renew_every)
        self.engine = Engine(
            self.db,
            EngineDependencies(
                providers=providers,
                leases=SqlLeases(self.watch, options.terms),
                prices=options.prices,
                policy=options.policy,
                rules=options.rules,
                watched=watched,
                watch=self.watch,
                tell=EventTracer(self.db, events.nobody),
            ),
        )
        self.engine.carrier.on_first_order = self.engine.watchdog.start

    def close(self) -> None:
        """The connections are closed, and leases are no longer renewed."""
        self.engine.watchdog.stop()
        self.watch.close()
        self.db.close()


def _opened(options: GuardOptions) -> Database:
    """The database, at the revision of this release. A file is brought there, others by their owner."""
    with contextlib.ExitStack() as undo:
        db = undo.enter_context(contextlib.closing(open_database(options.url, patience=options.patience)))
        if dialect.sqlite_file(options.url) is not None and revisions.current(db.engine) != revisions.known():
            from holdfast.store.base import migrate  # noqa: PLC0415 - Alembic, which others do without

            migrate.upgrade(options.url)
        revisions.check(db.engine)
        undo.pop_all()
    return db


class SweepThread:
    """The sweep of an application's worker, in a thread of its main process."""

    def __init__(
        self, open_runtime: Callable[[], GuardRuntime], publish: Callable[[GuardRuntime], int]
    ) -> None:
        self._open = open_runtime
        self._publish = publish
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Sweep from now on, in this process."""
        if self._thread is None or not self._thread.is_alive():
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="holdfast-sweep", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """The thread has ended, or will with the process."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        interval = 0.5
        while not self._stop.wait(interval * random.uniform(0.8, 1.2)):  # noqa: S311 - spreads load
            try:
                runtime = self._open()
                interval = runtime.options.rules.interval
                self.round(runtime)
            except SchemaError as error:
                log.warning("holdfast: %s; nothing is swept until then", error.message)
                interval = 10.0
            except HoldfastError as error:
                log.warning("holdfast: this round of the sweep is left out: %s", error.message)
            except Exception:  # outermost loop: a bad round must not end the sweep
                log.exception("holdfast: a round of the sweep failed; it goes on")

    def round(self, runtime: GuardRuntime) -> None:
        """One round: work that was left behind is due, and the messages of what is due are published."""
        runtime.engine.sweep()
        self._publish(runtime)
