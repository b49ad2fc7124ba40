"""The relay's own lease: it may send while it trusts it, and takes a new id if it was buried.

Trust is counted from when the renewal was sent, by the boot clock, and ends before the lease does. A relay
that could not renew for a while (frozen, or cut off from the database) sends nothing; if it was buried
meanwhile it registers again under a new id, and what it sent under the old one it still settles.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.core.errors import StoreUnavailableError
from holdfast.core.ports import Host
from holdfast.engine import lock_files
from holdfast.leases.base import DATABASE_TERMS, LeaseTerms
from holdfast.store.base.database import Database
from holdfast.store.money import relays
from holdfast.store.money.relays import LockFile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RelayIdentity:
    """What others are told about this relay."""

    name: str
    address: str
    version: str


@dataclass(frozen=True, slots=True)
class Trust:
    """The id under which an order may be marked, and until when its first byte may be written."""

    relay_id: str
    until: float


class RelayLease:
    """The registration of this relay. `lock` makes a lock that is held for as long as this process lives."""

    def __init__(
        self,
        db: Database,
        host: Host,
        identity: RelayIdentity,
        lock: Callable[[str], LockFile],
        terms: LeaseTerms = DATABASE_TERMS,
    ) -> None:
        self._db = db
        self._host = host
        self._identity = identity
        self._lock_of = lock
        self._terms = terms
        self._guard = threading.Lock()
        self._trust = Trust("", 0.0)
        self._is_draining = False

    @property
    def trust(self) -> Trust:
        """The current id and how long it is trusted."""
        with self._guard:
            return self._trust

    def register(self) -> None:
        """The relay is up under a new id, whose lock this process holds."""
        relay_id, sent_at = self._host.token(), self._host.clock()
        facts = self._identity
        relays.register(
            self._db,
            relay_id,
            name=facts.name,
            address=facts.address,
            version=facts.version,
            lock=self._lock_of(relay_id),
            ttl=self._terms.ttl,
        )
        if self._is_draining:
            relays.drain(self._db, relay_id)
        with self._guard:
            self._trust = Trust(relay_id, self._terms.trusted_until(sent_at))

    def renew(self, carrying: int = 0) -> None:
        """The lease runs again, under a new id if others had given this relay up.

        Does nothing if the database is unreachable: trust ends by itself.
        """
        trust, sent_at = self.trust, self._host.clock()
        try:
            if relays.renew(self._db, trust.relay_id, ttl=self._terms.ttl, carrying=carrying):
                with self._guard:
                    self._trust = Trust(trust.relay_id, self._terms.trusted_until(sent_at))
                return
            log.warning("this relay was given up as %s; it goes on under a new id", trust.relay_id)
            self.register()
        except StoreUnavailableError as error:
            log.warning("the lease of the relay could not be renewed now: %s", error.message)

    def drain(self) -> None:
        """Others see that this relay takes no new orders."""
        self._is_draining = True
        relays.drain(self._db, self.trust.relay_id)

    def leave(self) -> None:
        """The relay, which carries nothing any more, is gone."""
        relays.leave(self._db, self.trust.relay_id)


def lock_in(folder: Path) -> Callable[[str], LockFile]:
    """What makes a lock for a relay id: a file in `folder`, locked until this process ends."""

    def locked(relay_id: str) -> LockFile:
        return lock_files.HeldLock(folder / f"{relay_id}.lock").file

    return locked
