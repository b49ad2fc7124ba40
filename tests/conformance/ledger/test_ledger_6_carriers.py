"""Who carries an order is known by name and by a lease: it is waited for, doubted, or known to be dead."""

import os
import signal
import subprocess
import sys

import pytest
from sqlalchemy import select, update

from holdfast import faults
from holdfast.core.errors import MustWaitError, StoreUnavailableError
from holdfast.core.states import CallState
from holdfast.engine import processes
from holdfast.engine.host import ThreadHost
from holdfast.ledger.query_payer import QueryPayer
from holdfast.store.base.schema import calls, carriers, duties
from holdfast.store.money import calls as call_rows
from holdfast.store.money import orders
from holdfast.store.protocol import claims
from tests.conformance.ledger.metered_ledger import CENT, PayingWorker, embed

pytestmark = pytest.mark.g5


@pytest.fixture
def process():
    """A process of this machine, and its name."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child, processes.name_of(child.pid)
        child.kill()


def in_flight(till, hand, text="chunk-01", **carried):
    """An order of `hand` that was sent and not heard of; its carrier lives, and is this process."""
    ledger = till.ledger()
    carrier = ledger.carrier.keep()
    draft = ledger._draft(hand.claim, ledger.provider("meter"), [(embed(text).key("default"), embed(text))])
    sent = call_rows.send(till.db, hand.claim, call_rows.intend(till.db, hand.claim, draft))
    if carried:
        till.world.write(update(carriers).where(carriers.c.id == carrier).values(**carried))
    return sent.id


def waits(till, hand, **policy):
    """True when `hand` is put back because another pays for the same."""
    with pytest.raises(MustWaitError) as waiting:
        till.pay(hand, "chunk-01", ledger=till.ledger(wait=0.0, **policy))
    return waiting.value.reason == "intent"


def test_an_order_is_waited_for_though_its_task_was_let_go_of(afar):
    """A worker that stops hands its task over and waits for the answer: nobody resends what it carries."""
    hand = afar.hand()
    order = in_flight(afar, hand)
    claims.release(afar.db, hand.claim, "draining")
    assert waits(afar, PayingWorker(afar.world.claim(owner="next")))
    assert orders.recover(afar.db, order) is CallState.SENT
    assert afar.meter.totals().exchanges == 0


@pytest.mark.g7
def test_an_order_whose_process_has_died_is_resent_at_once(unkeyed, process):
    """Same machine, and the kernel knows no such process: neither lease nor deadline is waited for."""
    child, name = process
    hand = unkeyed.hand()
    in_flight(unkeyed, hand, process=name)
    assert waits(unkeyed, unkeyed.hand("document:2"))
    child.kill()
    child.wait()
    assert unkeyed.pay(unkeyed.hand("document:3"), "chunk-01").spent.paid == CENT
    assert unkeyed.bill()[0] == ("in_doubt", 1, CENT, False)


def test_a_frozen_process_is_not_dead(unkeyed, process):
    """Stopped, it may go on at any time with the answer in its hands: its dear order keeps its deadline."""
    child, name = process
    in_flight(unkeyed, unkeyed.hand(), process=name)
    os.kill(child.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    assert not processes.has_died(name)
    unkeyed.fall_silent(12.0)
    assert waits(unkeyed, unkeyed.hand("document:2"), cheap=CENT - 1)


def test_a_process_that_its_parent_does_not_bury_is_dead(process):
    """A zombie has run its last instruction; a later process with the same id has another name."""
    child, name = process
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.has_died(name)
    assert processes.has_died(processes.name(os.getpid(), processes.began(os.getpid()) - 1))
    assert not processes.has_died(processes.name_of(os.getpid()))


@pytest.mark.parametrize("name", ["", "nonsense", "another-boot/pid:[1]/1/1", "a/b/c/d"])
def test_of_a_process_elsewhere_nobody_says_that_it_has_died(name):
    """Another machine, another boot, another namespace: only its lease tells."""
    assert not processes.has_died(name)


def test_what_the_parent_says_is_believed_everywhere(unkeyed):
    """The worker's main process saw it die: others need not be on its machine."""
    in_flight(unkeyed, unkeyed.hand(), ended_at=1.0)
    assert unkeyed.pay(unkeyed.hand("document:2"), "chunk-01").spent.paid == CENT


@pytest.mark.g7
def test_a_silent_carriers_order_waits_for_the_lease_and_a_moment_or_if_dear_for_its_deadline(unkeyed):
    """It may be frozen, or cut off from the database: the price decides what a mistake may cost."""
    in_flight(unkeyed, unkeyed.hand())
    rival = unkeyed.hand("document:2")
    unkeyed.fall_silent(1.0)
    assert waits(unkeyed, rival)
    unkeyed.fall_silent(2.5)
    assert waits(unkeyed, rival, cheap=CENT - 1)
    assert unkeyed.pay(rival, "chunk-01", ledger=unkeyed.ledger(cheap=CENT)).spent.paid == CENT


def test_an_answer_that_is_being_kept_at_the_deadline_is_not_doubted(unkeyed):
    """Its carrier lives: half a minute past the deadline passes before anybody resends."""
    in_flight(unkeyed, unkeyed.hand())
    unkeyed.pass_deadline(10.0)
    assert waits(unkeyed, unkeyed.hand("document:2"))
    assert orders.recover_forgotten(unkeyed.db) == 0
    unkeyed.pass_deadline(31.0)
    assert orders.recover_forgotten(unkeyed.db) == 1
    assert unkeyed.orders("state") == [("in_doubt",)]


