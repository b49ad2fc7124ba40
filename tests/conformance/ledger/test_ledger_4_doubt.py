"""An order that was sent and whose outcome is hidden is in doubt: priced, shown, and resent or parked."""

import pytest
from sqlalchemy import select, update

from holdfast.core.errors import BadRequestError, MustWaitError
from holdfast.core.records import Spent
from holdfast.core.states import CallState
from holdfast.store.base import journal
from holdfast.store.base.schema import calls
from holdfast.store.base.schema import orders as order_table
from holdfast.store.money import calls as call_rows
from holdfast.store.money import orders
from tests.conformance.ledger.metered_ledger import CENT

RECEIPT = orders.Receipt([b"late"], [2], [CENT], "test-1")


def order_id(till):
    return till.orders("id")[0][0]


def parked(till, hand, **policy):
    with pytest.raises(MustWaitError) as waiting:
        till.pay(hand, "chunk-01", ledger=till.ledger(**policy))
    return waiting.value.reason == "parked"


@pytest.mark.g5
def test_a_cut_after_the_charge_costs_nothing_where_keys_are_honoured(keyed):
    """The resend is answered from the first charge; the doubt is cleared."""
    keyed.set_budget(1000)
    keyed.meter.plan(script=["charge_then_cut"])
    assert keyed.pay(keyed.hand(), "chunk-01").spent.paid == CENT
    assert keyed.bill() == [("in_doubt", 1, CENT, True), ("paid", 2, CENT, False)]
    assert keyed.budget() == (CENT, 0)
    totals = keyed.meter.totals()
    assert (totals.charges, totals.replays) == (1, 1)


@pytest.mark.g5
def test_a_cut_after_the_charge_shows_as_doubt_where_they_are_not(unkeyed):
    """The provider took it twice; the bill has one charge and one doubt, and the budget counts both."""
    unkeyed.set_budget(1000)
    unkeyed.meter.plan(script=["charge_then_cut"])
    unkeyed.pay(unkeyed.hand(), "chunk-01")
    assert unkeyed.bill() == [("in_doubt", 1, CENT, False), ("paid", 2, CENT, False)]
    assert unkeyed.budget() == (2 * CENT, 0)
    assert unkeyed.meter.totals().charges == 2


@pytest.mark.g5
@pytest.mark.parametrize(
    "act",
    ["cut_before_charge", {"do": "fail", "status": 500}, {"do": "fail", "status": 408}, {"do": "stall"}],
    ids=["cut", "500", "408", "stall"],
)
def test_silence_cuts_and_server_errors_are_in_doubt(unkeyed, act):
    """Whatever may have been charged is never taken for free."""
    unkeyed.meter.plan(script=[act])
    strict = {"in_doubt": "park", "profile": {"deadline": 0.3}}
    assert parked(unkeyed, unkeyed.hand(), **strict)
    assert unkeyed.bill() == [("in_doubt", 1, CENT, False)]


@pytest.mark.g5
@pytest.mark.g7
def test_a_dead_workers_order_is_resent_at_once_if_keyed(keyed):
    """Its deadline is far away, but a resend under the same key cannot cost anything."""
    successor = keyed.crash(keyed.hand(), "chunk-01")
    assert keyed.pay(successor, "chunk-01").spent == Spent(1, 0, 2, CENT, 0)
    assert keyed.meter.totals().excess == 0


@pytest.mark.g5
def test_a_dead_workers_dear_order_waits_for_its_deadline_if_not(unkeyed):
    """Until then the answer may still come to a worker that only looked dead."""
    successor = unkeyed.crash(unkeyed.hand(), "chunk-01")
    with pytest.raises(MustWaitError) as waiting:
        unkeyed.pay(successor, "chunk-01", ledger=unkeyed.ledger(wait=0.0, cheap=CENT - 1))
    assert waiting.value.reason == "intent"
    assert unkeyed.meter.totals().exchanges == 1
    unkeyed.pass_deadline()
    assert unkeyed.pay(successor, "chunk-01").spent.paid == CENT
    assert unkeyed.bill() == [("in_doubt", 1, CENT, False), ("paid", 2, CENT, False)]


