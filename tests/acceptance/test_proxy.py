"""The proxy does to a connection what the scenarios say of it."""

import contextlib
import socket
import threading

import pytest

from holdfast.chaos.proxy import Proxy
from holdfast.chaos.waiting import until


@pytest.fixture
def echo():
    """A server that says back what it hears."""

    def serve(connection):
        with connection, contextlib.suppress(ConnectionResetError):
            while data := connection.recv(100):
                connection.sendall(data)

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


@pytest.fixture
def proxy(echo):
    """A proxy in front of it."""
    with Proxy("127.0.0.1", echo) as proxy:
        yield proxy


@pytest.fixture
def client(proxy):
    """A connection through the proxy, over which something was said."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as client:
        assert said(client) == b"hello"
        yield client


def said(client):
    client.sendall(b"hello")
    return client.recv(100)


def test_cut_by_reset(proxy, client):
    """A reset is felt as one."""
    assert proxy.cut() == 1
    with pytest.raises(ConnectionResetError):
        client.recv(1)


def test_cut_in_order(proxy, client):
    """An orderly end is felt as one, and new connections pass."""
    assert proxy.cut(reset=False) == 1
    assert client.recv(1) == b""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as another:
        assert said(another) == b"hello"


def test_black_hole(proxy, client):
    """In a black hole nothing is heard and nothing ends, for old and new connections, until it is healed."""
    proxy.black_hole()
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=0.2) as another:
        for each in (client, another):
            each.settimeout(0.2)
            with pytest.raises(TimeoutError):
                said(each)
    until(lambda: proxy.swallowed == 10, 5, "both greetings were swallowed")
    proxy.heal()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as another:
        assert said(another) == b"hello"


def test_who_speaks(proxy, client):
    """Whoever shows a key is known by the port from which the proxy speaks for them."""
    client.sendall(b"POST / HTTP/1.1\r\nAuthorization: Bearer w1\r\n\r\n")
    client.recv(100)
    assert list(proxy.bearers.values()) == ["w1"]
