"""The OpenAI wire format: bodies that never vary, and answers that are checked before they count."""

import base64
import json

import numpy as np
import pytest

from holdfast.providers.base import Answered, Unknown
from holdfast.providers.openai import OpenAIProvider
from holdfast.testing import orders


def told(meter, **body):
    """Make the meter answer its next exchange with this body."""
    meter.plan(script=[{"body": json.dumps(body)}])


def test_a_body_is_the_same_bytes_for_the_same_order(provider):
    """Parameters in any order, and text in any script, give one canonical body."""
    one = provider.encode("embeddings", "m", {"dimensions": 8, "user": "ü"}, ["日本"])
    two = provider.encode("embeddings", "m", {"user": "ü", "dimensions": 8}, ("日本",))
    assert one == two
    assert one.decode() == (
        '{"dimensions":8,"encoding_format":"base64","input":["日本"],"model":"m","user":"ü"}'
    )


def test_a_chat_body_carries_system_and_prompt(provider):
    """`system` becomes the first message, the input the user's, and the rest stays a parameter."""
    body = provider.encode("chat/completions", "m", {"system": "Be brief.", "temperature": 0}, ["Why?"])
    assert json.loads(body) == {
        "model": "m",
        "temperature": 0,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
    }


@pytest.mark.parametrize("asked", [True, False])
def test_an_input_is_a_conversation_only_if_asked_for(provider, asked):
    """A prompt that happens to be a JSON list of messages is text, unless `messages_json` says otherwise."""
    text = '[{"role": "user", "content": "hi"}]'
    body = json.loads(provider.encode("chat/completions", "m", {"messages_json": asked}, [text]))
    expected = [{"role": "user", "content": "hi"}] if asked else [{"role": "user", "content": text}]
    assert body == {"model": "m", "messages": expected}


@pytest.mark.parametrize("text", ["plain", "[1, 2]", "[", "[]"])
def test_what_is_no_conversation_stays_a_prompt(provider, text):
    """With `messages_json`, an input that is not a list of messages is still the user's prompt."""
    body = json.loads(provider.encode("chat/completions", "m", {"messages_json": True}, [text]))
    assert body["messages"] == [{"role": "user", "content": text}]


@pytest.mark.parametrize(
    ("endpoint", "params", "inputs"),
    [
        ("embeddings", {"model": "other"}, ["a"]),
        ("chat/completions", {"n": 2}, ["a"]),
        ("chat/completions", {}, ["a", "b"]),
        ("embeddings", {}, []),
        ("embeddings", {}, ["a"] * 257),
        ("embeddings", {"x": float("nan")}, ["a"]),
        ("embeddings", {}, ["\ud800"]),
        ("images", {}, ["a"]),
    ],
)
def test_what_cannot_be_sent_as_asked_is_no_body(provider, endpoint, params, inputs):
    """A malformed order fails before anything is spent."""
    with pytest.raises(ValueError):
        provider.encode(endpoint, "m", params, inputs)


def test_base64_and_float_lists_give_the_same_vectors(provider):
    """The encoding on the wire does not show in the result."""
    packed = orders.embed(provider, "some text", dimensions=5)
    listed = orders.embed(provider, "some text", dimensions=5, encoding_format="float")
    assert packed.results == listed.results
    assert len(packed.results[0]) == 4 * 5