@pytest.mark.g5
def test_whoever_resends_has_paid(keyed):
    """Another document's worker resends the order: it is paid in its run, saved in the first one's."""
    first = keyed.crash(keyed.hand("document:1"), "chunk-01")
    helper = keyed.hand("document:2")
    assert keyed.pay(helper, "chunk-01").spent == Spent(1, 0, 2, CENT, 0)
    assert keyed.pay(first, "chunk-01").spent == Spent(0, 1, 0, 0, CENT)
    assert keyed.orders("run_id", "task_id") == [(helper.claim.run_id, helper.claim.task_id)]


@pytest.mark.g5
def test_the_first_result_wins_and_a_second_charge_is_shown(unkeyed):
    """The thawed worker's answer comes after the resend's: its charge is billed, its result is not used."""
    unkeyed.set_budget(1000)
    successor = unkeyed.crash(unkeyed.hand(), "chunk-01")
    unkeyed.pass_deadline()
    saved = unkeyed.pay(successor, "chunk-01").results
    assert not orders.settle(unkeyed.db, order_id(unkeyed), 1, RECEIPT)
    assert unkeyed.pay(successor, "chunk-01").results == saved
    assert unkeyed.bill() == [
        ("in_doubt", 1, CENT, True),
        ("second", 1, CENT, False),
        ("paid", 2, CENT, False),
    ]
    assert unkeyed.budget() == (2 * CENT, 0)


@pytest.mark.g5
def test_an_answer_that_comes_twice_is_charged_once(till):
    """Settling again with the same send, after a lost answer or by a retry, changes nothing."""
    till.set_budget(1000)
    till.pay(till.hand(), "chunk-01")
    assert orders.settle(till.db, order_id(till), 1, RECEIPT)
    assert till.bill() == [("paid", 1, CENT, False)]
    assert till.budget() == (CENT, 0)


@pytest.mark.g5
def test_a_late_answer_settles_while_the_resend_is_under_way(unkeyed):
    """The resend may be charged as well: in doubt until its own answer comes, then a second charge."""
    unkeyed.set_budget(1000)
    successor = unkeyed.crash(unkeyed.hand(), "chunk-01")
    unkeyed.pass_deadline()
    orders.recover(unkeyed.db, order_id(unkeyed))
    resent = call_rows.resend(unkeyed.db, successor.claim, order_id(unkeyed), "resend")
    assert orders.settle(unkeyed.db, resent.id, 1, RECEIPT)
    assert unkeyed.bill() == [
        ("in_doubt", 1, CENT, True),
        ("paid", 1, CENT, False),
        ("in_doubt", 2, CENT, False),
    ]
    assert unkeyed.budget() == (2 * CENT, 0)
    orders.settle(unkeyed.db, resent.id, 2, RECEIPT)
    assert unkeyed.bill()[2:] == [("in_doubt", 2, CENT, True), ("second", 2, CENT, False)]
    assert unkeyed.budget() == (2 * CENT, 0)


def test_a_resend_that_is_refused_after_a_late_answer_is_cleared(unkeyed):
    """The same race, but the resend was refused: it cost nothing, and the budget gets it back."""
    unkeyed.set_budget(1000)
    successor = unkeyed.crash(unkeyed.hand(), "chunk-01")
    unkeyed.pass_deadline()
    orders.recover(unkeyed.db, order_id(unkeyed))
    resent = call_rows.resend(unkeyed.db, successor.claim, order_id(unkeyed), "resend")
    orders.settle(unkeyed.db, resent.id, 1, RECEIPT)
    assert orders.void(unkeyed.db, resent.id, 2, reason="429") is CallState.SETTLED
    assert unkeyed.budget() == (CENT, 0)


