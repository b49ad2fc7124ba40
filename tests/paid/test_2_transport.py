"""Official client libraries through `guard.transport`: the same answers, each paid once."""

import asyncio
import shutil
import ssl
import subprocess

import httpx
import httpx2
import openai
import pytest
import requests
from sqlalchemy import select

from holdfast import BadRequestError
from holdfast.guard.signals import MustWait
from holdfast.store.base.schema import charges
from holdfast.testing.meter import Meter
from tests.paid import sdks


@pytest.fixture(params=sdks.ALL, ids=lambda sdk: sdk.name)
def sdk(request):
    return request.param


@pytest.fixture(params=[*sdks.OPENAI, *sdks.ANTHROPIC], ids=lambda sdk: sdk.name)
def main_sdk(request):
    return request.param


def test_within_a_scope_an_answer_is_paid_once(on_sqlite, meter, sdk):
    """The second time the answer comes from the ledger, through the same library, and is the same."""
    with on_sqlite.guard.scope("report"):
        first, second = (sdk.ask(on_sqlite.guard, meter, "Why is the sky blue?") for _ in range(2))
    assert first == second
    assert "to: Why is the sky blue?" in first
    assert meter.totals().charges == 1
    assert on_sqlite.orders() == [("settled", 1)]


def test_within_a_run_the_nth_request_is_its_own_call(on_sqlite, meter, main_sdk):
    """Asking twice is meant; a run that is executed again gets both answers for free."""
    starts = []

    def body():
        starts.append(1)
        answers = [main_sdk.ask(on_sqlite.guard, meter, "a cat") for _ in range(2)]
        if len(starts) == 1:
            raise MustWait("once more", reason="test", delay=0.0)
        return answers

    task = on_sqlite.task(body)
    task.apply(task_id="run")
    assert len(task.apply(task_id="run").get()) == len(starts) == 2
    assert meter.totals().charges == 2
    assert on_sqlite.orders() == [("settled", 1)] * 2


def test_identical_requests_at_once_are_numbered(on_sqlite, meter):
    """Best of three within a run is three calls, and three again for free when the run starts over."""
    starts = []

    async def best_of_three():
        request = {"model": "m", "messages": [{"role": "user", "content": "a cat"}]}
        async with sdks.openai_async(on_sqlite.guard, meter) as client:
            return await asyncio.gather(*(client.chat.completions.create(**request) for _ in range(3)))

    def body():
        starts.append(len(asyncio.run(best_of_three())))
        if len(starts) == 1:
            raise MustWait("once more", reason="test", delay=0.0)

    task = on_sqlite.task(body)
    for _ in range(2):
        task.apply(task_id="run")
    assert starts == [3, 3]
    assert meter.totals().charges == 3


def test_again_pays_for_what_is_reused(on_sqlite, meter):
    """Within a run also an embedding is paid for again, if that is what the code says."""

    def body():
        with sdks.openai_client(on_sqlite.guard, meter) as client:
            client.embeddings.create(model="m", input="a cat")
            with on_sqlite.guard.run().again():
                client.embeddings.create(model="m", input="a cat")
            client.embeddings.create(model="m", input="a cat")

    on_sqlite.in_run(body)
    assert meter.totals().charges == 2


def test_outside_runs_and_scopes_nothing_is_reused(on_sqlite, meter, main_sdk):
    """Every request is paid, and each is an order of its own."""
    for _ in range(2):
        main_sdk.ask(on_sqlite.guard, meter, "a cat")
    assert meter.totals().charges == 2
    assert on_sqlite.orders() == [("settled", 1)] * 2


def test_tenants_and_scopes_share_nothing(on_sqlite, meter):
    """The same prompt is paid once in each scope of each tenant."""
    ask, guard = sdks.OPENAI[0].ask, on_sqlite.guard
    for tenant in ("a", "b"):
        for scope in ("x", "y", "x"):
            with guard.tenant(tenant), guard.scope(scope):
                ask(guard, meter, "a cat")
    assert meter.totals().charges == 4


