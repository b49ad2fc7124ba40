"""What a worker's main process does besides consuming: sweep, send heartbeats, watch its children.

Each has its own thread, because each can be blocked by something else: the sweep by database locks, long
duties by their own work, the heartbeat (on its own connection) only by an unreachable database, the watch
over children by nothing.
"""

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

from holdfast import __version__, bootstrap
from holdfast.clock import boot_time
from holdfast.core import decide
from holdfast.core.errors import HoldfastError
from holdfast.engine import wakeups
from holdfast.engine.duty_threads import DutyThreads
from holdfast.settings import Settings
from holdfast.store.base.database import Database
from holdfast.store.features import open_database
from holdfast.store.protocol import workers
from holdfast.store.protocol.workers import WorkerState
from holdfast.worker.process_deaths import Deaths
from holdfast.worker.shared_state import COUNTS, ChildCounter, ChildRow, Mark, PoolState

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """Intervals and timeouts of the main process, in seconds."""

    report_every: float = 3.0
    look_every: float = 0.5
    # How long a child past its hard limit has to notice it by itself.
    hard_grace: float = 5.0
    # A worker with a free process that claims nothing while work is due for this long is deaf.
    deaf_after: float = 30.0
    # Earlier than that it reconnects to its broker; after this many attempts in vain it exits.
    cure_after: float = 10.0
    most_cures: int = 12
    # How long a drain may exceed its timeout before it is cut off.
    stop_grace: float = 3.5
    # No task is running, and only an unresponsive broker or database delays the exit.
    settled_grace: float = 6.0
    farewell: float = 1.0


@dataclass(slots=True)
class WorkerProgress:
    """When things last happened in this worker, by the boot-time clock; 0 means never."""

    began: float
    swept: float = 0.0
    looked: float = 0.0
    connected: float = 0.0
    database: bool = False
    broker: bool = False
    deaf: bool = False
    draining: bool = False
    killed: int = 0
    sweeps: int = 0
    sweeps_won: int = 0
    strangers: int = 0
    connections: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """A worker's name, location and capabilities."""

    id: str
    name: str
    broker: str
    lanes: tuple[str, ...]
    pipelines: tuple[str, ...]
    processes: int
    health: str = ""


