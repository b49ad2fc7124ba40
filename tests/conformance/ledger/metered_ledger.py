"""The ledger as its tests use it: a metered provider, workers that pay, and the bill as both sides see it."""

import contextlib
import dataclasses
import json

import pytest
from sqlalchemy import select, update

from holdfast import faults
from holdfast.clock import boot_time
from holdfast.core.errors import LeaseLostError
from holdfast.core.retry import Backoff
from holdfast.engine.host import ThreadHost
from holdfast.ledger.exchanges import Policy
from holdfast.ledger.pay import Call, Ledger
from holdfast.ledger.prices import MILLION, Price, PriceTable
from holdfast.store.base import dialect
from holdfast.store.base.schema import carriers, charges, orders, throttles
from holdfast.store.money import budgets
from holdfast.store.protocol import duties

PRICES = PriceTable("test-1", {"small": Price(10 * MILLION), "talker": Price(10 * MILLION, 20 * MILLION)})
CENT = 20  # what each text of eight characters costs by PRICES: two tokens


class PayingWorker:
    """A worker's hold on its task, as the ledger sees it."""

    def __init__(self, claim):
        self.claim = claim
        self.lost = False

    def check(self):
        if self.lost:
            raise LeaseLostError("the lease is gone")

    def trusted(self):
        return not self.lost

    def trusted_until(self):
        return boot_time() + 60.0

    def waiting(self, waits):
        self.waited = waits


class Witness:
    """A provider that remembers what was sent through it."""

    def __init__(self, provider, sent):
        self._provider = provider
        self._sent = sent

    def __getattr__(self, name):
        return getattr(self._provider, name)

    def send(self, exchange, gate):
        self._sent.append((exchange.idempotency_key, exchange.body))
        return self._provider.send(exchange, gate)


def embed(text, model="small", **params):
    return Call("meter", "embeddings", model, text, params)


class MeteredLedger:
    """Workers that pay at one meter."""

    def __init__(self, world, meter, stack, **profile):
        self.world = world
        self.db = world.db
        self.meter = meter
        self.sent = []
        self._stack = stack
        self._profile = profile

    def ledger(self, *, profile=None, provider=None, **policy):
        if provider is None:
            changed = dataclasses.replace(self.meter.profile(), **self._profile | (profile or {}))
            provider = self._stack.enter_context(contextlib.closing(self.meter.provider(changed)))
        quick = {"poll": 0.005, "wait": 10.0, "backoff": Backoff(0.001, 1.0, 0.002)}
        rules = Policy(**quick | policy)
        return Ledger(self.db, ThreadHost(), {"meter": Witness(provider, self.sent)}, PRICES, rules)

    def hand(self, subject="document:1", **changes):
        return PayingWorker(self.world.start(subject=subject, **changes))

    def pay(self, hand, *texts, ledger=None, counted=None):
        return (ledger or self.ledger()).pay(hand, [embed(text) for text in texts], counted)

    def crash(self, hand, *texts, at="send.answered", **ledger):
        """The worker dies at the fault point, and nobody here can know it: another has its task at last.

        Its lease and that of its process have run out.
        """

        def die(name):
            if name == at:
                raise faults.Crash

        with pytest.raises(faults.Crash), faults.armed(die):
            self.pay(hand, *texts, ledger=self.ledger(**ledger))
        return self.take_over(hand)

    def take_over(self, hand):
        self.world.lapse(hand.claim)
        self.fall_silent(12.0)
        duties.expire(self.db, cap=9)
        return PayingWorker(self.world.claim(owner="successor"))

    def orders(self, *columns):
        rows = self.world.rows(select(orders).order_by(orders.c.created_at))
        return [tuple(getattr(row, name) for name in columns) for row in rows]

    def bill(self):
        """(sort, send, amount, cleared) of every charge, in the order of the exchanges."""
        query = select(charges).order_by(charges.c.order_id, charges.c.send, charges.c.id)
        return [(row.sort, row.send, row.amount, bool(row.cleared)) for row in self.world.rows(query)]

    def set_budget(self, hard, scope=budgets.TENANT):
        budgets.set_budget(self.db, "default", scope, hard=hard)

    def budget(self, scope=budgets.TENANT):
        rows = {row.scope: row for row in budgets.of_tenant(self.db, "default")}
        return rows[scope].spent, rows[scope].reserved

    def fall_silent(self, seconds):
        """Nothing was heard of any process for so long after its lease had run out."""
        self.world.write(update(carriers).values(lease_until=dialect.now() - seconds))

    def pass_deadline(self, seconds=None):
        """The deadline of every order was so many seconds ago, or very long."""
        self.world.write(update(orders).values(deadline_at=dialect.now() - seconds if seconds else 1.0))

    def end_throttle(self):
        self.world.write(update(throttles).values(not_before=1.0))

    def inputs(self):
        """The texts of every exchange that reached the meter."""
        return [sorted(entry["inputs"]) for entry in self.meter.log()]

    def bodies(self):
        return [json.loads(body) for _, body in self.sent]