def test_prices_come_from_the_usage_of_the_answer(application, meter):
    """The bill has the tokens that the provider named, at the price of the model."""
    for sdk in (*sdks.OPENAI, *sdks.ANTHROPIC):
        sdk.ask(application.guard, meter, sdk.name)
    answer = sdks.OPENAI[0].ask(application.guard, meter, "x" * 400)
    bill = application.bill()
    assert bill.orders == 7
    assert bill.unpriced_calls == 0
    exact = 100 * 150 + max(1, len(answer) // 4) * 600
    assert bill.paid > exact


def test_a_stream_that_names_no_tokens_is_priced_by_an_estimate(on_sqlite, meter):
    """By the text of prompt and answer, and marked; with a picture in it, it is unpriced."""

    def streamed(content):
        with sdks.openai_client(on_sqlite.guard, meter) as client:
            messages = [{"role": "user", "content": content}]
            pieces = client.chat.completions.create(model="gpt-4o-mini", messages=messages, stream=True)
            return "".join(piece.choices[0].delta.content or "" for piece in pieces)

    answer = streamed("x" * 400)
    bill = on_sqlite.bill()
    least = 100 * 150 + len(answer) // 4 * 600
    assert least <= bill.paid <= 3 * least
    assert on_sqlite.db.read(lambda tx: tx.one(select(charges.c.prices))).prices.endswith(" estimated")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    streamed([{"type": "text", "text": "What is this?"}, picture])
    assert (on_sqlite.bill().unpriced_calls, on_sqlite.bill().paid) == (1, bill.paid)


def test_forms_are_keyed_by_their_parts(application, meter):
    """A file in a form is the same call although its boundary differs every time."""
    with application.guard.scope("calls"), sdks.openai_client(application.guard, meter) as client:
        texts = [
            client.audio.transcriptions.create(model="whisper-1", file=("a.wav", content)).text
            for content in (b"one", b"one", b"two")
        ]
    assert texts == ["one", "one", "two"]
    assert meter.totals().charges == 2


def test_what_is_not_paid_by_the_call_passes_through(on_sqlite, meter):
    """GET and files reach the provider, and the ledger has nothing of them."""
    with sdks.openai_client(on_sqlite.guard, meter, max_retries=0) as client:
        with pytest.raises(openai.NotFoundError):
            client.models.list()
        with pytest.raises(openai.BadRequestError, match="no such endpoint: files"):
            client.files.create(file=("a.jsonl", b"{}"), purpose="batch")
    assert on_sqlite.orders() == []
    assert len(meter.log()) == 2


@pytest.mark.parametrize(("module", "client"), [(httpx2, httpx), (httpx, httpx2)])
def test_the_wrong_flavour_is_said_in_one_line(on_sqlite, meter, module, client):
    """A client of one library with a transport of the other is told which to use, and sends nothing."""
    http = client.Client(transport=on_sqlite.guard.transport(module))
    with openai.OpenAI(base_url=meter.base_url, api_key="k", http_client=http) as sdk:
        advice = rf"this is a client of {client.__name__}; give it guard.transport\({client.__name__}\)"
        with pytest.raises(openai.BadRequestError, match=advice):
            sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    assert meter.log() == []


@pytest.mark.parametrize("module", [requests, None, httpx2.Client])
def test_other_libraries_are_refused(on_sqlite, module):
    """Only the modules httpx2 and httpx make a transport."""
    with pytest.raises(BadRequestError, match="takes the module httpx2 or httpx"):
        on_sqlite.guard.transport(module)


def test_embeddings_are_paid_by_the_text(application, meter):
    """One changed text of many is one text to pay for; the answer is in the order of the request."""
    texts = [f"text {number}" for number in range(20)]
    with sdks.openai_client(application.guard, meter) as client:

        def embed(inputs, **options):
            return client.embeddings.create(model="text-embedding-3-small", input=inputs, **options)

        first = embed(texts)
        changed = embed([*texts[:7], "new", *texts[8:]])
        backwards = embed(texts[::-1], encoding_format="float")
        one = embed(texts[3])
    assert [each.index for each in first.data] == list(range(20))
    assert changed.data[6].embedding == first.data[6].embedding
    assert changed.data[7].embedding != first.data[7].embedding
    numbers = [each.embedding for each in backwards.data][::-1]
    assert numbers == [pytest.approx(each.embedding) for each in first.data]
    assert one.data[0].embedding == first.data[3].embedding
    assert (first.usage.prompt_tokens, one.usage.prompt_tokens) == (20, 1)
    assert [len(entry["inputs"]) for entry in meter.log()] == [20, 1]


def test_tokens_are_not_the_text_that_spells_them(on_sqlite, meter):
    """A list of tokens is one input, which this provider refuses in its own words."""
    with sdks.openai_client(on_sqlite.guard, meter) as client:
        client.embeddings.create(model="m", input="[1,2]")
        with pytest.raises(openai.BadRequestError, match="input must be a string"):
            client.embeddings.create(model="m", input=[1, 2])
    assert on_sqlite.orders() == [("settled", 1), ("void", 1)]


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs the openssl program for a certificate")
def test_certificates_are_verified(on_sqlite, tmp_path):
    """A server that nobody vouches for gets nothing; one that the application trusts is paid."""
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    )
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*command.split(), *files], check=True, cwd=tmp_path, capture_output=True)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    trusted = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    ask = sdks.OPENAI[0].ask
    with Meter(ssl_context=served) as meter:
        with pytest.raises(openai.APIConnectionError):
            ask(on_sqlite.guard, meter, "a cat", max_retries=0)
        assert meter.totals().charges == 0
        assert "to: a cat" in ask(on_sqlite.guard, meter, "a cat", ssl_context=trusted)


def test_a_function_may_pay_for_another(on_sqlite, meter):
    """A paid function that asks a model within a run: both are paid once, and each is on the bill."""

    @on_sqlite.guard.paid(name="summary", price="0.01 USD")
    def summary(text):
        return sdks.OPENAI[0].ask(on_sqlite.guard, meter, text)

    def body():
        return [summary("a cat"), summary("a cat")]

    first, second = on_sqlite.in_run(body)
    assert first == second
    assert meter.totals().charges == 1
    assert on_sqlite.orders() == [("settled", 1)] * 2
