"""One pool process: it opens its own runtime after the fork, works when woken, and drains when stopped.

One wake-up keeps a process going while there is work, within bounds, so that a few messages are enough for a
long queue. A process that must stop releases its task at once and stays until its orders in flight have been
answered; a task that does not stop in time is handed over, and the process exits.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from celery.exceptions import Reject

from holdfast import bootstrap
from holdfast.clock import boot_time
from holdfast.core.errors import HoldfastError, StoreUnavailableError
from holdfast.core.records import Skipped
from holdfast.core.states import LANE_RANK
from holdfast.engine import wakeups
from holdfast.engine.events import Done
from holdfast.settings import Settings
from holdfast.worker import parent_pipe, queues
from holdfast.worker.shared_state import ChildCounter, ChildRow, Mark, PoolState

# Limits of one wake-up, so that deploys and the broker's other users get a chance.
MOST_TASKS = 200
MOST_SECONDS = 30.0
# Grace for a task that ends right after the drain timeout, so that its last statement is not cut off.
LAST_WORDS = 0.5
# How often a process reports that its threads run. Code that holds the GIL stops all of them.
SIGN_EVERY = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChildInputs:
    """What the parent passes to a child before the fork."""

    settings: Settings
    name: str
    lanes: tuple[str, ...]
    pool_state: PoolState
    pipe: parent_pipe.ParentPipe
    sender: wakeups.Sender


class PoolProcess:
    """One process of the pool, ready to be woken."""

    def __init__(self, inputs: ChildInputs, row: ChildRow) -> None:
        self._inputs = inputs
        self._row = row
        self._runtime: bootstrap.Runtime | None = None
        self._stopping = threading.Event()
        self._pause = threading.Event()  # never set: for waits that nothing cuts short
        self._in_hand = False
        self._leaving = False
        self._handled = False
        self._released = False
        self._opening = threading.Lock()
        # The pool sends SIGTERM to a process that announces its exit. Delivered to another thread than the
        # main one it would kill the process at once, perhaps while holding the lock that all processes share.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        for name, body in (("drain", self._drain), ("heartbeat", self._show_life)):
            threading.Thread(target=body, name=f"holdfast-{name}", daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def lane(self, args: Sequence[object]) -> str:
        """The lane that a wake-up names; Reject if it names none. Further arguments are ignored."""
        if args and isinstance(args[0], str) and args[0] in LANE_RANK:
            return args[0]
        raise self._set_aside(queues.WAKE, args)

    def task_id(self, args: Sequence[object]) -> int:
        """The task that a delivery names; Reject if it names none."""
        if args and type(args[0]) is int and 0 < args[0] < 2**63:
            return args[0]
        raise self._set_aside(queues.DELIVER, args)

    def _set_aside(self, task: str, args: Sequence[object]) -> Reject:
        self._row.add(ChildCounter.STRANGE)
        why = f"its arguments are invalid ({task} with {args!r:.100})"
        log.warning(queues.SET_ASIDE, task, why)
        return Reject(why, requeue=False)

    def wake(self, lane: str, *, redelivered: bool = False) -> None:
        """Run what is due in this worker's lanes, up to the limits of one wake-up."""
        with self._message(ChildCounter.WAKE_UPS, redelivered):
            self._wake(lane)

    def _wake(self, lane: str) -> None:
        engine = self._engine()
        if engine is None:
            return
        began, done = boot_time(), 0
        try:
            while (ended := engine.executor.run_next(self._inputs.lanes)) is not None:
                done += 1
                _log(ended)
                if done >= MOST_TASKS or boot_time() - began > MOST_SECONDS:
                    wakeups.wake_lanes(self._inputs.sender, {lane: 1})  # another process continues from here
                    return
        except StoreUnavailableError as error:
            self._row.add(ChildCounter.STORE_AWAY)
            log.warning("%s; the sweep will wake workers again once it is reachable", error.message)
        if not done:
            self._row.add(ChildCounter.SPARE)

    def deliver(self, task_id: int, *, redelivered: bool = False) -> None:
        """Run the named task, or skip this delivery and record why in the journal."""
        with self._message(ChildCounter.DELIVERIES, redelivered):
            self._deliver(task_id)

    def _deliver(self, task_id: int) -> None:
        engine = self._engine()
        if engine is None:
            return
        try:
            ended = engine.deliver(task_id)
        except StoreUnavailableError as error:
            self._row.add(ChildCounter.STORE_AWAY)
            log.warning("%s; the sweep will pick up task %s", error.message, task_id)
            return
        if isinstance(ended, Skipped):
            self._row.add(f"skipped_{ended.reason}")
            log.info("skipped: a delivery of task %s (%s)", task_id, ended.reason)
        else:
            _log(ended)

    @contextlib.contextmanager
    def _message(self, count: ChildCounter, redelivered: bool) -> Iterator[None]:
        """While a message is being handled, SIGTERM drains and then ends the process."""
        self._in_hand = True
        try:
            self._row[Mark.LAST_WAKE] = boot_time()
            self._row.add(count)
            if redelivered:
                self._row.add(ChildCounter.REDELIVERED)
            if not self._handled:
                # Replaces the handler that the pool installs after the process is initialised.
                self._handled = True
                signal.signal(signal.SIGTERM, self._on_sigterm)
            yield
        finally:
            self._row.rest()  # also after an unexpected error
            self._in_hand = False

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        """SIGTERM from a shrinking pool, or sent to the whole process group.

        An idle process exits at once: staying in the pool it would take wake-ups and do nothing with them.
        """
        self._leaving = True
        self._stopping.set()
        if not self._in_hand:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for the reason above
            sys.exit(0)

    def _engine(self) -> Any:
        """The engine of this process; None if it is stopping or the database is unreachable."""
        if self._stopping.is_set():
            return None
        with self._opening:
            if self._runtime is None:
                self._runtime = self._opened()
        return None if self._runtime is None else self._runtime.engine

    def _opened(self) -> bootstrap.Runtime | None:
        owner = f"{self._inputs.name}/{os.getpid()}"
        try:
            runtime = bootstrap.open_runtime(
                self._inputs.settings,
                sender=self._inputs.sender,
                owner=owner,
                tell=self._row.note,
                watched=True,
                tell_orders=self._row.note_orders,
            )
        except HoldfastError as error:
            self._row.add(ChildCounter.STORE_AWAY)
            log.warning("%s; the sweep will wake workers again once it is reachable", error.message)
            return None
        runtime.engine.watchdog.start()
        bootstrap.settle_down()
        return runtime

    def _drain(self) -> None:
        """Wait for a stop, from the parent's pipe or a signal; then drain within the timeout."""
        threading.Thread(target=self._watch_parent, name="holdfast-parent", daemon=True).start()
        self._engine()  # opened beforehand, so that the first wake-up is as quick as the others
        self._stopping.wait()
        if self._runtime is not None:
            self._runtime.engine.drain()
        patience = self._inputs.settings.drain_timeout
        until = boot_time() + patience
        while self._in_hand and boot_time() < max(until, self._orders_until()):
            self._release_what_waits()
            self._pause.wait(0.05)
        if self._in_hand:
            self._pause.wait(LAST_WORDS)
        if self._in_hand and self._row.busy and self._runtime is not None:
            task = int(self._row[Mark.TASK])
            log.warning(
                "task %s did not stop within %g s and is handed over to another worker", task, patience
            )
            with contextlib.suppress(StoreUnavailableError):  # then its lease expires
                self._runtime.engine.hand_over()
            os._exit(0)
        if self._leaving:
            while self._in_hand:
                self._pause.wait(0.05)
            self._pause.wait(LAST_WORDS)  # so that the pool gets the result first
            os.kill(os.getpid(), signal.SIGTERM)

    def _show_life(self) -> None:
        while not self._pause.wait(SIGN_EVERY):
            self._row.show_life()

    def _orders_until(self) -> float:
        return self._row[Mark.ORDERS_UNTIL] + LAST_WORDS

    def _release_what_waits(self) -> None:
        """Hand over a task whose order is in flight; its next worker waits for the answer as well."""
        if self._released or self._runtime is None or not self._runtime.engine.carrier.orders:
            return
        self._released = True
        with contextlib.suppress(StoreUnavailableError):  # then it is released once the order is answered
            self._runtime.engine.hand_over("draining")

    def _watch_parent(self) -> None:
        self._inputs.pipe.wait()
        self._stopping.set()


def _log(done: Done) -> None:
    claim = done.claim
    log.info(
        "%s: task %s of %s %s, generation %s, slice %s, epoch %s%s",
        done.ending,
        claim.task_id,
        claim.kind,
        claim.subject,
        claim.generation,
        claim.ordinal,
        claim.epoch,
        f" ({done.reason})" if done.reason else "",
        extra={"work": claim},
    )


_child: PoolProcess | None = None


def born(inputs: ChildInputs, index: int) -> None:
    """Make this process a child; `index` is its row in the shared state."""
    global _child  # noqa: PLW0603 - one child per process is the point
    row = inputs.pool_state.rows[index % len(inputs.pool_state.rows)]
    os.nice(inputs.settings.worker_nice)
    inputs.pipe.enter_child()
    row.enter()
    _child = PoolProcess(inputs, row)


def current() -> PoolProcess:
    """The `PoolProcess` of this process."""
    if _child is None:
        raise RuntimeError("this process is not part of a Holdfast worker; start one with: holdfast worker")
    return _child


def redelivered(request: Any) -> bool:
    """True if the broker marks this message as redelivered."""
    return bool((request.delivery_info or {}).get("redelivered"))
