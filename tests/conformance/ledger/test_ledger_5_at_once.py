"""A provider on board: the intent and the mark are one transaction, and promise what the two promised."""

import pytest
from sqlalchemy import select

from holdfast import faults
from holdfast.core.errors import FencedOutError, LeaseLostError, MustWaitError, ProviderRefusedError
from holdfast.core.records import Spent
from holdfast.store.base.schema import calls
from holdfast.store.money import orders
from tests.conformance.conftest import cut
from tests.conformance.ledger.metered_ledger import CENT


def test_a_payment_on_board_is_two_transactions(on_board):
    """Intended and marked in one, settled in another; there is no unsent order at any time."""
    committed = []
    hand = on_board.hand()
    with faults.armed(lambda name: committed.append(name) if name.endswith(".committed") else None):
        on_board.pay(hand, "chunk-01", "chunk-02")
    assert committed == ["send_at_once.committed", "settle.committed"]
    assert on_board.orders("sends", "state") == [(1, "settled")]


@pytest.mark.g5
@pytest.mark.parametrize("moment", ["commit", "committed"])
def test_a_lost_answer_of_a_mark_made_at_once_sends_once(on_board, lose, moment):
    """Before or after the commit: the same order goes out, once."""
    with lose(f"send_at_once.{moment}") as lost:
        on_board.pay(on_board.hand(), "chunk-01")
    assert lost.count(f"send_at_once.{moment}") == 2
    assert on_board.orders("sends", "state") == [(1, "settled")]
    assert on_board.meter.totals().charges == 1


@pytest.mark.g2
@pytest.mark.g5
def test_a_superseded_worker_leaves_no_order_at_all(on_board):
    """The fence is tested before anything is written: neither order nor call is left, and nothing is sent."""
    hand = on_board.hand()
    on_board.world.request(content="newer")
    with pytest.raises(FencedOutError):
        on_board.pay(hand, "chunk-01")
    assert on_board.orders("id") == []
    assert on_board.world.rows(select(calls.c.key)) == []
    assert on_board.meter.totals().exchanges == 0


@pytest.mark.g2
@pytest.mark.g5
def test_a_lease_lost_after_the_mark_sends_nothing(on_board):
    """The gate is asked once more: the order is void and its keys are free."""
    hand = on_board.hand()

    def lose(name):
        hand.lost = hand.lost or name == "send_at_once.committed"

    with pytest.raises(LeaseLostError), faults.armed(lose):
        on_board.pay(hand, "chunk-01")
    assert on_board.orders("state") == [("void",)]
    assert on_board.meter.totals().exchanges == 0


@pytest.mark.g5
def test_a_worker_dead_after_the_mark_leaves_an_order_that_is_sent_as_it_was(on_board):
    """Nobody can tell whether it was sent, so it is in doubt; its successor sends the same bytes and key."""
    successor = on_board.crash(on_board.hand(), "chunk-01", "chunk-02", at="send_at_once.committed")
    ((key, body),) = on_board.orders("idempotency_key", "body")
    assert on_board.pay(successor, "chunk-02").spent == Spent(paid_calls=1, tokens=2, paid=CENT)
    assert on_board.sent == [(key, body)]
    assert on_board.orders("sends", "state") == [(2, "settled")]
    assert on_board.meter.totals().charges == 2


@pytest.mark.g5
def test_a_mark_put_in_doubt_while_its_answer_was_lost_is_sent_once(on_board):
    """Its deadline passed before it was read back: it is no fresh mark any more, and is resent as a doubt."""
    met = []

    def late(name):
        if name == "send_at_once.committed" and not met:
            met.append(name)
            on_board.pass_deadline()
            assert orders.recover_forgotten(on_board.db) == 1
            raise cut()

    with faults.armed(late):
        on_board.pay(on_board.hand(), "chunk-01")
    assert met
    assert on_board.orders("sends", "doubts", "state") == [(2, 1, "settled")]
    assert len(on_board.sent) == on_board.meter.totals().charges == 1


def test_over_budget_keeps_nothing(on_board):
    """The whole transaction is undone: no order, no call, no reservation."""
    on_board.set_budget(CENT)
    with pytest.raises(MustWaitError) as output:
        on_board.pay(on_board.hand(), "chunk-01", "chunk-02")
    assert output.value.reason == "budget"
    assert on_board.orders("id") == []
    assert on_board.world.rows(select(calls.c.key)) == []
    assert on_board.budget() == (0, 0)


@pytest.mark.g5
def test_void_keys_and_new_ones_go_into_one_order(till):
    """Of three keys one was void, one is settled and one is new: the order has the first and the last."""
    till.meter.plan(script=[{"do": "fail", "status": 400}])
    with pytest.raises(ProviderRefusedError):
        till.pay(till.hand("document:1"), "chunk-01")
    till.pay(till.hand("document:2"), "chunk-02")
    payment = till.pay(till.hand("document:3"), "chunk-01", "chunk-02", "chunk-03")
    assert till.inputs()[-1] == ["chunk-01", "chunk-03"]
    assert (payment.spent.paid_calls, payment.spent.reused_calls) == (2, 1)
