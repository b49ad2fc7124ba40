"""What has no answer is said in one line, in the provider's own shape, and costs nothing twice."""

import json

import anthropic
import openai
import pytest

from tests.gateway.install import CLAUDE, EMBEDDER, UPSTREAM_KEY, GatewayInstall, chat, providers

MESSAGE = {"model": CLAUDE, "max_tokens": 20, "messages": [{"role": "user", "content": "a cat"}]}


def test_a_key_of_the_provider_is_refused(quick, meter):
    """With and without keys of ours: one clear line, and nothing is sent."""
    for _ in range(2):
        client = quick.openai(key="sk-proj-abc", max_retries=0)
        with client, pytest.raises(openai.AuthenticationError, match="this is a key of a provider"):
            client.embeddings.create(model=EMBEDDER, input="x")
        claude = quick.anthropic(key="sk-ant-abc", max_retries=0)
        with claude, pytest.raises(anthropic.AuthenticationError, match="this is a key of a provider"):
            claude.messages.create(**MESSAGE)
        quick.key("a")
    assert quick.post("chat/completions", chat("x"), key="hf_unknown").code == "key_needed"
    assert quick.post("chat/completions", chat("x")).code == "key_needed"
    reader = quick.key("a", "read").key
    assert quick.post("chat/completions", chat("x"), key=reader).code == "scope_missing"
    assert meter.log() == []


def test_a_budget_is_the_providers_quota(install, meter):
    """Client libraries raise what they raise for an empty account, at once, and nothing is sent."""
    install.client.put("budgets", {"scope": "tenant", "hard": 0})
    with install.openai() as client, pytest.raises(openai.RateLimitError) as raised:
        client.chat.completions.create(**chat("a cat"))
    assert (raised.value.code, raised.value.type) == ("insufficient_quota", "insufficient_quota")
    with install.anthropic() as client, pytest.raises(anthropic.APIStatusError) as refused:
        client.messages.create(**MESSAGE)
    assert (refused.value.status_code, refused.value.body["error"]["type"]) == (402, "billing_error")
    assert refused.value.response.headers["x-should-retry"] == "false"
    assert meter.log() == []


def test_a_provider_that_refuses_is_heard_in_its_own_words(quick, meter):
    """Status, Retry-After and body are the provider's; the next try is paid."""
    meter.plan(script=["rate_limit"], retry_after=7)
    refused = quick.post("chat/completions", chat("a cat"))
    assert (refused.status, refused.headers["retry-after"]) == (429, "7")
    assert refused.json["error"]["type"] == "meter"
    assert quick.post("chat/completions", chat("a cat")).charge == "paid"
    assert [state for state, _ in quick.orders()] == ["void", "settled"]


def test_client_libraries_try_again_by_themselves_and_pay_once(quick, meter):
    """A 500 of the provider is a doubt; the second try of the library resends that order."""
    meter.plan(script=["fail"])
    with quick.openai(max_retries=2) as client:
        assert client.chat.completions.create(**chat("a cat")).choices
    assert quick.orders() == [("settled", 2)]
    assert meter.totals().charges == 1


def test_a_refusal_of_our_own_key_is_not_the_clients_fault(quick, meter):
    """It is 502, and does not show the key."""
    said = json.dumps({"error": {"message": f"Incorrect API key provided: {UPSTREAM_KEY}", "code": "k"}})
    meter.plan(
        script=[{"do": "fail", "status": 401, "body": said}, {"do": "fail", "status": 400, "body": said}]
    )
    refused, rejected = (quick.post("chat/completions", chat("a cat")) for _ in range(2))
    assert (refused.status, refused.code) == (502, "provider_key")
    assert rejected.status == 400
    assert UPSTREAM_KEY.encode() not in refused.body + rejected.body


def test_a_parked_order_waits_for_a_person(sqlite_url, tmp_path, meter):
    """By setting an order in doubt is not resent: 409, which no library tries again."""
    install = GatewayInstall(sqlite_url, tmp_path, meter, in_doubt="park")
    meter.plan(script=["charge_then_cut"])
    cut = install.post("chat/completions", chat("a cat"), scope="x")
    parked = install.post("chat/completions", chat("a cat"), scope="x")
    install.close()
    assert (cut.status, cut.code) == (502, "no_response")
    assert (parked.status, parked.code, parked.headers["x-should-retry"]) == (409, "in_doubt", "false")
    assert meter.totals().charges == 1


def test_waiting_for_somebody_else_ends(sqlite_url, tmp_path, meter):
    """Another process pays for the same call for too long: 503 with Retry-After, and nothing is sent."""
    installs = [
        GatewayInstall(sqlite_url, tmp_path / name, meter, gateway_wait=0, pay_wait=0) for name in ("a", "b")
    ]
    meter.hold()
    line = installs[0].begin("chat/completions", chat("a cat"), scope="x")
    meter.wait_open()
    waited = installs[1].post("chat/completions", chat("a cat"), scope="x")
    meter.release()
    line.close()
    for each in installs:
        each.close()
    assert (waited.status, waited.code) == (503, "wait_over")
    assert int(waited.headers["retry-after"]) >= 1
    assert meter.totals().charges == 1


