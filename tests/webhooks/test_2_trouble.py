"""Receivers that are slow, cut, answer wrongly, lead elsewhere or never stop talking."""

import threading

import pytest

from holdfast.chaos.waiting import until
from holdfast.core import retry
from holdfast.core.records import Fenced, Landed
from holdfast.kinds import webhook
from holdfast.store.follow_ups import actions, delivery_attempts
from tests.webhooks.conftest import Office

SOON = retry.Backoff(first=0.01, factor=1.0, most=0.01)
NEVER = retry.Backoff(first=1000.0, factor=1.0, most=1000.0)


def told(office, receiver, script=(), **rules):
    """An office whose one event met the script; what became of it."""
    receiver.script = list(script)
    office.hook(receiver.url)
    office.ask()
    office.work()
    (sent,) = office.sent()
    return sent


def test_a_receiver_that_fails_for_a_while_gets_the_event_in_the_end(office, receiver):
    """500 twice and a cut connection: three tries that missed, one that landed, all under one id."""
    sent = told(office, receiver, [500, 503, "cut"])
    assert (sent.state, sent.tries, sent.last_status, sent.last_error) == ("delivered", 4, 200, None)
    assert len(set(receiver.ids())) == 1


def test_what_went_wrong_is_shown_while_it_is_tried(strict, receiver):
    """State, number of tries, the latest status and when it is tried next."""
    office = strict(backoff=NEVER, allow_private=True)
    receiver.script = [500]
    office.hook(receiver.url)
    office.ask()
    office.engine.work_off()
    (sent,) = office.sent()
    assert (sent.state, sent.tries, sent.last_status) == ("pending", 1, 500)
    assert sent.last_error == "the URL returned status 500"
    assert sent.next_try_at > sent.created_at + 400


def test_one_that_waits_is_tried_at_once_when_a_person_says_so(strict, receiver):
    """Its next try was far off; one that is being tried is left alone."""
    office = strict(backoff=NEVER, allow_private=True)
    receiver.script = [500]
    office.hook(receiver.url)
    office.ask()
    office.engine.work_off()
    (sent,) = office.sent()
    assert delivery_attempts.resend(office.db, "default", sent.id, run_id="a") == Landed()
    assert delivery_attempts.resend(office.db, "default", sent.id, run_id="b") == Fenced("in_progress")
    office.work()
    assert [each.state for each in office.sent()] == ["delivered"]


def test_a_receiver_that_says_gone_is_asked_no_more(small, receiver):
    """410 ends the delivery; it is visible, and can be sent again."""
    sent = told(small, receiver, [410])
    assert (sent.state, sent.error_code, len(receiver.came)) == ("failed", "webhook_gone", 1)
    assert delivery_attempts.resend(small.db, "default", sent.id, run_id=small.db.token()) == Landed()
    small.work()
    assert [(each.state, each.tries) for each in small.sent()] == [("delivered", 1)]


def test_when_the_time_is_over_the_delivery_fails_and_says_so(strict, receiver):
    """It ends as failed; nothing is tried for ever."""
    office = strict(backoff=SOON, give_up_after=0.2, allow_private=True)
    sent = told(office, receiver, [500] * 10_000)
    assert (sent.state, sent.error_code, sent.last_status) == ("failed", "webhook_failed", 500)
    assert sent.tries == len(receiver.came) >= 1


def test_a_redirect_is_not_followed(small, receiver):
    """Wherever it leads: it counts as a try that missed."""
    sent = told(small, receiver, [f"redirect:{receiver.url}", "redirect:http://127.0.0.1:9/"])
    assert (sent.state, sent.tries) == ("delivered", 3)


@pytest.mark.parametrize("act", ["stall", "endless"])
def test_a_receiver_that_does_not_come_to_an_end_is_left(strict, receiver, act):
    """One that says nothing is late; of one that talks without end enough is heard: its status."""
    office = strict(seconds=0.5, backoff=SOON, allow_private=True)
    sent = told(office, receiver, [act])
    assert (sent.state, sent.tries) == ("delivered", 2 if act == "stall" else 1)


def test_a_receiver_may_ask_for_time(strict, receiver):
    """`Retry-After` counts as a minimum."""
    office = strict(backoff=SOON, allow_private=True)
    receiver.script = ["later:900"]
    office.hook(receiver.url)
    office.ask()
    office.engine.work_off()
    (sent,) = office.sent()
    assert sent.next_try_at > sent.created_at + 600


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254"])
def test_a_private_address_is_refused(strict, host):
    """However it is written; the delivery fails at once and says why."""
    office = strict(backoff=SOON)
    office.hook(f"http://{host}:9/hook")
    office.ask()
    office.work()
    (sent,) = office.sent()
    assert (sent.state, sent.error_code) == ("failed", "url_forbidden")
    assert "not on the public internet" in sent.last_error


def test_a_name_that_changes_its_address_between_two_looks_gains_nothing(strict, receiver, monkeypatch):
    """The address that was judged is the one that is connected to: the name is not looked up again."""
    looked = []

    def once(host, port, **_):
        looked.append(host)
        address = "93.184.215.14" if len(looked) == 1 else "127.0.0.1"
        return [(2, 1, 6, "", (address, port))]

    tried = []

    def refuse(_family, _kind, _proto, address, _limit):
        tried.append(address[0])
        raise OSError("no route")

    monkeypatch.setattr("holdfast.documents.addresses.socket.getaddrinfo", once)
    monkeypatch.setattr("holdfast.providers.sockets._connect", refuse)
    office = strict(backoff=NEVER)
    office.hook(receiver.url.replace("127.0.0.1", "rebinding.example"))
    office.ask()
    office.engine.work_off()
    assert (looked, tried) == (["rebinding.example"], ["93.184.215.14"])
    assert receiver.came == []


def test_a_slow_receiver_holds_nobody_else_up(office, receiver):
    """While one delivery stalls, another worker delivers the next."""
    receiver.script = ["stall"]
    office.hook(receiver.url)
    office.ask("a", "document:1")
    office.ask("b", "document:2")
    office.engine.work_off(lanes=["bulk"])
    slow = threading.Thread(target=office.engine.executor.run_next, args=(["follow-up"],))
    slow.start()
    other = Office(office.db, webhook.DeliveryRules(backoff=SOON, allow_private=True))
    until(lambda: receiver.came, 30, "the first delivery is under way")
    other.engine.executor.run_next(["follow-up"])
    assert sorted(each.state for each in office.sent()) == ["delivered", "pending"]
    receiver.released.set()
    slow.join(30)
    assert not slow.is_alive()


@pytest.mark.g2
@pytest.mark.parametrize("status", [200, 500])
def test_a_superseded_try_writes_nothing(office, receiver, status):
    """The action was removed in the middle of a try: what its worker says then comes too late."""
    action = office.hook(receiver.url)
    office.ask()
    office.engine.work_off(lanes=["bulk"])
    (sent,) = office.sent()

    def remove(_came):
        actions.remove_action(office.db, "default", action)

    receiver.look, receiver.script = remove, [status]
    office.engine.work_off()
    (after,) = office.sent()
    assert (after.state, after.delivered_at, after.last_status) == ("cancelled", None, None)
    assert sent.id == after.id
