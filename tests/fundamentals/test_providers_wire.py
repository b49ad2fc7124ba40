"""The gate before the first byte, and the deadline after it."""

import concurrent.futures
import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import threading

import httpcore
import pytest

from holdfast import faults
from holdfast.clock import boot_time
from holdfast.providers import sockets
from holdfast.providers.base import Answered, NotSent, Refused, Unknown
from holdfast.providers.openai import OpenAIProvider
from holdfast.testing import orders
from holdfast.testing.meter import Meter


def no():
    return False


@pytest.mark.g2
def test_a_closed_gate_lets_no_byte_out(meter, provider):
    """When the gate says no, nothing reaches the provider."""
    assert orders.embed(provider, "a", gate=no) == NotSent("gate")
    assert meter.wait_quiet().exchanges == 0


@pytest.mark.g2
def test_a_kept_alive_connection_still_asks_the_gate(meter, provider):
    """A request on a connection that is already open passes the gate like any other."""
    assert isinstance(orders.embed(provider, "a"), Answered)
    assert orders.embed(provider, "b", gate=no) == NotSent("gate")
    assert meter.wait_quiet().exchanges == 1


@pytest.mark.g2
def test_a_thaw_after_the_gate_sends_nothing_late(meter, provider):
    """A process that froze between the gate and the write notices the time before the first byte."""
    order = orders.exchange(provider, "a", send_within=0.05)

    def frozen():
        while boot_time() <= order.send_by:
            pass
        return True

    assert provider.send(order, frozen) == NotSent("late")
    assert meter.wait_quiet().exchanges == 0


def test_an_order_that_is_late_from_the_start_never_connects(meter, provider):
    """Past its time an order is given up before the gate is asked."""
    items = []
    order = orders.exchange(provider, "a", send_within=-1)
    assert provider.send(order, lambda: items.append(1) or True) == NotSent("late")
    assert not items


def test_what_the_gate_raises_is_passed_on_with_nothing_sent(meter, provider):
    """A gate that fails, as a database may, withholds the request and keeps its own error."""

    def broken():
        raise TimeoutError("database away")

    with pytest.raises(TimeoutError, match="database away"):
        orders.embed(provider, "a", gate=broken)
    assert meter.wait_quiet().exchanges == 0


@pytest.mark.parametrize("behaviour", ["drip", "stall", "stall_charged"])
def test_the_deadline_is_for_the_whole_exchange(meter, provider, behaviour):
    """A server that drips or says nothing is cut when the order's time is over, not byte by byte."""
    meter.plan(drip_pause=0.02, script=[behaviour])
    started = boot_time()
    outcome = orders.embed(provider, "a", within=0.3)
    assert outcome == Unknown("deadline passed", None)
    assert 0.3 <= boot_time() - started < 20  # by itself it would never end


def test_a_body_that_drips_is_cut_too():
    """The status of an answer that never ends is known, and it is in doubt all the same."""
    started = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"
    with _raw_server(started) as url, contextlib.closing(OpenAIProvider(url, "k")) as client:
        assert orders.embed(client, "a", within=0.2) == Unknown("deadline passed", 200)


def test_an_answer_that_came_during_a_freeze_is_kept():
    """Past the deadline nothing is waited for, but what has already arrived was paid for and is read."""
    ours, theirs = socket.socketpair()
    token = sockets.current.set(sockets.Attempt(orders.yes, send_by=0.0, deadline=0.0, begun=True))
    try:
        with ours, theirs:
            theirs.sendall(b"answer")
            stream = sockets.Stream(ours)
            assert stream.read(100) == b"answer"
            with pytest.raises(httpcore.ReadTimeout):
                stream.read(100)
    finally:
        sockets.current.reset(token)


@pytest.mark.g2
def test_a_freeze_in_the_middle_of_a_request_leaves_it_incomplete(meter, provider, monkeypatch):
    """A process that froze after its first byte, past the deadline, does not send the rest when it thaws."""
    thawed = threading.Event()
    monkeypatch.setattr(sockets, "boot_time", lambda: boot_time() + 3600 * thawed.is_set())
    with faults.armed(lambda name: thawed.set() if name == "send.begun" else None):
        assert orders.embed(provider, "a") == Unknown("deadline passed", None)
    meter.wait_quiet()
    assert [(entry["cut"], entry["charged"]) for entry in meter.log()] == [(True, False)]


def test_a_stale_connection_is_replaced_before_anything_is_written(meter, provider):
    """A kept-alive connection that the server closed is noticed, and the order goes out on another one."""
    assert isinstance(orders.embed(provider, "a"), Answered)
    for connection in list(meter._server._connections):
        connection.shutdown(socket.SHUT_RDWR)
    gates = []
    assert isinstance(orders.embed(provider, "b", gate=lambda: gates.append(1) or True), Answered)
    assert len(gates) == 1
    assert [entry["inputs"] for entry in meter.log()] == [("a",), ("b",)]