@pytest.mark.g5
def test_a_refused_resend_leaves_the_order_in_doubt(keyed):
    """A refusal speaks of its own exchange alone: the first one may have been charged."""
    keyed.meter.plan(script=["charge_then_cut", "rate_limit"], retry_after=60.0)
    hand = keyed.hand()
    with pytest.raises(MustWaitError):
        keyed.pay(hand, "chunk-01")
    assert keyed.orders("state", "sends") == [("in_doubt", 2)]
    keyed.end_throttle()
    keyed.pay(hand, "chunk-01")
    assert keyed.meter.totals().charges == 1


def test_orders_in_doubt_may_be_parked_for_a_person(unkeyed):
    """By setting, nothing that may cost twice is resent; the task waits and says so."""
    unkeyed.meter.plan(script=["charge_then_cut"])
    assert parked(unkeyed, unkeyed.hand(), in_doubt="park")
    assert unkeyed.orders("state", "sends") == [("parked", 1)]
    assert unkeyed.meter.totals().exchanges == 1


def test_dear_orders_may_be_parked_and_cheap_ones_resent(unkeyed):
    """A price decides what is worth asking a person about."""
    unkeyed.meter.plan(script=["charge_then_cut"])
    assert parked(unkeyed, unkeyed.hand(), park_above=CENT - 1)
    unkeyed.meter.plan(script=["charge_then_cut"])
    unkeyed.pay(unkeyed.hand("document:2"), "chunk-02", ledger=unkeyed.ledger(park_above=CENT))
    assert sorted(unkeyed.orders("state")) == [("parked",), ("settled",)]


def test_keyed_orders_are_resent_whatever_they_cost(keyed):
    """There is nothing to ask: the resend is free."""
    keyed.meter.plan(script=["charge_then_cut"])
    keyed.pay(keyed.hand(), "chunk-01", ledger=keyed.ledger(in_doubt="park", park_above=0))
    assert keyed.meter.totals().charges == 1


@pytest.mark.g5
def test_an_order_older_than_the_providers_memory_is_parked(keyed):
    """Past the key's retention a resend would be charged again, so a person is asked."""
    successor = keyed.crash(keyed.hand(), "chunk-01")
    keyed.world.write(update(order_table).values(first_sent_at=1000.0))
    assert parked(keyed, successor)
    assert keyed.meter.totals().exchanges == 1


def test_an_order_that_is_doubted_again_and_again_is_parked(unkeyed):
    """Each resend may cost: after a few the ledger asks a person."""
    unkeyed.meter.plan(charge_then_cut=1.0)
    assert parked(unkeyed, unkeyed.hand(), most_doubts=3)
    assert unkeyed.bill() == [("in_doubt", n, CENT, False) for n in (1, 2, 3)]


@pytest.mark.g5
def test_a_person_who_says_it_was_not_charged_frees_its_keys(unkeyed):
    """The doubt is cleared, the money is free, and the work pays under a new order."""
    unkeyed.set_budget(1000)
    unkeyed.meter.plan(script=["cut_before_charge"])
    hand = unkeyed.hand()
    assert parked(unkeyed, hand, in_doubt="park")
    assert unkeyed.budget() == (0, CENT)
    assert orders.resolve(unkeyed.db, order_id(unkeyed), charged=False, actor="ann") is CallState.VOID
    assert unkeyed.budget() == (0, 0)
    unkeyed.pay(hand, "chunk-01")
    assert unkeyed.orders("state") == [("void",), ("settled",)]
    assert [row for row in unkeyed.bill() if not row[3]] == [("paid", 1, CENT, False)]


