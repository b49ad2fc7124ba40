"""Orders in the hands of a relay: the call outlives the worker that asked for it."""

import socket
import stat
import threading

import pytest
from sqlalchemy import update

from holdfast import faults
from holdfast.core.errors import (
    BadRequestError,
    FencedOutError,
    LeaseLostError,
    MustWaitError,
    ProviderRefusedError,
    StoreUnavailableError,
)
from holdfast.core.states import CallState
from holdfast.engine.host import ThreadHost
from holdfast.ledger import relay_client, relay_talk
from holdfast.ledger.pay import Call
from holdfast.ledger.query_payer import QueryPayer, StreamPayer
from holdfast.providers import sockets
from holdfast.relay.server import checked_path
from holdfast.store.base.schema import relays as relay_table
from holdfast.store.money import calls, carried, orders, relays
from tests.conformance.ledger.metered_ledger import CENT, PayingWorker
from tests.conformance.ledger.relayed_ledger import TestRelay

pytestmark = pytest.mark.g5
PATIENT = 30.0


@pytest.fixture
def relay(unkeyed, tmp_path):
    """A relay at a provider without keys."""
    started = TestRelay(unkeyed, tmp_path / "r").start()
    yield started
    started.close()


def in_thread(work):
    """The thread, and what `work` returned or raised."""
    outcome = []

    def run():
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome


def test_the_relay_sends_and_settles_for_the_worker(unkeyed, relay):
    """The worker itself sends nothing; what was paid is its own."""
    payment = unkeyed.pay(unkeyed.hand(), "chunk-01", "chunk-02", ledger=relay.ledger())
    assert (payment.spent.paid_calls, payment.spent.paid) == (2, 2 * CENT)
    assert len(payment.results) == 2
    assert unkeyed.sent == []
    assert len(relay.sent) == unkeyed.meter.totals().exchanges == 1
    assert unkeyed.orders("state", "carrier", "sends") == [("settled", relay.id, 1)]


def test_a_question_outside_a_task_is_relayed_too(unkeyed, relay):
    """Somebody asks over the API: the relay sends it, and it counts as paid by the one who asked."""
    visitor = QueryPayer(ThreadHost(), "default", None, PATIENT)
    payment = relay.ledger().pay(visitor, [Call("meter", "embeddings", "small", "question")])
    assert payment.spent.paid_calls == 1
    assert unkeyed.sent == []


def test_a_streamed_answer_is_heard_through_the_relay(unkeyed, relay):
    """Each piece reaches the listener as it arrives; what is stored is the whole."""
    pieces = []
    visitor = StreamPayer(
        ThreadHost(), "default", None, PATIENT, lambda piece, position: pieces.append((position, piece))
    )
    call = Call("meter", "chat/completions", "talker", "Tell me about harbours.", {"stream": True})
    relay.ledger().pay(visitor, [call])
    assert len(pieces) > 1
    assert pieces[0][0] == 0
    assert unkeyed.sent == []


@pytest.mark.g7
def test_a_worker_that_dies_leaves_its_order_to_the_relay(unkeyed, relay):
    """The order was on its way: it is settled, and the next worker finds it paid."""
    hand = unkeyed.hand()
    unkeyed.meter.hold("after")
    thread, outcome = in_thread(lambda: unkeyed.pay(hand, "chunk-01", ledger=relay.ledger()))
    unkeyed.meter.wait_open(1, PATIENT, charged=True)
    hand.lost = True
    thread.join(PATIENT)
    assert isinstance(outcome[0], LeaseLostError)
    assert unkeyed.orders("state") == [("sent",)]
    unkeyed.meter.release()
    successor = unkeyed.take_over(hand)
    payment = unkeyed.pay(successor, "chunk-01", ledger=relay.ledger())
    assert payment.results
    assert unkeyed.meter.totals().charges == 1
    assert unkeyed.bill() == [("paid", 1, CENT, False)]