def test_a_full_gateway_says_so(sqlite_url, tmp_path, meter):
    """More calls than allowed at a time: 503, and nothing is left behind."""
    install = GatewayInstall(sqlite_url, tmp_path, meter, gateway_concurrency=1)
    meter.hold()
    line = install.begin("chat/completions", chat("a cat"))
    meter.wait_open()
    refused = install.post("chat/completions", chat("a dog"))
    meter.release()
    line.close()
    install.close()
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, "gateway_busy", "1")
    assert meter.totals().charges == 1


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "not_json"),
        (b"[]", 400, "not_json"),
        (b'{"model": "\xff"}', 400, "not_json"),
        (b'{"model": NaN, "messages": []}', 400, "not_json"),
        (b"[" * 100_000, 400, "not_json"),
        (b'{"model": "m", "input": "a \\ud800"}', 400, "not_json"),
    ],
    ids=["cut", "list", "utf8", "nan", "deep", "surrogate"],
)
def test_bodies_that_are_no_json(quick, meter, body, status, code):
    """One line for each, and nothing is sent."""
    for endpoint in ("chat/completions", "embeddings", "messages"):
        if endpoint != "embeddings" and b"input" in body:
            continue
        refused = quick.post(endpoint, body)
        assert (refused.status, refused.code) == (status, code)
    assert meter.log() == []


def test_unknown_endpoints_names_and_numbers(quick, meter):
    """Each is told what there is."""
    assert quick.post("images/generations", {}).code == "unknown_endpoint"
    assert quick.post("messages/count_tokens", {}).code == "unknown_endpoint"
    assert quick.post("chat/completions", chat("x"), provider="nobody").code == "gateway_provider"
    assert quick.post("chat/completions", chat("x"), scope="a%20b").code == "bad_scope"
    assert quick.post("chat/completions", chat("x"), scope="a", holdfast_scope="b").code == "bad_scope"
    assert quick.post("chat/completions", chat("x"), holdfast_again="yes").code == "bad_again"
    assert quick.post("responses", {"model": "m", "input": "x", "background": True}).code == "bad_request"
    assert quick.client.get("/gateway/v1/embeddings").code == "method_not_allowed"
    with quick.anthropic(max_retries=0) as client, pytest.raises(anthropic.NotFoundError):
        client.messages.count_tokens(model=CLAUDE, messages=MESSAGE["messages"])
    assert meter.log() == []


def test_a_body_that_is_too_large(quick, meter):
    """32 MB are read, no more; nothing is sent."""
    refused = quick.post("chat/completions", b" " * (32 * 1024 * 1024 + 1))
    assert (refused.status, refused.code) == (413, "too_large")
    large = quick.post("chat/completions", chat("x" * 1_000_000))
    assert (large.status, large.charge) == (200, "paid")


def test_an_answer_that_is_too_large_is_not_bought_twice(quick, meter):
    """65 MB: an error, a doubt, and then a decision for a person."""
    huge = json.dumps({"choices": ["x" * (65 * 1024 * 1024)]})
    meter.plan(script=[{"do": "answer", "body": huge}])
    answers = [quick.post("chat/completions", chat("a cat"), scope="x") for _ in range(2)]
    assert [(each.status, each.code) for each in answers] == [(502, "no_response"), (409, "in_doubt")]
    assert meter.totals().charges == 1


def test_an_unreachable_provider(sqlite_url, tmp_path, meter):
    """Nothing was sent, so nothing is in doubt; the library may try again."""
    servers = providers(meter)
    servers["meter"]["base_url"] = "http://127.0.0.1:9/v1"
    install = GatewayInstall(sqlite_url, tmp_path, meter, providers=servers)
    refused = install.post("chat/completions", chat("a cat"))
    states = install.orders()
    install.close()
    assert (refused.status, refused.code) == (502, "provider_unreachable")
    assert "x-should-retry" not in refused.headers
    assert [state for state, _ in states] == ["void"]


def test_no_provider_is_set_up(sqlite_url, tmp_path, meter):
    """Without one the gateway says which line is missing."""
    install = GatewayInstall(sqlite_url, tmp_path, meter, providers={})
    refused = install.post("messages", MESSAGE)
    install.close()
    assert (refused.status, refused.code) == (404, "gateway_provider")
    assert "add a [providers.NAME], wire = anthropic" in refused.json["error"]["message"]


def test_pages_of_other_sites_spend_nothing(quick, meter):
    """Without keys a browser on this machine could be made to ask."""
    for headers in ({"origin": "http://evil.example"}, {"sec_fetch_site": "cross-site"}):
        refused = quick.post("chat/completions", chat("a cat"), **headers)
        assert (refused.status, refused.code) == (403, "foreign_origin")
    assert meter.log() == []
