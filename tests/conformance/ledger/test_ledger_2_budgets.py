"""A budget is reserved before anything is sent, so the cap holds under concurrency and crashes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, text, update

from holdfast import faults
from holdfast.chaos.waiting import until
from holdfast.core.errors import MustWaitError, WorkError
from holdfast.ledger.pay import Call
from holdfast.store.base.schema import budgets as budget_table
from holdfast.store.base.schema import charges
from holdfast.store.money import billing, budgets, orders
from tests.conformance.ledger.metered_ledger import CENT, embed


def test_a_budget_covers_exactly_what_it_says(till):
    """The last cent may be spent, and not one more; nothing is kept of the order that was too much."""
    till.set_budget(2 * CENT)
    hand = till.hand()
    till.pay(hand, "chunk-01", "chunk-02")
    assert till.budget() == (2 * CENT, 0)
    with pytest.raises(MustWaitError) as broke:
        till.pay(hand, "chunk-03")
    assert broke.value.reason == "budget"
    assert len(till.orders("id")) == 1
    assert till.meter.totals().charges == 2


@pytest.mark.g4
def test_work_over_budget_goes_on_when_it_is_raised(till):
    """A wait for money is not a failure: the same hand pays once there is some."""
    till.set_budget(CENT)
    hand = till.hand()
    with pytest.raises(MustWaitError):
        till.pay(hand, "chunk-01", "chunk-02")
    till.set_budget(2 * CENT)
    assert till.pay(hand, "chunk-01", "chunk-02").spent.paid == 2 * CENT


def test_money_is_reserved_while_an_order_is_out(till):
    """From the intent to the answer the estimate is reserved; then it is spent."""
    till.set_budget(1000)
    hand, seen = till.hand(), {}
    with faults.armed(lambda name: seen.setdefault(name, till.budget() if name == "send.answered" else None)):
        till.pay(hand, "chunk-01")
    assert seen["send.answered"] == (0, CENT)
    assert till.budget() == (CENT, 0)


def test_a_collection_has_a_budget_of_its_own(till):
    """Every budget there is must cover the order; if one does not, none is touched."""
    till.set_budget(1000)
    till.set_budget(CENT, "collection:books")
    hand = till.hand(collection="books")
    with pytest.raises(MustWaitError, match="collection:books"):
        till.pay(hand, "chunk-01", "chunk-02")
    assert (till.budget(), till.budget("collection:books")) == ((0, 0), (0, 0))
    till.pay(hand, "chunk-01")
    assert (till.budget(), till.budget("collection:books")) == ((CENT, 0), (CENT, 0))


@pytest.mark.g5
def test_two_workers_cannot_pass_the_cap_together(till):
    """Each alone would fit; the reservation lets one through."""
    till.set_budget(CENT)
    hands = [till.hand(f"document:{n}") for n in range(2)]
    start = threading.Barrier(2)

    def work(n):
        start.wait()
        try:
            return till.pay(hands[n], f"chunk-{n:02}").spent.paid
        except MustWaitError as error:
            return error.reason

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(work, range(2))) == {CENT, "budget"}
    assert till.meter.totals().charges == 1


def test_a_new_budget_starts_from_what_was_spent(unkeyed):
    """Also from what stayed in doubt after its order was settled: it may have been charged."""
    unkeyed.meter.plan(script=["charge_then_cut"])
    unkeyed.pay(unkeyed.hand(), "chunk-01")
    unkeyed.set_budget(1000)
    assert unkeyed.budget() == (2 * CENT, 0)
    assert unkeyed.meter.totals().charges == 2


def test_reservations_are_recomputed_from_open_orders(keyed):
    """Whatever made a reservation drift, the sweep sets it to what is really open."""
    keyed.set_budget(1000)
    keyed.crash(keyed.hand(), "chunk-01")
    keyed.world.write(update(budget_table).values(reserved=777))
    assert budgets.recompute(keyed.db) == 1
    assert keyed.budget() == (0, CENT)
    assert budgets.recompute(keyed.db) == 0


def test_a_void_order_gives_its_reservation_back(afar):
    """An unsent order that its worker left behind frees its money when it is put right."""
    afar.set_budget(1000)
    afar.crash(afar.hand(), "chunk-01", at="intend.committed")
    assert afar.budget() == (0, CENT)
    afar.pass_deadline()
    assert orders.recover_forgotten(afar.db) == 1
    assert afar.budget() == (0, 0)


@pytest.mark.parametrize("limit", [-5, 0, True, "many", 10**30])
def test_a_senseless_output_limit_reserves_the_usual(unkeyed, limit):
    """What a caller writes into max_tokens can neither lower a reservation nor break it."""
    unkeyed.set_budget(10**9)
    reserved = []

    def look(name):
        if name == "send.answered":
            reserved.append(unkeyed.budget()[1])

    with faults.armed(look):
        call = Call("meter", "chat/completions", "talker", "prompt-1", {"max_tokens": limit})
        unkeyed.ledger().pay(unkeyed.hand(), [call])
    assert reserved == [CENT + 20 * 1000]


def test_a_charge_keeps_the_version_of_its_prices(till):
    """The bill says by which table each charge was priced."""
    till.pay(till.hand(), "chunk-01")
    (row,) = till.world.rows(select(charges))
    assert (row.prices, row.amount, row.tokens, row.sort) == ("test-1", CENT, 2, "paid")


@pytest.mark.g5
def test_a_resend_that_may_be_charged_again_needs_money_of_its_own(unkeyed):
    """The cap covers one send: the order in doubt waits for a larger budget rather than passing it."""
    unkeyed.set_budget(CENT)
    unkeyed.meter.plan(script=["charge_then_cut"])
    hand = unkeyed.hand()
    with pytest.raises(MustWaitError) as broke:
        unkeyed.pay(hand, "chunk-01")
    assert broke.value.reason == "budget"
    assert (unkeyed.budget(), unkeyed.meter.totals().charges) == ((0, CENT), 1)
    unkeyed.set_budget(2 * CENT)
    unkeyed.pay(hand, "chunk-01")
    assert unkeyed.budget() == (2 * CENT, 0)


def test_a_model_without_a_price_is_counted_and_never_priced(till):
    """Its calls and tokens are in the bill, as unpriced; no soft limit is crossed by an invented amount."""
    budgets.set_budget(till.db, "default", budgets.TENANT, soft=1)
    paid = till.ledger().pay(till.hand(), [embed("chunk-01", "brand-new")])
    (row,) = till.world.rows(select(charges))
    assert (row.prices, row.amount, row.tokens) == ("unpriced", 0, 2)
    assert (paid.spent.paid_calls, paid.spent.paid, till.budget()) == (1, 0, (0, 0))
    (line,) = billing.bill(till.db, "default").lines
    assert (line.calls, line.unpriced_calls, line.unpriced) == (1, 1, True)


def test_under_a_hard_limit_a_model_without_a_price_is_refused(till):
    """Nobody knows whether it would fit: nothing is sent, and the error says what to do."""
    till.set_budget(10**12)
    with pytest.raises(WorkError, match="free = true") as refused:
        till.ledger().pay(till.hand(), [embed("chunk-01", "brand-new")])
    assert (refused.value.code, till.meter.totals().charges) == ("unpriced", 0)


def test_in_doubt_without_a_price_is_above_every_price_to_park_at(unkeyed):
    """Whatever may be resent without asking, this waits for a person."""
    unkeyed.meter.plan(script=["charge_then_cut"])
    with pytest.raises(MustWaitError) as parked:
        unkeyed.ledger(park_above=10**15).pay(unkeyed.hand(), [embed("chunk-01", "brand-new")])
    assert (parked.value.reason, unkeyed.orders("state")) == ("parked", [("parked",)])


@pytest.mark.g5
@pytest.mark.parametrize("point", ["intend.commit", "settle.commit"])
def test_a_new_budget_misses_nothing_that_is_committed_while_it_is_made(afar, point):
    """An order is about to commit; a budget is made just then: it counts the order, whoever comes first."""
    hand, making, counted = afar.hand(), [], []

    def make(name):
        if name == point and not making:
            making.append(threading.Thread(target=afar.set_budget, args=(1000,)))
            making[0].start()
            until(lambda: not making[0].is_alive() or stuck(afar), 20, "the budget is made, or waits")

        if name == "send.answered" and making:
            making[0].join(20)
            counted.append(afar.budget())

    with faults.armed(make):
        afar.pay(hand, "chunk-01")
    making[0].join(20)
    assert counted == ([(0, CENT)] if point == "intend.commit" else [])
    assert afar.budget() == (CENT, 0)


def stuck(till):
    """True when somebody waits for a lock; on SQLite whoever writes second waits, and nobody can see it."""
    if not till.db.postgresql:
        return True
    mine = "datname = current_database() AND wait_event_type = 'Lock'"
    query = text(f"SELECT count(*) FROM pg_stat_activity WHERE {mine}")
    return till.db.read(lambda tx: tx.execute(query).scalar()) > 0


def test_a_run_stops_before_it_passes_its_own_ceiling(till):
    """What was paid stays paid; another run is not concerned."""
    hand = till.hand(max_cost=2 * CENT)
    till.pay(hand, "chunk-01", "chunk-02")
    with pytest.raises(WorkError) as stopped:
        till.pay(hand, "chunk-03")
    assert (stopped.value.code, till.meter.totals().charges) == ("over_max_cost", 2)
    till.pay(till.hand("document:2"), "chunk-01", "chunk-03")
    assert till.meter.totals().charges == 3
