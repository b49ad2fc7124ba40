"""A relay marks orders for workers: under their fence, only while it is not gone, and each of them once."""

import threading

import pytest
from sqlalchemy import select, update

from holdfast import faults
from holdfast.core.records import Fenced
from holdfast.core.states import CallState
from holdfast.engine import lock_files
from holdfast.store.base import dialect
from holdfast.store.base.schema import orders as order_table
from holdfast.store.base.schema import relays as relay_table
from holdfast.store.money import budgets, calls, carried, orders, relays
from holdfast.store.protocol import claims
from tests.conformance.ledger.metered_ledger import CENT, PayingWorker, embed

pytestmark = pytest.mark.g5
NOWHERE = relays.LockFile("/nonexistent", "0", "0")


def register(till, relay_id="relay-1", lock=NOWHERE):
    relays.register(till.db, relay_id, name="host:1", address="a", version="1", lock=lock, ttl=12.0)
    return relay_id


def intended(till, hand, text="chunk-01", **draft):
    """An order of `hand` that nobody has sent."""
    ledger = till.ledger(**draft)
    plan = ledger._draft(hand.claim, ledger.provider("meter"), [(embed(text).key("default"), embed(text))])
    return calls.intend(till.db, hand.claim, plan)


def fall_silent(till, seconds, **values):
    lapsed = {"lease_until": dialect.now() - seconds, **values}
    till.world.write(update(relay_table).values(**lapsed))


def relay_row(till):
    return till.world.row(select(relay_table))


def never(_lock):
    return False


def test_a_relays_mark_names_it_and_leaves_time_to_store_the_outcome(unkeyed):
    """Everyone who waits for the order sees its carrier, and its deadline with some slack."""
    relay, order = register(unkeyed), intended(unkeyed, unkeyed.hand())
    marked = carried.mark(unkeyed.db, relay, order, "mark-1")
    assert (marked.state, marked.sends, marked.body) == (CallState.SENT, 1, order.body)
    [(state, carrier, token)] = unkeyed.orders("state", "carrier", "send_token")
    assert (state, carrier, token) == ("sent", relay, "mark-1")
    assert marked.deadline_at - marked.sent_at == pytest.approx(order.deadline + carried.SLACK)


def test_a_relay_that_is_gone_marks_nothing(unkeyed):
    """Its orders were given up: what it would send now, another may be sending."""
    relay, order = register(unkeyed), intended(unkeyed, unkeyed.hand())
    relays.leave(unkeyed.db, relay)
    assert carried.mark(unkeyed.db, relay, order, "mark-1") == Fenced(carried.RELAY_GONE)
    assert carried.mark(unkeyed.db, "never-registered", order, "mark-1") == Fenced(carried.RELAY_GONE)
    assert unkeyed.orders("state", "sends") == [("intent", 0)]


def test_the_fence_of_a_mark_comes_from_the_row_of_the_order(unkeyed):
    """A worker that lost its task cannot have its order sent, whatever it says about itself."""
    relay, hand = register(unkeyed), unkeyed.hand()
    order = intended(unkeyed, hand)
    claims.release(unkeyed.db, hand.claim, "draining")
    assert carried.mark(unkeyed.db, relay, order, "mark-1") == Fenced("stale_epoch")
    unkeyed.world.claim(owner="next")
    assert carried.mark(unkeyed.db, relay, order, "mark-1") == Fenced("stale_epoch")


def test_a_worker_and_a_relay_with_one_claim_do_not_both_send(unkeyed, monkeypatch, lose):
    """The relay's mark is tried again, and the worker has marked meanwhile: that mark is not the relay's."""
    relay, hand = register(unkeyed), unkeyed.hand()
    order, marks = intended(unkeyed, hand), []
    monkeypatch.setattr(
        unkeyed.db, "pause", lambda _seconds: marks.append(calls.send(unkeyed.db, hand.claim, order))
    )
    with lose("mark.commit"):
        assert carried.mark(unkeyed.db, relay, order, "mark-1") == Fenced(calls.INTENT_LOST)
    assert [mark.sends for mark in marks] == [1]


def test_a_mark_whose_confirmation_was_lost_is_recognised(unkeyed, lose):
    """It had committed: the relay sends, and the order counts one send."""
    relay, order = register(unkeyed), intended(unkeyed, unkeyed.hand())
    with lose("mark.committed"):
        assert carried.mark(unkeyed.db, relay, order, "mark-1").sends == 1
    assert unkeyed.orders("state", "sends") == [("sent", 1)]


def test_a_mark_waits_for_the_disk(unkeyed, monkeypatch):
    """A power cut must not lose it: the order would be sent a second time."""
    relay, order, relaxed = register(unkeyed), intended(unkeyed, unkeyed.hand()), []
    write = unkeyed.db.write

    def noted(*words, **how):
        relaxed.append(how.get("relaxed", False))
        return write(*words, **how)

    monkeypatch.setattr(unkeyed.db, "write", noted)
    carried.mark(unkeyed.db, relay, order, "mark-1")
    assert relaxed == [False]