class WorkerSupervisor:
    """Supervises a worker from its main process. `start` after the pool has forked its first children."""

    def __init__(
        self,
        settings: Settings,
        card: WorkerIdentity,
        pool_state: PoolState,
        sender: wakeups.Sender,
        pace: Pace | None = None,
    ) -> None:
        self.pace = pace or Pace()
        self.settings = settings
        self.card = card
        self.pool_state = pool_state
        self.progress = WorkerProgress(boot_time())
        self.is_connected: Callable[[], bool] = lambda: False
        self.strangers: Callable[[], int] = lambda: 0
        self.reconnect: Callable[[], None] = lambda: None
        self._sender = sender
        self._stop = threading.Event()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._runtime: bootstrap.Runtime | None = None
        self._killed: set[int] = set()
        self._apart: DutyThreads | None = None
        self._voice: Database | None = None
        caps = decide.Caps(settings.attempt_cap, settings.loss_cap)
        self._deaths = Deaths(pool_state, sender, caps, self._database)
        self._cures = 0

    def _database(self) -> Database:
        url = self.settings.database
        return open_database(url, pool_size=1, prepare=self.settings.database_prepare, patience=5.0)

    def start(self) -> None:
        """Start the sweep, the heartbeat and the watch over children."""
        for name, body in (("sweep", self._sweep), ("heartbeat", self._beat), ("watch", self._watch)):
            thread = threading.Thread(target=body, name=f"holdfast-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def drain(self) -> None:
        """Mark the worker as draining; the watch enforces the drain timeout."""
        self.progress.draining = True

    def stop(self) -> None:
        """End the threads and report the worker as stopped.

        The watch ends last: if anything blocks here, it ends the process in time.
        """
        self.drain()
        self._stop.set()
        ended = self._apart is None or self._apart.stop()
        for thread in self._threads[:-1]:
            thread.join(timeout=2)
        if not any(thread.is_alive() for thread in self._threads[1:-1]):  # else the database blocks it
            self._say_farewell()
        if self._runtime is not None and ended and not any(each.is_alive() for each in self._threads[:-1]):
            self._runtime.close()
        if self._voice is not None:
            self._voice.close()
        self._over.set()
        self._deaths.stop()
        for thread in self._threads[-1:]:
            thread.join(timeout=5)

    def _say_farewell(self) -> None:
        """Report the worker as stopped, unless the database is unreachable."""
        if self._voice is not None and self.progress.database:
            with contextlib.suppress(HoldfastError):
                self._report(self._voice, WorkerState.STOPPED)

    @property
    def wake_ups_not_sent(self) -> int:
        """How many wake-ups of this worker's sweep could not be sent."""
        return getattr(self._sender, "failed", 0)

    def total(self, name: str) -> int:
        """A count over all children so far, including invalid messages that reached none of them."""
        return self.pool_state.total(name) + (self.progress.strangers if name == ChildCounter.STRANGE else 0)

    def _sweep(self) -> None:
        interval = self.settings.sweep_interval
        wait = 0.0
        while not self._stop.wait(wait):
            wait = interval
            try:
                runtime = self._open()
                swept = runtime.engine.sweep()
                wait = interval * (0.92 + runtime.engine.host.jitter() * 0.16)  # never before it is due
                self.progress.sweeps += 1
                self.progress.sweeps_won += bool(swept.won)
                self.progress.error = ""
                self.progress.swept = boot_time()
                self.progress.database = True
            except HoldfastError as error:
                self._sweep_failed(error.message)
            except Exception as error:  # outermost loop: without sweeps lost work is not recovered
                log.exception("the sweep failed; it will run again")
                self._sweep_failed(f"{type(error).__name__}: {error}")

    def _sweep_failed(self, message: str) -> None:
        if self.progress.database or not self.progress.error:
            log.warning("no sweep: %s", message)
        self.progress.database = False
        self.progress.error = message

    def _open(self) -> bootstrap.Runtime:
        if self._runtime is None:
            runtime = bootstrap.open_runtime(self.settings, (), sender=self._sender, owner=self.card.name)
            # A slow duty delays neither expired leases nor other duties.
            self._apart = runtime.engine.sweeper.apart = DutyThreads(runtime.engine.sweeper.overran)
            self._runtime = runtime
        return self._runtime

    def _beat(self) -> None:
        """Send heartbeats, independently of the sweep."""
        wait = 0.0
        while not self._stop.wait(wait):
            wait = self.pace.report_every
            if self._runtime is None:  # opened once the database is usable
                wait = self.pace.look_every
                continue
            try:
                self._send_heartbeat(self._own_connection())
            except HoldfastError as error:
                log.warning("no heartbeat: %s", error.message)
            except Exception:  # outermost loop: a silent worker counts as lost
                log.exception("the heartbeat failed; it will be retried")

    def _own_connection(self) -> Database:
        if self._voice is None:
            self._voice = open_database(
                self.settings.database,
                pool_size=1,
                prepare=self.settings.database_prepare,
                patience=self.pace.report_every,
            )
        return self._voice

    def _send_heartbeat(self, db: Database) -> None:
        self._check_broker(db, boot_time())
        state = WorkerState.SICK if self.progress.deaf else WorkerState.WORKING
        if self.progress.draining:
            state = WorkerState.DRAINING
        self._report(db, state)

    def _check_broker(self, db: Database, now: float) -> None:
        """Reconnect if this worker no longer receives messages from its broker.

        An outage of Redis while every process is busy leaves a consumer that never asks again: the lost
        acknowledgements still count as unfinished messages.
        """
        if not self._is_deaf(db, now, self.pace.cure_after):
            self.progress.deaf = False
            self._cures = 0
            return
        self.progress.deaf = self._is_deaf(db, now, self.pace.deaf_after)
        self._cures += 1
        if self._cures > self.pace.most_cures:
            log.error("work is due but this worker receives no messages; it exits, to be restarted")
            os.kill(os.getpid(), signal.SIGTERM)
            return
        log.warning("work is due but this worker takes none; reconnecting to the broker")
        self.reconnect()

    def _is_deaf(self, db: Database, now: float, patience: float) -> bool:
        """True if there is work that this worker should have taken and did not.

        Not while the broker is unreachable: a restart would not help.
        """
        if self.progress.draining or not self.progress.broker:
            return False
        card = self.card
        quiet = now - max(self.pool_state.latest(Mark.LAST_CLAIM), self.progress.began) > patience
        if not quiet or all(row.busy for row in self.pool_state.taken()):
            return False
        return workers.work_waits(db, lanes=card.lanes, pipelines=card.pipelines, patience=patience)

    def _report(self, db: Database, state: WorkerState) -> None:
        card = self.card
        counts = {name: self.total(name) for name in COUNTS}
        worker = workers.Worker(
            id=card.id,
            name=card.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            broker=card.broker,
            health=card.health,
            lanes=card.lanes,
            pipelines=card.pipelines,
            processes=len(self.pool_state.taken()) or card.processes,
            busy=sum(row.busy for row in self.pool_state.taken()),
            state=state,
            counts=counts,
        )
        workers.report(db, worker)

    def _watch(self) -> None:
        """Kill children that exceed their hard limit; cut off a drain that takes too long."""
        since = 0.0
        while not self._over.wait(self.pace.look_every):
            now = boot_time()
            self.progress.looked = now
            connected = self.is_connected()
            self.progress.connections += connected and not self.progress.broker
            self.progress.broker = connected
            self.progress.strangers = self.strangers()
            for row in self.pool_state.taken():
                self._look_at(row, now)
            self._deaths.look(draining=self.progress.draining)
            if self.progress.draining:
                if not since:
                    log.info("stopping: draining for at most %g s", self.settings.drain_timeout)
                since = since or now
                self._look_at_drain(now - since)

    def _look_at_drain(self, lasted: float) -> None:
        # Paid answers are awaited: an order may outlast the drain timeout, but not its own deadline.
        if (
            max((row[Mark.ORDERS_UNTIL] for row in self.pool_state.taken()), default=0.0)
            > boot_time() - self.pace.stop_grace
        ):
            return
        if lasted > self.settings.drain_timeout + self.pace.stop_grace:
            log.error("the drain did not end within %g s; exiting now", self.settings.drain_timeout)
            self._cut_off()
        elif lasted > self.pace.settled_grace and not any(row.busy for row in self.pool_state.taken()):
            log.warning("no task is running, but the broker or database does not respond; exiting now")
            self._cut_off()

    def _look_at(self, row: ChildRow, now: float) -> None:
        pid, hard_at = row.pid, row[Mark.HARD_AT]
        if hard_at and now > hard_at + self.pace.hard_grace and pid not in self._killed:
            self._killed.add(pid)  # until the pool has reaped it, it still looks alive
            log.error(
                "killing process %s: task %d exceeded its hard time limit and does not stop",
                pid,
                row[Mark.TASK],
            )
            self.progress.killed += 1
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _cut_off(self) -> None:
        for row in self.pool_state.taken():
            with contextlib.suppress(ProcessLookupError):
                os.kill(row.pid, signal.SIGKILL)
        farewell = threading.Thread(target=self._say_farewell, name="holdfast-farewell", daemon=True)
        farewell.start()
        farewell.join(self.pace.farewell)
        os._exit(0)
