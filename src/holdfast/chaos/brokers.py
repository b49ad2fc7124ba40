"""Brokers as a scenario sees them: an address, what lies in them, and how to lose it all."""

import base64
import http.client
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlsplit

from holdfast.chaos.expectations import ScenarioFailedError, expect
from holdfast.extras import LazyModule

if TYPE_CHECKING:
    import redis
else:
    redis = LazyModule("redis")

# Numbers that no other suite uses; database 15 keeps who has which.
NUMBERS = range(16, 64)
REGISTER = 15
TAKEN_FOR = 900


class BrokerControl(Protocol):
    """Where wake-ups lie."""

    url: str

    def outstanding(self) -> dict[str, int]:
        """How many messages lie in each queue, those with a worker included."""

    def flush(self) -> None:
        """Every message and every queue is gone."""

    def close(self) -> None:
        """Nothing of the scenario is left in it."""


class FolderBroker:
    """The embedded default: messages are files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"filesystem://{folder}"

    def _messages(self) -> list[Path]:
        return list(self._folder.rglob("*.msg"))

    def outstanding(self) -> dict[str, int]:
        """How many messages lie in each queue, those with a worker included."""
        counts: dict[str, int] = {}
        for path in self._messages():
            # kombu names a message TIME_ID.QUEUE.msg
            queue = path.name.removesuffix(".msg").partition(".")[2]
            counts[queue] = counts.get(queue, 0) + 1
        return counts

    def flush(self) -> None:
        """Every message is gone."""
        for path in self._messages():
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """It is gone."""
        shutil.rmtree(self._folder, ignore_errors=True)


class RedisBroker:
    """One numbered database of a Redis."""

    def __init__(self, server: str, *, own: bool) -> None:
        self._server, self._own = server, own
        self._number = 0 if own else _take_number(server)
        self.url = f"{server}/{self._number}"
        self._client = redis.Redis.from_url(self.url)
        self._client.flushdb()

    def outstanding(self) -> dict[str, int]:
        """How many messages lie in each queue, those with a worker included."""
        counts: dict[str, int] = {}
        for key in self._client.keys("*"):
            redis_type = self._client.type(key)
            name = os.fsdecode(key)
            if redis_type == b"list":
                counts[name] = self._client.llen(key)
            elif name.startswith("unacked") and redis_type == b"hash":
                counts[name] = self._client.hlen(key)
        return counts

    def flush(self) -> None:
        """FLUSHALL where the server is the scenario's own, else its database only."""
        if self._own:
            self._client.flushall()
        else:
            self._client.flushdb()

    def close(self) -> None:
        """Nothing of the scenario is left in it."""
        try:
            if not self._own:
                self._client.flushdb()
                with redis.Redis.from_url(f"{self._server}/{REGISTER}") as register:
                    register.delete(f"chaos:{self._number}")
        finally:
            self._client.close()


def _take_number(server: str) -> int:
    with redis.Redis.from_url(f"{server}/{REGISTER}") as register:
        for number in NUMBERS:
            if register.set(f"chaos:{number}", os.getpid(), nx=True, ex=TAKEN_FOR):
                return number
    raise ScenarioFailedError("every Redis database is taken")


class RabbitBroker:
    """A virtual host of a RabbitMQ."""

    def __init__(self, server: str, management: str, *, own: bool) -> None:
        self._own = own
        self._management = urlsplit(management)
        self.vhost = f"chaos-{secrets.token_hex(4)}"
        user = self._management.username or ""
        self._ask("PUT", f"/api/vhosts/{self.vhost}")
        allowed = {"configure": ".*", "write": ".*", "read": ".*"}
        self._ask("PUT", f"/api/permissions/{self.vhost}/{user}", allowed)
        self.url = urlsplit(server)._replace(path=f"/{self.vhost}").geturl()

    def _ask(self, verb: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection(
            self._management.hostname or "", self._management.port, timeout=10
        )
        word = f"{self._management.username}:{self._management.password}".encode()
        headers = {"Authorization": f"Basic {base64.b64encode(word).decode()}"}
        try:
            connection.request(verb, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        known = answer.status < 300 or answer.status == 404
        expect(known, f"RabbitMQ says {answer.status} to {verb} {path}")
        return json.loads(content) if content and answer.status < 300 else None

    def outstanding(self) -> dict[str, int]:
        """How many messages lie in each queue, those with a worker included."""
        queues = self._ask("GET", f"/api/queues/{self.vhost}") or []
        return {queue["name"]: queue.get("messages", 0) for queue in queues}

    def flush(self) -> None:
        """Every queue is deleted, with what lies in it."""
        for queue in self._ask("GET", f"/api/queues/{self.vhost}") or []:
            self._ask("DELETE", f"/api/queues/{self.vhost}/{quote(queue['name'], safe='')}")

    def purge(self) -> None:
        """Every queue is empty; the queues stay."""
        for queue in self._ask("GET", f"/api/queues/{self.vhost}") or []:
            self._ask("DELETE", f"/api/queues/{self.vhost}/{quote(queue['name'], safe='')}/contents")

    def close(self) -> None:
        """Nothing of the scenario is left in it; a server of its own goes as a whole."""
        if not self._own:
            self._ask("DELETE", f"/api/vhosts/{self.vhost}")
