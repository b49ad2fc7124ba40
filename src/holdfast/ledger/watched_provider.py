"""A provider whose failures are reported at the first failed exchange, not when the work gives up."""

import logging
import threading
import time
from collections.abc import Callable

from holdfast.core.errors import HoldfastError
from holdfast.ledger.wrapped_provider import WrappedProvider
from holdfast.providers.base import Answered, Exchange, NotSent, Outcome, Provider, Refused, Unknown
from holdfast.store.base.database import Database
from holdfast.store.money import provider_troubles

# Tries in between are counted and recorded together; a trouble is looked up no more often than this.
NOTE_EVERY = 1.0
LOOK_EVERY = 5.0
# Seconds without a connection before that is recorded, long before the attempt is given up.
CONNECTED_WITHIN = 3.0
# The work itself was stopped; this is not the provider's fault.
OWN = frozenset({"gate", "deadline passed"})

log = logging.getLogger(__name__)


class WatchedProvider(WrappedProvider):
    """Wraps a provider. Its failures are in `provider_troubles` until it responds again."""

    def __init__(self, inner: Provider, db: Database) -> None:
        super().__init__(inner)
        self._db = db
        self._lock = threading.Lock()
        self._tries: dict[str, int] = {}
        self._noted_at: dict[str, float] = {}
        self._looked: dict[str, float] = {}

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """See `Provider.send`."""
        waiting = threading.Timer(CONNECTED_WITHIN, self._unconnected, (exchange.endpoint,))
        waiting.daemon = True
        waiting.start()

        def connected() -> bool:
            waiting.cancel()  # the gate is called when the connection is ready
            return gate()

        try:
            outcome = self._inner.send(exchange, connected)
        finally:
            waiting.cancel()
        try:
            self._heard(exchange.endpoint, outcome)
        except HoldfastError as error:
            # The payer has the outcome and continues; only the display is out of date for a moment.
            log.warning("the state of provider %s was not recorded: %s", self.name, error.message)
        return outcome

    def _heard(self, endpoint: str, outcome: Outcome) -> None:
        match outcome:
            case Answered():
                self._answered(endpoint)
            case NotSent(reason=reason) if reason not in OWN:
                self._failed(endpoint, reason, None)
            case Unknown():
                self._failed(endpoint, outcome.reason, outcome.status)
            case Refused() if outcome.code != "rejected":
                self._failed(endpoint, outcome.message or outcome.code, outcome.status)

    def _unconnected(self, endpoint: str) -> None:
        reason = f"waiting for {self.address} to accept a connection"
        with self._lock:
            self._noted_at[endpoint] = time.monotonic()
        try:
            provider_troubles.note(self._db, self.name, endpoint, reason=reason, status=None, tries=0)
        except HoldfastError as error:
            log.warning("the state of provider %s was not recorded: %s", self.name, error.message)

    def _failed(self, endpoint: str, reason: str, status: int | None) -> None:
        with self._lock:
            self._tries[endpoint] = tries = self._tries.get(endpoint, 0) + 1
            at = time.monotonic()
            if at - self._noted_at.get(endpoint, -NOTE_EVERY) < NOTE_EVERY:
                return
            self._noted_at[endpoint], self._tries[endpoint] = at, 0
        provider_troubles.note(self._db, self.name, endpoint, reason=reason, status=status, tries=tries)

    def _answered(self, endpoint: str) -> None:
        with self._lock:
            at = time.monotonic()
            known = endpoint in self._noted_at
            if not known and at - self._looked.get(endpoint, -LOOK_EVERY) < LOOK_EVERY:
                return
            self._looked[endpoint] = at
            self._noted_at.pop(endpoint, None)
            self._tries.pop(endpoint, None)
        provider_troubles.clear(self._db, self.name, endpoint)


def watched(provider: Provider, db: Database) -> Provider:
    """The provider, watched; one in this process needs no connection and always responds."""
    return provider if provider.profile.in_process else WatchedProvider(provider, db)
