"""One door to the provider: looked up first, sent once, kept for ever."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sqlalchemy import select

from holdfast import faults
from holdfast.core.errors import FencedOutError, LeaseLostError, MustWaitError, WorkError
from holdfast.core.records import Spent
from holdfast.ledger.pay import Call
from holdfast.store.base.schema import calls
from holdfast.testing import meter_answers
from tests.conformance.ledger.metered_ledger import CENT, PayingWorker, embed


@pytest.mark.g5
def test_what_was_paid_before_is_looked_up(unkeyed):
    """A second document with the same text gets the same result; nothing is sent, the saving counts."""
    first = unkeyed.pay(unkeyed.hand("document:1"), "chunk-01")
    again = unkeyed.pay(unkeyed.hand("document:2"), "chunk-01")
    assert first.results == again.results
    assert first.spent == Spent(paid_calls=1, tokens=2, paid=CENT)
    assert again.spent == Spent(reused_calls=1, saved=CENT)
    assert unkeyed.meter.totals().exchanges == 1


@pytest.mark.g5
def test_only_what_is_missing_is_sent(unkeyed):
    """One changed chunk of three pays for one chunk."""
    unkeyed.pay(unkeyed.hand(), "chunk-01", "chunk-02")
    payment = unkeyed.pay(unkeyed.hand("document:2"), "chunk-01", "chunk-02", "chunk-03")
    assert unkeyed.inputs() == [["chunk-01", "chunk-02"], ["chunk-03"]]
    assert payment.spent == Spent(1, 2, 2, CENT, 2 * CENT)


@pytest.mark.g5
def test_the_same_text_twice_is_one_call_with_two_results(unkeyed):
    """Results come one per call asked for, in that order; the charge comes once."""
    payment = unkeyed.pay(unkeyed.hand(), "chunk-02", "chunk-01", "chunk-02")
    assert payment.results[0] == payment.results[2] != payment.results[1]
    assert payment.spent.paid_calls == 2
    assert unkeyed.meter.totals().charges == 2


def test_an_order_carries_its_keys_sorted(unkeyed):
    """Sorted keys are inserted in one order everywhere, so two workers cannot lock each other out."""
    unkeyed.pay(unkeyed.hand(), *(f"chunk-{n:02}" for n in range(8)))
    ((carried,),) = unkeyed.orders("call_keys")
    assert carried == sorted(carried)
    texts = {embed(f"chunk-{n:02}").key("default"): f"chunk-{n:02}" for n in range(8)}
    assert unkeyed.bodies()[0]["input"] == [texts[key] for key in carried]


def test_an_embedding_is_kept_as_float32(unkeyed):
    """The stored bytes are the vector itself, little-endian."""
    (result,) = unkeyed.pay(unkeyed.hand(), "chunk-01").results
    expected = np.frombuffer(meter_answers.vector("small", "chunk-01", 32), "<f4")
    assert np.array_equal(np.frombuffer(result, "<f4"), expected)


def test_a_completion_is_kept_as_json(unkeyed):
    """Chat goes one prompt to an order; its text and how it ended are kept, its output is priced."""
    prompts = [Call("meter", "chat/completions", "talker", f"prompt-{n}", {"max_tokens": 50}) for n in (1, 2)]
    payment = unkeyed.ledger().pay(unkeyed.hand(), prompts)
    answer = json.loads(payment.results[0])
    assert answer["content"].startswith("answer ")
    assert answer["finish_reason"] == "stop"
    assert unkeyed.meter.totals().exchanges == 2
    said = [meter_answers.tokens(json.loads(one)["content"]) for one in payment.results]
    assert payment.spent.paid == 2 * CENT + 20 * sum(said)


@pytest.mark.g5
def test_model_and_parameters_make_another_input(unkeyed):
    """The same text for another model or size is another call."""
    items = [embed("chunk-01"), embed("chunk-01", "large"), embed("chunk-01", dimensions=8)]
    payment = unkeyed.ledger().pay(unkeyed.hand(), items)
    assert [len(result) // 4 for result in payment.results] == [32, 32, 8]
    assert unkeyed.meter.totals().exchanges == 3


@pytest.mark.g5
def test_tenants_do_not_share_what_they_paid(unkeyed):
    """A free, instant result would tell one tenant what another holds."""
    unkeyed.pay(unkeyed.hand(), "chunk-01")
    other = unkeyed.pay(unkeyed.hand(tenant="other"), "chunk-01")
    assert other.spent.paid_calls == 1
    assert unkeyed.meter.charges_of("chunk-01") == 2


@pytest.mark.g5
def test_two_workers_that_want_the_same_pay_once(till):
    """Overlapping wishes at the same moment: one sends, the other waits for its result."""
    wishes = [["chunk-01", "chunk-02", "chunk-03"], ["chunk-03", "chunk-02", "chunk-04"]]
    hands = [till.hand(f"document:{n}") for n in range(2)]
    ledgers = [till.ledger(profile={"max_inputs": 1}) for _ in hands]
    till.meter.plan(latency=0.02)
    start = threading.Barrier(2)

    def work(n):
        start.wait()
        return till.pay(hands[n], *wishes[n], ledger=ledgers[n])

    with ThreadPoolExecutor(2) as pool:
        paid = list(pool.map(work, range(2)))
    assert till.meter.totals().excess == 0
    assert sum(one.spent.paid_calls for one in paid) == 4
    assert sum(one.spent.reused_calls for one in paid) == 2


@pytest.mark.g5
def test_a_wait_for_another_worker_is_bounded(unkeyed):
    """A worker that waits too long for another's order is put back; the other goes on."""
    unkeyed.meter.hold("before")
    one, two = unkeyed.hand("document:1"), unkeyed.hand("document:2")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(unkeyed.pay, one, "chunk-01")
        unkeyed.meter.wait_open(1)
        with pytest.raises(MustWaitError) as waiting:
            unkeyed.pay(two, "chunk-01", ledger=unkeyed.ledger(wait=0.0))
        assert waiting.value.reason == "intent"
        unkeyed.meter.release()
        assert first.result().spent.paid_calls == 1
    assert unkeyed.meter.totals().excess == 0


