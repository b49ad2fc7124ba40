"""What goes wrong stays what it is: the library's own exceptions, as many sends as the ledger has."""

import asyncio
import threading

import anthropic
import httpx
import httpx2
import openai
import pytest

from holdfast.core.states import CallState
from holdfast.guard.signals import MustWait
from holdfast.store.money import billing, budgets, orders
from tests.paid import sdks
from tests.paid.application import PayingApp

# Each library, and each way: whole and streamed, synchronous and not.
SDKS = [sdks.OPENAI[0], sdks.OPENAI[2], sdks.ANTHROPIC[1], sdks.ANTHROPIC[2]]


@pytest.fixture(params=SDKS, ids=lambda sdk: sdk.name)
def sdk(request):
    return request.param


def sends(app):
    return sum(count for _, count in app.orders())


def module_of(sdk):
    return openai if sdk in sdks.OPENAI else anthropic


@pytest.mark.parametrize(
    ("misbehaviour", "error", "states"),
    [
        ("rate_limit", "RateLimitError", {"void"}),
        ("fail", "InternalServerError", {"in_doubt"}),
        ("charge_then_cut", "APIConnectionError", {"in_doubt"}),
        ("cut_before_charge", "APIConnectionError", {"in_doubt"}),
        ("stall_charged", "APITimeoutError", {"in_doubt"}),
    ],
)
def test_retries_of_the_library_send_what_the_ledger_sends(
    on_sqlite, meter, sdk, misbehaviour, error, states
):
    """With its retries on, every send is one of the ledger's, and the exception is the library's own."""
    script = [{"do": misbehaviour, "times": 3, "headers": {"Retry-After-Ms": "10"}}]
    meter.plan(stall_seconds=1.0, script=script)
    with pytest.raises(getattr(module_of(sdk), error)), on_sqlite.guard.scope("s"):
        sdk.ask(on_sqlite.guard, meter, "a cat", timeout=0.3)
    assert {state for state, _ in on_sqlite.orders()} == states
    assert len(meter.log()) == sends(on_sqlite) == 3
    with on_sqlite.guard.scope("s"):
        assert "to: a cat" in sdk.ask(on_sqlite.guard, meter, "a cat")
    assert len(meter.log()) == sends(on_sqlite) == 4


def test_a_retry_that_succeeds_is_the_same_call(on_sqlite, meter, sdk):
    """One doubtful send and a second one: one order, whose first send is in doubt on the bill."""
    meter.plan(script=["charge_then_cut"])
    assert "to: a cat" in sdk.ask(on_sqlite.guard, meter, "a cat")
    assert on_sqlite.orders() == [("settled", 2)]
    assert meter.totals().charges == 2
    bill = on_sqlite.bill()
    assert bill.in_doubt > 0
    assert bill.paid > 0


def test_with_idempotency_keys_a_retry_costs_nothing(on_sqlite, keyed_meter, sdk):
    """The provider charges one key once; the ledger knows and shows one charge."""
    keyed_meter.plan(script=["charge_then_cut"])
    assert "to: a cat" in sdk.ask(on_sqlite.guard, keyed_meter, "a cat", honours_keys=True)
    assert on_sqlite.orders() == [("settled", 2)]
    assert keyed_meter.totals().charges == 1
    assert on_sqlite.bill().in_doubt == 0


def test_a_provider_that_cannot_be_reached_is_a_connection_error(on_sqlite, meter, sdk):
    """Nothing was sent, nothing is in doubt."""
    meter.close()
    with pytest.raises(module_of(sdk).APIConnectionError):
        sdk.ask(on_sqlite.guard, meter, "a cat", max_retries=0)
    assert [state for state, _ in on_sqlite.orders()] == ["void"]


def test_a_wrong_key_is_an_authentication_error(on_sqlite, meter, sdk):
    """The provider's own response, with its headers."""
    meter.plan(script=[{"do": "fail", "status": 401, "headers": {"X-Request-Id": "req-1"}}])
    with pytest.raises(module_of(sdk).AuthenticationError) as raised:
        sdk.ask(on_sqlite.guard, meter, "a cat")
    assert raised.value.response.headers["x-request-id"] == "req-1"
    assert on_sqlite.orders() == [("void", 1)]


