"""Any program behind the gateway: the provider's answers, each paid once."""

import json
import shutil
import struct
import subprocess
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from tests.gateway.install import CLAUDE, EMBEDDER, MODEL, UPSTREAM_KEY, GatewayInstall, chat

pytestmark = pytest.mark.g5


def from_the_provider(meter, path, body):
    """What the provider answers to a client without a gateway; not charged to the test."""
    request = urllib.request.Request(f"{meter.base_url}/{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request) as response:
        answer = response.read()
    meter.reset()
    return answer


def test_two_lines_are_enough(install, meter):
    """An OpenAI client with our base URL gets its answer; in a scope the second one is free."""
    with install.openai(scope="report") as client:
        answers = [
            client.chat.completions.create(**chat("Why is the sky blue?")).choices[0].message.content
            for _ in range(2)
        ]
    assert answers[0] == answers[1]
    assert answers[0].endswith("to: Why is the sky blue?")
    assert meter.totals().charges == 1
    assert install.orders() == [("settled", 1)]


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        ("chat/completions", chat("a cat")),
        ("chat/completions", chat("a cat", stream=True)),
        ("responses", {"model": MODEL, "input": "a cat"}),
        ("responses", {"model": MODEL, "input": "a cat", "stream": True}),
        ("messages", chat("a cat", model=CLAUDE, max_tokens=50)),
        ("messages", chat("a cat", model=CLAUDE, max_tokens=50, stream=True)),
    ],
    ids=["chat", "chat-stream", "responses", "responses-stream", "messages", "messages-stream"],
)
def test_an_answer_is_passed_on_byte_for_byte(quick, meter, endpoint, body):
    """Paid, and given again: both are what the provider says without a gateway."""
    provider = from_the_provider(meter, endpoint, body)
    paid, reused = (quick.post(endpoint, body, scope="s") for _ in range(2))
    assert (paid.status, paid.charge, paid.body) == (200, "paid", provider)
    assert (reused.status, reused.charge, reused.body) == (200, "reused", provider)
    assert meter.totals().charges == 1
    assert paid.headers["content-type"] == reused.headers["content-type"]
    assert paid.headers["holdfast-order"] == reused.headers["holdfast-order"]


def test_embeddings_are_paid_by_the_text(install, meter):
    """One changed text of many is one text to pay for; vectors are the provider's, in the right order."""
    texts = [f"text {number}" for number in range(20)]
    with install.openai() as client:
        first = client.embeddings.create(model=EMBEDDER, input=texts)
        changed = client.embeddings.create(model=EMBEDDER, input=[*texts[:7], "new", *texts[8:]])
        backwards = client.embeddings.create(model=EMBEDDER, input=texts[::-1], encoding_format="float")
        one = client.embeddings.create(model=EMBEDDER, input=texts[3], user="somebody")
    meter_log = [len(entry["inputs"]) for entry in meter.log()]
    body = {"model": EMBEDDER, "input": texts}
    provider = json.loads(from_the_provider(meter, "embeddings", body))["data"]
    assert [each.index for each in first.data] == list(range(20))
    assert [packed(each.embedding) for each in first.data] == [packed(each["embedding"]) for each in provider]
    assert [packed(each.embedding) for each in backwards.data] == [
        packed(each.embedding) for each in first.data[::-1]
    ]
    assert changed.data[7].embedding != first.data[7].embedding
    assert one.data[0].embedding == first.data[3].embedding
    assert (first.usage.prompt_tokens, one.usage.prompt_tokens) == (20, 1)
    assert meter_log == [20, 1]


def packed(vector):
    """The vector as float32."""
    return struct.pack(f"<{len(vector)}f", *vector)


@pytest.fixture
def embedding(database_url, tmp_path, meter):
    """An installation whose workers embed with the meter too."""
    more = {"embedding_provider": "meter", "embedding_model": EMBEDDER}
    installation = GatewayInstall(database_url, tmp_path / "data", meter, **more)
    yield installation
    installation.close()


def test_workers_and_the_gateway_share_embeddings(embedding, meter):
    """What a worker has paid for is free for a program, and the other way round."""
    document = embedding.client.indexed("The rent is EUR 1,200 per month.")
    (chunk,) = embedding.client.get(f"documents/{document['id']}/chunks").json["chunks"]
    body = {"model": EMBEDDER, "input": [chunk["text"], "A cat is on the mat."]}
    answer = embedding.post("embeddings", body)
    assert (answer.status, answer.charge) == (200, "paid")
    assert meter.charges_of(chunk["text"]) == meter.charges_of("A cat is on the mat.") == 1
    again = embedding.client.indexed("A cat is on the mat.", title="Cat")
    assert again["index_status"] == "success"
    assert meter.totals().excess == 0