def test_a_worker_that_heard_of_the_mark_never_sends_by_itself(unkeyed, relay):
    """Its connection breaks while the relay waits for the answer: it waits for what the ledger says."""
    hand, client = unkeyed.hand(), relay.client()
    unkeyed.meter.hold("after")
    ledger = relay.ledger(required=False, client=client)
    thread, outcome = in_thread(lambda: unkeyed.pay(hand, "chunk-01", ledger=ledger))
    unkeyed.meter.wait_open(1, PATIENT, charged=True)
    for connection in list(relay.server._threads.values()):
        connection.hang_up()
    while not hasattr(hand, "waited"):  # for an order that somebody else carries
        thread.join(0.01)
        assert thread.is_alive() or outcome
    unkeyed.meter.release()
    thread.join(PATIENT)
    assert outcome[0].results
    assert unkeyed.sent == []
    assert unkeyed.meter.totals().charges == 1


@pytest.mark.g7
def test_a_worker_does_not_wait_for_a_relay_that_is_frozen(unkeyed, relay, monkeypatch):
    """Others have given the relay up with the order in its hands: the worker looks that up, and resends."""
    monkeypatch.setattr(relay_talk, "LOOK_EVERY", 0.1)
    unkeyed.meter.hold("after")
    ledger = relay.ledger(required=False)
    thread, outcome = in_thread(lambda: unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=ledger))
    unkeyed.meter.wait_open(1, PATIENT, charged=True)
    monkeypatch.setattr(relay.server, "is_draining", True)  # it takes no more
    unkeyed.world.write(update(relay_table).values(state="gone", gone_by="lease"))
    unkeyed.meter.wait_open(2, PATIENT)
    unkeyed.meter.release()
    thread.join(PATIENT)
    assert outcome[0].results
    assert len(unkeyed.sent) == 1
    assert "in_doubt" in {row[0] for row in unkeyed.bill()}


def test_the_worker_is_told_when_the_answer_is_stored(unkeyed, relay):
    """What it goes on with has been settled: a crash of the relay cannot take it back."""
    states = []

    def look(point):
        if point == "relay.tell":
            states.append(unkeyed.orders("state")[0][0])

    with faults.armed(look):
        unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=relay.ledger())
    assert states == ["settled"]


def test_nothing_is_marked_before_the_provider_is_connected(unkeyed, relay, monkeypatch):
    """What waits for a connection would be in doubt if the relay died."""
    states = []
    connect = sockets.Backend.connect_tcp

    def connecting(*words, **more):
        states.append(unkeyed.orders("state")[0][0])
        return connect(*words, **more)

    monkeypatch.setattr(sockets.Backend, "connect_tcp", connecting)
    unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=relay.ledger())
    assert states == ["intent"]


def test_without_a_relay_a_worker_sends_by_itself_or_waits(unkeyed, tmp_path):
    """`auto` works as ever; `require` intends nothing, so nothing is left behind."""
    absent = TestRelay(unkeyed, tmp_path / "r")
    with pytest.raises(MustWaitError) as waiting:
        unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=absent.ledger())
    assert waiting.value.reason == "relay"
    assert "holdfast relay" in waiting.value.message
    assert unkeyed.orders("state") == []
    unkeyed.pay(unkeyed.hand("document:2"), "chunk-01", ledger=absent.ledger(required=False))
    assert len(unkeyed.sent) == 1
    absent.close()


def test_a_full_relay_is_passed_by_or_waited_for(unkeyed, tmp_path):
    """Its queue is short: with `auto` the worker sends by itself, with `require` its task comes back."""
    relay = TestRelay(unkeyed, tmp_path / "r", most_waiting=0).start()
    with pytest.raises(MustWaitError) as waiting:
        unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=relay.ledger())
    assert waiting.value.reason == "relay"
    assert unkeyed.orders("state") == [("void",)]
    unkeyed.pay(unkeyed.hand("document:2"), "chunk-01", ledger=relay.ledger(required=False))
    assert (len(unkeyed.sent), relay.sent) == (1, [])
    relay.close()