def test_embeddings_are_put_in_the_order_of_their_index(meter, provider):
    """A server may answer out of order."""
    vectors = [np.array([n, 1], "<f4") for n in range(2)]
    data = [{"index": n, "embedding": base64.b64encode(vectors[n]).decode()} for n in (1, 0)]
    told(meter, data=data, usage={"prompt_tokens": 9})
    outcome = orders.embed(provider, "a", "b")
    assert outcome == Answered(tuple(v.tobytes() for v in vectors), 9, 0, replayed=False)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>",
        "[]",
        "[" * 100_000,
        '{"error": {"message": "odd"}}',
        '{"data": []}',
        '{"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]}',
        '{"data": [{"index": 1, "embedding": [1.0]}]}',
        '{"data": [{"embedding": [1.0]}]}',
        '{"data": [{"index": true, "embedding": [1.0]}]}',
        '{"data": [{"index": 0, "embedding": []}]}',
        '{"data": [{"index": 0, "embedding": [NaN]}]}',
        '{"data": [{"index": 0, "embedding": [1e300]}]}',
        '{"data": [{"index": 0, "embedding": ["x"]}]}',
        '{"data": [{"index": 0, "embedding": "AAA"}]}',
        '{"data": [{"index": 0, "embedding": "AADAfw=="}]}',
        '{"data": ["x"]}',
    ],
)
def test_an_answer_that_does_not_fit_is_in_doubt(meter, provider, body):
    """A 200 that cannot be used was probably charged: nothing of it counts, and nothing is raised."""
    meter.plan(script=[{"body": body}])
    outcome = orders.embed(provider, "a")
    assert isinstance(outcome, Unknown)
    assert outcome.status == 200
    assert outcome.reason.startswith("unreadable answer")


def test_vectors_of_unequal_or_unasked_length_are_in_doubt(meter, provider):
    """All vectors of an order have one length, the one that was asked for."""
    told(meter, data=[{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}])
    assert isinstance(orders.embed(provider, "a", "b"), Unknown)
    told(meter, data=[{"index": 0, "embedding": [1.0]}])
    assert isinstance(orders.embed(provider, "a", dimensions=2), Unknown)


def test_an_index_that_comes_twice_is_in_doubt(meter, provider):
    """Two embeddings for one input leave another without."""
    told(meter, data=[{"index": 0, "embedding": [1.0]}] * 2)
    assert isinstance(orders.embed(provider, "a", "b"), Unknown)


def test_a_completion_is_stored_in_canonical_form(meter, provider):
    """A chat result holds text, finish reason and tool calls, and its usage."""
    outcome = orders.chat(provider, "Say something.")
    assert isinstance(outcome, Answered)
    result = json.loads(outcome.results[0])
    assert result["finish_reason"] == "stop"
    assert "Say something." in result["content"]
    assert outcome.output_tokens > 0
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    choice = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
    told(meter, choices=[choice], usage={"prompt_tokens": 1, "completion_tokens": 2})
    stored = orders.chat(provider, "Use a tool.").results[0]
    expected = {"content": None, "finish_reason": "tool_calls", "tool_calls": [call], "output_tokens": 2}
    assert json.loads(stored) == expected


@pytest.mark.parametrize("choices", [[], None, [{}], [{"message": {"content": 7}}], [{"message": "x"}]])
def test_a_completion_that_does_not_fit_is_in_doubt(meter, provider, choices):
    """A chat answer without a readable message is in doubt."""
    told(meter, choices=choices)
    assert isinstance(orders.chat(provider, "a"), Unknown)


def test_usage_that_is_missing_is_estimated(meter, provider):
    """A server that does not say what it took is not taken to be free."""
    told(meter, data=[{"index": 0, "embedding": [1.0]}])
    assert orders.embed(provider, "twelve chars").input_tokens == 3


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 1), ("abcd", 1), ("abcde", 2), ("日本語", 3), ("naïve", 2)]
)
def test_tokens_are_estimated_by_script(provider, text, tokens):
    """Four ASCII characters or one other make a token."""
    assert provider.count_tokens(text) == tokens


@pytest.mark.parametrize("url", ["", "host/v1", "ftp://host/v1", "https:///v1", "https://host/v1?k=1"])
def test_a_base_url_that_cannot_work_is_refused_at_once(url):
    """A wrong address fails at construction, not at the first order."""
    with pytest.raises(ValueError, match="base_url"):
        OpenAIProvider(url, "k")
