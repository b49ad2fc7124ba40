"""G5: each distinct paid input is paid once, by the provider's own book; what a death hides is in doubt.

The meter is the judge: it counts what arrived, not what the ledger believes.
"""

import contextlib
import threading
from contextlib import closing

import pytest

from holdfast.clock import boot_time
from holdfast.core.errors import FencedOutError, MustWaitError, ProviderRefusedError
from holdfast.core.records import Fenced, Spent
from holdfast.core.retry import Backoff
from holdfast.engine.host import ThreadHost
from holdfast.ledger.exchanges import Policy
from holdfast.ledger.pay import Ledger
from holdfast.ledger.prices import Price, PriceTable
from holdfast.store.money import budgets, calls, orders
from holdfast.store.protocol import claims, requests, tasks
from holdfast.testing.prices import PRICES as USUAL
from tests.races import actor
from tests.races.arena import DEADLINE, eventually

pytestmark = pytest.mark.g5

QUICK = Policy(poll=0.01, wait=10.0, backoff=Backoff(first=0.001, most=0.01), budget_delay=60.0)
PRICE = 1_000
PRICES = PriceTable(
    "test", unknown=Price(PRICE * 1_000_000)
)  # a token costs PRICE, and a short word is a token


class PayingWorker:
    """A holder whose lease is never in question: the fence alone decides."""

    def __init__(self, claim):
        self.claim = claim

    def check(self):
        """Go on."""

    def trusted(self):
        """Always."""
        return True

    def trusted_until(self):
        """Far from now."""
        return boot_time() + 60.0

    def waiting(self, waits):
        """Nobody is told."""


@pytest.fixture
def ledger(arena, provider):
    """The ledger of this process, with a client of the meter."""
    return Ledger(arena.db, ThreadHost(), {"meter": provider}, PRICES, QUICK)


def pay(ledger, claim, *words):
    return ledger.pay(PayingWorker(claim), [actor.call(word) for word in words])


def overdue(arena):
    """The deadline of every order in flight has passed."""
    arena.set("orders", {"deadline_at": 1.0})


def states(arena):
    return sorted(row.state for row in arena.rows("orders"))


def doubts(arena, *, cleared):
    return [row.amount for row in arena.rows("charges", sort="in_doubt", cleared=cleared)]


def test_processes_that_want_the_same_words_in_opposite_orders_pay_for_each_once(arena, unkeyed_meter):
    """Four processes, overlapping sets, both directions: no deadlock, no word charged twice."""
    unkeyed_meter.plan(latency=0.02)
    letters = [f"word {n}" for n in range(12)]
    sets = [letters[:9], letters[:9][::-1], letters[3:], letters[3:][::-1]]
    for number, words in enumerate(sets):
        arena.ask(kind="batch", subject=f"document:{number}", pipeline="batch@1", options={"words": words})
    part = actor.Part(arena.url, unkeyed_meter.base_url, keyed=False)
    crowd = [actor.Process(part) for _ in sets]
    for process in [process.ready() for process in crowd]:
        process.go()
    endings = [ending for process in crowd for ending, _ in process.expect("done")]
    for process in crowd:
        process.ends()
    assert endings.count("published") == 4
    totals = unkeyed_meter.totals()
    assert (totals.distinct_inputs, totals.charges, totals.excess) == (12, 12, 0)
    assert {row.state for row in arena.rows("calls")} == {"settled"}


def test_threads_that_intend_the_same_keys_in_the_same_moment_share_them_out(pg_arena):
    """One stands before its commit; the other waits for its rows and takes only what is left."""
    one, two = pg_arena.taken(subject="document:1"), pg_arena.taken(subject="document:2")
    first = pg_arena.start(lambda: pg_arena.intend(one, "b", "c"), stop_at="intend.commit").stands()
    second = pg_arena.start(lambda: pg_arena.intend(two, "a", "b", "c", "d"))
    pg_arena.waits(second)
    assert first.result().call_keys == ("b", "c")
    assert second.result().call_keys == ("a", "d")


