"""Celery's signals: a worker of the application starts the sweep, forks, revokes and ends."""

import logging
from typing import TYPE_CHECKING, Any

from celery import signals

from holdfast.core.errors import HoldfastError
from holdfast.guard import subjects

if TYPE_CHECKING:
    from holdfast.guard.guard import Guard

# Pools in which leases cannot be renewed: their threads are not threads.
UNSUPPORTED = ("eventlet", "gevent")

log = logging.getLogger(__name__)


def follow(guard: "Guard", *, sweep: bool) -> None:
    """The guard takes part in the life of every worker that this process becomes."""
    follower = _Follower(guard, sweep=sweep)
    for signal, receiver in (
        (signals.worker_init, follower.check_pool),
        (signals.worker_ready, follower.begin),
        (signals.worker_process_init, follower.fork),
        (signals.worker_shutdown, follower.end),
        (signals.task_revoked, follower.revoke),
    ):
        # With an id: Celery takes the same method of two objects for one receiver, and would ignore a second
        # guard.
        signal.connect(receiver, weak=False, dispatch_uid=f"holdfast-{id(guard)}-{receiver.__name__}")


class _Follower:
    """What a guard does at Celery's signals."""

    def __init__(self, guard: "Guard", *, sweep: bool) -> None:
        self._guard = guard
        self._sweep = sweep

    def check_pool(self, sender: Any = None, **_: Any) -> None:
        """Say so if tasks cannot be guarded in this pool."""
        pool = str(getattr(sender, "pool_cls", ""))
        if any(name in pool for name in UNSUPPORTED):
            log.error(
                "holdfast: guarded tasks need a pool of processes or threads; start the worker with "
                "--pool prefork, threads or solo (leases are not renewed in time under gevent and eventlet)"
            )

    def begin(self, sender: Any = None, **_: Any) -> None:
        """Sweep in the main process of a worker of the application."""
        app = getattr(sender, "app", None)
        if self._guard.app is not None and app is not None and app is not self._guard.app:
            return
        if self._sweep:
            self._guard.sweeper.start()
        else:
            log.warning("holdfast: this worker does not sweep (sweep=False); another worker must")

    def fork(self, **_: Any) -> None:
        """A process of the pool has connections and leases of its own."""
        self._guard.after_fork()

    def end(self, **_: Any) -> None:
        """The worker ends."""
        self._guard.sweeper.stop()

    def revoke(self, sender: Any = None, request: Any = None, **facts: Any) -> None:
        """A task that Celery has discarded or terminated is cancelled."""
        if getattr(sender, "holdfast_guard", None) is not self._guard or request is None:
            return
        try:
            run_id = subjects.run_id(request.id, sender.name)
            terminated, expired = bool(facts.get("terminated")), bool(facts.get("expired"))
            self._guard.revoked(run_id, expired=expired, terminated=terminated)
        except HoldfastError as error:
            log.warning("holdfast: the revocation of %s was not recorded: %s", request.id, error.message)
