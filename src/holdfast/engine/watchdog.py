"""The watchdog: renews the leases of this process in its own thread, with its own connection.

Work that holds the interpreter or waits on a socket cannot renew; the watchdog can. It notifies the work when
a lease is lost. At the hard time limit it gives the task up, which counts as an attempt: a hung task is not
kept alive for ever.
"""

import logging
import threading
from collections.abc import Callable

from holdfast.core.errors import HoldfastError
from holdfast.core.ports import Host
from holdfast.engine import events
from holdfast.engine.work import Work
from holdfast.leases.base import Leases
from holdfast.ledger.carrier import Carrier

SIGN_EVERY = 300.0

log = logging.getLogger(__name__)


class Watchdog:
    """Renews the leases it watches. `beat` is one round; `start` runs rounds in a thread."""

    def __init__(
        self,
        leases: Leases,
        host: Host,
        sign: Callable[[Work], None] | None = None,
        *,
        tell: events.Tell = events.nobody,
        carrier: Carrier | None = None,
        give_up: Callable[[Work], None] | None = None,
    ) -> None:
        self._tell = tell
        self._give_up = give_up
        self._carrier = carrier
        self._leases = leases
        self._host = host
        self._sign = sign
        self._signed_at: dict[int, float] = {}
        self._watched: dict[int, Work] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.beats = 0

    def watch(self, work: Work) -> None:
        """Renew the lease of `work` from now on."""
        with self._lock:
            self._watched[work.claim.task_id] = work
        if self._thread is not None:
            self.start()  # replaces a thread that died of an unexpected error

    def unwatch(self, work: Work) -> None:
        """Stop renewing the lease of `work`."""
        with self._lock:
            if self._watched.get(work.claim.task_id) is work:
                del self._watched[work.claim.task_id]
            self._signed_at.pop(work.claim.task_id, None)

    def watched(self) -> list[Work]:
        """The work whose leases are being renewed."""
        with self._lock:
            return list(self._watched.values())

    def beat(self) -> None:
        """Every watched lease was renewed once, or its work was notified that it is lost.

        If the backend does not respond, nothing happens: trust expires by itself.
        """
        for work in self.watched():
            self._renew(work)
        if self._carrier is not None:
            self._carrier.beat()
        self.beats += 1

    def _renew(self, work: Work) -> None:
        sent_at = self._host.clock()
        if sent_at > work.hard_at:
            self._overrun(work)
            return
        try:
            granted = self._leases.renew(work.claim)
        except HoldfastError:
            log.warning("the lease of task %s could not be renewed now", work.claim.task_id)
            return
        if not granted and work.is_ending:
            return  # it was released, as it should be; if it was lost after all, the fence detects it
        self._tell(events.Renewed(work.claim, granted))
        if granted:
            work.trust(sent_at)
            self._sign_of_life(work, sent_at)
        else:
            work.lose("another holder took it, or it expired")

    def _overrun(self, work: Work) -> None:
        """The task goes to another worker now, without waiting until this process notices or is killed."""
        work.overrun()
        if work.is_given_up or self._give_up is None:
            return
        try:
            self._give_up(work)
            work.is_given_up = True
        except HoldfastError:
            log.warning("task %s, past its hard time limit, could not be given up now", work.claim.task_id)

    def _sign_of_life(self, work: Work, at: float) -> None:
        if self._sign is None or self._leases.kept_in_database:
            return
        if at - self._signed_at.setdefault(work.claim.task_id, at) > SIGN_EVERY:
            self._signed_at[work.claim.task_id] = at
            self._sign(work)

    def start(self) -> None:
        """Beat every `renew_every` seconds in a daemon thread. Call it after a fork, never before."""
        if self._thread is None or not self._thread.is_alive():
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="holdfast-watchdog", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """The thread has ended."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
            self._thread = None

    def _run(self) -> None:
        while not self._stop.wait(self._leases.terms.renew_every):
            self.beat()
