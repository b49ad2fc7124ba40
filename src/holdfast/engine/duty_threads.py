"""Duties in a thread of their own, so that none holds up another, nor what must not wait.

They run one after another. What is asked of the database is bounded by the time limit of each; a duty that
is held up by something else (a folder on a network, a bucket) is left behind in its thread when its time is
over, the others go on, and it is not begun again before it has ended.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable

# Seconds after its time limit in which a duty may come to its end by itself.
SLACK = 5.0

log = logging.getLogger(__name__)


class Apart:
    """Runs jobs one after another. `overran` hears of a job that is over its time and goes on."""

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
                log.error("the duty %s is not over after %g s; the others go on without it", name, seconds)
                try:
                    self._overran(name, seconds)
                except Exception:  # outermost loop: the others have their turn whatever happens
                    log.exception("the failure of %s could not be noted", name)

    def _run(self, name: str, job: Callable[[], object]) -> None:
        try:
            job()
        except Exception:  # outermost of a thread; a duty notes its own errors, so this is the database's
            log.warning("the duty %s could not be done", name, exc_info=True)
        finally:
            with self._lock:
                del self._known[name]

    def stop(self, timeout: float = 2.0) -> bool:
        """Nothing further begins; True when everything that had begun has ended."""
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