def test_threads_that_mark_the_same_keys_at_once_share_them_out(pg_arena):
    """The intent is inserted under the fence, and the other takes only what is left."""
    one, two = pg_arena.taken(subject="document:1"), pg_arena.taken(subject="document:2")
    first = pg_arena.start(
        lambda: pg_arena.send_at_once(one, "b", "c"), stop_at="send_at_once.commit"
    ).stands()
    second = pg_arena.start(lambda: pg_arena.send_at_once(two, "a", "b", "c", "d"))
    pg_arena.waits(second)
    assert first.result().call_keys == ("b", "c")
    assert second.result().call_keys == ("a", "d")


@pytest.mark.chaos
def test_a_worker_killed_with_an_order_open_costs_nothing_extra_under_a_key(arena, keyed_meter):
    """Charged, unanswered, killed: the resend carries the same key and body, and is a replay."""
    assert killed_in_flight(arena, keyed_meter).excess == 0
    first, second = (entry for entry in keyed_meter.log() if "one" in entry["inputs"])
    assert first["idempotency_key"] == second["idempotency_key"]
    assert (first["inputs"], second["replayed"]) == (second["inputs"], True)
    assert len(doubts(arena, cleared=True)) == 1


@pytest.mark.chaos
def test_a_worker_killed_with_an_order_open_costs_at_most_that_order_without_keys(arena, unkeyed_meter):
    """The one exception of the promise: it is bounded by the orders in flight, recorded and priced."""
    totals = killed_in_flight(arena, unkeyed_meter)
    assert totals.excess <= 2  # one order of two words was in flight
    assert unkeyed_meter.charges_of("three") == 1
    [amount] = doubts(arena, cleared=False)
    assert amount > 0
    assert ("doubt", "its process has died") in arena.verbs()


def killed_in_flight(arena, meter):
    """One order of two words is charged and unanswered when its worker is killed; another finishes."""
    arena.ask(
        kind="batch",
        subject="document:1",
        pipeline="batch@1",
        options={"slices": [["one", "two"], ["three"]]},
    )
    part = actor.Part(arena.url, meter.base_url, keyed=meter.honour_keys)
    meter.hold("after")
    victim = actor.Process(part).go()
    meter.wait_open(1, charged=True)
    victim.kill()
    meter.release()
    meter.wait_idle()
    for task in arena.rows("tasks", state="running"):
        arena.set("tasks", {"lease_until": 1.0}, id=task.id)
    overdue(arena)
    with closing(actor.client(part)) as provider:
        survivor = actor.engine(part, provider)
        survivor.run_until_idle()
        survivor.db.close()
    assert arena.head(kind="batch").status == "success"
    assert {row.state for row in arena.rows("calls")} == {"settled"}
    return meter.totals()


def test_an_order_charged_and_cut_is_resent_byte_for_byte(arena, keyed_meter, provider_of):
    """Same key, same body, same grouping, although one word of it was wanted alone meanwhile."""
    ledger = provider_of(keyed_meter)
    keyed_meter.plan(script=["charge_then_cut", "charge_then_cut"])
    pay(ledger, arena.taken(), "one", "two", "three")
    log = keyed_meter.log()
    assert [entry["cut"] for entry in log] == [True, True, False]
    assert len({entry["idempotency_key"] for entry in log}) == 1
    assert len({entry["inputs"] for entry in log}) == 1
    assert {entry["status"] for entry in log} == {None, 200}  # 422 would say: same key, other body
    assert keyed_meter.totals().excess == 0
    assert arena.count("orders") == 1


@pytest.fixture
def provider_of(arena):
    """`provider_of(meter)` is a ledger that works for that meter."""
    opened = []

    def make(meter, policy=QUICK):
        opened.append(meter.provider())
        return Ledger(arena.db, ThreadHost(), {"meter": opened[-1]}, PRICES, policy)

    yield make
    for provider in opened:
        provider.close()


