"""Wake-ups on their way: nobody waits for them, they are few, and they arrive when they can."""

import os
import time
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from holdfast.chaos.proxy import Proxy
from holdfast.chaos.waiting import until
from holdfast.core.states import LANE_RANK
from holdfast.settings import Settings
from holdfast.worker import queue_depths, queues, sender
from holdfast.worker.brokers import MOST_OUTSTANDING

# Less than whoever waited for a broker would: half a second before a second try, for ever for an answer.
BRIEFLY = 0.4
WRONG = {
    "nobody-listens": "redis://127.0.0.1:9/0",
    "no-such-host": "amqp://u:p@no-such-host.invalid/v",
    "not-a-broker": "amqp://u:p@127.0.0.1:{redis}/v",
}


@pytest.fixture
def settings(tmp_path):
    """`settings(url, …)`: wake-ups go to all of these."""

    def made(*urls):
        return Settings(data_dir=tmp_path, broker_urls=",".join(urls))

    return made


def waiting(settings, lane="bulk"):
    """How many wake-ups wait at each broker."""
    return [messages for _, each, messages in queue_depths.measure(settings) if each == lane]


def through(url, proxy):
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{proxy.port}").geturl()


def proxied(url):
    parts = urlsplit(url)
    return Proxy(parts.hostname, parts.port)


def opened(settings, url, proxy):
    return sender.open_sender(settings(through(url, proxy)))


def longest(sending, times=200):
    """The longest that a caller waited, over many wake-ups."""
    waits = []
    for _ in range(times):
        began = time.perf_counter()
        sending.wake("bulk")
        waits.append(time.perf_counter() - began)
    return sorted(waits)[-2]  # the very longest is the scheduler's


def test_a_wake_up_arrives(settings, broker_url):
    """On every broker, in the queue of its lane and in no other."""
    output = settings(broker_url)
    with closing(sender.open_sender(output)) as sending:
        sending.wake("interactive")
    assert waiting(output, "interactive") == [1]
    assert waiting(output, "bulk") == [0]
    assert (sending.sent, sending.refused, sending.failed) == (1, 0, 0)


def test_wake_ups_without_a_worker_are_bounded(settings, broker_url):
    """Ten thousand of them, by three processes' worth of senders, leave no more than the bound."""
    output = settings(broker_url)
    for times in (5000, 4000, 1000):
        with closing(sender.open_sender(output)) as sending:
            for _ in range(times):
                sending.wake("bulk")
            until(lambda one=sending: one._waiting.qsize() == 0, 20, "they are not sent")
    result = waiting(output)[0]
    assert 0 < result <= MOST_OUTSTANDING + 2
    assert waiting(output, "follow-up") == [0]


@pytest.mark.parametrize("why", WRONG)
def test_nobody_waits_for_a_broker_that_cannot_be_reached(settings, require, why):
    """Each call returns at once, the failure is counted, and closing does not hang."""
    url = WRONG[why].format(redis=urlsplit(require("redis")).port)
    sending = sender.open_sender(settings(url))
    assert longest(sending) < BRIEFLY
    until(lambda: sending.failed, 10, "the failure is not counted")
    began = time.monotonic()
    sending.close()
    assert time.monotonic() - began < sender.CLOSE_PATIENCE + 2


@pytest.mark.parametrize("stack", ["redis", "rabbitmq"])
def test_nobody_waits_for_a_broker_in_a_black_hole(settings, request, stack, monkeypatch):
    """Also a connection that worked before and now swallows everything is felt by nobody."""
    result = request.getfixturevalue("redis_broker" if stack == "redis" else "rabbit_broker")
    result.flush()
    url = result.url
    monkeypatch.setattr(sender, "CLOSE_PATIENCE", 1.0)
    with proxied(url) as proxy:
        sending = sender.open_sender(settings(through(url, proxy)))
        sending.wake("bulk")
        until(lambda: sending.sent, 10, "the first one does not arrive")
        proxy.black_hole()
        assert longest(sending) < BRIEFLY
        began = time.monotonic()
        sending.close()
        assert time.monotonic() - began < sender.CLOSE_PATIENCE + 2


def test_wake_ups_go_to_both_of_two_brokers(settings, redis_broker, rabbit_broker):
    """A move from one broker to another wakes through both."""
    redis_broker.flush()
    rabbit_broker.flush()
    output = settings(redis_broker.url, rabbit_broker.url)
    with closing(sender.open_sender(output)) as sending:
        sending.wake("bulk")
    assert waiting(output) == [1, 1]


def test_a_dead_broker_does_not_hold_up_the_other(settings, redis_broker):
    """The first of two is gone; the second still gets every wake-up, and within moments."""
    redis_broker.flush()
    output = settings("amqp://u:p@127.0.0.1:9/v", redis_broker.url)
    with closing(sender.open_sender(output)) as sending:
        began = time.monotonic()
        for _ in range(5):
            sending.wake("bulk")
        until(lambda: sending.sent == 5, 10, "they do not arrive")
        # Who waited with the dead one would wait 0.5, 1, 2 and 4 seconds between the five.
        assert time.monotonic() - began < 5
    assert waiting(output)[1] == 5