def test_an_order_that_is_not_marked_in_time_is_sent_once_by_the_worker(unkeyed, relay, monkeypatch):
    """The relay is stuck before its mark; when it comes to it, the worker has been first."""
    monkeypatch.setattr(relay_talk, "MARKED_WITHIN", 0.2)
    goes_on, late = threading.Event(), []
    mark = carried.mark

    def stuck(*words):
        goes_on.wait(PATIENT)
        late.append(mark(*words))
        return late[0]

    monkeypatch.setattr(carried, "mark", stuck)
    unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=relay.ledger(required=False))
    goes_on.set()
    relay.server.drain()
    assert relay.server.join(PATIENT)
    assert late[0].reason == calls.INTENT_LOST
    assert unkeyed.meter.totals().exchanges == len(unkeyed.sent) == 1


def test_a_worker_that_hangs_up_before_the_mark_has_dropped_its_order(unkeyed, relay):
    """It was killed while its order waited in the relay: nothing is sent for it."""
    hand = unkeyed.hand()

    def die(point):
        if point == "relay.taken":
            hand.lost = True
            thread.join(PATIENT)

    with faults.armed(die):
        thread, outcome = in_thread(lambda: unkeyed.pay(hand, "chunk-01", ledger=relay.ledger()))
        thread.join(PATIENT)
        relay.server.drain()
        assert relay.server.join(PATIENT)
    assert isinstance(outcome[0], LeaseLostError)
    assert unkeyed.orders("state") == [("void",)]
    assert unkeyed.meter.totals().exchanges == 0


def test_a_refusal_of_the_provider_is_heard_as_if_it_had_been_sent_here(unkeyed, relay):
    """An input that is rejected fails the work; a provider that is busy is waited for, by all."""
    unkeyed.meter.plan(script=[{"do": "answer", "status": 400, "charge": False}])
    with pytest.raises(ProviderRefusedError):
        unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=relay.ledger())
    unkeyed.meter.plan(script=["rate_limit"], retry_after=0.05)
    payment = unkeyed.pay(unkeyed.hand("document:2"), "chunk-02", ledger=relay.ledger())
    assert payment.spent.paid == CENT
    assert [row[0] for row in unkeyed.orders("status_code")] == [400, 429, None]


def test_a_long_wait_that_the_provider_asks_for_is_shared(unkeyed, relay):
    """One refusal is enough: the next order of the same model is not sent, also not by the worker itself."""
    unkeyed.meter.plan(script=["rate_limit"], retry_after=60)
    with pytest.raises(MustWaitError):
        unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=relay.ledger(required=False))
    unkeyed.end_throttle()
    with pytest.raises(MustWaitError) as waiting:
        unkeyed.pay(unkeyed.hand("document:2"), "chunk-02", ledger=relay.ledger(required=False))
    assert waiting.value.reason == "rate"
    assert unkeyed.meter.totals().exchanges == 1


def test_an_order_in_doubt_is_resent_by_the_relay(unkeyed, relay):
    """The connection was cut after the charge: the resend goes the same way, and the bill shows both."""
    unkeyed.meter.plan(script=["charge_then_cut"])
    unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=relay.ledger())
    assert unkeyed.sent == []
    assert unkeyed.meter.totals().charges == 2
    assert [row[0] for row in unkeyed.bill()] == ["in_doubt", "paid"]