def test_another_worker_resends_the_frozen_order_and_regroups_nothing(arena, keyed_meter, provider_of):
    """The successor wants one word of the order in doubt and one of its own: two orders, not a new mix."""
    ledger = provider_of(keyed_meter)
    old = arena.taken("a", "document:1")
    order = doubtful(arena, ledger, keyed_meter, old, "one", "two")
    new = arena.taken("b", "document:2")
    pay(ledger, new, "two", "three")
    sent = [(entry["idempotency_key"], entry["inputs"]) for entry in keyed_meter.log()]
    [again] = {inputs for key, inputs in sent if key == order.idempotency_key}
    assert (set(again), sent.count((order.idempotency_key, again))) == ({"one", "two"}, 2)
    assert [inputs for _, inputs in sent].count(("three",)) == 1
    assert keyed_meter.totals().excess == 0


def doubtful(arena, ledger, meter, claim, *words):
    """An order that was charged and cut, left in doubt by a worker that went no further."""
    meter.plan(script=["charge_then_cut"])
    payer = arena.start(lambda: pay(ledger, claim, *words), stop_at="doubt.committed").stands()
    requests.cancel(arena.db, claim.head_id)
    with pytest.raises(FencedOutError):
        payer.result()
    [order] = arena.rows("orders")
    assert order.state == "in_doubt"
    return order


@pytest.mark.parametrize("charged", [True, False])
def test_a_server_error_leaves_an_order_in_doubt_and_never_void(arena, meter, ledger, charged):
    """A gateway gave up on work that may have been done: 500 says nothing about money."""
    meter.plan(script=[{"do": "fail", "charge": charged}])
    pay(ledger, arena.taken(), "one")
    verbs = [verb for verb, _ in arena.verbs()]
    assert ("doubt" in verbs, "void" in verbs) == (True, False)
    assert arena.count("orders") == 1
    assert meter.totals().excess == (charged and not meter.honour_keys)
    assert len(doubts(arena, cleared=meter.honour_keys)) == 1


@pytest.mark.parametrize("answer", ["rate_limit", {"do": "fail", "status": 400}, "cut_before_charge"])
def test_a_refusal_of_a_resend_does_not_free_what_the_first_send_may_have_cost(
    arena, keyed_meter, provider_of, answer
):
    """It speaks of that exchange alone: the order stays in doubt under its key."""
    ledger = provider_of(keyed_meter)
    keyed_meter.plan(script=["charge_then_cut", answer], retry_after=0.01)
    claim = arena.taken()
    with contextlib.suppress(ProviderRefusedError):  # a rejection ends the work; this is the next try's task
        pay(ledger, claim, "one")
    pay(ledger, claim, "one")
    assert keyed_meter.totals().excess == 0
    assert len({entry["idempotency_key"] for entry in keyed_meter.log()}) == 1


def test_a_rate_limit_is_void_and_costs_nothing(arena, meter, ledger):
    """429 says no before anything is done: a new order, no doubt, one charge."""
    meter.plan(script=["rate_limit"], retry_after=0.01)
    pay(ledger, arena.taken(), "one")
    verbs = [verb for verb, _ in arena.verbs()]
    assert ("void" in verbs, "doubt" in verbs) == (True, False)
    assert meter.totals().charges == 1