def test_no_budget_is_a_rate_limit_that_is_not_retried(on_sqlite, meter, sdk):
    """Outside a run it is the provider's shape of a quota error; within one the run waits."""
    guard = on_sqlite.guard
    budgets.set_budget(on_sqlite.db, "default", budgets.TENANT, hard=0)
    with pytest.raises(module_of(sdk).RateLimitError, match="the budget of tenant"):
        sdk.ask(guard, meter, "a cat")
    seen = []

    def body():
        try:
            sdk.ask(guard, meter, "a cat")
        except MustWait as signal:
            seen.append(signal.reason)
            raise

    on_sqlite.task(body).apply(task_id="run")
    assert seen == ["budget"]
    assert meter.log() == []


def test_an_order_that_waits_for_a_person_is_a_conflict(sqlite_url, meter, sdk):
    """The library does not retry it, and says where to decide; the decision frees the call."""
    app = PayingApp(sqlite_url, in_doubt="park")
    meter.plan(script=["charge_then_cut"])
    with app.guard.scope("s"):
        with pytest.raises(module_of(sdk).ConflictError, match="holdfast orders"):
            sdk.ask(app.guard, meter, "a cat")
        (order,) = billing.open_orders(app.db, "default", CallState.PARKED)
        orders.resolve(app.db, order.id, charged=False)
        assert "to: a cat" in sdk.ask(app.guard, meter, "a cat")
    assert len(meter.log()) == 2
    app.close()


def test_an_unreachable_database_is_a_connection_error(on_sqlite, meter, monkeypatch):
    """Nothing is sent that could not be recorded."""
    from holdfast.core.errors import StoreUnavailableError  # noqa: PLC0415

    def away(*_args, **_options):
        raise StoreUnavailableError("the database is unreachable")

    monkeypatch.setattr(on_sqlite.guard.runtime().db, "write", away)
    with pytest.raises(openai.APIConnectionError):
        sdks.OPENAI[0].ask(on_sqlite.guard, meter, "a cat", max_retries=0)
    assert meter.log() == []


@pytest.mark.parametrize("sdk", [sdks.OPENAI[2], sdks.ANTHROPIC[2]], ids=lambda sdk: sdk.name)
def test_a_stream_that_breaks_off_is_not_replayed(application, meter, sdk):
    """Its order is in doubt; who asks again gets a whole answer."""
    meter.plan(script=[{"do": "answer", "cut_after": 3}])
    with application.guard.scope("s"):
        with pytest.raises((httpx2.HTTPError, httpx.HTTPError, openai.APIError, anthropic.APIError)):
            sdk.ask(application.guard, meter, "a cat on a mat")
        assert application.orders() == [("in_doubt", 1)]
        assert sdk.ask(application.guard, meter, "a cat on a mat").endswith("to: a cat on a mat")
    assert application.orders() == [("settled", 2)]


def test_the_first_bytes_of_a_stream_arrive_before_the_last_are_written(application, meter):
    """The reader has a piece while the provider still holds the rest back."""
    meter.hold("during")
    with sdks.openai_client(application.guard, meter) as client:
        stream = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "a cat"}], stream=True
        )
        assert next(iter(stream)).choices[0].delta.content
        assert application.orders() == [("sent", 1)]
        meter.release()
        assert len(list(stream)) > 1
    assert application.orders() == [("settled", 1)]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_reader_that_leaves_early_does_not_waste_the_rest(application, meter, asynchronous):
    """The answer is read to its end in the background; the next reader has all of it for nothing."""
    meter.hold("during")
    request = {"model": "m", "messages": [{"role": "user", "content": "a cat"}], "stream": True}

    def leave():
        with (
            sdks.openai_client(application.guard, meter) as client,
            client.chat.completions.create(**request) as stream,
        ):
            next(iter(stream))

    async def leave_async():
        async with sdks.openai_async(application.guard, meter) as client:
            stream = await client.chat.completions.create(**request)
            await anext(aiter(stream))
            await stream.close()

    with application.guard.scope("s"):
        asyncio.run(leave_async()) if asynchronous else leave()
        meter.release()
        for thread in threading.enumerate():
            if thread.name == "holdfast-stream":
                thread.join(10)
        with sdks.openai_client(application.guard, meter) as client:
            words = [
                chunk.choices[0].delta.content or "" for chunk in client.chat.completions.create(**request)
            ]
    assert "".join(words).endswith("to: a cat")
    assert meter.totals().charges == 1
