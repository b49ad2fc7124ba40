"""OpenAI clients ask a collection as if it were a model."""

import json

import openai
import pytest

from holdfast.api import chat_completions
from holdfast.core.errors import HoldfastError
from holdfast.service.answers import AnswerPiece
from holdfast.testing.meter import Meter
from tests.ask.conftest import AskInstall, EventStream

PATH = "/v1/chat/completions"
MODEL = "collection:shelf"


def body(*said, **more):
    roles = ("user", "assistant") * len(said)
    messages = [{"role": role, "content": text} for role, text in zip(roles, said, strict=False)]
    return {"model": MODEL, "messages": messages, **more}


def test_a_completion_is_an_answer_with_citations(install):
    """The text is where clients look for it; sources and cost are beside it; the second one is replayed."""
    tokens = len(install.model.says) // 4
    for replayed in (False, True):
        said = install.client.post(PATH, body("How tall is the Eiffel Tower?")).json
        assert said["object"] == "chat.completion"
        choice = said["choices"][0]
        assert choice["message"]["content"] == "The Eiffel Tower is 330 metres tall [1]."
        assert (choice["finish_reason"], said["holdfast"]["replayed"]) == ("stop", replayed)
        assert said["holdfast"]["sources"][0]["n"] == 1
        usage = said["usage"]
        assert usage["completion_tokens"] == (0 if replayed else tokens)
        assert (usage["prompt_tokens"] > tokens) is not replayed
        assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"]
    assert install.meter.totals().charges == 1


def test_a_stream_is_chunks(quick):
    """Role, pieces, the end with sources and cost, usage if wanted, and the mark that it is over."""
    options = {"stream": True, "stream_options": {"include_usage": True}}
    events = EventStream(quick.port, body("How tall is the Eiffel Tower?", **options), PATH)
    lines = [line[6:].strip() for line in events.response.read().split(b"\n") if line.startswith(b"data: ")]
    events.hang_up()
    assert lines[-1] == b"[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    text = "".join(each["choices"][0]["delta"].get("content", "") for each in chunks[:-1])
    assert text == "The Eiffel Tower is 330 metres tall [1]."
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-2]["holdfast"]["cost"]["paid"] > 0
    assert chunks[-1]["usage"]["total_tokens"] > 0


@pytest.fixture
def keyed(sqlite_url, tmp_path, model):
    """The model honours idempotency keys: what was cut off is sent again."""
    with Meter(chat=model, honour_keys=True) as meter:
        installation = AskInstall(sqlite_url, tmp_path / "data", meter, model, llm_key_retention=86400.0)
        yield installation.filled()
        installation.close()


def test_a_stream_that_is_sent_again_goes_on_where_it_was_cut(keyed):
    """A client adds chunks up: no words come twice."""
    keyed.meter.plan(script=[{"cut_after": 4}])
    events = EventStream(keyed.port, body("How tall is the Eiffel Tower?", stream=True), PATH)
    lines = [line[6:].strip() for line in events.response.read().split(b"\n") if line.startswith(b"data: ")]
    events.hang_up()
    chunks = [json.loads(line) for line in lines if line != b"[DONE]"]
    text = "".join(each["choices"][0]["delta"].get("content", "") for each in chunks)
    assert text == "The Eiffel Tower is 330 metres tall [1]."


def test_a_stream_that_begins_anew_with_other_words_is_an_error():
    """What a client has cannot be taken back; the same words, in whatever pieces, are passed over."""
    sent = chat_completions._SentText()
    pieces = [("The tower", 0), (" is tall", 9), ("The tower is", 0), (" tall", 12), (".", 17)]
    assert [sent.rest(AnswerPiece(*piece)) for piece in pieces] == ["The tower", " is tall", "", "", "."]
    sent.rest(AnswerPiece("The", 0))
    with pytest.raises(HoldfastError, match="other words"):
        sent.rest(AnswerPiece(" bridge", 3))


def test_what_was_said_before_is_part_of_the_question(quick):
    """A question that finds nothing by itself is looked for together with the one before it."""
    quick.client.post(PATH, body("How tall is the Eiffel Tower?", "330 metres.", "xqzvw?"))
    assert "user: How tall is the Eiffel Tower?" in quick.model.prompts[0]
    assert quick.model.prompts[0].endswith("Question: xqzvw?")


def test_a_refusal_is_a_completion_that_says_so(quick):
    """Nothing was found: a sentence for people, and no call."""
    said = quick.client.post(PATH, body("xqzvw kkkrt pfffg")).json
    assert "no model was asked" in said["choices"][0]["message"]["content"]
    assert said["holdfast"]["refused"] is True
    assert quick.meter.totals().charges == 0


def test_errors_have_the_shape_that_clients_read(quick):
    """An unknown model, an unknown collection, no question, no form, no key: type, code and message."""
    wrong = {
        "model_not_found": {**body("How?"), "model": "gpt-4o"},
        "unknown_collection": {**body("How?"), "model": "collection:none"},
        "bad_request": {"model": MODEL, "messages": []},
    }
    for code, sent in wrong.items():
        response = quick.client.post(PATH, sent)
        assert response.status in {400, 404}
        assert set(response.json["error"]) == {"message", "type", "param", "code"}
        assert response.json["error"]["code"] == code
    quick.key("owner")
    response = quick.client.post(PATH, body("How?"))
    assert (response.status, response.json["error"]["type"]) == (401, "authentication_error")
    stranger = quick.key("stranger", "read")
    assert stranger.post(PATH, body("How tall is the Eiffel Tower?")).status == 404
    assert stranger.get("/v1/models").json["data"] == []


def test_the_official_client_asks_streams_and_reads_errors(quick):
    """As its users write it: a completion, a stream, the models, and an exception of its own."""
    with openai.OpenAI(base_url=f"http://127.0.0.1:{quick.port}/v1", api_key="none", max_retries=0) as client:
        client.api_key = quick.key("default", "read").key
        question = [{"role": "user", "content": "How tall is the Eiffel Tower?"}]
        reply = client.chat.completions.create(model=MODEL, messages=question)
        assert reply.choices[0].message.content == "The Eiffel Tower is 330 metres tall [1]."
        with client.chat.completions.create(model=MODEL, messages=question, stream=True) as chunks:
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert text == reply.choices[0].message.content
        assert [each.id for each in client.models.list()] == [MODEL]
        with pytest.raises(openai.NotFoundError, match="collection:NAME"):
            client.chat.completions.create(model="gpt-4o", messages=question)
    assert quick.meter.totals().charges == 1
