"""Duties in a separate thread, so that a slow one does not delay others or anything urgent.

They run one after another. Database calls are bounded by the time limit of each duty. A duty delayed by
something else (a network folder, a bucket) is left behind in its thread when its time is over; the others
continue, and it is not started again before it has ended.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable

# Seconds after its time limit in which a duty may still end by itself.
SLACK = 5.0

log = logging.getLogger(__name__)


class DutyThreads:
    """Runs jobs one after another. `overran` is called for a job that exceeds its time and continues."""

    def __init__(self, overran: Callable[[str, float], None], *, slack: float = SLACK) -> None:
        self._overran = overran
        self._slack = slack
        self._waiting: queue.SimpleQueue[tuple[str, float, Callable[[], object]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._known: dict[str, threading.Thread | None] = {}
        self._stopping = False
        self._thread: threading.Thread | None = None

    def submit(self, name: str, seconds: float, job: Callable[[], object]) -> bool:
        """The job will run; False if the last one of its name has not ended."""
        with self._lock:
            if name in self._known:
                return False
            self._known[name] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._go, name="holdfast-duties", daemon=True)
                self._thread.start()
        self._waiting.put((name, seconds, job))
        return True

    def _go(self) -> None:
        while (entry := self._waiting.get()) is not None:
            name, seconds, job = entry
            if self._stopping:
                with self._lock:
                    del self._known[name]
                continue
            runner = threading.Thread(
                target=self._run, args=(name, job), name=f"holdfast-duty-{name}", daemon=True
            )
            with self._lock:
                self._known[name] = runner
            runner.start()
            runner.join(seconds + self._slack)
            if runner.is_alive():
                log.error("duty %s has not ended after %g s; the others continue without it", name, seconds)
                try:
                    self._overran(name, seconds)
                except Exception:  # outermost loop: the others get their turn whatever happens
                    log.exception("the failure of %s could not be recorded", name)

    def _run(self, name: str, job: Callable[[], object]) -> None:
        try:
            job()
        except Exception:  # outermost of a thread; a duty records its own errors, so this is the database's
            log.warning("duty %s could not be run", name, exc_info=True)
        finally:
            with self._lock:
                del self._known[name]

    def stop(self, timeout: float = 2.0) -> bool:
        """Nothing further starts; True if everything that had started has ended."""
        give_up = time.monotonic() + timeout
        self._stopping = True
        self._waiting.put(None)
        with self._lock:
            threads = [self._thread, *self._known.values()]
        for thread in threads:
            if thread is not None:
                thread.join(max(0.0, give_up - time.monotonic()))
        with self._lock:
            return not self._known
