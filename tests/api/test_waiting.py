"""Who waits for somebody else's server holds up nobody else."""

import contextlib
import socket
import threading
from http.client import HTTPConnection

import pytest

from holdfast.testing.meter import Meter
from tests.acceptance.patience import until
from tests.api.house import House

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


def asked(work):
    """Each of these in a thread of its own, under way."""
    threads = [threading.Thread(target=one) for one in work]
    for one in threads:
        one.start()
    return threads


def status_of(house, path):
    """What is answered to a browser that asks for a page."""
    with contextlib.closing(HTTPConnection("127.0.0.1", house.port, timeout=60)) as line:
        line.request("GET", path)
        return line.getresponse().status


@pytest.mark.g6
def test_slow_addresses_do_not_stop_the_others(sqlite_url, tmp_path):
    """More of them than there are threads: documents are added, found and refused as ever."""
    house = House(sqlite_url, tmp_path / "data", api_threads=THREADS, fetch_private=True)
    client = house.client
    made = client.text("Some words.")
    said = []
    with silent() as (port, come):
        url = f"http://127.0.0.1:{port}/slow"
        waiting = asked(
            [lambda: said.append(client.post("collections/shelf/documents", {"url": url}))] * (THREADS + 3)
        )
        until(lambda: len(come) == len(waiting), 30, "all of them wait")
        assert client.get("/healthz").status == 200
        assert client.get(f"documents/{made['id']}").status == 200
        assert client.post(f"documents/{made['id']}/index", {"mode": "retry"}).status == 409
        assert client.text("Other words.")["index_status"] == "queued"
        assert said == []
    for one in waiting:
        one.join(60)
    assert [one.code for one in said] == ["url_failed"] * len(waiting)
    house.close()


def test_a_slow_provider_of_embeddings_does_not_stop_the_others(sqlite_url, tmp_path):
    """More questions wait for it than there are threads, over the API and on the page."""
    with Meter() as meter:
        house = House(
            sqlite_url,
            tmp_path / "data",
            api_threads=THREADS,
            embedding_provider="openai",
            embedding_base_url=meter.base_url,
            embedding_api_key="key",
        )
        client = house.client
        made = client.text("Some words.")
        meter.hold("after")
        said = []
        paths = [f"search?collection=shelf&q=word{number}" for number in range(THREADS + 2)]
        pages = [f"/search?collection=shelf&q=other{number}" for number in range(THREADS + 2)]
        waiting = asked([lambda path=path: said.append(client.get(path).status) for path in paths])
        waiting += asked([lambda path=path: said.append(status_of(house, path)) for path in pages])
        meter.wait_open(len(waiting), 30.0)
        assert client.get("/healthz").status == 200
        assert client.get(f"documents/{made['id']}").status == 200
        assert said == []
        meter.release()
        for one in waiting:
            one.join(60)
        assert said == [200] * len(waiting)
        house.close()
