"""What happens, as it happens."""

import contextlib
import json
import time
from http.client import HTTPConnection
from unittest.mock import Mock

import pytest
from sqlalchemy import update

from holdfast.api import event_feed
from holdfast.api.access import COOKIE
from holdfast.api.event_feed import Listener
from holdfast.chaos.waiting import until
from holdfast.store.base.schema import api_keys
from holdfast.store.protocol import tasks as fenced
from holdfast.store.views import events
from tests.api.install import PREFIX


class Stream:
    """An open event stream."""

    def __init__(self, client, last=None, cookie=None):
        self.connection = HTTPConnection("127.0.0.1", client.install.port, timeout=30)
        headers = {"X-API-Key": client.key} if client.key else {}
        headers |= {"Cookie": f"{COOKIE}={cookie}"} if cookie else {}
        headers |= {"Last-Event-ID": str(last)} if last is not None else {}
        self.connection.request("GET", f"{PREFIX}/events/stream", headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.getheader("Content-Type").startswith("text/event-stream")
        assert self.answer.readline().startswith(b": listening")

    def next(self):
        """The next event: its id, its name and its data; None at the end."""
        result = {}
        while line := self.answer.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                result[name] = value
            elif "event" in result:
                return result.get("id"), result["event"], json.loads(result["data"])
        return None

    def until(self, verb):
        """All events up to the first of this name."""
        seen = []
        while not seen or seen[-1][1] != verb:
            seen.append(self.next())
        return seen

    def close(self):
        self.answer.close()
        self.connection.close()


def number(event):
    """The number of an entry of the journal that came over the stream."""
    return int(event[0].rpartition(".")[2])


@contextlib.contextmanager
def listening(client, last=None, cookie=None):
    install = client.install
    before = install.built.feed.listeners
    stream = Stream(client, last, cookie)
    until(lambda: install.built.feed.listeners != before, 30, "nobody listens", every=0.01)
    try:
        yield stream
    finally:
        stream.close()


def test_a_listener_hears_what_happens_within_a_second(client, install):
    """Each entry of the journal, in order, with its number; nothing of what was before."""
    client.text("Before anybody listened.")
    assert event_feed.EVERY < 0.75  # what it waits by itself; the rest is work
    waits = []
    with listening(client) as stream:
        while not waits or (waits[-1] >= 1.0 and len(waits) < 5):  # a busy machine may be late, not each time
            response = client.text(f"Some words, {len(waits)}.")
            began = time.monotonic()
            number, verb, data = stream.next()
            waits.append(time.monotonic() - began)
            assert (verb, data["subject"], data["reason"]) == (
                "request",
                f"document:{response['id']}",
                "accepted:never_done",
            )
            assert number.rpartition(".")[2] == str(data["id"])
    assert min(waits) < 1.0


def test_a_listener_that_comes_back_misses_nothing_and_hears_nothing_twice(client, install):
    """It says which entry it had last."""
    client.text("One.")
    with listening(client, last=0) as stream:
        first, _, _ = stream.next()
    client.text("Two.")
    client.text("Three.")
    with listening(client, last=first) as stream:
        client.text("Four.")
        numbers = [number(stream.next()) for _ in range(3)]
    journal = lambda: [one["id"] for one in client.get("events").json["events"]]
    until(lambda: journal()[-1:] == numbers[-1:], 10, "the newest entry is held back for ever")
    assert [number((first,)), *numbers] == journal()


def test_progress_is_told_when_it_changes(client, install):
    """Without a number, so that coming back goes on from the journal."""
    response = client.text("Some words.")
    with listening(client) as stream:
        claim = install.begun()
        fenced.advance(install.worker.db, claim, fenced.Report(done=2, total=5, unit="pages"))
        while True:
            number, name, data = stream.next()
            if name == "progress" and data["progress"]["done"] == 2:
                break
        assert number is None
        assert (data["subject"], data["status"]) == (f"document:{response['id']}", "indexing")
        assert (data["progress"]["total"], data["progress"]["unit"]) == (5, "pages")


def test_a_listener_hears_of_its_own_tenant_alone(install):
    """What others do is silence."""
    mine, theirs = install.key("mine"), install.key("theirs")
    with listening(mine) as stream:
        theirs.text("Their words.")
        created = mine.text("My words.")
        _, _, data = stream.next()
        assert data["subject"] == f"document:{created['id']}"


def test_nobody_looks_while_nobody_listens(client, install):
    """The watch ends with its last listener."""
    fed = install.built.feed
    with listening(client):
        assert fed.listeners == 1
        watching = until(lambda: fed._watching, 10, "nobody looks")

    def ended():
        client.text(f"Something to be told at {time.monotonic()}.")
        return watching.done()

    until(ended, 10, "it goes on looking", every=0.1)
    assert fed.listeners == 0


def test_the_server_ends_while_others_listen(client, install):
    """Streams end first, and at once: nobody waits as long as an open request may be waited for."""
    install.server.config.timeout_graceful_shutdown = 60
    with listening(client) as stream:
        install.server.end()
        while stream.next() is not None:
            pass
        install._thread.join(30)
        assert not install._thread.is_alive()


def test_a_listener_that_lags_behind_is_let_go(monkeypatch):
    """It hears what it was told so far, and then the end."""
    monkeypatch.setattr("holdfast.api.event_feed.MOST_WAITING", 2)
    listener = Listener("default")
    for happening in ("one", "two", "three", "four"):
        listener.tell(happening)
    heard = [listener.waiting.get_nowait() for _ in range(3)]
    assert heard == ["one", "two", None]
    assert listener.waiting.empty()


def test_a_stream_ends_rather_than_fall_silent(client, install, monkeypatch):
    """When the watch itself goes wrong, whoever listens is cut off, and may come back."""
    with listening(client) as stream, monkeypatch.context() as patch:
        patch.setattr(events, "running", Mock(side_effect=ValueError("a defect")))
        assert stream.next() is None
    with listening(client) as stream:
        client.text("Heard again.")
        assert stream.next()[1] == "request"


def revoked(install, _session):
    for key in install.access.every():
        install.access.revoke(key.id)


def run_out(install, _session):
    past = update(api_keys).values(expires_at=1.0)
    install.runtime.db.write("by_hand", lambda tx: tx.execute(past))


def signed_out(install, session):
    install.access.sign_out(session)


@pytest.mark.parametrize(
    ("end", "by_session"),
    [(revoked, False), (run_out, False), (revoked, True), (run_out, True), (signed_out, True)],
)
def test_a_stream_ends_with_the_key_that_opened_it(install, end, by_session):
    """Revoked, run out or signed out: with the next beat nothing more is told, however much happens."""
    install.built.feed.beat = 0.2
    other = install.key("default")
    client = install.key("default")
    session = install.access.sign_in(client.key) if by_session else None
    shown = install.client if by_session else client
    with listening(shown, cookie=session) as stream:
        other.text("Heard.")
        stream.until("request")
        end(install, session)
        while stream.next() is not None:
            pass


def test_a_stream_without_a_key_ends_with_the_first_key(client, install):
    """From then on nobody listens without one; the others go on."""
    install.built.feed.beat = 0.2
    with listening(client) as stream:
        keyed = install.key("default")
        while stream.next() is not None:
            pass
    with listening(keyed) as stream:
        beats = install.built.feed.beat * 3
        began = time.monotonic()
        until(lambda: time.monotonic() - began > beats, 10, "some beats have passed", every=0.05)
        keyed.text("Still heard.")
        stream.until("request")


def test_one_tenant_leaves_places_for_others(install, monkeypatch):
    """It holds no more streams than are left free; a place that it gives back is its own again."""
    monkeypatch.setattr(event_feed, "MOST_LISTENERS", 6)
    greedy, other = install.key("greedy"), install.key("other")
    with contextlib.ExitStack() as streams:
        open_ = [streams.enter_context(listening(greedy)) for _ in range(3)]
        said = greedy.get("events/stream")
        assert (said.status, said.code) == (429, "too_many_listeners")
        streams.enter_context(listening(other))
        open_[0].close()

        def made_room():
            assert greedy.text(f"Told at {time.monotonic()}.")
            return install.built.feed.listeners == 3

        until(made_room, 30, "a place gets free", every=0.1)
        streams.enter_context(listening(other))
        assert other.get("events/stream").status == 429