def test_a_connection_lost_while_the_gate_was_asked_is_not_sent(meter, provider):
    """A server that hangs up during the last question got nothing, and the client knows it."""
    orders.embed(provider, "a")

    def hang_up():
        for connection in list(meter._server._connections):
            connection.shutdown(socket.SHUT_RDWR)
        return True

    assert isinstance(orders.embed(provider, "b", gate=hang_up), NotSent)
    assert meter.wait_quiet().exchanges == 1


def test_a_full_pool_means_not_sent(meter):
    """An order that finds no free connection in time was never begun."""
    meter.hold()
    narrow = contextlib.closing(meter.provider(max_connections=1))
    with narrow as provider, concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(orders.embed, provider, "a")
        meter.wait_open()
        late = provider.send(orders.exchange(provider, "b", send_within=0.1), orders.yes)
        meter.release()
        assert late == NotSent("no free connection")
        assert isinstance(first.result(), Answered)
    assert meter.wait_quiet().exchanges == 1


@pytest.mark.parametrize("status", [200, 404])
def test_an_answer_too_large_to_hold_is_given_up(meter, status):
    """An endless 200 is in doubt; of an error the status is enough."""
    meter.plan(script=[{"status": status, "body": "x" * 200_000}])
    with contextlib.closing(meter.provider(max_answer=100_000)) as provider:
        outcome = orders.embed(provider, "a")
    if status == 200:
        assert outcome == Unknown("response too large", 200)
    else:
        assert outcome.code == "rejected"


def test_a_server_that_talks_nonsense_is_in_doubt():
    """After the first byte, an answer that is not HTTP leaves the order in doubt."""
    with (
        _raw_server(b"SSH-2.0-nonsense\r\n\r\n") as url,
        contextlib.closing(OpenAIProvider(url, "k")) as provider,
    ):
        assert isinstance(orders.embed(provider, "a", within=5), Unknown)


def test_many_threads_share_one_provider(meter, provider):
    """Each of many concurrent orders gets its own answer, and each is charged once."""
    meter.plan(latency=0.005)
    texts = [f"text number {n}" for n in range(100)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda text: orders.embed(provider, text), texts))
    meter.plan(latency=0)
    alone = [orders.embed(provider, text) for text in texts[::10]]
    assert [one.results for one in outcomes[::10]] == [one.results for one in alone]
    assert {meter.charges_of(text) for text in texts[1::10]} == {1}


@pytest.mark.g5
def test_the_word_of_the_client_and_the_book_of_the_meter_agree(meter, provider):
    """Answered is charged once, refused and not sent never, unknown at most once, whatever the meter does."""
    shares = dict.fromkeys(
        ("rate_limit", "fail", "charge_then_cut", "cut_before_charge", "stall_charged"), 0.12
    )
    meter.plan(**shares, fail_charged=True, latency=0.002, seed=11)
    texts = [f"text {n}" for n in range(300)]

    def order(text):
        return orders.embed(provider, text, gate=lambda: not text.endswith("7"), within=0.5)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(order, texts))
    charged = {Answered: {1}, Refused: {0}, NotSent: {0}, Unknown: {0, 1}}
    result = {kind: set() for kind in charged}
    for text, outcome in zip(texts, outcomes, strict=True):
        result[type(outcome)].add(meter.charges_of(text))
    assert result == charged


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_its_own_connection(meter, provider):
    """A child never writes to its parent's connection."""
    assert isinstance(orders.embed(provider, "a"), Answered)
    child = os.fork()
    if not child:
        os._exit(0 if isinstance(orders.embed(provider, "b"), Answered) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert isinstance(orders.embed(provider, "c"), Answered)
    parent, forked, again = (entry["client"] for entry in meter.log())
    assert parent == again != forked


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs the openssl program for a certificate")
def test_all_of_it_holds_under_tls(tmp_path):
    """Over an encrypted connection orders are answered, gated on reuse, and cut at the deadline."""
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    )
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*command.split(), *files], check=True, cwd=tmp_path, capture_output=True)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    trusted = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    with Meter(ssl_context=served) as meter:
        with contextlib.closing(meter.provider()) as stranger:
            assert orders.embed(stranger, "a").reason.startswith("tls:")
        with contextlib.closing(meter.provider(ssl_context=trusted)) as provider:
            assert isinstance(orders.embed(provider, "a"), Answered)
            assert isinstance(orders.embed(provider, "b"), Answered)
            assert orders.embed(provider, "c", gate=no) == NotSent("gate")
            meter.plan(script=["stall", "charge_then_cut"])
            assert orders.embed(provider, "d", within=0.2) == Unknown("deadline passed", None)
            assert isinstance(orders.embed(provider, "e"), Unknown)
            assert meter.charges_of("c") == 0


@contextlib.contextmanager
def _raw_server(answer):
    """Serve the same bytes to one connection, and hold it open until the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as held:

        def serve():
            connection = held.enter_context(listener.accept()[0])
            connection.recv(65536)
            connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            thread.join()
