"""The metering provider: what was paid is what arrived at it."""

import concurrent.futures
import contextlib
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from holdfast.providers.base import Answered, Refused, Unknown
from holdfast.testing import orders
from holdfast.testing.meter import Meter
from holdfast.testing.meter_plan import Plan


def get(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as response:
        return json.load(response)


def test_it_counts_each_input_and_what_was_paid_beyond_once(meter, provider):
    """Charges are counted per input, and excess is what was paid twice."""
    orders.embed(provider, "a", "b")
    orders.embed(provider, "a")
    orders.embed(provider, "a", dimensions=4)
    totals = meter.totals()
    assert (totals.charges, totals.distinct_inputs, totals.excess, totals.max_charges) == (4, 3, 1, 2)
    assert meter.charges_of("a") == 3


def test_the_log_tells_every_exchange(meter, provider):
    """An entry says what came, when, under which key, and what became of it."""
    meter.plan(script=["answer", "charge_then_cut", "rate_limit"])
    for key in ("k1", "k2", "k3"):
        orders.embed(provider, "a", key=key)
    answered, cut, limited = meter.log()
    assert answered["arrived_at"] <= answered["charged_at"] <= answered["replied_at"]
    assert [entry["idempotency_key"] for entry in meter.log()] == ["k1", "k2", "k3"]
    assert (cut["charged"], cut["cut"], cut["replied_at"]) == (True, True, None)
    assert (limited["charged"], limited["status"]) == (False, 429)


def test_one_byte_is_an_arrival(meter):
    """A request that was only begun is in the log, uncharged."""
    with socket.create_connection(meter.url.removeprefix("http://").split(":")) as connection:
        connection.sendall(b"P")
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answer:
            answer.read()
    assert meter.totals().exchanges == 1
    assert meter.totals().charges == 0


def test_a_request_cut_short_is_not_charged(meter):
    """A body that never came in full costs nothing and is logged as cut."""
    with socket.create_connection(meter.url.removeprefix("http://").split(":")) as connection:
        connection.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: m\r\nContent-Length: 100\r\n\r\n{")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert (meter.log()[0]["cut"], meter.totals().charges) == (True, 0)


def test_a_cut_is_a_reset(meter):
    """A cut connection breaks as a crashed gateway's does; it is not closed in good order."""
    meter.plan(script=["charge_then_cut"])
    body = b'{"model": "m", "input": ["a"]}'
    with socket.create_connection(meter.url.removeprefix("http://").split(":")) as connection:
        head = f"POST /v1/embeddings HTTP/1.1\r\nHost: m\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    assert meter.charges_of("a") == 1


@pytest.mark.parametrize(("when", "charges"), [("before", 0), ("after", 1)])
def test_answers_can_be_held_while_a_test_does_its_worst(meter, provider, when, charges):
    """A held exchange is open, charged or not as asked, until it is released."""
    meter.hold(when)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        sending = pool.submit(orders.embed, provider, "a")
        totals = meter.wait_open(1, charged=when == "after")
        assert (totals.open, totals.charges) == (1, charges)
        meter.release()
        assert isinstance(sending.result(), Answered)
    assert meter.wait_idle().charges == 1


def test_waiting_in_vain_says_how_things_stand(meter):
    """A wait for exchanges that never come ends with the totals in the error."""
    with pytest.raises(TimeoutError, match="exchanges=0"):
        meter.wait_open(1, timeout=0.01)


def test_the_same_seed_misbehaves_the_same():
    """Chance is repeatable: the same seed deals the same outcomes."""

    def run(seed):
        plan = Plan(rate_limit=0.3, charge_then_cut=0.2, fail=0.2, seed=seed)
        with Meter(plan=plan) as meter, contextlib.closing(meter.provider()) as provider:
            return [type(orders.embed(provider, "a")) for _ in range(30)]

    first = run(7)
    assert first == run(7)
    assert set(first) == {Answered, Refused, Unknown}
    assert first != run(8)


def test_a_script_repeats_a_step_and_then_ends(meter, provider):
    """`times` repeats a step; after the script the plan's shares rule again."""
    meter.plan(script=[{"do": "fail", "status": 503, "times": 2}])
    kinds = [type(orders.embed(provider, "a")) for _ in range(3)]
    assert kinds == [Unknown, Unknown, Answered]


@pytest.mark.parametrize(
    "changes", [{"latencey": 1}, {"script": ["explode"]}, {"script": [{"do": "fail", "x": 1}]}]
)
def test_a_plan_that_makes_no_sense_changes_nothing(meter, provider, changes):
    """A misspelt plan is an error in the test, not a meter that behaves well."""
    meter.plan(rate_limit=1.0)
    with pytest.raises(ValueError):
        meter.plan(**changes)
    assert isinstance(orders.embed(provider, "a"), Refused)


@pytest.mark.g5
def test_two_concurrent_requests_of_one_key_are_charged_once():
    """The second waits for the first one's result."""
    with Meter(honour_keys=True) as meter, contextlib.closing(meter.provider()) as provider:
        meter.hold()
        order = orders.exchange(provider, "a")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            both = [pool.submit(provider.send, order, orders.yes) for _ in range(2)]
            meter.wait_open(2)
            meter.release()
            outcomes = [sending.result() for sending in both]
        assert sorted(outcome.replayed for outcome in outcomes) == [False, True]
        assert outcomes[0].results == outcomes[1].results
        assert meter.charges_of("a") == 1


def test_a_key_that_was_not_charged_is_free_again():
    """A rate limit under a key stores nothing, not even its body: the resend is the first charge."""
    with Meter(honour_keys=True) as meter, contextlib.closing(meter.provider()) as provider:
        meter.plan(script=["rate_limit"])
        orders.embed(provider, "a", key="k")
        again = orders.embed(provider, "b", key="k")
        assert isinstance(again, Answered)
        assert not again.replayed
        assert (meter.charges_of("a"), meter.charges_of("b")) == (0, 1)


def test_a_key_with_another_body_is_refused():
    """One key stands for one body."""
    with Meter(honour_keys=True) as meter, contextlib.closing(meter.provider()) as provider:
        orders.embed(provider, "a", key="k")
        outcome = orders.embed(provider, "b", key="k")
        assert isinstance(outcome, Refused)
        assert outcome.status == 422
        assert meter.charges_of("b") == 0


def test_a_key_past_its_retention_is_charged_again():
    """A provider that has forgotten a key charges anew: recovery must park such an order."""
    with (
        Meter(honour_keys=True, key_retention=0.0) as meter,
        contextlib.closing(meter.provider()) as provider,
    ):
        orders.embed(provider, "a", key="k")
        assert not orders.embed(provider, "a", key="k").replayed
        assert meter.totals().excess == 1


def test_closing_cuts_what_is_open():
    """A meter that closes leaves no thread and no client waiting."""
    with Meter() as meter, contextlib.closing(meter.provider()) as provider:
        meter.hold("before")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            sending = pool.submit(orders.embed, provider, "a")
            meter.wait_open()
            meter.close()
            assert isinstance(sending.result(), Unknown)
        assert meter.totals().charges == 0


def test_it_runs_on_its_own_and_is_steered_over_http():
    """As a program it prints its address, takes plans, and shows its book."""
    command = [sys.executable, "-m", "holdfast.testing.meter", "--honour-keys", "--latency", "0.001"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            urls = json.loads(program.stdout.readline())
            order = {"model": "m", "input": ["a"]}
            get(f"{urls['meter']}/plan", {"script": [{"do": "fail", "status": 500}]})
            with pytest.raises(urllib.error.HTTPError) as failed:
                get(f"{urls['url']}/embeddings", order)
            failed.value.close()
            assert len(get(f"{urls['url']}/embeddings", order)["data"]) == 1
            assert get(urls["meter"])["charges"] == 1
            assert [entry["status"] for entry in get(f"{urls['meter']}/log")] == [500, 200]
            assert get(f"{urls['meter']}/reset", {})["exchanges"] == 0
        finally:
            program.send_signal(signal.SIGTERM)
    assert program.returncode == 0
