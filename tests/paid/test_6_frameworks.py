"""Frameworks above the clients, and that of Google, through `guard.transport`; for `make matrix`."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.paid import sdks

MODEL, EMBEDDING = "gpt-4o-mini", "text-embedding-3-small"


@pytest.fixture
def clients(on_sqlite):
    """A client and an asynchronous one, of the flavour that a package stands on."""

    def of(package):
        module = sdks.flavour(package)
        transport = on_sqlite.guard.transport(module)
        return module.Client(transport=transport), module.AsyncClient(transport=transport)

    return of


def paid_once(application, meter, *asks):
    """Each asked twice within a scope: the answers are equal, and each is charged once."""
    with application.guard.scope("calls"):
        for ask in asks:
            assert ask() == ask()
    assert meter.totals().charges == len(asks)
    assert application.bill().unpriced_calls == 0


def test_langchain_pays_once(on_sqlite, meter, clients):
    """`ChatOpenAI`, whole, streamed and asynchronous, and `OpenAIEmbeddings`."""
    langchain = pytest.importorskip("langchain_openai")
    http, http_async = clients("openai")
    options = {"base_url": meter.base_url, "api_key": sdks.KEY}
    options |= {"http_client": http, "http_async_client": http_async}
    chat = langchain.ChatOpenAI(model=MODEL, **options)
    vectors = langchain.OpenAIEmbeddings(model=EMBEDDING, check_embedding_ctx_length=False, **options)
    paid_once(
        on_sqlite,
        meter,
        lambda: chat.invoke("a cat").content,
        lambda: "".join(piece.text for piece in chat.stream("a dog")),
        lambda: asyncio.run(chat.ainvoke("a bird")).content,
        lambda: vectors.embed_query("a fish"),
    )


def test_llamaindex_pays_once(on_sqlite, meter, clients):
    """`OpenAI` and `OpenAIEmbedding`, whose own retries stay on."""
    llms = pytest.importorskip("llama_index.llms.openai")
    embeddings = pytest.importorskip("llama_index.embeddings.openai")
    http, http_async = clients("openai")
    options = {"api_base": meter.base_url, "api_key": sdks.KEY}
    options |= {"http_client": http, "async_http_client": http_async}
    chat = llms.OpenAI(model=MODEL, **options)
    vectors = embeddings.OpenAIEmbedding(model=EMBEDDING, **options)
    paid_once(
        on_sqlite,
        meter,
        lambda: chat.complete("a cat").text,
        lambda: "".join(piece.delta for piece in chat.stream_complete("a dog")),
        lambda: asyncio.run(chat.acomplete("a bird")).text,
        lambda: vectors.get_text_embedding("a fish"),
    )


class Google:
    """A server of `generateContent`, which records its requests."""

    def __init__(self):
        self.requests = requests = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                text = f"answer {len(requests)}"
                answer = {
                    "candidates": [
                        {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
                    ],
                    "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10},
                }
                streams = "alt=sse" in self.path
                body = json.dumps(answer).encode()
                body = b"data: " + body + b"\r\n\r\n" if streams else body
                self.send_response(200)
                kind = "text/event-stream" if streams else "application/json"
                for name, value in (("content-type", kind), ("content-length", str(len(body)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def test_google_pays_once(on_sqlite, clients):
    """Whole, streamed and asynchronous; the key in the header of a request is no part of the call."""
    genai = pytest.importorskip("google.genai")
    http, http_async = clients("google-genai")
    google = Google()
    options = {"base_url": google.url, "httpx_client": http, "httpx_async_client": http_async}

    def answers(key):
        models = genai.Client(api_key=key, http_options=genai.types.HttpOptions(**options)).models
        whole = models.generate_content(model="gemini-2.5-flash", contents="a cat").text
        return whole, "".join(
            piece.text for piece in models.generate_content_stream(model="gemini-2.5-flash", contents="a dog")
        )

    async def answer_async(key):
        client = genai.Client(api_key=key, http_options=genai.types.HttpOptions(**options))
        answer = await client.aio.models.generate_content(model="gemini-2.5-flash", contents="a bird")
        return answer.text

    with on_sqlite.guard.scope("calls"):
        assert answers("one") == answers("two") == ("answer 1", "answer 2")
        assert asyncio.run(answer_async("one")) == asyncio.run(answer_async("two")) == "answer 3"
    google.close()
    assert len(google.requests) == 3
    bill = on_sqlite.bill()
    assert (bill.orders, bill.unpriced_calls) == (3, 0)
    assert bill.paid == 3 * (100 * 300 + 10 * 2500)
