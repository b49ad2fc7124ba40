"""Clients that take their time, lead us astray or hand in bombs: a clear refusal, and nothing left behind."""

import asyncio
import gzip
import http.server
import json
import os
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.exceptions import HTTPException

from holdfast.api import limits
from holdfast.chaos.waiting import until
from holdfast.documents import addresses
from tests.api.install import PREFIX, ApiInstall
from tests.documents import files

MIB = 1024 * 1024
OUTSIDE, INSIDE = "127.0.0.2", "127.0.0.1"


def connected(install):
    return socket.create_connection(("127.0.0.1", install.port), timeout=30)


def heard(line):
    """All that is said until the connection is closed."""
    said = b""
    while part := line.recv(65536):
        said += part
    return said


@pytest.mark.parametrize("first", [False, True])
def test_a_head_that_does_not_come_to_its_end_is_not_waited_for(small, first):
    """408 in the one shape, on a new connection and on one that was answered before; others are served."""
    with connected(small) as line:
        if first:
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answered = line.recv(65536)
            while not answered.endswith(b"}"):  # head and body may come apart
                answered += line.recv(65536)
            assert answered.startswith(b"HTTP/1.1 200")
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        over, dripped = threading.Event(), []

        def drip():
            while not over.wait(0.1):
                try:
                    line.sendall(b"x")
                except OSError:
                    return
                dripped.append(1)

        thread = threading.Thread(target=drip)
        thread.start()
        assert small.client.get("/healthz").status == 200
        said = heard_or_cut(line)
        over.set()
        thread.join(10)
    assert dripped
    assert said == b"" or (b" 408 " in said and b'"too_slow"' in said)


def heard_or_cut(line):
    """What is said; one who still sends may find the connection reset instead."""
    try:
        return heard(line)
    except ConnectionResetError:
        return b""


def test_a_head_that_stops_is_answered(small):
    """With the reason, and an end of the connection."""
    with connected(small) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        said = heard(line)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert said.endswith(b'send them at once"}}')


HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LENGTHY = {
    "many": HEAD + b"".join(b"x-%d: %s\r\n" % (number, b"v" * 200) for number in range(400)) + b"\r\n",
    "one that does not end": HEAD + b"x: " + b"v" * 100_000,
    "address": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


@pytest.mark.parametrize("head", LENGTHY.values(), ids=LENGTHY)
def test_a_head_that_is_too_long_is_refused(small, head):
    """431 in the one shape; whoever still sends may find the connection reset instead."""
    with connected(small) as line:
        line.sendall(head)
        said = heard_or_cut(line)
    assert said == b"" or (said.startswith(b"HTTP/1.1 431 ") and b'"head_too_large"' in said)
    assert small.client.get("/healthz").status == 200


NO_REQUESTS = {
    "two hosts": HEAD + b"Host: elsewhere\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a proxy's": b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "no ASCII": "GET /ü HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode(),
    "a folded header": HEAD + b"x: 1\r\n 2\r\n\r\n",
    "a nameless header": HEAD + b": 1\r\n\r\n",
}


@pytest.mark.parametrize("sent", NO_REQUESTS.values(), ids=NO_REQUESTS)
def test_what_is_no_request_is_told_so_in_the_one_shape(small, sent):
    """400, and the connection ends; nothing of it reaches a route."""
    with connected(small) as line:
        line.sendall(sent)
        said = heard(line)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"


OFFERED = (
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"
)


@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_another_protocol_that_is_offered_is_not_taken_up(small, size):
    """Java's client offers one with each request; body and next request are read as ever."""
    body = b'{"id": "offered"}'
    post = f"POST {PREFIX}/collections HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode() + OFFERED
    post += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    sent = post + body + HEAD + OFFERED + b"\r\n" + HEAD + b"Connection: close\r\n\r\n"
    with connected(small) as line:
        for start in range(0, len(sent), size):
            line.sendall(sent[start : start + size])
        said = heard(line)
    answers = [part[:3] for part in said.split(b"HTTP/1.1 ")[1:]]
    assert answers == [b"201", b"200", b"200"]
    assert small.client.get("collections/offered").status == 200


def test_a_connection_that_says_nothing_is_closed(small):
    """However many there are: none keeps its place."""
    lines = [connected(small) for _ in range(20)]
    assert small.client.get("/healthz").status == 200
    assert [heard(line) for line in lines] == [b""] * 20
    for line in lines:
        line.close()


def test_a_body_that_drips_is_not_waited_for(small):
    """It never pauses for long, and would still take a day."""
    small.client.collection("empty")
    head = f"POST {PREFIX}/collections/empty/documents HTTP/1.1\r\nHost: 127.0.0.1:{small.port}\r\n"
    with connected(small) as line:
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 10000\r\n\r\n".encode())
        began, said = time.monotonic(), b""
        line.settimeout(0.1)
        while not said and time.monotonic() - began < 60:
            try:
                line.sendall(b" ")
                said = line.recv(65536)
            except TimeoutError:
                continue
    assert said.split(b" ", 2)[1] == b"408"
    assert small.client.get("collections/empty/documents").json["documents"] == []


@pytest.mark.parametrize(("piece", "pieces"), [(10_000, 100), (10, 7)])
def test_what_counts_is_how_much_came_in_the_time_that_was_waited(monkeypatch, piece, pieces):
    """Each piece takes five seconds: large ones may go on for ever, of small ones not many are taken."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)

    async def receive():
        clock.now += 5.0
        return {"type": "http.request", "body": b"x" * piece, "more_body": True}

    async def taken():
        passage = limits.LimitedRequest(limits.BodyLimits(10 * MIB, MIB, 30.0, MIB), receive, receive)
        passage.take(limits.BodyKind.CONTENT, "multipart/form-data")
        for number in range(100):
            try:
                await passage.read()
            except HTTPException as error:
                return number, error.status_code
        return 100, None

    monkeypatch.setattr(limits, "time", clock)
    assert asyncio.run(taken()) == (pieces, 408 if pieces < 100 else None)


def test_a_client_that_goes_away_in_a_large_upload_leaves_nothing(install, client):
    """What had come of it is on the disk already, and goes with the connection."""
    client.collection()
    partial = install.settings.data_dir / "blobs" / "partial"
    head = f"POST {PREFIX}/collections/shelf/documents HTTP/1.1\r\nHost: 127.0.0.1:{install.port}\r\n"
    more = f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {50 * MIB}\r\n\r\n"
    with connected(install) as line:
        line.sendall(f"{head}{more}".encode())
        line.sendall(b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n')
        line.sendall(b"x" * (3 * MIB))
        until(lambda: partial.is_dir() and list(partial.iterdir()), 20, "what came is on the disk")
    until(lambda: not list(partial.iterdir()), 20, "it is gone")
    assert client.get("collections/shelf/documents").json["documents"] == []


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="NO /proc: what is written cannot be counted")
def test_an_upload_is_written_to_the_disk_once(install, client):
    """Neither a spool beside it nor a copy, with and without a key; the limit holds all the same."""
    client.collection()
    size = 20 * MIB
    for number, headers in enumerate(({}, {"Idempotency-Key": "large"})):
        content = b"%PDF-1.4\n" + os.urandom(MIB) * (size // MIB)
        before = bytes_written()
        said = client.upload("collections/shelf/documents", content, f"{number}.txt", headers=headers)
        assert said.status == 202
        assert size <= bytes_written() - before < 1.5 * size


def bytes_written():
    """By this process, which the installation is in; what goes over a socket is not counted."""
    output = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(output["wchar"])


class Site:
    """A server outside, which leads inside: it stands on another loopback address that counts as public."""

    def __init__(self, host, pages):
        self.asked = requested = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requested.append(self.path)
                status, headers, body = pages[self.path]
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((host, 0), Handler)
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def wary(sqlite_url, tmp_path, monkeypatch):
    """An installation that fetches from the public internet only; only the test resolves names."""
    real_public, real_names = addresses.is_public, socket.getaddrinfo
    known = {"outside.example": [OUTSIDE], "inside.example": [INSIDE], "both.example": [INSIDE, OUTSIDE]}

    def named(host, port, *more, **others):
        if host not in known:
            return real_names(host, port, *more, **others)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in known[host]]

    monkeypatch.setattr(addresses, "is_public", lambda text: text == OUTSIDE or real_public(text))
    monkeypatch.setattr(addresses.socket, "getaddrinfo", named)
    install = ApiInstall(sqlite_url, tmp_path / "data", fetch_private=False, most_bytes=200_000)
    install.client.collection()
    yield install
    install.close()


@pytest.mark.parametrize(
    "to", [f"http://{INSIDE}:{{port}}/secret", "http://inside.example:{port}/secret", "file:///etc/passwd"]
)
def test_a_page_outside_cannot_lead_inside(wary, to):
    """By a redirect to an address or to a name: 400, the page inside is not asked, nothing is kept."""
    with Site(INSIDE, {"/secret": (200, {}, b"secret")}) as inside:
        pages = {"/": (302, {"Location": to.format(port=inside.port)}, b""), "/plain": (200, {}, b"plain")}
        with Site(OUTSIDE, pages) as outside:
            said = wary.client.post(
                "collections/shelf/documents", {"url": f"http://outside.example:{outside.port}/"}
            )
            assert (said.status, said.code) == (400, "url_forbidden"), said.raw
            fine = wary.client.post(
                "collections/shelf/documents", {"url": f"http://both.example:{outside.port}/plain"}
            )
            assert fine.status == 202, fine.raw
        assert inside.asked == []
    assert len(wary.client.get("collections/shelf/documents").json["documents"]) == 1
    assert len(list(wary.runtime.shelf.older(-60.0))) == 1


def test_a_name_that_stands_for_an_address_inside_is_refused(wary):
    """For a document, and for its refresh when the name has changed its mind since."""
    with Site(INSIDE, {"/secret": (200, {}, b"secret")}) as inside:
        said = wary.client.post(
            "collections/shelf/documents", {"url": f"http://inside.example:{inside.port}/secret"}
        )
        assert (said.status, said.code) == (400, "url_forbidden")
        assert inside.asked == []
    assert wary.client.get("collections/shelf/documents").json["documents"] == []


def test_a_page_that_expands_without_end_is_refused(wary):
    """A bomb of 100 MB in 100 kB stops at the limit of a document."""
    bomb = gzip.compress(b"\0" * (100 * MIB), 9)
    with Site(OUTSIDE, {"/": (200, {"Content-Encoding": "gzip"}, bomb)}) as outside:
        said = wary.client.post(
            "collections/shelf/documents", {"url": f"http://outside.example:{outside.port}/"}
        )
    assert (said.status, said.code) in {(400, "url_too_large"), (413, "url_too_large")}, said.raw
    assert wary.client.get("collections/shelf/documents").json["documents"] == []
    assert list(wary.runtime.shelf.older(-60.0)) == []


def test_an_archive_that_is_a_bomb_fails_and_leaves_nothing_to_find(install, client):
    """It looks like any upload, so it is taken; who looks is told why it came to nothing."""
    bomb = files.replaced(files.word(), "word/zeros.bin", b"\0" * (200 * MIB))
    assert len(bomb) < MIB
    client.collection()
    response = client.upload("collections/shelf/documents", bomb, "plan.docx")
    assert response.status == 202
    install.work()
    body = client.get(f"documents/{response.json['document']['id']}").json
    assert (body["index_status"], body["error"]["code"]) == ("failed", "archive_bomb")
    assert (body["published_generation"], body["chunks"]) == (0, None)
    assert client.get("search?collection=shelf&q=zeros").json["hits"] == []
    assert client.call("DELETE", f"documents/{body['id']}").status == 204
    until(lambda: client.get("collections/shelf/documents").json["documents"] == [], 10, "it is gone")