def test_orders_of_one_payment_go_out_side_by_side_up_to_a_bound(unkeyed):
    """Nine orders with a bound of three: three are open at once, never more."""
    unkeyed.meter.hold("before")
    ledger = unkeyed.ledger(profile={"max_inputs": 1}, concurrency=3)
    hand = unkeyed.hand()
    with ThreadPoolExecutor(1) as pool:
        paid = pool.submit(unkeyed.pay, hand, *(f"chunk-{n:02}" for n in range(9)), ledger=ledger)
        assert unkeyed.meter.wait_open(3).open == 3
        assert unkeyed.meter.totals().exchanges == 3
        unkeyed.meter.release()
        assert len(paid.result().results) == 9


@pytest.mark.g2
@pytest.mark.g5
def test_a_lost_lease_sends_nothing(unkeyed):
    """Not even an intent is left behind."""
    hand = unkeyed.hand()
    hand.lost = True
    with pytest.raises(LeaseLostError):
        unkeyed.pay(hand, "chunk-01")
    assert unkeyed.orders("id") == []
    assert unkeyed.meter.totals().exchanges == 0


@pytest.mark.g2
@pytest.mark.g5
def test_the_gate_is_asked_once_more_before_the_first_byte(unkeyed):
    """The lease is lost after the order was marked sent: the bytes stay here, and the order is void."""
    hand = unkeyed.hand()

    def lose(name):
        hand.lost = hand.lost or name == "send.committed"

    with pytest.raises(LeaseLostError), faults.armed(lose):
        unkeyed.pay(hand, "chunk-01")
    assert unkeyed.orders("state") == [("void",)]
    assert unkeyed.meter.totals().exchanges == 0


@pytest.mark.g2
@pytest.mark.g5
def test_a_superseded_worker_sends_nothing(unkeyed):
    """The mark is fenced: a newer generation that commits first leaves the older order void."""
    hand = unkeyed.hand()

    def supersede(name):
        if name == "intend.committed":
            unkeyed.world.request(content="newer")

    with pytest.raises(FencedOutError), faults.armed(supersede):
        unkeyed.pay(hand, "chunk-01")
    assert unkeyed.orders("state") == [("void",)]
    assert unkeyed.meter.totals().exchanges == 0


@pytest.mark.g5
def test_what_was_paid_is_kept_even_if_the_worker_was_superseded(unkeyed):
    """Settling is the one unfenced write: the next generation finds the result."""
    hand = unkeyed.hand()

    def supersede(name):
        if name == "send.answered":
            unkeyed.world.request(content="newer")

    with faults.armed(supersede):
        unkeyed.pay(hand, "chunk-01")
    newer = unkeyed.pay(PayingWorker(unkeyed.world.claim()), "chunk-01")
    assert newer.spent == Spent(reused_calls=1, saved=CENT)
    assert unkeyed.meter.totals().charges == 1


@pytest.mark.g5
def test_a_crash_after_settling_pays_nothing_again(unkeyed):
    """The same run starts again: its calls count as paid by it, once, and nothing is sent."""
    successor = unkeyed.crash(unkeyed.hand(), "chunk-01", "chunk-02", at="settle.committed")
    assert unkeyed.pay(successor, "chunk-01", "chunk-02").spent == Spent(2, 0, 4, 2 * CENT, 0)
    assert unkeyed.meter.totals().charges == 2


@pytest.mark.g5
def test_slices_that_share_a_text_count_it_as_paid_once(unkeyed):
    """The sums of a run add up to its bill: one slice paid, the other saved."""
    one, two = (PayingWorker(claim) for claim in unkeyed.world.sliced(2))
    spent = unkeyed.pay(one, "chunk-01").spent + unkeyed.pay(two, "chunk-01").spent
    assert spent == Spent(1, 1, 2, CENT, CENT)
    assert [row[2] for row in unkeyed.bill()] == [CENT]


@pytest.mark.g5
def test_a_task_that_asks_twice_counts_once(unkeyed):
    """The holder's own memory of what it counted keeps its sums true."""
    hand, counted = unkeyed.hand(), set()
    first = unkeyed.pay(hand, "chunk-01", counted=counted)
    second = unkeyed.pay(hand, "chunk-01", "chunk-02", counted=counted)
    assert (first.spent + second.spent) == Spent(2, 0, 4, 2 * CENT, 0)


def test_a_call_that_cannot_be_sent_leaves_nothing_behind(unkeyed):
    """A lone surrogate cannot be encoded: a clear code, no intent, no reservation."""
    unkeyed.set_budget(1000)
    with pytest.raises(WorkError) as failure:
        unkeyed.pay(unkeyed.hand(), "chunk-\ud800")
    assert failure.value.code == "bad_call"
    assert unkeyed.world.rows(select(calls.c.key)) == []
    assert unkeyed.budget() == (0, 0)


def test_a_provider_that_is_not_set_up_is_named(unkeyed):
    """The message says which one is missing."""
    with pytest.raises(WorkError, match="'absent'") as failure:
        unkeyed.ledger().pay(unkeyed.hand(), [Call("absent", "embeddings", "small", "x")])
    assert failure.value.code == "no_provider"