def test_token_lists_are_not_the_text_that_spells_them(quick, meter):
    """They have keys of their own; this provider refuses them in its own words."""
    assert quick.post("embeddings", {"model": EMBEDDER, "input": "[1,2]"}).status == 200
    answer = quick.post("embeddings", {"model": EMBEDDER, "input": [1, 2]})
    assert (answer.status, quick.orders()) == (400, [("settled", 1), ("void", 1)])
    assert "input must be a string" in answer.json["error"]["message"]


def test_only_scopes_reuse_what_models_say(quick, meter):
    """Outside a scope every request is meant; in one the order of keys in the body does not matter."""
    body = chat("a cat", temperature=1)
    assert [quick.post("chat/completions", body).charge for _ in range(2)] == ["paid", "paid"]
    turned = dict(reversed(body.items()))
    charges = [quick.post("chat/completions", each, scope="x").charge for each in (body, turned)]
    assert charges == ["paid", "reused"]
    assert quick.post("chat/completions", body, holdfast_scope="x").charge == "reused"
    assert quick.post("chat/completions", body, scope="y").charge == "paid"
    assert meter.totals().charges == 4


def test_again_is_the_next_answer(quick, meter):
    """It is paid for once too, so that a client library that tries again does not pay twice."""
    body = chat("a cat")
    numbers = [None, "1", "1", "2", None]
    charges = [
        quick.post("chat/completions", body, scope="x", **({"holdfast_again": each} if each else {})).charge
        for each in numbers
    ]
    assert charges == ["paid", "paid", "reused", "paid", "reused"]
    texts = {"model": EMBEDDER, "input": "a cat"}
    assert quick.post("embeddings", texts).charge == "paid"
    assert quick.post("embeddings", texts, holdfast_again="1").charge == "paid"
    assert quick.post("embeddings", texts).charge == "reused"
    assert meter.totals().charges == 5


def test_tenants_never_meet(install, meter):
    """The same text and prompt, in a scope of the same name, is paid for by each tenant."""
    keys = [install.key(tenant).key for tenant in ("a", "b")]
    for key in keys:
        assert install.post("chat/completions", chat("a cat"), scope="x", key=key).charge == "paid"
        assert install.post("embeddings", {"model": EMBEDDER, "input": "a cat"}, key=key).charge == "paid"
    assert meter.totals().charges == 4


def test_a_provider_is_named_in_the_url(quick, meter):
    """Both wires at once, and a provider by its name."""
    with quick.anthropic(scope="x") as client:
        answer = client.messages.create(
            model=CLAUDE, max_tokens=50, messages=[{"role": "user", "content": "a cat"}]
        )
    assert answer.content[0].text.endswith("to: a cat")
    assert quick.post("chat/completions", chat("a cat"), provider="meter").status == 200
    assert quick.post("messages", chat("a cat"), provider="meter").code == "gateway_provider"


class Provider(BaseHTTPRequestHandler):
    """A provider that keeps what it was sent."""

    sent: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        self.sent.append({name.lower(): value for name, value in self.headers.items()})
        self.rfile.read(int(self.headers["content-length"]))
        body = b'{"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}'
        self.send_response(200)
        for name, value in (
            ("Content-Length", len(body)),
            ("Set-Cookie", "account=1"),
            ("X-Request-Id", "r"),
        ):
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_the_key_of_the_provider_stays_here(sqlite_url, tmp_path, meter):
    """Clients show a key of ours, and the provider gets its own; neither learns the other's."""
    Provider.sent.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        servers = {
            "a": {"base_url": f"{url}/v1", "api_key": UPSTREAM_KEY},
            "b": {"wire": "anthropic", "base_url": url, "api_key": UPSTREAM_KEY},
        }
        install = GatewayInstall(sqlite_url, tmp_path, meter, providers=servers)
        answer = install.post("chat/completions", chat("a cat"), authorization="Bearer word", cookie="c=1")
        install.post("messages", chat("a cat"), x_api_key="word", anthropic_version="2023-06-01")
        install.close()
        server.shutdown()
    assert (answer.headers["x-request-id"], "set-cookie" in answer.headers) == ("r", False)
    assert [sent.get("authorization", "").rpartition(" ")[2] for sent in Provider.sent] == [UPSTREAM_KEY, ""]
    assert (Provider.sent[1]["x-api-key"], Provider.sent[1]["anthropic-version"]) == (
        UPSTREAM_KEY,
        "2023-06-01",
    )
    assert "cookie" not in Provider.sent[0]


@pytest.mark.skipif(not shutil.which("curl"), reason="NO CURL: install curl to prove that it works")
def test_curl(quick, meter):
    """The shortest client of all, with a stream."""
    url = f"{quick.url(scope='c')}/v1/chat/completions"
    command = [
        "curl",
        "-sN",
        url,
        "-H",
        "Authorization: Bearer x",
        "-d",
        json.dumps(chat("a cat", stream=True)),
    ]
    first, second = (subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2))
    assert first == second
    assert first.endswith(b"data: [DONE]\n\n")
    assert meter.totals().charges == 1