def test_a_void_order_is_not_marked(unkeyed):
    """Recovering it has freed its calls for another order."""
    relay, order = register(unkeyed), intended(unkeyed, unkeyed.hand())
    orders.void(unkeyed.db, order.id, 0, reason="unsent")
    assert carried.mark(unkeyed.db, relay, order, "mark-1") == Fenced(calls.INTENT_LOST)


def test_an_order_in_doubt_is_resent_for_the_worker_that_adopted_it(unkeyed):
    """Its price is reserved again: this send may be charged in addition."""
    relay, hand = register(unkeyed), unkeyed.hand()
    first = carried.mark(unkeyed.db, relay, intended(unkeyed, hand), "mark-1")
    orders.doubt(unkeyed.db, first.id, 1, reason="cut")
    rival = unkeyed.hand("document:2")
    assert carried.adopt(unkeyed.db, rival.claim, first.id) is None
    offer = carried.offered(unkeyed.db, first.id).order
    assert offer.holder == rival.claim.token
    again = carried.mark(unkeyed.db, relay, offer, "mark-2")
    assert (again.sends, again.body) == (2, first.body)
    assert carried.adopt(unkeyed.db, hand.claim, first.id) == Fenced("order_changed")
    assert unkeyed.world.journal("resend") == [("resend", "in_doubt")]


def test_a_resend_that_the_budget_forbids_marks_nothing(unkeyed):
    """The doubt already counts as spent; there is no money for a second charge."""
    relay, hand = register(unkeyed), unkeyed.hand()
    unkeyed.set_budget(CENT)
    order = carried.mark(unkeyed.db, relay, intended(unkeyed, hand), "mark-1")
    orders.doubt(unkeyed.db, order.id, 1, reason="cut")
    assert carried.adopt(unkeyed.db, hand.claim, order.id) is None
    with pytest.raises(budgets.OverBudgetError):
        carried.mark(unkeyed.db, relay, carried.offered(unkeyed.db, order.id).order, "mark-2")
    assert unkeyed.orders("state", "sends") == [("in_doubt", 1)]


def test_a_long_body_is_read_only_when_it_may_be_sent(unkeyed):
    """Orders that wait in a relay must not fill its memory."""
    order = intended(unkeyed, unkeyed.hand())
    long = b"x" * (carried.SHORT_BODY + 1)
    unkeyed.world.write(update(order_table).values(body=long))
    offer = carried.offered(unkeyed.db, order.id)
    assert (offer.is_read, offer.size, offer.order.body, offer.lane) == (False, len(long), b"", "bulk")
    assert carried.with_body(unkeyed.db, offer).body == long
    assert carried.offered(unkeyed.db, "unknown") is None


def test_an_order_in_the_hands_of_a_relay_survives_its_worker(keyed):
    """The worker is dead and its task is taken over: nobody doubts what the relay waits for."""
    relay, hand = register(keyed), keyed.hand()
    order = carried.mark(keyed.db, relay, intended(keyed, hand), "mark-1")
    keyed.take_over(hand)
    dead = orders.OrderRules(died=lambda _process: True)
    assert orders.recover(keyed.db, order.id, dead) is CallState.SENT
    keyed.pass_deadline(59.0)
    assert orders.recover_forgotten(keyed.db, dead) == 0
    keyed.pass_deadline(61.0)
    assert orders.recover_forgotten(keyed.db, dead) == 1


@pytest.mark.g7
def test_what_a_dead_relay_carried_is_in_doubt_at_once(unkeyed, tmp_path):
    """Its lock is free: the process has ended, whatever its lease says."""
    lock = lock_files.HeldLock(tmp_path / "relay.lock")
    relay = register(unkeyed, lock=lock.file)
    order = carried.mark(unkeyed.db, relay, intended(unkeyed, unkeyed.hand()), "mark-1")
    assert relays.bury(unkeyed.db, lock_files.is_free) == []
    lock.release()
    assert relays.bury(unkeyed.db, lock_files.is_free) == [relay]
    assert relay_row(unkeyed).gone_by == "lock"
    assert relays.carried_by(unkeyed.db, relay) == [order.id]
    assert orders.recover(unkeyed.db, order.id) is CallState.IN_DOUBT


def test_what_a_silent_relay_carried_waits_for_its_deadline_if_it_is_dear(unkeyed):
    """It may be frozen with the response in hand: the price decides what a mistake may cost."""
    relay, rules = register(unkeyed), orders.OrderRules(cheap=CENT - 1)
    order = carried.mark(unkeyed.db, relay, intended(unkeyed, unkeyed.hand()), "mark-1")
    fall_silent(unkeyed, 1.0, suspect_at=dialect.now() - 6.0)
    assert relays.bury(unkeyed.db, never) == [relay]
    assert orders.recover(unkeyed.db, order.id, rules) is CallState.SENT
    unkeyed.pass_deadline(1.0)
    assert orders.recover(unkeyed.db, order.id, rules) is CallState.IN_DOUBT


