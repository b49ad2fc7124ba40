"""Streams: recorded while they are passed on, followed by many, and never broken off in silence."""

import threading
from concurrent.futures import ThreadPoolExecutor

import anthropic
import openai
import pytest

from holdfast.testing.meter import Meter
from tests.gateway.install import CLAUDE, GatewayInstall, chat

pytestmark = pytest.mark.g5


def test_joiners_get_what_there_is_and_then_the_rest(quick, meter):
    """The second client comes in the middle of the answer, and has all of it in the end."""
    body = chat("a cat", stream=True)
    meter.hold("during")
    with ThreadPoolExecutor(2) as clients:
        first = clients.submit(quick.post, "chat/completions", body, scope="s")
        meter.wait_open(charged=True)
        second = clients.submit(quick.post, "chat/completions", body, scope="s")
        (flight,) = quick.gateway.flights._by_key.values()
        while flight.readers < 2:
            threading.Event().wait(0.01)
        meter.release()
    assert [first.result().charge, second.result().charge] == ["paid", "waited"]
    assert first.result().body == second.result().body
    assert first.result().body.endswith(b"data: [DONE]\n\n")
    assert meter.totals().charges == 1


def test_client_libraries_read_streams(quick, meter):
    """Word by word, of both providers, paid once and then from the ledger."""
    for _ in range(2):
        with quick.openai(scope="s") as client:
            chunks = client.chat.completions.create(**chat("a cat"), stream=True)
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
            events = client.responses.create(model="gpt-4o-mini", input="a dog", stream=True)
            said = "".join(each.delta for each in events if each.type == "response.output_text.delta")
        with (
            quick.anthropic(scope="s") as claude,
            claude.messages.stream(
                model=CLAUDE, max_tokens=50, messages=chat("a bird")["messages"]
            ) as stream,
        ):
            sung = "".join(stream.text_stream)
        assert [each.rpartition("to: ")[2] for each in (text, said, sung)] == ["a cat", "a dog", "a bird"]
    assert meter.totals().charges == 3


def test_a_cut_is_an_error_and_a_doubt(quick, meter):
    """No client takes half an answer for a whole one; the next one resends the order in doubt."""
    meter.plan(script=[{"do": "answer", "cut_after": 2}] * 2)
    with quick.openai(scope="s") as client, pytest.raises(openai.APIError, match="in doubt"):
        list(client.chat.completions.create(**chat("a cat"), stream=True))
    with quick.anthropic(scope="s") as claude, pytest.raises(anthropic.APIError, match="in doubt"):
        list(claude.messages.create(**chat("x", model=CLAUDE, max_tokens=50), stream=True))
    assert [state for state, _ in quick.orders()] == ["in_doubt", "in_doubt"]
    assert quick.post("chat/completions", chat("a cat", stream=True), scope="s").charge == "paid"
    assert sorted(quick.orders()) == [("in_doubt", 1), ("settled", 2)]


def test_a_client_that_reads_nothing_holds_nobody_up(sqlite_url, tmp_path):
    """An answer of some megabytes is recorded to its end while its client sleeps."""
    with Meter(chat=lambda _: "word " * 100_000) as meter:
        install = GatewayInstall(sqlite_url, tmp_path, meter)
        line = install.begin("chat/completions", chat("a cat", stream=True), scope="s")
        meter.wait_open()
        assert install.gateway.flights.wait(60)
        assert install.post("chat/completions", chat("a cat", stream=True), scope="s").charge == "reused"
        line.close()
        install.close()
        assert meter.totals().charges == 1


def test_a_stream_that_never_ends_is_given_up(sqlite_url, tmp_path, meter):
    """Its deadline is that of the provider's table: an error event and a doubt."""
    install = GatewayInstall(sqlite_url, tmp_path, meter, gateway_deadline=1)
    meter.plan(script=[{"do": "drip", "drip": 0.6}])
    answer = install.post("chat/completions", chat("a b c d e f g h", stream=True), scope="s")
    states = install.orders()
    install.close()
    assert b"event: error" in answer.body
    assert b"[DONE]" not in answer.body
    assert states == [("in_doubt", 1)]
