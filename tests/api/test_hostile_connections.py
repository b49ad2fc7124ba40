"""Clients that do not take their answers, and more of them than there is room for."""

import asyncio
import contextlib
import itertools
import json
import select
import socket

import pytest

from holdfast.api import connections, http_headers
from holdfast.chaos.waiting import until
from tests.api.install import PREFIX, ApiInstall
from tests.api.test_hostile_clients import heard_or_cut
from tests.api.test_stream import listening

ROOM = 4


@pytest.fixture
def narrow(sqlite_url, tmp_path):
    """An installation with room for few."""
    install = ApiInstall(sqlite_url, tmp_path / "data", api_clients=ROOM)
    yield install
    install.close()


def deaf(install):
    """A connection of somebody who reads nothing; the system takes as little for them as it can."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.settimeout(30)
    line.connect(("127.0.0.1", install.port))
    return line


def ask(line, path):
    line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())


def is_reset(line):
    """True when the other side has cut the connection; nothing is read to find out."""
    looked = select.poll()
    looked.register(line, 0)
    return any(what & select.POLLERR for _, what in looked.poll(0))


def taken(install):
    """The connections that the server keeps."""
    return list(install.server.server_state.connections)


def test_answers_that_nobody_takes_are_not_kept(small):
    """One of them is in memory at a time, then the connection is reset; others are served meanwhile."""
    held = []
    with deaf(small) as line:
        for _ in range(20):
            ask(line, f"{PREFIX}/openapi.json")

        def cut():
            held.extend(each.transport.get_write_buffer_size() for each in taken(small))
            assert small.client.get("/healthz").status == 200
            return is_reset(line)

        until(cut, 60, "it was cut")
        until(lambda: not taken(small), 20, "it is gone")
    whole = len(small.client.get(f"{PREFIX}/openapi.json").raw)
    assert 0 < max(held) < 1.5 * whole  # what the kernel has taken is not counted


def test_a_listener_that_does_not_hear_is_let_go(small):
    """Its stream has ended on our side, and its place is another's."""
    client = small.client
    created = client.collection()
    with deaf(small) as line:
        ask(line, f"{PREFIX}/events/stream?cursor=0")
        until(lambda: small.built.feed.listeners == 1, 20, "it listens")
        number = itertools.count()

        def cut():
            title = f"{next(number)} " + "t" * 200
            client.post(f"collections/{created}/documents", {"text": title, "title": title})
            return is_reset(line)

        until(cut, 120, "it was cut", 0.0)
        until(lambda: small.built.feed.listeners == 0, 20, "nobody listens")
        until(lambda: not taken(small), 20, "it is gone")


class Line(asyncio.Transport):
    """A connection whose other side takes so many bytes each time somebody looks."""

    def __init__(self, waiting, taken):
        super().__init__({})
        self.waiting, self.taken, self.aborted = waiting, taken, asyncio.Event()

    def set_write_buffer_limits(self, high=None, low=None):
        self.high = high

    def get_write_buffer_size(self):
        result, self.waiting = self.waiting, max(0, self.waiting - self.taken)
        return result

    def abort(self):
        self.aborted.set()


class Served(asyncio.Protocol):
    """What every protocol of uvicorn has."""

    def __init__(self):
        self.connections, self.app_state = {self}, {}


@pytest.mark.parametrize(("taken", "looks"), [(0, 2), (300, 5)])
def test_whoever_takes_something_keeps_the_connection(taken, looks):
    """It is cut when nothing was taken between two looks, however little was before."""

    async def told():
        line = Line(1000, taken)
        one = connections.bounded(Served, 0.01, 9)()
        one.connection_made(line)
        assert line.high == 0
        counted = []
        real = line.get_write_buffer_size
        line.get_write_buffer_size = lambda: counted.append(real()) or counted[-1]
        one.pause_writing()
        await asyncio.wait_for(line.aborted.wait(), 30)
        return counted

    result = asyncio.run(told())
    assert result[-1] == result[-2]
    assert len(result) >= looks


def test_connections_above_the_limit_are_told_to_come_back(narrow):
    """503 in the one shape and an end; `/healthz` answers; who was there before is served; a place that
    gets free is given away.
    """
    client = narrow.client
    client.collection()
    until(lambda: not taken(narrow), 20, "nobody is there")
    with contextlib.ExitStack() as open_:
        streams = [open_.enter_context(listening(client)) for _ in range(ROOM)]
        refused = client.get("collections")
        assert (refused.status, refused.code) == (503, "too_many_connections")
        assert (refused.headers["retry-after"], refused.headers["connection"]) == ("5", "close")
        assert refused.headers["x-content-type-options"] == "nosniff"
        upload = client.upload("collections/shelf/documents", b"x" * 100_000)
        assert (upload.status, upload.code) == (503, "too_many_connections")
        healthy = client.get("/healthz")
        assert (healthy.status, healthy.headers["connection"]) == (200, "close")
        assert narrow.built.feed.listeners == ROOM
        streams.pop().close()
        until(lambda: client.get("collections").status == 200, 20, "there is room again")
        client.text("Some words.")
        assert {stream.next()[1] for stream in streams} == {"request"}


def test_a_flood_is_turned_away_before_it_asks(narrow, monkeypatch):
    """Above the places beside the limit nobody is waited for; who is waited for is so for seconds."""
    monkeypatch.setattr(connections, "HURRY", 0.5)
    lines = [socket.create_connection(("127.0.0.1", narrow.port), timeout=30) for _ in range(ROOM)]
    until(lambda: len(taken(narrow)) == ROOM, 20, "all places are taken")
    flood = [
        socket.create_connection(("127.0.0.1", narrow.port), timeout=30)
        for _ in range(connections.BESIDE + 20)
    ]
    until(lambda: len(taken(narrow)) <= ROOM + connections.BESIDE, 20, "no more are kept")
    heard = [heard_or_cut(line) for line in flood]
    assert len(taken(narrow)) == ROOM
    for line in [*lines, *flood]:
        line.close()
    items = [each for each in heard if each]
    assert 0 < len(items) <= 20
    for each in items:
        head, _, body = each.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 5" in head
        assert json.loads(body)["error"]["code"] == "too_many_connections"
    until(lambda: narrow.client.get("collections").status == 200, 20, "there is room again")


def test_the_system_has_the_last_word_on_how_many_there_can_be(monkeypatch):
    """A quarter of what may be open is kept for everything else."""
    for allowed, result in ((1024, 736), (64, 16), (10, 1), (1_000_000, 4000), (-1, 4000)):
        monkeypatch.setattr(connections.resource, "getrlimit", lambda _, n=allowed: (n, n))
        assert connections.most(4000) == result
    monkeypatch.setattr(
        connections.resource, "getrlimit", lambda _: (connections.resource.RLIM_INFINITY,) * 2
    )
    assert connections.most(4000) == 4000


def test_what_is_put_before_a_protocol_has_names_of_its_own():
    """Both are one object: a timer of one name was stopped by the other."""
    own = {name for name in vars(connections.Bounded) if name.startswith("_") and not name.endswith("__")}
    assert own
    assert not own & {name for type_name in http_headers.HeaderDeadline.__mro__ for name in vars(type_name)}
