"""`holdfast api` as a process: what it refuses, what it needs, and how it ends."""

import contextlib
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from holdfast import bootstrap, cli
from holdfast.api import server
from tests.api.install import PREFIX

MIB = 1024 * 1024


@pytest.fixture
def environment(sqlite_url, tmp_path):
    return {
        **os.environ,
        "HOLDFAST_DATA_DIR": str(tmp_path / "data"),
        "HOLDFAST_DATABASE_URL": sqlite_url,
        "HOLDFAST_MOST_BYTES": str(8 * MIB),
    }


@pytest.fixture
def holdfast(environment, monkeypatch, capsys):
    """`holdfast("keys", "list")` runs a command in this process: its exit code, its words, its complaint."""

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["holdfast", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return command


@pytest.fixture
def process(environment):
    """The API on a free port; the process and the port."""
    running = subprocess.Popen(
        [sys.executable, "-m", "holdfast.cli", "api", "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with running:
        line = running.stdout.readline()
        yield running, int(re.search(r":(\d+)$", line.strip())[1])
        running.kill()


def call(port, method, path, body=None, headers=None):
    with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_without_a_key_it_is_served_to_this_machine_alone(holdfast):
    """Exit code 2 and one line that says what to do."""
    code, _, complaint = holdfast("api", "--host", "0.0.0.0", "--port", "0")
    assert code == 2
    assert complaint.count("\n") == 1
    assert "holdfast keys create" in complaint
    assert "[keys_needed]" in complaint


def test_a_port_that_is_taken_is_told(holdfast):
    """Exit code 4: somebody must make room."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, complaint = holdfast("api", "--port", str(taken.getsockname()[1]))
    assert code == 4
    assert "[port_in_use]" in complaint


def test_what_was_loaded_at_the_start_is_not_looked_through_for_garbage_again(holdfast, monkeypatch):
    """A look through all of it would stop every request for longer than most of them take."""
    frozen = []
    monkeypatch.setattr(server.ApiServer, "run", lambda *_, **__: frozen.append(gc.get_freeze_count()))
    thresholds = gc.get_threshold()
    try:
        code, _, _ = holdfast("api", "--port", "0")
        looked_at = len(gc.get_objects())
        assert (code, gc.get_threshold()) == (0, bootstrap.GARBAGE)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
    assert frozen[0] > 10 * looked_at


def test_keys_are_made_listed_and_revoked(holdfast):
    """The token is printed once, alone on its line."""
    code, token, _ = holdfast("keys", "create", "ci", "--tenant", "acme", "--scope", "read")
    assert (code, token[:3], token.count("\n")) == (0, "hf_", 1)
    code, listed, _ = holdfast("keys", "list", "--json")
    (key,) = json.loads(listed)
    assert (key["name"], key["tenant"], key["scopes"]) == ("ci", "acme", ["read"])
    assert token.strip() not in listed
    assert holdfast("keys", "revoke", key["id"])[0] == 0
    assert holdfast("keys", "revoke", "nobody")[0] == 5


def test_sigterm_ends_it_in_seconds_while_others_listen(process):
    """With exit code 0, and the streams closed."""
    running, port = process
    with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", f"{PREFIX}/events/stream")
        stream = connection.getresponse()
        assert stream.readline() == b": listening\n"
        running.send_signal(signal.SIGTERM)
        assert stream.read() == b"\n"
        assert running.wait(20) == 0
        stream.close()


def test_sigterm_between_the_address_and_the_first_request_ends_it(environment):
    """Whoever has read the address may stop it, also before the server listens to signals itself."""
    early = (
        "import signal; from holdfast import bootstrap, cli; "
        "bootstrap.settle_down = lambda: signal.raise_signal(signal.SIGTERM); cli.main()"
    )
    words = [sys.executable, "-c", early, "api", "--port", "0"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout.startswith("holdfast api: http://")) == (0, True)


def memory(running):
    """The most memory that the process ever had, in bytes."""
    folder = Path(f"/proc/{running.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", folder)[1]) * 1024


def test_an_upload_of_300_mb_is_refused_at_the_limit_and_takes_no_memory(process, tmp_path):
    """It is never whole in memory, nor on disk; nothing of it is left."""
    running, port = process
    body = b'{"id": "shelf"}'
    assert call(port, "POST", f"{PREFIX}/collections", body, {"Content-Type": "application/json"})[0] == 201
    before = memory(running)
    path = f"{PREFIX}/collections/shelf/documents"
    status, said, sent = pour(port, path, 300 * MIB)
    assert status == 413
    assert b'"too_large"' in said
    assert sent < 120 * MIB
    assert memory(running) - before < 24 * MIB
    assert list((tmp_path / "data/blobs/partial").iterdir()) == []
    assert call(port, "GET", "/healthz")[0] == 200


def pour(port, path, size):
    """Send a body of so many bytes, without saying how many, until the server answers."""
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    sent, said = 0, b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\n\r\n".encode()
        )
        line.sendall(b"%x\r\n%s\r\n" % (len(head), head))
        part = b"%x\r\n%s\r\n" % (MIB, b"x" * MIB)
        with contextlib.suppress(OSError):
            while sent < size and not said:
                line.sendall(part)
                sent += MIB
                line.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    said = line.recv(65536)
                line.settimeout(10)
        line.settimeout(10)
        with contextlib.suppress(OSError):  # head and body of the answer may come apart
            while more := line.recv(65536):
                said += more
    return int(said.split(b" ", 2)[1]), said, sent
