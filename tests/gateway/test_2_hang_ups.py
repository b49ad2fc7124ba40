"""Clients that hang up waste nothing, and requests that are meant twice are paid twice."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.testing.meter import Meter
from tests.gateway.install import EMBEDDER, GatewayInstall, RawAnswer, chat
from tests.races.arena import eventually

pytestmark = pytest.mark.g5


def until_left(install: GatewayInstall) -> None:
    """The gateway has noticed that nobody reads any more."""
    flights = install.gateway.flights
    while any(each.readers for same in list(flights._singles.values()) for each in same):
        threading.Event().wait(0.01)


def abandoned(
    install: GatewayInstall, meter: Meter, body: object, endpoint: str = "chat/completions"
) -> None:
    """A client has hung up while the provider was working."""
    meter.hold()
    line = install.begin(endpoint, body)
    meter.wait_open(charged=True)
    line.close()
    until_left(install)


def together(
    count: int, ask: Callable[[], RawAnswer], meanwhile: Callable[[], None] = int
) -> list[RawAnswer]:
    """The answers of so many clients that ask at once."""
    with ThreadPoolExecutor(count) as clients:
        futures = [clients.submit(ask) for _ in range(count)]
        meanwhile()
        return [future.result() for future in futures]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_the_retry_of_a_client_that_hung_up_is_free(install, meter, streams):
    """The answer was recorded without a reader, and the next identical request gets it."""
    body = chat("a cat", stream=streams)
    abandoned(install, meter, body)
    meter.release()
    assert install.gateway.flights.wait(20)
    retry = install.post("chat/completions", body)
    assert (retry.status, retry.charge) == (200, "reused")
    assert b"cat" in retry.body
    assert meter.totals().charges == 1
    assert install.post("chat/completions", body).charge == "paid"


def test_a_retry_joins_the_call_that_is_still_under_way(quick, meter):
    """It waits for what its first try has begun."""
    abandoned(quick, meter, chat("a cat"))
    answers = []
    retry = threading.Thread(target=lambda: answers.append(quick.post("chat/completions", chat("a cat"))))
    retry.start()
    while not any(each.readers for same in quick.gateway.flights._singles.values() for each in same):
        threading.Event().wait(0.01)
    meter.release()
    retry.join()
    assert [(each.status, each.charge) for each in answers] == [(200, "waited")]
    assert meter.totals().charges == 1


def test_an_orphan_is_adopted_by_one(install, meter):
    """Of five identical requests at once one gets the answer that nobody has got, and four pay."""
    abandoned(install, meter, chat("a cat"))
    meter.release()
    assert install.gateway.flights.wait(20)
    answers = together(5, lambda: install.post("chat/completions", chat("a cat")))
    assert sorted(each.charge for each in answers) == ["paid"] * 4 + ["reused"]
    assert meter.totals().charges == 5


def test_requests_outside_scopes_are_forgotten_once_delivered(quick, meter):
    """The table of calls under way does not grow."""
    for number in range(5):
        quick.post("chat/completions", chat(f"prompt {number}"))

    def is_empty() -> bool:  # the last answer is delivered a moment before that is recorded
        quick.gateway.keep_up({"renew": 0.0, "prune": 0.0})
        return quick.held() == 0

    eventually(is_empty)


def test_another_gateway_adopts_what_the_first_has_released(database_url, tmp_path, meter):
    """Two processes on one database: the answer belongs to the installation, not to one of them."""
    installs = [GatewayInstall(database_url, tmp_path / name, meter) for name in ("one", "two")]
    try:
        first, second = installs
        abandoned(first, meter, chat("a cat"))
        meter.release()
        assert first.gateway.flights.wait(20)
        assert second.post("chat/completions", chat("a cat")).charge == "reused"
        assert second.post("embeddings", {"model": EMBEDDER, "input": "a cat"}).charge == "paid"
        assert first.post("embeddings", {"model": EMBEDDER, "input": "a cat"}).charge == "reused"
    finally:
        for each in installs:
            each.close()
    assert meter.totals().excess == 0


def test_embeddings_of_a_client_that_hung_up_are_kept(quick, meter):
    """The next request for these texts pays nothing."""
    body = {"model": EMBEDDER, "input": ["one", "two"]}
    meter.hold()
    line = quick.begin("embeddings", body)
    meter.wait_open(charged=True)
    line.close()
    meter.release()
    assert quick.gateway.flights.wait(20)
    assert quick.post("embeddings", body).charge == "reused"
    assert meter.totals().charges == 2


def test_identical_requests_in_a_scope_are_one_call(install, meter):
    """Ten at once: one pays, nine wait, all get the same."""
    meter.hold()

    def released() -> None:
        meter.wait_open()
        (flight,) = install.gateway.flights._by_key.values()
        while flight.readers < 10:
            threading.Event().wait(0.01)
        meter.release()

    answers = together(10, lambda: install.post("chat/completions", chat("x"), scope="s"), meanwhile=released)
    assert sorted(each.charge for each in answers) == ["paid"] + ["waited"] * 9
    assert len({each.body for each in answers}) == meter.totals().charges == 1