def test_a_relay_is_buried_at_the_second_look(unkeyed):
    """At the first one it is a suspect; five seconds later it is gone, if nothing was heard of it."""
    relay = register(unkeyed)
    assert relays.bury(unkeyed.db, never) == []
    fall_silent(unkeyed, 1.0)
    assert relays.bury(unkeyed.db, never) == []
    assert relays.bury(unkeyed.db, never) == []
    assert relay_row(unkeyed).state == "up"
    assert relays.bury(unkeyed.db, never, wait=0.0) == [relay]
    assert (relay_row(unkeyed).state, relay_row(unkeyed).gone_by) == ("gone", "lease")
    assert not relays.renew(unkeyed.db, relay, ttl=12.0)


def test_a_renewal_clears_the_suspicion_also_after_the_lease_has_expired(unkeyed):
    """Not the time but the burial is the fence."""
    relay = register(unkeyed)
    fall_silent(unkeyed, 60.0)
    relays.bury(unkeyed.db, never)
    assert relays.renew(unkeyed.db, relay, ttl=12.0, carrying=3)
    assert (relay_row(unkeyed).suspect_at, relay_row(unkeyed).carrying) == (None, 3)
    fall_silent(unkeyed, 60.0)
    assert relays.bury(unkeyed.db, never, wait=0.0) == []


def test_nobody_is_buried_during_the_grace_after_an_outage(unkeyed):
    """No relay could renew its lease while the database was unreachable."""
    register(unkeyed)
    fall_silent(unkeyed, 60.0, suspect_at=1.0)
    assert relays.bury(unkeyed.db, never, grace=True) == []
    assert relay_row(unkeyed).state == "up"


def test_a_burial_waits_for_a_mark_and_a_renewal_does_not(unkeyed):
    """A mark that has passed the check of its relay commits before the relay is gone, never after."""
    if not unkeyed.db.postgresql:
        pytest.skip("SQLite has one writer at a time")
    relay, order = register(unkeyed), intended(unkeyed, unkeyed.hand())
    fall_silent(unkeyed, 60.0, suspect_at=1.0)
    buried = []
    burial = threading.Thread(target=lambda: buried.append(relays.bury(unkeyed.db, never)))

    def meanwhile(point):
        if point == "mark.commit":
            burial.start()
            burial.join(0.3)
            assert burial.is_alive()

    with faults.armed(meanwhile):
        assert carried.mark(unkeyed.db, relay, order, "mark-1").state is CallState.SENT
    burial.join(30.0)
    assert buried == [[relay]]
    assert relays.carried_by(unkeyed.db, relay) == [order.id]


def test_a_renewal_is_not_held_up_by_a_mark(unkeyed):
    """Otherwise a busy relay would starve its own lease."""
    if not unkeyed.db.postgresql:
        pytest.skip("SQLite has one writer at a time")
    relay, order = register(unkeyed), intended(unkeyed, unkeyed.hand())
    renewed = []

    def meanwhile(point):
        if point == "mark.commit":
            thread = threading.Thread(
                target=lambda: renewed.append(relays.renew(unkeyed.db, relay, ttl=12.0))
            )
            thread.start()
            thread.join(30.0)
            assert renewed == [True]

    with faults.armed(meanwhile):
        carried.mark(unkeyed.db, relay, order, "mark-1")
    assert renewed == [True]


def test_relays_are_forgotten_a_day_after_they_left(unkeyed):
    """Those that are present, and those whose orders are not ended, are kept."""
    busy, relay = register(unkeyed, "busy"), register(unkeyed)
    carried.mark(unkeyed.db, busy, intended(unkeyed, unkeyed.hand()), "mark-1")
    relays.leave(unkeyed.db, busy)
    relays.leave(unkeyed.db, relay)
    assert relays.forget(unkeyed.db) == 0
    fall_silent(unkeyed, 90_000.0)
    assert relays.forget(unkeyed.db) == 1
    assert relay_row(unkeyed).id == busy


def test_another_file_under_the_name_of_a_lock_proves_nothing(tmp_path):
    """Only the same device and inode do; and while the lock is held nobody obtains it."""
    path = tmp_path / "relay.lock"
    lock = lock_files.HeldLock(path)
    assert not lock_files.is_free(lock.file)
    moved = tmp_path / "moved"
    path.rename(moved)
    path.write_text("")
    lock.release()
    assert not lock_files.is_free(lock.file)
    moved.replace(path)
    assert lock_files.is_free(lock.file)
    path.unlink()
    assert not lock_files.is_free(lock.file)


def test_a_successor_pays_nothing_for_what_the_relay_settled(unkeyed):
    """The worker died after the hand-over: the next one finds the call paid."""
    relay, hand = register(unkeyed), unkeyed.hand()
    order = carried.mark(unkeyed.db, relay, intended(unkeyed, hand), "mark-1")
    successor = unkeyed.take_over(hand)
    receipt = orders.Receipt([b"result"], [2], [CENT], "test-1")
    assert orders.settle(unkeyed.db, order.id, 1, receipt)
    payment = unkeyed.pay(PayingWorker(successor.claim), "chunk-01")
    assert payment.results == (b"result",)
    assert unkeyed.meter.totals().exchanges == 0
