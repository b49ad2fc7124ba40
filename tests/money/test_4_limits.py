"""Limits per key: how often, how much at once, and how many streams."""

import contextlib
import threading
from http.client import HTTPConnection

import pytest

from holdfast.api.rate_limits import BURST_SECONDS, Allowance, RateLimitedError, Turnstile
from holdfast.chaos.waiting import until
from holdfast.service.access import Identity, Scope
from tests.money.conftest import priced


def somebody(key="one", rate=None, concurrency=None):
    return Identity("default", f"api:{key}", frozenset(Scope), key, rate, concurrency)


@pytest.fixture
def clock():
    return [100.0]


@pytest.fixture
def turnstile(clock):
    return Turnstile(Allowance(rate=4.0, concurrency=3, listeners=2), clock=lambda: clock[0])


def test_a_key_may_ask_so_often_and_no_oftener(turnstile, clock):
    """A burst is taken up to two seconds' worth; then as many as come back at its rate."""
    for _ in range(int(4 * BURST_SECONDS)):
        turnstile.enter(somebody())()
    with pytest.raises(RateLimitedError) as refused:
        turnstile.enter(somebody())
    assert refused.value.retry_after == 1
    clock[0] += 0.25
    turnstile.enter(somebody())()
    with pytest.raises(RateLimitedError):
        turnstile.enter(somebody())
    turnstile.enter(somebody("two"))()
    assert turnstile.refused == 2


def test_a_slow_key_is_told_when_to_come_back(turnstile, clock):
    """Its own rate counts, not that of the settings."""
    slow = somebody(rate=0.1)
    turnstile.enter(slow)()
    with pytest.raises(RateLimitedError) as refused:
        turnstile.enter(slow)
    assert refused.value.retry_after == 10
    clock[0] += 10
    turnstile.enter(slow)()


def test_so_many_at_once_and_a_place_is_given_back_once(turnstile):
    """Giving it back twice does not make two of it."""
    places = [turnstile.enter(somebody(concurrency=2)) for _ in range(2)]
    with pytest.raises(RateLimitedError, match="in progress"):
        turnstile.enter(somebody(concurrency=2))
    places[0]()
    places[0]()
    turnstile.enter(somebody(concurrency=2))
    with pytest.raises(RateLimitedError, match="in progress"):
        turnstile.enter(somebody(concurrency=2))


def test_streams_are_counted_apart(turnstile):
    """They may stay open for days, and keep no request out."""
    ends = [turnstile.listen(somebody()) for _ in range(2)]
    with pytest.raises(RateLimitedError, match="streams"):
        turnstile.listen(somebody())
    turnstile.enter(somebody())()
    ends[0]()
    turnstile.listen(somebody())


def test_keys_at_rest_are_forgotten(turnstile, clock, monkeypatch):
    """So that memory stays bounded; one with a request under way is kept."""
    monkeypatch.setattr("holdfast.api.rate_limits.MOST_KEPT", 2)
    turnstile.enter(somebody("busy"))
    turnstile.enter(somebody("idle"))()
    clock[0] += 60
    turnstile.enter(somebody("new"))()
    assert sorted(turnstile._buckets) == ["busy", "new"]


def test_no_two_threads_take_one_place(turnstile):
    """Of many at the same moment exactly as many come in as may."""
    start, come_in = threading.Barrier(12), []

    def go():
        start.wait(20)
        with contextlib.suppress(RateLimitedError):
            come_in.append(turnstile.enter(somebody()))

    threads = [threading.Thread(target=go) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert (len(come_in), turnstile.refused) == (3, 9)


@pytest.fixture
def strict(sqlite_url, tmp_path, meter):
    """One request in four seconds: a machine on which two take longer is none to test on."""
    install = priced(sqlite_url, tmp_path, meter, api_rate=0.25)
    yield install
    install.close()


def test_the_api_says_429_and_when_to_come_back(strict):
    """With the one shape of errors, in the header and by the code; another key is not concerned."""
    eager, other = strict.key("default"), strict.key("default")
    assert eager.get("collections").status == 200
    said = eager.get("collections")
    assert said.status == 429
    assert (said.code, int(said.headers["retry-after"]) >= 1) == ("rate_limited", True)
    assert other.get("collections").status == 200
    until(lambda: eager.get("collections").status == 200, 30, "it may ask again", every=0.5)


def test_a_key_has_limits_of_its_own(small):
    """Given when it is made, listed with it, and heeded instead of those of the settings."""
    created = small.access.make(tenant="default", name="slow", scopes=[Scope.READ], rate=0.01, concurrency=1)
    assert (created.key.rate, created.key.concurrency) == (0.01, 1)
    client = type(small.client)(small, created.token)
    assert client.get("collections").status == 200
    refused = client.get("collections")
    assert (refused.status, 90 <= int(refused.headers["retry-after"]) <= 100) == (429, True)


def test_a_key_may_keep_only_so_many_streams_open(small):
    """One that ends makes room for another."""
    member = small.key("default")

    def open_stream():
        connection = HTTPConnection("127.0.0.1", small.port, timeout=30)
        connection.request("GET", "/api/v1/events/stream", headers={"X-API-Key": member.key})
        return connection, connection.getresponse()

    connection, first = open_stream()
    assert first.status == 200
    first.read(1)
    again, second = open_stream()
    assert (second.status, second.headers["Retry-After"]) == (429, "5")
    again.close()
    assert member.get("collections").status == 200
    first.close()
    connection.close()

    def reopened():
        created, answer = open_stream()
        if answer.status == 200:
            answer.close()
        created.close()
        return answer.status == 200

    until(reopened, 60, "the place of the closed stream is free", every=0.5)
