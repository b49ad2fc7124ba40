"""The process of a relay: it registers, serves, renews its lease, and drains when it is told to stop."""

import contextlib
import importlib.metadata
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from holdfast.bootstrap.relays import RelayParts
from holdfast.core.errors import StoreUnavailableError
from holdfast.core.records import Order
from holdfast.engine import lock_files
from holdfast.engine.host import ThreadHost
from holdfast.leases.base import DATABASE_TERMS
from holdfast.ledger.carrier import Carrier
from holdfast.ledger.exchanges import Exchanges
from holdfast.ledger.relay_client import SUFFIX
from holdfast.relay.admission import Admission
from holdfast.relay.carrying import OrderCarrier
from holdfast.relay.lease import RelayIdentity, RelayLease, lock_in
from holdfast.relay.server import RelayServer, checked_path
from holdfast.store.money import orders, relays

# A renewal that failed is tried again soon: others bury a relay that is silent for long.
AGAIN_AFTER = 1.0
STACK = 512 * 1024

log = logging.getLogger(__name__)


def run(parts: RelayParts, on_ready: Callable[[str], None]) -> int:
    """The exit code of a relay that has drained. `on_ready` is told where it listens."""
    host = ThreadHost()
    threading.stack_size(STACK)  # there is a thread for each order in flight
    folder, name = parts.folder, host.token()[:12]
    path = checked_path(folder, name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    slots = parts.settings.relay_slots
    admission = Admission(host.clock, host.sleep, slots=slots, most_waiting=2 * slots)
    shown = f"{socket.gethostname()}:{os.getpid()}"
    identity = RelayIdentity(shown, str(path), importlib.metadata.version("holdfast"))
    lease = RelayLease(parts.watch, host, identity, lock_in(folder))
    exchanges = Exchanges(parts.db, host, parts.prices, parts.policy, Carrier(parts.db, host))
    server: RelayServer | None = None

    def throttled(order: Order, seconds: float) -> None:
        if server is not None:
            server.throttled(order, seconds)

    carrier = OrderCarrier(
        parts.db, host, parts.providers, exchanges, lambda: lease.trust, throttled, spool=folder
    )
    server = RelayServer(
        folder, name, carrier, admission, schema=parts.schema, providers=sorted(parts.providers)
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    _bury_dead(parts, folder)
    lease.register()
    server.open()
    renewing = threading.Thread(target=_renew, args=(lease, admission, stop), daemon=True)
    accepting = threading.Thread(target=server.serve, daemon=True)
    renewing.start()
    accepting.start()
    on_ready(str(path))
    while not stop.wait(1.0):
        pass
    return _drain(server, lease, admission, renewing)


def _renew(lease: RelayLease, admission: Admission, _stop: threading.Event) -> None:
    pause = threading.Event()
    every = DATABASE_TERMS.renew_every
    while True:
        before = lease.trust
        pause.wait(every)
        lease.renew(admission.running)
        every = AGAIN_AFTER if lease.trust == before else DATABASE_TERMS.renew_every


def _drain(server: RelayServer, lease: RelayLease, admission: Admission, renewing: threading.Thread) -> int:
    """What is marked is sent to its end; the lease is renewed meanwhile."""
    log.info("the relay drains; %s orders are in flight", admission.running)
    with contextlib.suppress(StoreUnavailableError):
        lease.drain()
    server.drain()
    while not server.join(1.0):
        if not renewing.is_alive():
            lease.renew(admission.running)
    with contextlib.suppress(StoreUnavailableError):  # then it is buried by its lock
        lease.leave()
    return 0


def _bury_dead(parts: RelayParts, folder: Path) -> None:
    """Relays of this host that have died are gone before this one takes an order, and so are their files."""
    for relay_id in relays.bury(parts.db, lock_files.is_free):
        log.warning("relay %s had died; what it carried is in doubt", relay_id)
        for order_id in relays.carried_by(parts.db, relay_id):
            orders.recover(parts.db, order_id)
    in_use = {path for relay in relays.present(parts.db) for path in (relay.lock.path, relay.address)}
    for path in folder.iterdir():
        is_left = path.suffix in {".lock", SUFFIX} and str(path) not in in_use
        if is_left and (path.suffix == SUFFIX or lock_files.is_unlocked(path)):
            with contextlib.suppress(OSError):
                path.unlink()
