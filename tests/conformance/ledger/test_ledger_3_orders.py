"""An order is frozen when it is intended; what comes of it is settled, void or in doubt, and nothing else."""

import json

import pytest
from sqlalchemy import select, update

from holdfast import faults
from holdfast.core.errors import MustWaitError, ProviderRefusedError, WorkError
from holdfast.store.base.schema import orders as order_table
from holdfast.store.base.schema import throttles
from holdfast.store.money import orders
from tests.conformance.ledger.metered_ledger import CENT


@pytest.mark.g5
def test_an_order_is_resent_byte_for_byte(keyed):
    """The successor wants more and in another order; the old order goes out as it was, under its key."""
    successor = keyed.crash(keyed.hand(), "chunk-01", "chunk-02")
    keyed.pay(successor, "chunk-03", "chunk-02")
    (first, again), other = keyed.sent[::2], keyed.sent[1]
    assert first == again
    assert json.loads(other[1])["input"] == ["chunk-03"]
    assert keyed.orders("sends", "state") == [(2, "settled"), (1, "settled")]
    assert keyed.meter.totals().excess == 0


@pytest.mark.g5
def test_an_unsent_order_is_void_and_its_keys_are_free(afar):
    """Dead between intent and mark: nothing was sent, so the successor pays under a new order."""
    successor = afar.crash(afar.hand(), "chunk-01", at="intend.committed")
    afar.pay(successor, "chunk-01")
    assert afar.orders("state") == [("void",), ("settled",)]
    assert afar.bill() == [("paid", 1, CENT, False)]


@pytest.mark.g5
def test_a_worker_that_was_too_slow_begins_a_new_order(afar):
    """Its unsent order was put right by another; it still holds its task, so it simply goes on."""
    hand, stale = afar.hand(), []

    def slow(name):
        if name == "intend.committed" and not stale:
            stale.append(afar.orders("id")[0][0])
            afar.pass_deadline()
            orders.recover(afar.db, stale[0])

    with faults.armed(slow):
        assert afar.pay(hand, "chunk-01").spent.paid == CENT
    assert afar.orders("state") == [("void",), ("settled",)]
    assert afar.meter.totals().charges == 1


@pytest.mark.g5
def test_the_deadline_is_for_the_whole_order(unkeyed):
    """A server that drips one byte at a time is cut off; the order is in doubt, for it may be charged."""
    unkeyed.meter.plan(script=["drip"], drip_pause=0.1)
    strict = unkeyed.ledger(profile={"deadline": 0.5}, in_doubt="park")
    with pytest.raises(MustWaitError):
        unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=strict)
    assert unkeyed.bill() == [("in_doubt", 1, CENT, False)]


@pytest.mark.g5
@pytest.mark.parametrize("moment", ["commit", "committed"])
def test_settling_survives_a_lost_connection(till, lose, moment):
    """Before or after the commit: the result is kept and charged once."""
    till.set_budget(1000)
    with lose(f"settle.{moment}"):
        till.pay(till.hand(), "chunk-01")
    assert till.bill() == [("paid", 1, CENT, False)]
    assert till.budget() == (CENT, 0)


@pytest.mark.g5
@pytest.mark.parametrize("verb", ["intend", "send"])
def test_a_lost_answer_before_the_send_sends_once(afar, lose, verb):
    """The mark is read back before a byte leaves; nothing is intended or sent twice."""
    with lose(f"{verb}.committed"):
        afar.pay(afar.hand(), "chunk-01")
    assert afar.orders("sends", "state") == [(1, "settled")]
    assert afar.meter.totals().charges == 1


def test_a_busy_provider_is_asked_again_after_its_own_time(till):
    """A short Retry-After is waited for in place; the refused order was void and cost nothing."""
    till.meter.plan(script=["rate_limit"], retry_after=0.01)
    till.pay(till.hand(), "chunk-01")
    assert till.orders("state", "status_code") == [("void", 429), ("settled", None)]
    assert till.bill() == [("paid", 1, CENT, False)]


def test_a_long_retry_after_is_shared_by_all_workers(afar):
    """One worker is told to come back in a minute; no other asks meanwhile."""
    afar.meter.plan(script=["rate_limit"], retry_after=60.0)
    one, two = afar.hand("document:1"), afar.hand("document:2")
    for hand, text in ((one, "chunk-01"), (two, "chunk-02")):
        with pytest.raises(MustWaitError) as output:
            afar.pay(hand, text)
        assert output.value.reason == "rate"
        assert 50 < output.value.delay <= 60
    assert afar.meter.totals().exchanges == 1
    afar.end_throttle()
    assert afar.pay(two, "chunk-02").spent.paid_calls == 1


