"""What makes two requests to a provider the same call, and which requests are calls at all."""

import json

import pytest

from holdfast.core.errors import BadRequestError
from holdfast.llm_requests import usage, wire_keys
from holdfast.llm_requests.http_messages import HttpRequest

URL = "https://api.openai.com/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "a cat"}]}


def key(url=URL, body=BODY, **headers):
    sent = (*{"content-type": "application/json", **headers}.items(),)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    read = wire_keys.read(HttpRequest(url, sent, raw))
    return read.provider, read.endpoint, read.model, read.text, str(sorted(read.params.items()))


@pytest.mark.parametrize(
    ("url", "body", "headers"),
    [
        (URL, b'{"messages":[{"content":"a cat","role":"user"}],  "model":"m"}', {}),
        (URL, BODY, {"authorization": "Bearer other", "user-agent": "x", "x-stainless-retry-count": "2"}),
        (URL + "?key=secret", BODY, {"cookie": "a=b"}),
        ("https://api.openai.com:443/v1/chat/completions", BODY, {}),
    ],
)
def test_the_same_call(url, body, headers):
    """Spelling, credentials and counters of retries do not matter."""
    assert key(url, body, **headers) == key()


@pytest.mark.parametrize(
    ("url", "body", "headers"),
    [
        (URL, {**BODY, "temperature": 1}, {}),
        (URL, BODY, {"openai-organization": "org"}),
        (URL, BODY, {"anthropic-version": "2023-06-01"}),
        (URL + "?api-version=2", BODY, {}),
        ("https://api.groq.com/openai/v1/chat/completions", BODY, {}),
        ("https://api.openai.com/v2/chat/completions", BODY, {}),
        ("http://127.0.0.1:8000/v1/chat/completions", BODY, {}),
    ],
)
def test_another_call(url, body, headers):
    """Whatever changes the answer makes another call."""
    assert key(url, body, **headers) != key()


@pytest.mark.parametrize(
    ("url", "provider", "endpoint", "model"),
    [
        ("https://api.anthropic.com/v1/messages", "anthropic", "messages", "m"),
        ("https://proxy.example/llm/openai/v1/responses", "proxy.example", "responses", "m"),
        ("http://localhost:11434/v1/embeddings", "localhost:11434", "embeddings", "m"),
        (
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
            "google",
            "models/gemini-2.5-pro:generateContent",
            "gemini-2.5-pro",
        ),
    ],
)
def test_providers_endpoints_and_models_have_names(url, provider, endpoint, model):
    """A provider is called by its name, or by its host; the version is not part of an endpoint."""
    body = {} if provider == "google" else BODY
    assert key(url, body)[:3] == (provider, endpoint, model)


@pytest.mark.parametrize(
    ("method", "path", "sent_as", "paid"),
    [
        ("POST", "/v1/chat/completions", "application/json", True),
        ("POST", "/v1/audio/transcriptions", "multipart/form-data; boundary=x", True),
        ("GET", "/v1/chat/completions", "application/json", False),
        ("POST", "/v1/files", "multipart/form-data; boundary=x", False),
        ("POST", "/v1/fine_tuning/jobs", "application/json", False),
        ("POST", "/v1/messages/count_tokens", "application/json", False),
        ("POST", "/v1beta/models/gemini:countTokens", "application/json", False),
        ("POST", "/v1/oauth/token", "application/json", False),
        ("POST", "/v1/uploads/u/parts", "multipart/form-data; boundary=x", False),
        ("POST", "/token", "application/x-www-form-urlencoded", False),
    ],
)
def test_what_is_paid_by_the_call(method, path, sent_as, paid):
    """Files, sign-ins and what costs nothing pass through."""
    assert wire_keys.is_paid(method, path, sent_as) is paid


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"a": NaN}'])
def test_a_body_that_is_no_json_is_refused(body):
    """Before anything is sent."""
    with pytest.raises(BadRequestError):
        key(URL, body)


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        ({"usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}, (3, 4)),
        ({"usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5}}, (8, 4)),
        ({"usage": {"billed_units": {"input_tokens": 3, "output_tokens": 4}, "tokens": {}}}, (3, 4)),
        ({"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4}}, (3, 4)),
    ],
)
def test_tokens_are_read_from_the_answer(answer, tokens):
    """In the words of each provider."""
    spent = usage.of(answer)
    assert (spent.input, spent.output) == tokens


@pytest.mark.parametrize(
    "answer",
    [None, [], {}, {"usage": None}, {"usage": {"prompt_tokens": "3"}}, {"usage": {"prompt_tokens": -1}}],
)
def test_what_names_no_tokens_has_no_price(answer):
    """Nothing is invented."""
    assert usage.of(answer) is None


@pytest.mark.parametrize(
    ("events", "complete", "failed"),
    [
        (['{"choices": [{"delta": {}}]}'], False, False),
        (['{"choices": [{"finish_reason": "stop"}]}'], True, False),
        (['{"choices": []}', "[DONE]"], True, False),
        (['{"type": "message_start"}'], False, False),
        (['{"type": "message_start"}', '{"type": "message_stop"}'], True, False),
        (['{"type": "response.created"}', '{"type": "response.failed"}'], False, True),
        (['{"type": "error", "error": {"type": "overloaded_error"}}'], False, True),
        (["anything", "[1]"], True, False),
        (["x" * 2_000_000], True, False),
    ],
)
def test_a_stream_says_whether_it_is_all_there(events, complete, failed):
    """What is of a known kind and has no end has broken off."""
    facts = usage.StreamFacts()
    for event in events:
        facts.feed(f"data: {event}\n\n".encode())
    assert (facts.is_complete, facts.has_failed) == (complete, failed)
