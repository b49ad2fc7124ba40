"""A gateway as a process of its own, and clients as processes that can be killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from holdfast.testing.meter import Meter

# The least a client can be, so that hundreds can be killed: it sends, reads and says that it has got all.
CLIENT = """
import socket, sys
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
body = sys.stdin.buffer.read()
head = [f"POST {sys.argv[2]} HTTP/1.1", "Host: localhost", "Connection: close"]
head.append(f"Content-Length: {len(body)}")
line.sendall("\\r\\n".join([*head, "", ""]).encode() + body)
while line.recv(65536): pass
"""


class GatewayProcess:
    """`holdfast gateway`, as an operator starts it."""

    def __init__(self, url: str, folder: Path, meter: Meter) -> None:
        self._environment = {
            **os.environ,
            "HOLDFAST_DATABASE_URL": url,
            "HOLDFAST_DATA_DIR": str(folder),
            "HOLDFAST_LLM_PROVIDER": "openai",
            "HOLDFAST_LLM_BASE_URL": meter.base_url,
            "HOLDFAST_EMBEDDING_PROVIDER": "openai",
            "HOLDFAST_EMBEDDING_BASE_URL": meter.base_url,
            "HOLDFAST_EMBEDDING_MODEL": "text-embedding-3-small",
        }
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """It serves."""
        command = [sys.executable, "-m", "holdfast.cli", "gateway", "--port", "0"]
        self._process = subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("holdfast gateway: http://"), line
        self.port = int(line.strip().rpartition(":")[2])

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """It has ended; its exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        code = self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
        return code

    def close(self) -> None:
        """It has ended."""
        if self._process is not None:
            self.stop(signal.SIGKILL)

    def path(self, endpoint: str, scope: str = "") -> str:
        return f"/gateway/scope/{scope}/v1/{endpoint}" if scope else f"/gateway/v1/{endpoint}"

    def post(self, endpoint: str, body: Any, scope: str = "") -> tuple[int, str, bytes]:
        """Status, charge and body."""
        with contextlib.closing(HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("POST", self.path(endpoint, scope), json.dumps(body))
            answer = connection.getresponse()
            return answer.status, answer.getheader("holdfast-charge", ""), answer.read()

    @contextlib.contextmanager
    def client(self, endpoint: str, body: Any, scope: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """A client process that waits for its answer; killed at the end of the block."""
        command = [sys.executable, "-I", "-S", "-c", CLIENT, str(self.port), self.path(endpoint, scope)]
        client = subprocess.Popen(command, stdin=subprocess.PIPE)
        assert client.stdin is not None
        client.stdin.write(json.dumps(body).encode())
        client.stdin.close()
        try:
            yield client
        finally:
            client.kill()
            client.wait()