def test_another_model_is_not_held_back(till):
    """A limit is for one provider, endpoint and model."""
    till.meter.plan(script=["rate_limit"], retry_after=60.0)
    with pytest.raises(MustWaitError):
        till.pay(till.hand(), "chunk-01")
    ((scope, refusals),) = till.world.rows(select(throttles.c.scope, throttles.c.refusals))
    assert (scope, refusals) == ("meter/embeddings/small", 1)


@pytest.mark.parametrize(
    ("status", "code"), [(400, "provider_rejected"), (401, "provider_auth"), (402, "provider_quota")]
)
def test_a_refusal_for_good_ends_the_work_and_costs_nothing(till, status, code):
    """The order is void, the money is free, and the code says what a person has to change."""
    till.set_budget(1000)
    till.meter.plan(script=[{"do": "fail", "status": status, "charge": False}])
    with pytest.raises(ProviderRefusedError) as refused:
        till.pay(till.hand(), "chunk-01")
    assert refused.value.code == code
    assert till.orders("state") == [("void",)]
    assert till.budget() == (0, 0)


def test_a_providers_message_is_kept_whatever_is_in_it(till):
    """NUL bytes and half characters in a refusal do not keep the order from being void."""
    words = json.dumps({"error": {"message": "bad \x00 \ud800 input"}})
    till.meter.plan(script=[{"do": "fail", "status": 400, "charge": False, "body": words}])
    with pytest.raises(ProviderRefusedError):
        till.pay(till.hand(), "chunk-01")
    assert till.orders("state", "reason") == [("void", "bad � � input")]


def test_a_provider_that_cannot_be_reached_is_a_wait(till):
    """No byte left, so nothing is in doubt; the task is put back."""
    provider = till.meter.provider()
    ledger = till.ledger(provider=provider, most_sends=1)
    till.meter.close()
    with pytest.raises(MustWaitError) as waiting:
        till.pay(till.hand(), "chunk-01", ledger=ledger)
    provider.close()
    assert waiting.value.reason == "provider"
    assert {state for (state,) in till.orders("state")} == {"void"}


def test_a_status_that_the_profile_vouches_for_is_void(unkeyed):
    """503 is in doubt, unless this provider is known never to charge for it."""
    unkeyed.meter.plan(script=[{"do": "fail", "status": 503}])
    kind = unkeyed.ledger(profile={"uncharged": frozenset({503})})
    unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=kind)
    assert unkeyed.bill() == [("paid", 1, CENT, False)]


def test_an_answer_of_the_wrong_size_is_in_doubt(keyed):
    """Something was charged and nothing of it can be used: it is asked for again under its key."""
    short = json.dumps({"data": [], "usage": {"prompt_tokens": 2}})
    keyed.meter.plan(script=[{"do": "answer", "body": short}])
    keyed.pay(keyed.hand(), "chunk-01")
    assert keyed.bill() == [("in_doubt", 1, CENT, True), ("paid", 2, CENT, False)]
    assert keyed.meter.totals().charges == 1


@pytest.mark.g4
def test_a_provider_that_never_answers_ends_the_run_with_a_code(keyed):
    """After so many resends the work fails; the order stays in doubt and is resent when asked again."""
    keyed.meter.plan(cut_before_charge=1.0)
    hand = keyed.hand()
    with pytest.raises(WorkError) as failure:
        keyed.pay(hand, "chunk-01", ledger=keyed.ledger(most_sends=2))
    assert failure.value.code == "provider_unavailable"
    assert keyed.orders("state") == [("in_doubt",)]
    keyed.meter.plan(cut_before_charge=0.0)
    keyed.pay(hand, "chunk-01")
    assert keyed.meter.totals().charges == 1


def test_the_sweep_puts_forgotten_orders_right(till):
    """Sent and past its deadline: in doubt, without anybody asking for its keys."""
    till.crash(till.hand(), "chunk-01")
    till.world.write(update(order_table).values(deadline_at=1.0))
    assert orders.recover_forgotten(till.db) == 1
    assert till.orders("state", "doubts") == [("in_doubt", 1)]
    assert orders.recover_forgotten(till.db) == 0