def test_after_an_outage_nobody_doubts_what_may_be_in_somebodys_hands(unkeyed):
    """Nobody could settle or renew while the database was unreachable: one lease of grace, then as usual."""
    unkeyed.world.write(duties.insert().values(name="leases", grace_until=9e9))
    in_flight(unkeyed, unkeyed.hand())
    unkeyed.fall_silent(60.0)
    unkeyed.pass_deadline(60.0)
    assert orders.recover_forgotten(unkeyed.db) == 0
    assert waits(unkeyed, unkeyed.hand("document:2"))
    unkeyed.world.write(duties.update().values(grace_until=1.0))
    assert orders.recover_forgotten(unkeyed.db) == 1


def test_whoever_saw_the_outage_itself_needs_no_sweep_to_tell_it(unkeyed, monkeypatch):
    """A rival that waited through the outage looks before any sweeper does."""
    order = in_flight(unkeyed, unkeyed.hand())
    unkeyed.fall_silent(60.0)
    monkeypatch.setattr(unkeyed.db, "was_away", lambda within: within == 12.0)
    assert orders.recover(unkeyed.db, order) is CallState.SENT


def test_a_caller_outside_a_task_is_alive_while_its_process_is(afar):
    """Somebody asks a question: neither its intent nor its order is taken for a dead one's."""
    visitor = QueryPayer(ThreadHost(), "default", None, 60.0)
    ledger = afar.ledger()
    call = embed("chunk-01")
    draft = ledger._draft(visitor.claim, ledger.provider("meter"), [(call.key("default"), call)])
    intended = call_rows.intend(afar.db, visitor.claim, draft)
    assert waits(afar, afar.hand())
    assert call_rows.send(afar.db, visitor.claim, intended).state is CallState.SENT
    assert waits(afar, afar.hand("document:2"))
    afar.fall_silent(12.0)
    assert afar.pay(afar.hand("document:3"), "chunk-01").spent.paid == CENT


def test_who_waits_reads_no_result_twice(unkeyed, monkeypatch):
    """Ten looks a second at what another pays for: those that are paid are not read with each of them."""
    unkeyed.pay(unkeyed.hand(), "chunk-02")
    in_flight(unkeyed, unkeyed.hand("document:2"))
    items = []
    look_up = call_rows.look_up
    monkeypatch.setattr(call_rows, "look_up", lambda *given: items.append(len(given[2])) or look_up(*given))
    rival = unkeyed.hand("document:3")
    with pytest.raises(MustWaitError):
        unkeyed.pay(rival, "chunk-01", "chunk-02", ledger=unkeyed.ledger(wait=0.05))
    assert items[0] == 2
    assert set(items[1:]) == {1}
    assert rival.waited


def test_an_answer_is_held_as_long_as_the_process_lives(unkeyed, monkeypatch):
    """The database is unreachable for hours: the answer was paid for, and is kept when it comes back."""
    away = iter([True] * 500)
    settle = orders.settle

    def settled(*given):
        if next(away, False):
            raise StoreUnavailableError("the database is unreachable")
        return settle(*given)

    monkeypatch.setattr(orders, "settle", settled)
    assert unkeyed.pay(unkeyed.hand(), "chunk-01").spent.paid == CENT
    assert unkeyed.bill() == [("paid", 1, CENT, False)]


def test_a_refusal_is_held_as_well(unkeyed, monkeypatch):
    """It was heard while the database was unreachable: nothing was charged, and nothing is doubted."""
    away = iter([True] * 5)
    void = orders.void

    def voided(*given, **more):
        if next(away, False):
            raise StoreUnavailableError("the database is unreachable")
        return void(*given, **more)

    monkeypatch.setattr(orders, "void", voided)
    unkeyed.meter.plan(script=["rate_limit"], retry_after=0.01)
    unkeyed.pay(unkeyed.hand(), "chunk-01")
    assert unkeyed.bill() == [("paid", 1, CENT, False)]


@pytest.mark.parametrize(
    "answer",
    [{"do": "answer", "body": b"no JSON"}, {"do": "drip", "drip": 0.002, "body": b"x" * 100_000}],
    ids=["unreadable", "endless"],
)
def test_an_answer_of_no_use_is_parked_after_its_first_charge(unkeyed, answer):
    """The provider said 200, so it has taken its price; each resend would cost once more."""
    unkeyed.meter.plan(script=[answer])
    hand = unkeyed.hand()
    with pytest.raises(MustWaitError) as waiting:
        unkeyed.pay(hand, "chunk-01", ledger=unkeyed.ledger(profile={"deadline": 3.0}))
    assert waiting.value.reason == "parked"
    assert unkeyed.meter.totals().exchanges == 1
    assert "its response is unusable" in unkeyed.orders("reason")[0][0]
    assert orders.resolve(unkeyed.db, unkeyed.orders("id")[0][0], charged=True) is CallState.IN_DOUBT
    assert unkeyed.pay(hand, "chunk-01").spent.paid == CENT


def test_an_order_is_known_by_its_carrier_until_it_is_settled(unkeyed):
    """What is in flight is counted, with the time until which it may be answered."""
    ledger, seen = unkeyed.ledger(), []

    def look(point):
        if point == "send.heard":
            seen.append((ledger.carrier.orders, ledger.carrier.until > 0))

    with faults.armed(look):
        unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=ledger)
    assert seen == [(1, True)]
    assert (ledger.carrier.orders, ledger.carrier.until) == (0, 0.0)
    assert unkeyed.orders("carrier") == [(ledger.carrier.id,)]
    assert unkeyed.world.rows(select(calls.c.state))[0].state == "settled"
