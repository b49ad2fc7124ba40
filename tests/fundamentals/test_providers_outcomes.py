"""What a provider's answer, refusal or silence means for money."""

import contextlib
import dataclasses
import email.utils
import json
import socket

import numpy as np
import pytest

from holdfast.providers import statuses
from holdfast.providers.base import Answered, NotSent, Refused, Unknown
from holdfast.providers.openai import OpenAIProvider
from holdfast.testing import orders
from holdfast.testing.meter import Meter


def test_an_answer_has_one_vector_per_input_in_their_order(meter, provider):
    """Embeddings come back as float32 bytes in the order of the inputs, with what they cost."""
    outcome = orders.embed(provider, "first input", "second input")
    assert isinstance(outcome, Answered)
    assert not outcome.replayed
    assert outcome.input_tokens == meter.totals().tokens == 2 + 3
    first, second = (np.frombuffer(result, "<f4") for result in outcome.results)
    assert first.shape == second.shape == (32,)
    assert np.linalg.norm(first) == pytest.approx(1.0, abs=1e-6)
    assert orders.embed(provider, "second input").results == (outcome.results[1],)


def test_a_rate_limit_is_refused_for_now_with_its_wait(meter, provider):
    """A 429 was not charged, is worth another try, and says when."""
    meter.plan(retry_after=7, script=["rate_limit"])
    outcome = orders.embed(provider, "a")
    assert outcome == Refused(429, "rate_limited", outcome.message, 7.0, permanent=False)
    assert meter.totals().charges == 0


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": email.utils.formatdate(1_000_060, usegmt=True)}, 60.0),
        ({"retry-after": email.utils.formatdate(999_000, usegmt=True)}, 0.0),
        (
            {
                "date": email.utils.formatdate(2_000_000, usegmt=True),
                "retry-after": email.utils.formatdate(2_000_020, usegmt=True),
            },
            20.0,
        ),
    ],
)
def test_every_form_of_retry_after_is_read(headers, wait):
    """Seconds, milliseconds and dates are understood, and nonsense is no wait at all."""
    assert statuses.retry_after(headers, now=1_000_000) == wait


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "rejected"), (401, "auth"), (402, "quota"), (403, "auth"), (404, "rejected"), (409, "rejected")],
)
def test_a_rejection_is_permanent_and_free(meter, provider, status, code):
    """A rejecting 4xx took nothing, and would say the same again."""
    meter.plan(script=[{"do": "fail", "status": status}])
    outcome = orders.embed(provider, "a")
    assert outcome == Refused(
        status, code, f"the meter is configured to answer {status}", None, permanent=True
    )


def test_an_exhausted_quota_is_not_a_rate_limit(meter, provider):
    """A 429 for want of money is permanent: waiting does not help."""
    body = {
        "error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": None}
    }
    meter.plan(script=[{"do": "rate_limit", "body": json.dumps(body)}])
    outcome = orders.embed(provider, "a")
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.permanent) == ("quota", True)


def test_a_redirect_is_refused_and_not_followed(meter, provider):
    """A paid request goes where it was sent, or nowhere."""
    meter.plan(
        script=[{"status": 307, "charge": False, "headers": {"Location": f"{meter.base_url}/embeddings"}}]
    )
    outcome = orders.embed(provider, "a")
    assert isinstance(outcome, Refused)
    assert (outcome.status, outcome.code, outcome.permanent) == (307, "rejected", True)
    assert meter.totals().exchanges == 1


@pytest.mark.parametrize("status", [408, 499, 500, 502, 503, 504])
def test_a_failure_behind_a_gateway_is_in_doubt(meter, provider, status):
    """A 408 or 5xx may hide a charge."""
    meter.plan(script=[{"do": "fail", "status": status, "charge": True}])
    outcome = orders.embed(provider, "a")
    assert isinstance(outcome, Unknown)
    assert outcome.status == status


def test_a_status_the_profile_vouches_for_is_free(meter):
    """A 503 from a provider that never charges for one is a refusal for now."""
    meter.plan(script=[{"do": "fail", "status": 503, "headers": {"Retry-After": "2"}}])
    with contextlib.closing(meter.provider(meter.profile(uncharged=frozenset({503})))) as provider:
        outcome = orders.embed(provider, "a")
    assert outcome == Refused(503, "unavailable", outcome.message, 2.0, permanent=False)