ENDS = {
    "request": lambda arena, claim: arena.ask("b"),
    "cancel": lambda arena, claim: requests.cancel(arena.db, claim.head_id),
    "delete": lambda arena, claim: requests.delete(arena.db, "default", claim.subject),
    "take over": lambda arena, claim: arena.take_over(claim),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_was_paid_is_kept_though_its_worker_was_fenced_out_and_is_reused_for_free(
    arena, unkeyed_meter, provider_of, end
):
    """The answer is here when the right to write goes: it settles, and the next to want it pays nothing."""
    ledger = provider_of(unkeyed_meter)
    old = arena.taken()
    payer = arena.start(lambda: pay(ledger, old, "one", "two"), stop_at="send.heard").stands()
    ENDS[end](arena, old)
    assert len(payer.result().results) == 2
    assert isinstance(tasks.finish(arena.db, old, spent=Spent()), Fenced)
    assert states(arena) == ["settled"]
    other = arena.taken("c", "document:2")
    assert pay(ledger, other, "one", "two").spent.reused_calls == 2
    assert unkeyed_meter.totals().exchanges == 1


@pytest.mark.parametrize("end", ENDS)
def test_an_intent_whose_worker_was_fenced_out_is_never_sent(arena, unkeyed_meter, provider_of, end):
    """Intended, not yet marked: the mark is fenced, nothing leaves, and the keys are free again."""
    ledger = provider_of(unkeyed_meter)
    old = arena.taken()
    payer = arena.start(lambda: pay(ledger, old, "one"), stop_at="intend.committed").stands()
    ENDS[end](arena, old)
    with pytest.raises(FencedOutError):
        payer.result()
    assert unkeyed_meter.totals().exchanges == 0
    assert states(arena) == ["void"]


def test_a_mark_is_made_for_all_calls_of_an_order_or_for_none(arena):
    """One call of the order is not its own any more: the order is not sent, and no call is marked."""
    claim = arena.taken()
    order = arena.intend(claim, "one", "two", "three")
    arena.set("calls", {"order_id": "another"}, key="two")
    assert isinstance(calls.send(arena.db, claim, order), Fenced)
    assert states(arena) == ["intent"]
    assert {row.state for row in arena.rows("calls")} == {"intent"}


def test_two_who_resend_the_same_order_in_doubt_send_it_once(arena):
    """The second to get the row finds it sent."""
    claim = arena.taken()
    order = arena.intend(claim, "one")
    sent = calls.send(arena.db, claim, order)
    orders.doubt(arena.db, order.id, sent.sends, reason="cut")
    answers = arena.race(*[lambda: calls.resend(arena.db, claim, order.id, arena.db.token())] * 3)
    assert sorted(isinstance(one, Fenced) for one in answers) == [False, True, True]


def test_a_live_holders_order_is_left_alone_by_those_who_wait_for_it(arena, meter, provider_of):
    """Sent and within its time: nobody calls it in doubt, and one exchange serves both."""
    ledger = provider_of(meter)
    one, two = arena.taken(subject="document:1"), arena.taken(subject="document:2")
    meter.hold("after")
    first = arena.start(lambda: pay(ledger, one, "word"))
    meter.wait_open(1, charged=True)
    waiting = threading.Event()
    rival = PayingWorker(two)
    rival.waiting = lambda _waits: waiting.set()
    second = arena.start(lambda: ledger.pay(rival, [actor.call("word")]))
    assert waiting.wait(DEADLINE)
    meter.release()
    assert first.result().results == second.result().results
    assert meter.totals().exchanges == 1
    assert "doubt" not in [verb for verb, _ in arena.verbs()]


def test_a_second_answer_changes_no_result_and_shows_in_the_bill(arena):
    """Without keys, an answer that comes after the order was settled by its resend was charged as well."""
    claim = arena.taken()
    order = arena.intend(claim, "one", keyed=False)
    sent = calls.send(arena.db, claim, order)
    orders.doubt(arena.db, order.id, sent.sends, reason="timeout")
    again = calls.resend(arena.db, claim, order.id, arena.db.token())
    receipts = [orders.Receipt([word], [1], [PRICE], "test") for word in (b"second", b"first")]
    assert orders.settle(arena.db, order.id, again.sends, receipts[0])
    assert not orders.settle(arena.db, order.id, sent.sends, receipts[1])
    assert [row.result for row in arena.rows("calls")] == [b"second"]
    assert sorted(row.sort for row in arena.rows("charges", cleared=False)) == ["paid", "second"]


def test_two_tenants_pay_each_for_themselves(arena, unkeyed_meter, provider_of):
    """A free, instant answer would tell one tenant what the other holds."""
    ledger = provider_of(unkeyed_meter)
    mine, yours = (arena.taken(subject="document:1", tenant=tenant) for tenant in ("mine", "yours"))
    assert pay(ledger, mine, "secret").spent.paid_calls == 1
    assert pay(ledger, yours, "secret").spent.paid_calls == 1
    assert unkeyed_meter.charges_of("secret") == 2
    assert actor.call("secret").key("mine") != actor.call("secret").key("yours")


def budget_of(arena):
    [budget] = arena.rows("budgets")
    return budget


def test_a_budget_is_not_passed_by_eight_who_spend_at_once(arena, unkeyed_meter, provider_of):
    """The money is for three: three are served, five must wait, and at no moment is more promised."""
    ledger = provider_of(unkeyed_meter)
    hands = [arena.taken(subject=f"document:{n}") for n in range(8)]
    budgets.set_budget(arena.db, "default", "tenant", hard=3 * PRICE)
    unkeyed_meter.hold("before")

    def attempt(n):
        try:
            return pay(ledger, hands[n], f"w{n}")
        except MustWaitError as error:
            return error.reason

    payers = [arena.start(lambda n=n: attempt(n)) for n in range(8)]
    unkeyed_meter.wait_open(3)
    eventually(lambda: sum(payer.over for payer in payers) == 5)
    budget = budget_of(arena)
    assert (budget.spent, budget.reserved) == (0, 3 * PRICE)
    unkeyed_meter.release()
    answers = [payer.result() for payer in payers]
    assert answers.count("budget") == 5
    assert unkeyed_meter.totals().charges == 3
    assert (budget_of(arena).spent, budget_of(arena).reserved) == (3 * PRICE, 0)


@pytest.mark.chaos
def test_money_promised_by_a_dead_worker_comes_back_and_the_cap_still_holds(
    arena, unkeyed_meter, provider_of
):
    """Killed with its intent committed and unsent: the reservation is given back, once, and can be spent."""
    arena.ask(kind="batch", subject="document:9", pipeline="batch@1", options={"words": ["nine"]})
    part = actor.Part(arena.url, unkeyed_meter.base_url, keyed=False, at="intend.committed")
    budgets.set_budget(arena.db, "default", "tenant", hard=2 * USUAL.cost("small", 1))
    victim = actor.Process(part).go()
    victim.expect("at")
    victim.dies()
    assert budget_of(arena).reserved > 0
    for task in arena.rows("tasks", state="running"):
        arena.set("tasks", {"lease_until": 1.0}, id=task.id)
    with closing(actor.client(part)) as provider:
        survivor = actor.engine(part, provider)
        survivor.run_until_idle()
        survivor.db.close()
    assert arena.head("document:9", "batch").status == "success"
    budget = budget_of(arena)
    assert (budget.spent, budget.reserved) == (USUAL.cost("small", 1), 0)
    assert unkeyed_meter.totals().charges == 1


def test_the_doubts_of_a_provider_without_keys_stay_within_the_budget(arena, unkeyed_meter, provider_of):
    """Each resend may be charged again, so each needs money of its own: the storm ends at the cap."""
    ledger = provider_of(unkeyed_meter)
    claim = arena.taken()
    budgets.set_budget(arena.db, "default", "tenant", hard=3 * PRICE)
    unkeyed_meter.plan(script=[{"do": "fail", "charge": True, "times": 5}])
    with pytest.raises(MustWaitError) as caught:
        pay(ledger, claim, "one")
    assert caught.value.reason == "budget"
    assert unkeyed_meter.totals().charges <= 3
    budget = budget_of(arena)
    assert budget.spent + budget.reserved <= 3 * PRICE


def test_a_release_gives_the_keys_of_unsent_intents_to_the_next(arena, unkeyed_meter, provider_of):
    """A worker that stopped between intend and send holds up nobody."""
    ledger = provider_of(unkeyed_meter)
    one, two = arena.taken(subject="document:1"), arena.taken(subject="document:2")
    arena.intend(one, actor.call("word").key("default"))
    claims.release(arena.db, one, "draining")
    assert pay(ledger, two, "word").spent.paid_calls == 1
    assert unkeyed_meter.totals().exchanges == 1
