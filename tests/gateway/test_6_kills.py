"""Clients and gateways killed in the middle, as processes, with a provider that keeps a book."""

import itertools
import shutil
import signal
import subprocess

import pytest
from sqlalchemy import func, select

from holdfast.store.base.schema import charges, orders
from holdfast.store.features import open_database
from tests.gateway.install import EMBEDDER, chat
from tests.gateway.processes import GatewayProcess

pytestmark = pytest.mark.g5
DOUBTED = select(func.count()).where(charges.c.sort == "in_doubt")


@pytest.fixture
def gateway(sqlite_url, tmp_path, meter):
    """A gateway in a process of its own."""
    process = GatewayProcess(sqlite_url, tmp_path, meter)
    process.start()
    yield process
    meter.release()
    process.close()


def requests(number):
    """So many distinct requests: endpoint, body, scope, and where the provider is when the client dies."""
    kinds = itertools.cycle(
        [
            ("chat/completions", {}, "", "after"),
            ("chat/completions", {"stream": True}, "", "during"),
            ("chat/completions", {}, "s", "before"),
            ("chat/completions", {"stream": True}, "s", "during"),
            ("embeddings", None, "", "after"),
        ]
    )
    for each, (endpoint, more, scope, when) in zip(range(number), kinds, strict=False):
        prompt = f"prompt {each}"
        body = {"model": EMBEDDER, "input": prompt} if more is None else chat(prompt, **more)
        yield endpoint, body, scope, when


def killed_clients(gateway, meter, number):
    """Each client dies while its call is under way, and asks again: at once, or when the call is over."""
    for each, (endpoint, body, scope, when) in enumerate(requests(number)):
        meter.hold(when)
        with gateway.client(endpoint, body, scope):
            meter.wait_open(charged=when != "before")
        if each % 2:
            meter.release()
            meter.wait_idle()
            status, charge, _ = gateway.post(endpoint, body, scope)
            assert (status, charge in {"reused", "waited"}) == (200, True)
        else:
            with gateway.client(endpoint, body, scope) as second:
                meter.release()
                assert second.wait(60) == 0
    return meter.totals()


def test_clients_killed_in_the_middle_waste_nothing(gateway, meter):
    """Ten deaths: whole and streamed, in a scope and outside, asked again at once or later."""
    totals = killed_clients(gateway, meter, 10)
    assert (totals.charges, totals.excess) == (10, 0)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_two_hundred_clients_killed(gateway, meter):
    """Each distinct call is charged once."""
    totals = killed_clients(gateway, meter, 200)
    assert (totals.charges, totals.excess) == (200, 0)


def test_a_killed_gateway_leaves_what_was_in_flight_in_doubt(gateway, meter, sqlite_url):
    """Kill -9 with five calls under way: after a restart all are answered, and each doubt is in the bill."""
    meter.hold()
    sent = list(requests(5))
    for count, (endpoint, body, scope, _) in enumerate(sent, 1):
        with gateway.client(endpoint, body, scope) as client:
            meter.wait_open(count, charged=True)
            assert client.poll() is None
    assert gateway.stop(signal.SIGKILL) == -signal.SIGKILL
    meter.release()
    gateway.start()
    for endpoint, body, scope, _ in sent:
        status, charge, _ = gateway.post(endpoint, body, scope)
        assert (status, charge) == (200, "paid")
    db = open_database(sqlite_url)
    doubted = db.read(lambda tx: tx.execute(DOUBTED).scalar_one())
    rows = db.read(lambda tx: tx.all(select(orders.c.state, orders.c.sends)))
    db.close()
    assert doubted == 5
    assert [tuple(row) for row in rows] == [("settled", 2)] * 5
    assert meter.totals().excess == 5


def test_sigterm_hears_calls_to_their_end(gateway, meter, sqlite_url):
    """A deploy of the gateway leaves no doubt: what is under way is recorded before it ends."""
    meter.plan(latency=1.0)
    with gateway.client("chat/completions", chat("a cat"), "s"):
        meter.wait_open()
    assert gateway.stop() == 0
    db = open_database(sqlite_url)
    rows = db.read(lambda tx: tx.all(select(orders.c.state, orders.c.sends)))
    db.close()
    assert [tuple(row) for row in rows] == [("settled", 1)]


JAVASCRIPT = """
import OpenAI from "openai";
const client = new OpenAI({ baseURL: process.argv[2], apiKey: "unused" });
const chat = (content) => ({ model: "m", messages: [{ role: "user", content }] });
const answer = await client.chat.completions.create(chat("a cat"));
let text = "";
const stream = await client.chat.completions.create({ ...chat("a dog"), stream: true });
for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
const vectors = await client.embeddings.create({ model: "e", input: ["one", "two"] });
console.log([answer.choices[0].message.content, text, vectors.data.length].join("|"));
"""


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("npm"), reason="NO NPM: install it to try the JavaScript client")
def test_the_javascript_client(gateway, meter, tmp_path):
    """The `openai` package of npm: whole, streamed, embeddings; the second run is free."""
    folder = tmp_path / "js"
    folder.mkdir()
    (folder / "ask.mjs").write_text(JAVASCRIPT)
    fetch = ["npm", "install", "openai"]
    fetched = subprocess.run(fetch, cwd=folder, capture_output=True, timeout=100, check=False)
    if fetched.returncode:
        pytest.skip(f"NO NPM PACKAGE: {fetched.stderr[-200:]!r}")
    command = ["node", "ask.mjs", f"http://127.0.0.1:{gateway.port}/gateway/scope/js/v1"]
    runs = [subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True) for _ in range(2)]
    first, second = (run.stdout.strip() for run in runs)
    assert first == second
    assert [part.rpartition("to: ")[2] for part in first.split("|")] == ["a cat", "a dog", "2"]
    assert meter.totals().charges == 4