@pytest.mark.g5
def test_a_person_may_let_it_be_resent_once(unkeyed):
    """The same order goes out again; if that one ends in doubt too, the person is asked again."""
    unkeyed.meter.plan(script=["charge_then_cut", "charge_then_cut"])
    hand = unkeyed.hand()
    assert parked(unkeyed, hand, in_doubt="park")
    assert orders.resolve(unkeyed.db, order_id(unkeyed), charged=True) is CallState.IN_DOUBT
    assert parked(unkeyed, hand, in_doubt="park")
    assert unkeyed.meter.totals().exchanges == 2
    orders.resolve(unkeyed.db, order_id(unkeyed), charged=True)
    unkeyed.pay(hand, "chunk-01", ledger=unkeyed.ledger(in_doubt="park"))
    assert len({key for key, _ in unkeyed.sent}) == 1
    assert unkeyed.orders("state", "sends") == [("settled", 3)]


@pytest.mark.g5
def test_an_answer_that_comes_late_settles_even_a_parked_order(unkeyed):
    """What was paid is kept, whoever was waiting for a person's word."""
    unkeyed.set_budget(1000)
    unkeyed.meter.plan(script=["charge_then_cut"])
    hand = unkeyed.hand()
    assert parked(unkeyed, hand, in_doubt="park")
    assert orders.settle(unkeyed.db, order_id(unkeyed), 1, RECEIPT)
    assert unkeyed.pay(hand, "chunk-01").results == (b"late",)
    assert unkeyed.budget() == (CENT, 0)
    assert unkeyed.bill() == [("in_doubt", 1, CENT, True), ("paid", 1, CENT, False)]


def test_calls_and_their_order_change_state_together(unkeyed):
    """No call is freed while the order that carries it may still be charged."""
    unkeyed.meter.plan(script=["charge_then_cut"])
    with pytest.raises(MustWaitError):
        unkeyed.pay(unkeyed.hand(), "chunk-01", "chunk-02", ledger=unkeyed.ledger(in_doubt="park"))
    states = {row.state for row in unkeyed.world.rows(select(calls.c.state))}
    assert states == {"parked"}
    orders.resolve(unkeyed.db, order_id(unkeyed), charged=False)
    assert {row.state for row in unkeyed.world.rows(select(calls.c.state))} == {"void"}


@pytest.mark.g5
def test_a_refusal_that_is_heard_late_clears_the_doubt_about_the_only_send(unkeyed):
    """The sweep gave the order up; then its worker says it was never sent: nothing can have been charged."""
    unkeyed.set_budget(1000)
    hand = unkeyed.hand()
    unkeyed.crash(hand, "chunk-01")
    unkeyed.pass_deadline()
    assert orders.recover(unkeyed.db, order_id(unkeyed)) is CallState.IN_DOUBT
    assert orders.void(unkeyed.db, order_id(unkeyed), 1, reason="not sent") is CallState.VOID
    assert unkeyed.bill() == [("in_doubt", 1, CENT, True)]
    assert unkeyed.budget() == (0, 0)
    assert unkeyed.pay(unkeyed.hand("document:2"), "chunk-01").spent.paid == CENT


@pytest.mark.g5
def test_what_becomes_of_an_order_is_in_the_story_of_its_head(unkeyed):
    """A doubt is found by whoever asks why a document waits."""
    hand = unkeyed.hand()
    unkeyed.meter.plan(script=["charge_then_cut"])
    unkeyed.pay(hand, "chunk-01")
    result = unkeyed.db.read(lambda tx: journal.of_head(tx, hand.claim.head_id))
    assert {row["verb"] for row in result} >= {"request", "claim", "doubt", "resend"}


def test_each_call_of_an_order_bears_its_own_part_of_the_price(unkeyed):
    """Vectors are all of one size; what was paid for follows the texts."""
    unkeyed.pay(unkeyed.hand(), "chunk-01", "chunk-02" * 3)
    query = select(calls.c.cost, calls.c.estimate).order_by(calls.c.cost)
    assert [tuple(row) for row in unkeyed.world.rows(query)] == [(CENT, CENT), (3 * CENT, 3 * CENT)]


def test_an_order_that_does_not_exist_is_a_clear_error(unkeyed):
    """A mistyped id is told, not a traceback."""
    with pytest.raises(BadRequestError, match="there is no order nothing"):
        orders.resolve(unkeyed.db, "nothing", charged=False)
