"""Child processes that died while running a task: the parent notices and records it in the database.

The task is then due at once instead of when its lease expires, the orders of the dead process are in doubt at
once, and the death counts as an attempt, because it is probably the task's fault. When the whole worker dies
nobody is left to record it, and it says little about the task.
"""

import logging
import os
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.core import decide
from holdfast.core.errors import HoldfastError
from holdfast.core.states import Loss
from holdfast.engine import processes, wakeups
from holdfast.store.base.database import Database
from holdfast.store.protocol import losses
from holdfast.worker.shared_state import Left, Mark, PoolState

RETRY_EVERY = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Death:
    """A process that died, and the claim it held."""

    pid: int
    began: int
    task_id: int
    epoch: int

    @property
    def process(self) -> str:
        """The name of the process; "" where the system has none."""
        return processes.name(self.pid, self.began)

    def has_happened(self) -> bool:
        """True if the process is gone. It is our child, so its id is not reused before we reap it."""
        if name := self.process:
            return processes.has_died(name)
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False


class Deaths:
    """Finds dead processes, and records them from a separate thread, which the database may block."""

    def __init__(
        self,
        pool_state: PoolState,
        sender: wakeups.Sender,
        caps: decide.Caps,
        open_database: Callable[[], Database],
    ) -> None:
        self._board = pool_state
        self._sender = sender
        self._caps = caps
        self._open_database = open_database
        self._seen: set[Death] = set()
        self._to_record: queue.SimpleQueue[tuple[Death, Loss]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def look(self, *, draining: bool) -> list[Death]:
        """Processes that died since the last look, queued to be recorded. Never blocks.

        In a stopping worker a death says nothing about the task.
        """
        new = [death for death in self._candidates() if death not in self._seen and death.has_happened()]
        for death in new:
            self._seen.add(death)
            log.warning("process %s died while running task %s", death.pid, death.task_id)
            self._to_record.put((death, Loss.WORKER_DIED if draining else Loss.PROCESS_DIED))
        if new and self._thread is None:
            self._thread = threading.Thread(target=self._record_all, name="holdfast-deaths", daemon=True)
            self._thread.start()
        return new

    def _candidates(self) -> list[Death]:
        rows = self._board.rows
        deaths = [Death(*(int(row[name]) for name in names)) for row in rows for names in _WHO]
        return [death for death in deaths if death.pid and death.task_id]

    def stop(self) -> None:
        """Stop recording."""
        self._stop.set()

    def _record_all(self) -> None:
        db = self._open_database()
        try:
            while not self._stop.is_set():
                try:
                    death, loss = self._to_record.get(timeout=RETRY_EVERY)
                except queue.Empty:
                    continue
                self._record(db, death, loss)
        finally:
            db.close()

    def _record(self, db: Database, death: Death, loss: Loss) -> None:
        """Retry until recorded; if that takes longer than the lease, the epoch has risen meanwhile."""
        while not self._stop.is_set():
            try:
                due = losses.lose(
                    db, death.task_id, death.epoch, loss=loss, caps=self._caps, process=death.process
                )
            except HoldfastError as error:
                log.warning(
                    "the death of process %s was not recorded, retrying: %s", death.pid, error.message
                )
                self._stop.wait(RETRY_EVERY)
            else:
                wakeups.wake_lanes(self._sender, due)
                return


_WHO = (
    (Mark.PID, Mark.BEGAN, Mark.TASK, Mark.EPOCH),
    (Left.PID, Left.BEGAN, Left.TASK, Left.EPOCH),
)
