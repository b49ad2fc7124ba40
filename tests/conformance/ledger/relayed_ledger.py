"""A relay in the process of a test: its socket, its threads and its lease are real, its process is ours."""

import threading

from holdfast.engine.host import ThreadHost
from holdfast.ledger.carrier import Carrier
from holdfast.ledger.exchanges import Exchanges, Policy
from holdfast.ledger.pay import Ledger
from holdfast.ledger.relay_client import RelayClient
from holdfast.relay.admission import Admission
from holdfast.relay.carrying import OrderCarrier
from holdfast.relay.lease import RelayIdentity, RelayLease, lock_in
from holdfast.relay.server import RelayServer
from holdfast.store.base import revisions
from tests.conformance.ledger.metered_ledger import PRICES, Witness


class TestRelay:
    """A relay for the workers of a `MeteredLedger`."""

    __test__ = False

    def __init__(self, till, folder, *, name="relay", **admission):
        self.till = till
        self.folder = folder
        self.host = ThreadHost()
        self.provider = till.meter.provider()
        exchanges = Exchanges(till.db, self.host, PRICES, Policy(), Carrier(till.db, self.host))
        identity = RelayIdentity("test:1", str(folder / f"{name}.sock"), "1")
        folder.mkdir(mode=0o700, exist_ok=True)
        self.lease = RelayLease(till.db, self.host, identity, lock_in(folder))
        self.sent = []
        self._clients = []
        witness = Witness(self.provider, self.sent)
        self.carrier = OrderCarrier(
            till.db,
            self.host,
            {"meter": witness},
            exchanges,
            lambda: self.lease.trust,
            lambda order, seconds: self.server.throttled(order, seconds),  # noqa: PLW0108 - there is none yet
            spool=folder,
        )
        self.admission = Admission(self.host.clock, self.host.sleep, **admission)
        self.server = RelayServer(
            folder, name, self.carrier, self.admission, schema=revisions.known(), providers=["meter"]
        )

    def start(self):
        self.lease.register()
        self.server.open()
        threading.Thread(target=self.server.serve, daemon=True).start()
        return self

    @property
    def id(self):
        return self.lease.trust.relay_id

    def client(self):
        self._clients.append(RelayClient(self.folder, revisions.known()))
        return self._clients[-1]

    def ledger(self, *, required=True, client=None, **policy):
        """A worker's ledger; what it sends itself is in `till.sent`."""
        base = self.till.ledger(**policy)
        rules = Policy(**{**_fields(base._policy), "relay_required": required})
        relays = client or self.client()
        return Ledger(self.till.db, ThreadHost(), base._providers, PRICES, rules, None, relays)

    def close(self):
        self.till.meter.release()
        if self.server._listener is not None:
            self.server.drain()
            assert self.server.join(30.0)
        for client in self._clients:
            client.close()
        self.provider.close()


def _fields(policy):
    return {name: getattr(policy, name) for name in Policy.__dataclass_fields__}