def test_a_conflict_over_a_key_is_in_doubt_where_keys_are_honoured(meter):
    """A 409 can mean that the first exchange of this key is still being worked on, and charged."""
    meter.plan(script=[{"do": "fail", "status": 409}])
    keyed = dataclasses.replace(meter.profile(), honours_keys=True)
    with contextlib.closing(meter.provider(keyed)) as provider:
        outcome = orders.embed(provider, "a")
    assert isinstance(outcome, Unknown)
    assert outcome.status == 409


@pytest.mark.g5
def test_a_charge_whose_answer_was_cut_is_in_doubt(meter, provider):
    """When the connection dies after the charge, the client says that it does not know."""
    meter.plan(script=["charge_then_cut"])
    outcome = orders.embed(provider, "a")
    assert isinstance(outcome, Unknown)
    assert meter.charges_of("a") == 1


@pytest.mark.g5
def test_a_cut_before_the_charge_looks_the_same_from_here(meter, provider):
    """A connection cut before the charge cannot be told from one cut after it."""
    meter.plan(script=["cut_before_charge"])
    assert isinstance(orders.embed(provider, "a"), Unknown)
    assert meter.totals().charges == 0


@pytest.mark.g5
def test_a_resend_under_its_key_is_replayed_for_free():
    """Where keys are honoured, the order in doubt is answered on resend and not charged again."""
    with Meter(honour_keys=True) as meter, contextlib.closing(meter.provider()) as provider:
        meter.plan(script=["charge_then_cut"])
        order = orders.exchange(provider, "a", "b")
        assert isinstance(provider.send(order, orders.yes), Unknown)
        again = provider.send(order, orders.yes)
        assert isinstance(again, Answered)
        assert again.replayed
        assert meter.totals().charges == 2
        assert meter.totals().excess == 0


def test_nobody_listening_means_not_sent():
    """A refused connection cost nothing."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        with contextlib.closing(OpenAIProvider(f"http://127.0.0.1:{port}/v1", "k")) as provider:
            outcome = orders.embed(provider, "a")
    assert isinstance(outcome, NotSent)
    assert outcome.reason.startswith("connect:")


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 70 + ".invalid"])
def test_a_bad_host_name_means_not_sent(host):
    """A name that does not resolve, or cannot be one, cost nothing."""
    with contextlib.closing(OpenAIProvider(f"http://{host}/v1", "k")) as provider:
        outcome = orders.embed(provider, "a")
    assert isinstance(outcome, NotSent)
    assert outcome.reason.startswith(f"the name {host} has no address")


def test_a_failed_tls_handshake_means_not_sent(meter):
    """A server that does not speak TLS gets no byte of the request."""
    with contextlib.closing(OpenAIProvider(meter.base_url.replace("http:", "https:"), "k")) as provider:
        outcome = orders.embed(provider, "a")
    assert isinstance(outcome, NotSent)
    assert outcome.reason.startswith("tls:")


def test_secrets_do_not_print(meter):
    """The API key is in no repr and in no message, even if the server sends it back."""
    key = "sk-very-secret-0123456789"
    body = json.dumps({"error": {"message": f"{'x' * 260} Incorrect API key provided: {key}"}})
    meter.plan(
        script=[{"do": "fail", "status": 401, "body": body}, {"do": "fail", "status": 500, "body": body}]
    )
    with contextlib.closing(OpenAIProvider(meter.base_url, key)) as provider:
        outcomes = [orders.embed(provider, "a"), orders.embed(provider, "a")]
        assert "sk-very" not in repr(provider) + str(provider) + repr(outcomes)
    assert all(len(outcome.message) <= 300 for outcome in outcomes if isinstance(outcome, Refused))
    with pytest.raises(ValueError, match="credentials"):
        OpenAIProvider("https://user:pass@host/v1", key)
    with pytest.raises(ValueError, match="characters") as caught:
        OpenAIProvider(meter.base_url, f"{key}\n")
    assert key not in str(caught.value)
