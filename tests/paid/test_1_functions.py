"""`@guard.paid`: each distinct input is paid once, and what may have been charged is on the bill."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import Answer, BadRequestError, FencedOut, HoldfastError, InDoubt
from holdfast.core.states import CallState
from holdfast.guard import money
from holdfast.guard.signals import MustWait
from holdfast.store.money import billing, orders
from tests.paid.application import PayingApp

CENT = 10_000_000


class Till:
    """A paid service that counts what it charges."""

    def __init__(self):
        self.charged = []
        self.errors = []

    def charge(self, item):
        if self.errors:
            raise self.errors.pop(0)
        self.charged.append(item)
        return {"item": item, "number": len(self.charged)}


@pytest.fixture
def till():
    return Till()


def test_each_distinct_input_is_paid_once(application, till):
    """The same arguments, however they are passed, are one call; its answer is the same for everybody."""

    @application.guard.paid(price="0.02 USD")
    def render(prompt, *, size=1):
        return till.charge((prompt, size))

    first = render("a cat")
    assert first == {"item": ["a cat", 1], "number": 1}
    assert [render(prompt="a cat"), render("a cat", size=1)] == [first, first]
    assert render("a cat", size=2)["number"] == 2
    with application.guard.tenant("other"):
        assert render("a cat")["number"] == 3
    assert len(till.charged) == 3
    bill = application.bill()
    assert (bill.orders, bill.paid, bill.in_doubt) == (2, 4 * CENT, 0)
    assert application.bill("other").paid == 2 * CENT


def test_coroutines_are_paid_once_as_well(application, till):
    """Ten tasks of one loop that ask at once make one call, and all get its answer."""

    @application.guard.paid(price="0.01 USD")
    async def render(prompt):
        await asyncio.sleep(0.05)
        return till.charge(prompt)

    async def all_at_once():
        return await asyncio.gather(*(render("a cat") for _ in range(10)))

    assert asyncio.run(all_at_once()) == [{"item": "a cat", "number": 1}] * 10
    assert application.bill().paid == CENT


def test_a_caller_that_stops_waiting_does_not_waste_the_call(on_sqlite, till):
    """A coroutine that is cancelled leaves its call under way; who asks again gets its answer."""

    @on_sqlite.guard.paid(price="0.01 USD")
    async def render(prompt):
        await asyncio.sleep(0.3)
        return till.charge(prompt)

    async def impatient():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(render("a cat"), 0.1)
        return await render("a cat")

    assert asyncio.run(impatient())["number"] == 1
    assert till.charged == ["a cat"]


def test_two_guards_that_ask_at_once_make_one_call(database_url, till):
    """Callers in different processes wait for the one that pays."""
    started, go_on = threading.Event(), threading.Event()

    def render(prompt):
        started.set()
        go_on.wait(10)
        return till.charge(prompt)

    apps = [PayingApp(database_url) for _ in range(2)]
    paid = [app.guard.paid(name="render")(render) for app in apps]
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(paid[0], "a cat")
        assert started.wait(10)
        other = pool.submit(paid[1], "a cat")
        go_on.set()
        assert one.result(20) == other.result(20) == {"item": "a cat", "number": 1}
    for app in apps:
        app.close()


def test_an_exception_leaves_the_call_in_doubt_and_is_raised_as_itself(application, till):
    """By default the next caller pays again, and the bill shows what may have been charged before."""
    till.errors.append(ConnectionError("cut; key=secret"))
    render = application.guard.paid(name="render", price="0.02 USD")(till.charge)
    with pytest.raises(ConnectionError, match="cut; key=secret"):
        render("a cat")
    assert application.orders() == [("in_doubt", 1)]
    (open_order,) = billing.open_orders(application.db, "default")
    assert open_order.reason == "raised ConnectionError"
    assert render("a cat")["number"] == 1
    assert application.orders() == [("settled", 2)]
    assert (application.bill().paid, application.bill().in_doubt) == (2 * CENT, 2 * CENT)


def test_an_uncharged_exception_costs_nothing(application, till):
    """What was declared as not charged frees the call."""
    till.errors.append(PermissionError("no credit"))
    render = application.guard.paid(name="render", price="0.02 USD", uncharged=(PermissionError,))(
        till.charge
    )
    with pytest.raises(PermissionError, match="no credit"):
        render("a cat")
    assert render("a cat")["number"] == 1
    assert (application.bill().paid, application.bill().in_doubt) == (2 * CENT, 0)


@pytest.mark.parametrize("charged", [True, False])
def test_verify_says_whether_it_was_charged(application, till, charged):
    """A call in doubt that was charged is adopted with its answer and cost; otherwise it is made again."""
    seen = []

    def verify(order):
        seen.append((order.arguments, order.sends, order.idempotency_key.startswith("hf-")))
        return Answer({"item": "kept"}, cost="0.03 USD") if charged else None

    till.errors.append(TimeoutError())
    render = application.guard.paid(name="render", price="0.02 USD", verify=verify)(till.charge)
    with pytest.raises(TimeoutError):
        render("a cat")
    value = render("a cat")
    assert value == ({"item": "kept"} if charged else {"item": "a cat", "number": 1})
    assert render("a cat") == value
    assert seen == [({"item": "a cat"}, 1, True)]
    assert len(till.charged) == (0 if charged else 1)
    bill = application.bill()
    assert (bill.paid, bill.second, bill.in_doubt) == ((3 if charged else 2) * CENT, 0, 0)


def test_verify_may_leave_it_to_a_person(application, till):
    """The call waits for a decision and is not made before; the decision frees it."""

    def verify(_order):
        raise InDoubt("the provider's records are not complete yet")

    till.errors.append(TimeoutError())
    render = application.guard.paid(name="render", verify=verify)(till.charge)
    with pytest.raises(TimeoutError):
        render("a cat")
    for _ in range(2):
        with pytest.raises(InDoubt, match="resolve it with: holdfast orders"):
            render("a cat")
    (order,) = billing.open_orders(application.db, "default", CallState.PARKED)
    assert order.reason == "the provider's records are not complete yet"
    orders.resolve(application.db, order.id, charged=False, actor="somebody")
    assert render("a cat")["number"] == 1


def test_a_late_verdict_changes_nothing(application, till):
    """An order that was freed and paid anew while verify was thinking stays as it is."""
    thinking, go_on = threading.Event(), threading.Event()

    def verify(_order):
        if thinking.is_set():
            return
        thinking.set()
        go_on.wait(10)
        return

    till.errors.append(TimeoutError())
    render = application.guard.paid(name="render", price="0.02 USD", verify=verify)(till.charge)
    with pytest.raises(TimeoutError):
        render("a cat")
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(render, "a cat")
        assert thinking.wait(10)
        value = render("a cat")
        go_on.set()
        assert slow.result(20) == value
    assert till.charged == ["a cat"]
    assert (application.bill().paid, application.bill().in_doubt) == (2 * CENT, 0)


def test_expensive_calls_in_doubt_wait_for_a_person(sqlite_url, till):
    """Above a price, a call whose outcome is unknown is not made again by itself."""
    app = PayingApp(sqlite_url, park_above="0.05 USD")
    till.errors += [TimeoutError(), TimeoutError()]
    cheap = app.guard.paid(name="cheap", price="0.05 USD")(till.charge)
    dear = app.guard.paid(name="dear", price="0.06 USD")(till.charge)
    for paid in (cheap, dear):
        with pytest.raises(TimeoutError):
            paid("a cat")
    assert cheap("a cat")["number"] == 1
    with pytest.raises(InDoubt):
        dear("a cat")
    app.close()


def test_a_bad_answer_is_not_replayed(application, till):
    """An answer that accept refuses is paid and shown; who asks again pays for a new one, which is kept."""
    render = application.guard.paid(
        name="render", price="0.01 USD", accept=lambda answer: answer["number"] == 3
    )(till.charge)
    assert [render("a cat")["number"] for _ in range(5)] == [1, 2, 3, 3, 3]
    assert application.bill().paid == 3 * CENT


def test_an_answer_that_is_no_json_is_paid_and_said(application):
    """It cannot be kept: one line says so, the bill has it, and the next call is a new one."""
    answers = [object(), 7]
    render = application.guard.paid(name="render", price="0.01 USD")(lambda _prompt: answers.pop(0))
    with pytest.raises(BadRequestError, match="render was paid, but its answer cannot be kept"):
        render("a cat")
    assert [render("a cat"), render("a cat")] == [7, 7]
    assert application.bill().paid == 2 * CENT


def test_within_a_run_the_same_input_is_the_same_call(application, till):
    """Only `again` pays anew; a run that starts over gets all of its answers for free."""
    render = application.guard.paid(name="render", price="0.01 USD")(till.charge)
    starts = []

    def body():
        starts.append(1)
        numbers = [render("a cat")["number"] for _ in range(2)]
        with application.guard.run().again():
            numbers += [render("a cat")["number"] for _ in range(2)]
        numbers.append(render("a cat")["number"])
        if len(starts) == 1:
            raise MustWait("once more", reason="test", delay=0.0)
        return numbers, str(application.guard.run().spent)

    task = application.task(body)
    task.apply(task_id="run")
    assert task.apply(task_id="run").get() == ([1, 1, 2, 3, 1], "0.03")
    assert len(till.charged) == 3
    (line,) = [each for each in billing.bill(application.db, "default", billing.By.RUN).lines if each.paid]
    assert (line.about, line.paid) == (application.run_id(task, "run"), 3 * CENT)


def test_a_run_that_must_wait_or_is_fenced_out_pays_nothing(application, till):
    """What the engine decides is raised as a signal, which no `except Exception` catches."""
    render = application.guard.paid(name="render", price="0.01 USD")(till.charge)
    seen = []

    def body():
        application.guard.work().lose("taken over")
        try:
            render("a cat")
        except FencedOut as signal:
            seen.append(signal)
            raise

    application.task(body).apply(task_id="run")
    assert len(seen) == 1
    assert till.charged == []


def test_a_provider_that_honours_keys_gets_the_same_one_again(application, till):
    """The key of the order is an argument of the function; a resend under it is no second charge."""
    passed = []

    def render(prompt, *, key):
        passed.append(key)
        return till.charge(prompt)

    till.errors.append(TimeoutError())
    paid = application.guard.paid(name="render", price="0.01 USD", key_argument="key")(render)
    with pytest.raises(TimeoutError):
        paid("a cat")
    assert paid("a cat")["number"] == 1
    assert passed[0] == passed[1]
    assert passed[0].startswith("hf-")
    assert (application.bill().paid, application.bill().in_doubt) == (CENT, 0)


def test_unpriced_calls_are_counted(application, till):
    """Without a price a call is on the bill as unpriced, with no invented amount."""
    application.guard.paid(till.charge)("a cat")
    bill = application.bill()
    assert (bill.calls, bill.unpriced_calls, bill.paid) == (1, 1, 0)


@pytest.mark.parametrize("arguments", [(object(),), ({1: "a"},), ([{2: 3}],), (float("nan"),), (b"x",)])
def test_arguments_that_are_no_json_are_refused(on_sqlite, till, arguments):
    """One line says so, and nothing is paid."""
    with pytest.raises(BadRequestError) as refusal:
        on_sqlite.guard.paid(name="render")(till.charge)(*arguments)
    assert refusal.value.code == "not_json"
    assert till.charged == []


def test_wrong_arguments_are_a_type_error(on_sqlite, till):
    """As they are without the guard; no order is made."""
    with pytest.raises(TypeError, match="missing a required argument: 'item'"):
        on_sqlite.guard.paid(name="render")(till.charge)()


@pytest.mark.parametrize(
    "price", ["0.02", "$0.02", "0.02 EUR", "-1 USD", "1e3 USD", " 1 USD", "1 USD\n", "٣ USD", 0.02]
)
def test_prices_are_read_strictly(on_sqlite, price):
    """What is no amount in dollars is refused where the function is declared."""
    with pytest.raises(BadRequestError, match=r'like "0\.02 USD"'):
        on_sqlite.guard.paid(price=price)(len)


def test_prices_in_words():
    """Amounts are exact to a nano-dollar."""
    assert [money.nanos(each) for each in ("0.02 USD", "12 USD", "0.000000001 USD", "0 USD")] == [
        2 * CENT,
        1200 * CENT,
        1,
        0,
    ]


def test_declarations_that_make_no_sense_are_refused(on_sqlite, till):
    """Two functions with one name, a generator, an unknown option: one line each."""
    guard = on_sqlite.guard
    guard.paid(name="render")(till.charge)
    with pytest.raises(BadRequestError, match="two paid functions are called 'render'"):
        guard.paid(name="render")(len)
    with pytest.raises(BadRequestError, match="cannot be a generator"):
        guard.paid(lambda: (yield))
    with pytest.raises(BadRequestError, match="no parameter 'key'"):
        guard.paid(key_argument="key")(len)
    with pytest.raises(TypeError, match="colour"):
        guard.paid(colour="red")(len)
    with pytest.raises(HoldfastError, match="in_doubt is resend or park"):
        PayingApp("sqlite://", in_doubt="perhaps")