@pytest.mark.parametrize("stack", ["redis", "rabbitmq"])
def test_a_connection_that_broke_meanwhile_costs_no_wake_up(settings, request, stack, caplog):
    """The broker was restarted between two wake-ups; the second goes out over a new connection at once."""
    result = request.getfixturevalue("redis_broker" if stack == "redis" else "rabbit_broker")
    result.flush()
    with (
        proxied(result.url) as proxy,
        closing(sender.open_sender(settings(through(result.url, proxy)))) as sending,
    ):
        sending.wake("bulk")
        until(lambda: sending.sent == 1, 10, "the first one does not arrive")
        proxy.cut()
        sending.wake("bulk")
        until(lambda: sending.sent == 2, 10, "the second one does not arrive")
    assert sending.failed == 0
    assert not caplog.records
    assert waiting(settings(result.url)) == [2]


def test_a_connection_that_nobody_used_for_long_is_made_anew(settings, rabbit_broker, monkeypatch):
    """Nobody sends its heartbeats, so RabbitMQ ends it; it is not tried again first."""
    rabbit_broker.flush()
    monkeypatch.setattr(sender, "IDLE", 0.0)
    with closing(sender.open_sender(settings(rabbit_broker.url))) as sending:
        sending.wake("bulk")
        until(lambda: sending.sent == 1, 10, "the first one does not arrive")
        first = sending._lines[0].connection
        sending.wake("bulk")
        until(lambda: sending.sent == 2, 10, "the second one does not arrive")
        assert sending._lines[0].connection is not first


def test_after_an_outage_wake_ups_go_out_again(settings, redis_broker, monkeypatch):
    """The broker is left alone for a moment after a failure, and used again when it is back."""
    redis_broker.flush()
    parts = urlsplit(redis_broker.url)
    proxy = Proxy(parts.hostname, parts.port)
    sending = sender.open_sender(settings(through(redis_broker.url, proxy)))
    with proxy, closing(sending):
        proxy.target = ("127.0.0.1", 9)
        sending.wake("bulk")
        until(lambda: sending.failed == 1, 10, "the failure is not counted")
        sending.wake("bulk")
        until(lambda: sending.failed == 2, 10, "it is not left alone")
        proxy.target = (parts.hostname, parts.port)
        until(lambda: sending.wake("bulk") or sending.sent, 10, "it is never used again", every=0.1)


def test_it_works_after_a_fork(settings, broker_url):
    """Neither the parent's thread nor its sockets come along, and neither side disturbs the other."""
    output = settings(broker_url)
    with closing(sender.open_sender(output)) as sending:
        sending.wake("bulk")
        until(lambda: sending.sent == 1, 10, "the parent's does not arrive")
        pid = os.fork()
        if pid == 0:
            sending.wake("bulk")
            sending.close()
            os._exit(0 if sending.sent == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        sending.wake("bulk")
    assert waiting(output) == [3]


def test_closing_sends_what_was_handed_in(settings, broker_url):
    """A short command's wake-ups are out when it ends."""
    output = settings(broker_url)
    sending = sender.open_sender(output)
    for lane in LANE_RANK:
        sending.wake(lane)
        sending.wake_task(7, lane)
    sending.close()
    assert [messages for _, _, messages in queue_depths.measure(output)] == [2] * len(LANE_RANK)
    sending.wake("bulk")
    sending.close()
    assert waiting(output) == [3]


def test_a_full_queue_is_no_failure(settings, rabbit_broker, caplog):
    """RabbitMQ refuses what is beyond the bound; that is counted as refused, and no news."""
    rabbit_broker.flush()
    with closing(sender.open_sender(settings(rabbit_broker.url))) as sending:
        for _ in range(MOST_OUTSTANDING + 20):
            sending.wake("bulk")
    assert sending.refused >= 18
    assert sending.failed == 0
    assert not caplog.records


def test_a_queue_of_another_shape_is_told(settings, rabbit_broker, caplog):
    """A queue of the same name is no quorum queue: one line with the broker's own word."""
    rabbit_broker.flush()
    name = queues.name("bulk")
    path = f"/api/queues/{rabbit_broker.vhost}/{name}"
    rabbit_broker._ask("PUT", path, {"durable": True, "arguments": {"x-queue-type": "classic"}})
    with closing(sender.open_sender(settings(rabbit_broker.url))) as sending:
        sending.wake("bulk")
    rabbit_broker.flush()
    assert sending.failed == 1
    assert [record for record in caplog.records if "PRECONDITION_FAILED" in record.getMessage()]