def test_a_draining_relay_ends_what_is_marked_and_takes_nothing_more(unkeyed, relay, tmp_path):
    """Its successor runs meanwhile: workers find it by its own socket."""
    unkeyed.meter.hold("after")
    thread, outcome = in_thread(lambda: unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=relay.ledger()))
    unkeyed.meter.wait_open(1, PATIENT, charged=True)
    relay.server.drain()
    assert not relay.server.join(0.0)
    successor = TestRelay(unkeyed, tmp_path / "r", name="successor").start()
    second, paid = in_thread(
        lambda: unkeyed.pay(unkeyed.hand("document:2"), "chunk-02", ledger=relay.ledger())
    )
    unkeyed.meter.wait_open(2, PATIENT)
    unkeyed.meter.release()
    thread.join(PATIENT)
    second.join(PATIENT)
    assert outcome[0].spent.paid == paid[0].spent.paid == CENT
    assert (len(relay.sent), len(successor.sent), unkeyed.sent) == (1, 1, [])
    assert relay.server.join(PATIENT)
    successor.close()


def test_handing_over_again_attaches_a_second_waiter(unkeyed, relay):
    """The worker lost its connection and asks again: the order is sent once, and both hear of its end."""
    hand = unkeyed.hand()
    ledger = relay.ledger()
    call = Call("meter", "embeddings", "small", "chunk-01")
    draft = ledger._draft(hand.claim, ledger.provider("meter"), [(call.key("default"), call)])
    order = calls.intend(unkeyed.db, hand.claim, draft)
    unkeyed.meter.hold("before")
    carry = {"tries": 0, "check": lambda: None}
    first, one = in_thread(lambda: relay.client().carry(order.id, order.holder, **carry))
    unkeyed.meter.wait_open(1, PATIENT)
    second, two = in_thread(lambda: relay.client().carry(order.id, order.holder, **carry))
    while len(relay.server._carried[order.id].waiters) < 2:
        second.join(0.01)
    unkeyed.meter.release()
    first.join(PATIENT)
    second.join(PATIENT)
    assert one == two == [relay_talk.Ended()]
    assert unkeyed.meter.totals().exchanges == 1


def test_a_relay_that_was_given_up_goes_on_under_a_new_id(unkeyed, relay):
    """Others buried it by mistake: under its old name it marks nothing more, and settles what it had sent."""
    buried = relay.id
    relays.leave(unkeyed.db, buried)
    with pytest.raises(MustWaitError):
        unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=relay.ledger())
    assert unkeyed.meter.totals().exchanges == 0
    relay.lease.renew()
    assert relay.id != buried
    unkeyed.pay(unkeyed.hand("document:2"), "chunk-01", ledger=relay.ledger())
    assert unkeyed.orders("carrier")[-1] == (relay.id,)


def test_a_relay_without_trust_in_its_lease_sends_nothing(unkeyed, relay, monkeypatch):
    """It could not renew for a while: what it has marked is void before its first byte."""
    trust = relay.lease.trust
    monkeypatch.setattr(
        type(relay.lease),
        "trust",
        property(lambda _self: type(trust)(trust.relay_id, relay.host.clock() + 0.2)),
    )
    mark = carried.mark

    def slow(*words):
        marked = mark(*words)
        relay.host.sleep(0.3)
        return marked

    monkeypatch.setattr(carried, "mark", slow)
    visitor = QueryPayer(ThreadHost(), "default", None, 3.0)
    with pytest.raises(MustWaitError):
        relay.ledger(most_sends=1).pay(visitor, [Call("meter", "embeddings", "small", "chunk-01")])
    assert unkeyed.meter.totals().exchanges == 0
    assert {state for (state,) in unkeyed.orders("state")} == {"void"}


