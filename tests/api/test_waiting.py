"""Who waits for somebody else's server holds up nobody else."""

import contextlib
import socket
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import pytest

from holdfast.chaos.waiting import until
from holdfast.testing.meter import Meter
from holdfast.web import slow_requests
from tests.api.install import ApiInstall

THREADS = 2


@contextlib.contextmanager
def silent():
    """An address that takes every connection and says nothing; its port, and how many have come."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as line:
        come = []

        def take():
            with contextlib.suppress(OSError):
                while True:
                    come.append(line.accept()[0])

        threading.Thread(target=take, daemon=True).start()
        yield line.getsockname()[1], come
        line.shutdown(socket.SHUT_RDWR)
        for one in come:
            one.close()


@contextlib.contextmanager
def page(text, port=0):
    """An address that gives this text at once."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}/page"
        served.shutdown()


def asked(work):
    """Each of these in a thread of its own, under way."""
    threads = [threading.Thread(target=one) for one in work]
    for one in threads:
        one.start()
    return threads


def status_of(install, path):
    """What is answered to a browser that asks for a page."""
    with contextlib.closing(HTTPConnection("127.0.0.1", install.port, timeout=60)) as line:
        line.request("GET", path)
        return line.getresponse().status


@pytest.mark.g6
def test_slow_addresses_do_not_stop_the_others(sqlite_url, tmp_path):
    """More of them than there are threads: documents are added, found and refused as ever."""
    install = ApiInstall(sqlite_url, tmp_path / "data", api_threads=THREADS, fetch_private=True)
    client = install.client
    response = client.text("Some words.")
    said = []
    with silent() as (port, come):
        url = f"http://127.0.0.1:{port}/slow"
        waiting = asked(
            [lambda: said.append(client.post("collections/shelf/documents", {"url": url}))] * (THREADS + 3)
        )
        until(lambda: len(come) == len(waiting), 30, "all of them wait")
        assert client.get("/healthz").status == 200
        assert client.get(f"documents/{response['id']}").status == 200
        assert client.post(f"documents/{response['id']}/index", {"mode": "retry"}).status == 409
        assert client.text("Other words.")["index_status"] == "queued"
        assert said == []
    for one in waiting:
        one.join(60)
    assert [one.code for one in said] == ["url_failed"] * len(waiting)
    install.close()


def test_a_slow_provider_of_embeddings_does_not_stop_the_others(sqlite_url, tmp_path):
    """More questions wait for it than there are threads, over the API and the web UI."""
    with Meter() as meter:
        install = ApiInstall(
            sqlite_url,
            tmp_path / "data",
            api_threads=THREADS,
            embedding_provider="openai",
            embedding_base_url=meter.base_url,
            embedding_api_key="key",
        )
        client = install.client
        response = client.text("Some words.")
        meter.hold("after")
        said = []
        paths = [f"search?collection=shelf&q=word{number}" for number in range(THREADS + 2)]
        pages = [f"/search?collection=shelf&q=other{number}" for number in range(THREADS + 2)]
        waiting = asked([lambda path=path: said.append(client.get(path).status) for path in paths])
        waiting += asked([lambda path=path: said.append(status_of(install, path)) for path in pages])
        meter.wait_open(len(waiting), 30.0)
        assert client.get("/healthz").status == 200
        assert client.get(f"documents/{response['id']}").status == 200
        assert said == []
        meter.release()
        for one in waiting:
            one.join(60)
        assert said == [200] * len(waiting)
        install.close()


PLENTY = 45


@pytest.mark.g6
def test_slow_addresses_of_one_tenant_hold_up_no_other(sqlite_url, tmp_path):
    """Another's question is embedded and another's URL is fetched while 45 wait, and more wait in line."""
    with Meter() as meter, silent() as (port, come):
        install = ApiInstall(
            sqlite_url,
            tmp_path / "data",
            api_threads=THREADS,
            embedding_provider="openai",
            embedding_base_url=meter.base_url,
            embedding_api_key="key",
        )
        greedy, other = install.key("greedy"), install.key("other")
        greedy.collection()
        other.text("Some words.")
        url, said = f"http://127.0.0.1:{port}/slow", []
        ask = lambda: said.append(greedy.post("collections/shelf/documents", {"url": url}))
        waiting = asked([ask] * PLENTY)
        share = slow_requests.MOST[slow_requests.Pool.FETCHES] // 2
        until(lambda: len(come) >= share, 60, "they wait")
        assert other.get("search?collection=shelf&q=words").status == 200
        with page("Other words.") as address:
            assert other.post("collections/shelf/documents", {"url": address}).status == 202
        assert said == []
        assert len(come) == share
    for one in waiting:
        one.join(60)
    assert [one.code for one in said] == ["url_failed"] * PLENTY
    install.close()


def test_slow_questions_of_one_tenant_hold_up_no_other(sqlite_url, tmp_path):
    """Another's is sent to the provider though the first tenant asks more than there is room for."""
    with Meter() as meter:
        install = ApiInstall(
            sqlite_url,
            tmp_path / "data",
            embedding_provider="openai",
            embedding_base_url=meter.base_url,
            embedding_api_key="key",
        )
        greedy, other = install.key("greedy"), install.key("other")
        greedy.collection()
        other.collection()
        meter.hold("after")
        room = slow_requests.MOST[slow_requests.Pool.QUESTIONS]
        ask = lambda who, word: who.get(f"search?collection=shelf&q={word}")
        waiting = asked([lambda n=n: ask(greedy, f"word{n}") for n in range(room + 6)])
        meter.wait_open(room // 2, 60.0)
        waiting += asked([lambda: ask(other, "mine")])
        try:
            meter.wait_open(room // 2 + 1, 30.0)
        finally:
            meter.release()
        for one in waiting:
            one.join(120)
        install.close()


def test_a_place_that_gets_free_goes_to_whoever_holds_the_fewest():
    """Half of what is left is the most that anybody holds; one who goes away leaves the line."""

    async def story():
        places, order = slow_requests.Places(4), []
        done = {name: anyio.Event() for name in ("a1", "a2", "a3", "b1")}

        async def hold(name):
            async with places.place(name[0]):
                order.append(name)
                await done[name].wait()

        async with anyio.create_task_group() as group:
            for name in done:
                group.start_soon(hold, name)
                await anyio.wait_all_tasks_blocked()
            assert order == ["a1", "a2", "b1"]
            with anyio.move_on_after(0.01):
                await hold("a3")
            done["a1"].set()
            await anyio.wait_all_tasks_blocked()
            assert order == ["a1", "a2", "b1", "a3"]
            for each in done.values():
                each.set()

    anyio.run(story)
