"""The life of one pool process: it opens its own runtime after the fork, works when woken, drains when told.

One wake-up keeps a process going while there is work, within bounds, so that a few messages are enough for a
long queue. When it must stop it hands its task back at once, and stays until the orders in flight have been
answered; a task that does not stop in time is handed over to others, and the process ends.
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
from holdfast.worker.shared_state import Board, ChildCounter, ChildRow, Mark

# One wake-up serves at most this much, so that a deploy and the fair share of a broker's other users bite.
MOST_TASKS = 200
MOST_SECONDS = 30.0
# A task that ends right after the drain time must not be cut off in the middle of its last statement.
LAST_WORDS = 0.5
# How often a process shows that its threads run. Code that holds the interpreter's lock lets none of them.
SIGN_EVERY = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Birth:
    """What a child is given by its parent, before the fork."""

    settings: Settings
    name: str
    lanes: tuple[str, ...]
    board: Board
    rope: parent_pipe.Tether
    sender: wakeups.Sender


class PoolProcess:
    """One process of the pool, ready to be woken."""

    def __init__(self, birth: Birth, row: ChildRow) -> None:
        self._birth = birth
        self._row = row
        self._runtime: bootstrap.Runtime | None = None
        self._stopping = threading.Event()
        self._pause = threading.Event()  # never set: for waits that nothing cuts short
        self._in_hand = False
        self._leaving = False
        self._handled = False
        self._released = False
        self._opening = threading.Lock()
        # The pool sends SIGTERM to a process that says that it ends. In another thread than the main one it
        # would end it at once, perhaps with the lock in hand that all processes share: then none goes on.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        for name, body in (("tether", self._wait_for_the_end), ("sign", self._show_life)):
            threading.Thread(target=body, name=f"holdfast-{name}", daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def lane(self, given: Sequence[object]) -> str:
        """The lane that a wake-up names; Reject when it names none. What a newer release adds is ignored."""
        if given and isinstance(given[0], str) and given[0] in LANE_RANK:
            return given[0]
        raise self._set_aside(queues.WAKE, given)

    def task_id(self, given: Sequence[object]) -> int:
        """The task that a delivery names; Reject when it names none."""
        if given and type(given[0]) is int and 0 < given[0] < 2**63:
            return given[0]
        raise self._set_aside(queues.DELIVER, given)

    def _set_aside(self, task: str, given: Sequence[object]) -> Reject:
        self._row.add(ChildCounter.STRANGE)
        why = f"its arguments are not understood ({task} with {given!r:.100})"
        log.warning(queues.SET_ASIDE, task, why)
        return Reject(why, requeue=False)

    def wake(self, lane: str, *, redelivered: bool = False) -> None:
        """All that was due in the lanes of this worker was done, or as much as one wake-up may do."""
        with self._message(ChildCounter.WAKE_UPS, redelivered):
            self._wake(lane)

    def _wake(self, lane: str) -> None:
        engine = self._engine()
        if engine is None:
            return
        began, done = boot_time(), 0
        try:
            while (ended := engine.executor.run_next(self._birth.lanes)) is not None:
                done += 1
                _log(ended)
                if done >= MOST_TASKS or boot_time() - began > MOST_SECONDS:
                    wakeups.wake_lanes(self._birth.sender, {lane: 1})  # somebody goes on where this one stops
                    return
        except StoreUnavailableError as error:
            self._row.add(ChildCounter.STORE_AWAY)
            log.warning("%s; the sweep wakes again when it is back", error.message)
        if not done:
            self._row.add(ChildCounter.SPARE)

    def deliver(self, task_id: int, *, redelivered: bool = False) -> None:
        """The named task was carried out, or this delivery was skipped and the journal says why."""
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
            log.warning("%s; task %s is found by the sweep", error.message, task_id)
            return
        if isinstance(ended, Skipped):
            self._row.add(f"skipped_{ended.reason}")
            log.info("skipped: a delivery of task %s (%s)", task_id, ended.reason)
        else:
            _log(ended)

    @contextlib.contextmanager
    def _message(self, count: ChildCounter, redelivered: bool) -> Iterator[None]:
        """A message is in hand: SIGTERM drains now, and ends the process afterwards."""
        self._in_hand = True
        try:
            self._row[Mark.LAST_WAKE] = boot_time()
            self._row.add(count)
            if redelivered:
                self._row.add(ChildCounter.REDELIVERED)
            if not self._handled:
                # The pool sets its own handler after the process is initialised; this one replaces it.
                self._handled = True
                signal.signal(signal.SIGTERM, self._told_to_end)
            yield
        finally:
            self._row.rest()  # also when an unforeseen error came before the word that the task is done
            self._in_hand = False

    def _told_to_end(self, _number: int, _frame: FrameType | None) -> None:
        """SIGTERM, from the pool that needs fewer processes or from whoever stops the whole group.

        A process that only remembered it would stay in the pool, take wake-ups and do nothing with them.
        """
        self._leaving = True
        self._stopping.set()
        if not self._in_hand:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for the reason above
            sys.exit(0)

    def _engine(self) -> Any:
        """The engine of this process; None when it is stopping or the database is away."""
        if self._stopping.is_set():
            return None
        with self._opening:
            if self._runtime is None:
                self._runtime = self._opened()
        return None if self._runtime is None else self._runtime.engine

    def _opened(self) -> bootstrap.Runtime | None:
        owner = f"{self._birth.name}/{os.getpid()}"
        try:
            runtime = bootstrap.open_runtime(
                self._birth.settings,
                sender=self._birth.sender,
                owner=owner,
                tell=self._row.note,
                watched=True,
                tell_orders=self._row.note_orders,
            )
        except HoldfastError as error:
            self._row.add(ChildCounter.STORE_AWAY)
            log.warning("%s; the sweep wakes again when it is back", error.message)
            return None
        runtime.engine.watchdog.start()
        bootstrap.settle_down()
        return runtime

    def _wait_for_the_end(self) -> None:
        """Told to stop, by the parent's rope or by a signal: drain, and do not let the drain last."""
        rope = threading.Thread(target=self._hold_the_rope, name="holdfast-rope", daemon=True)
        rope.start()
        self._engine()  # opened beforehand, so that the first wake-up is as quick as the others
        self._stopping.wait()
        if self._runtime is not None:
            self._runtime.engine.drain()
        patience = self._birth.settings.drain_timeout
        until = boot_time() + patience
        while self._in_hand and boot_time() < max(until, self._orders_until()):
            self._release_what_waits()
            self._pause.wait(0.05)
        if self._in_hand:
            self._pause.wait(LAST_WORDS)
        if self._in_hand and self._row.busy and self._runtime is not None:
            task = int(self._row[Mark.TASK])
            log.warning("task %s did not stop within %g s and is handed over to others", task, patience)
            with contextlib.suppress(StoreUnavailableError):  # then its lease runs out
                self._runtime.engine.hand_over()
            os._exit(0)
        if self._leaving:
            while self._in_hand:
                self._pause.wait(0.05)
            self._pause.wait(LAST_WORDS)  # the pool is told of the result first
            os.kill(os.getpid(), signal.SIGTERM)

    def _show_life(self) -> None:
        while not self._pause.wait(SIGN_EVERY):
            self._row.show_life()

    def _orders_until(self) -> float:
        return self._row[Mark.ORDERS_UNTIL] + LAST_WORDS

    def _release_what_waits(self) -> None:
        """A task whose order is in flight goes to others now; they wait for the answer, as we do."""
        if self._released or self._runtime is None or not self._runtime.engine.carrier.orders:
            return
        self._released = True
        with contextlib.suppress(StoreUnavailableError):  # then it goes when the order has been answered
            self._runtime.engine.hand_over("draining")

    def _hold_the_rope(self) -> None:
        self._birth.rope.wait()
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


def born(birth: Birth, place: int) -> None:
    """This process is a child from now on; `place` is its row on the board."""
    global _child  # noqa: PLW0603 - one child per process is the point
    row = birth.board.rows[place % len(birth.board.rows)]
    os.nice(birth.settings.worker_nice)
    birth.rope.hold()
    row.enter()
    _child = PoolProcess(birth, row)


def current() -> PoolProcess:
    """The child that this process is."""
    if _child is None:
        raise RuntimeError(
            "this process is not a child of a Holdfast worker; start one with: holdfast worker"
        )
    return _child


def redelivered(request: Any) -> bool:
    """True when the broker says that it has delivered this message before."""
    return bool((request.delivery_info or {}).get("redelivered"))