def test_a_mark_that_is_not_confirmed_is_taken_back_and_not_sent(unkeyed, relay, monkeypatch):
    """The database did not answer the commit: the order is void, whatever had happened."""
    mark, first = carried.mark, iter([True])

    def unconfirmed(*words):
        mark(*words)
        if next(first):
            raise StoreUnavailableError("the answer to the commit was lost")

    monkeypatch.setattr(carried, "mark", unconfirmed)
    hand = unkeyed.hand()
    ledger = relay.ledger()
    call = Call("meter", "embeddings", "small", "chunk-01")
    draft = ledger._draft(hand.claim, ledger.provider("meter"), [(call.key("default"), call)])
    order = calls.intend(unkeyed.db, hand.claim, draft)
    reply = relay.client().carry(order.id, order.holder, tries=0, check=lambda: None)
    assert not reply.marked
    assert unkeyed.orders("state", "sends") == [("void", 1)]
    assert unkeyed.meter.totals().exchanges == 0


def test_what_is_not_to_be_carried_is_refused_in_a_word(unkeyed, relay):
    """Another's order, one that is sent already, one of another database: nothing is sent for them."""
    hand = unkeyed.hand()
    client, carry = relay.client(), {"tries": 0, "check": lambda: None}
    ledger = relay.ledger()
    call = Call("meter", "embeddings", "small", "chunk-01")
    draft = ledger._draft(hand.claim, ledger.provider("meter"), [(call.key("default"), call)])
    order = calls.intend(unkeyed.db, hand.claim, draft)
    assert client.carry(order.id, "another", **carry) == relay_talk.LostOrder("intent")
    calls.send(unkeyed.db, hand.claim, order)
    assert client.carry(order.id, order.holder, **carry) == relay_talk.LostOrder("sent")
    assert client.carry("unknown", order.holder, **carry).reason == relay_talk.OTHER
    assert unkeyed.meter.totals().exchanges == 0
    assert orders.recover(unkeyed.db, order.id) is CallState.SENT


def test_the_socket_is_for_one_user_alone(unkeyed, relay, monkeypatch):
    """Folder and socket are closed to others, and a process of another user is hung up on."""
    assert stat.S_IMODE(relay.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(relay.server.path.stat().st_mode) == 0o600
    assert relay.client().is_there()
    monkeypatch.setattr(relay_client, "peer_user", lambda _connection: 12345)
    assert not relay.client().is_there()
    with pytest.raises(BadRequestError, match="at most 107 bytes"):
        checked_path(relay.folder / ("x" * 100), "name")


@pytest.mark.parametrize("said", [b"{}\n", b"no JSON\n", b'{"say":"hello","protocol":99}\n', b"[" * 70_000])
def test_a_relay_that_speaks_another_language_is_none(unkeyed, tmp_path, said):
    """Another release, or nonsense: the worker sends by itself."""
    folder = tmp_path / "r"
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / "x.sock"))
        listener.listen()

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(said)

        thread, _ = in_thread(answer)
        assert not relay_client.RelayClient(folder, "0016").is_there()
        thread.join(PATIENT)


@pytest.mark.parametrize(
    "said",
    [b"\n", b'{"say":"carry"}\n', b'{"say":"carry","order":1,"holder":[],"tries":"x"}\n', b"\xff\xfe\n"],
)
def test_nonsense_ends_the_connection_and_not_the_relay(unkeyed, relay, said):
    """The next worker is served as if nothing had been."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENT)
        connection.connect(str(relay.server.path))
        connection.sendall(said)
        while connection.recv(4096):
            pass
    unkeyed.pay(unkeyed.hand(), "chunk-01", ledger=relay.ledger())
    assert len(relay.sent) == 1


def test_a_worker_that_lost_its_task_has_nothing_sent(unkeyed, relay):
    """Its claim is stale: the relay is fenced out as the worker would be, and the order is void."""
    hand = unkeyed.hand()
    unkeyed.world.lapse(hand.claim)
    successor = unkeyed.take_over(hand)
    with pytest.raises(FencedOutError):
        unkeyed.pay(PayingWorker(hand.claim), "chunk-01", ledger=relay.ledger())
    assert unkeyed.orders("state") == [("void",)]
    unkeyed.pay(successor, "chunk-01", ledger=relay.ledger())
    assert unkeyed.meter.totals().exchanges == 1
