"""An installation with a gateway to the meter, and clients of it: SDKs, and raw requests that may hang up."""

import contextlib
import json
import socket
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anthropic
import openai
from sqlalchemy import func, select

from holdfast.store.base.schema import gateway_calls, orders
from holdfast.testing.meter import Meter
from tests.api.install import ApiInstall

MODEL = "gpt-4o-mini"
EMBEDDER = "text-embedding-3-small"
CLAUDE = "claude-haiku-4-5"
UPSTREAM_KEY = "sk-upstream-secret-of-the-operator"


@dataclass(frozen=True)
class RawAnswer:
    """A response as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def charge(self) -> str:
        return self.headers.get("holdfast-charge", "")

    @property
    def code(self) -> str:
        return self.json["error"]["code"]


def providers(meter: Meter, **more: Any) -> dict[str, Any]:
    """Both wires of the meter, as `[providers.NAME]` tables."""
    return {
        "meter": {"base_url": meter.base_url, "api_key": UPSTREAM_KEY, **more},
        "claude": {"wire": "anthropic", "base_url": meter.url, "api_key": UPSTREAM_KEY, **more},
    }


def chat(prompt: str, **more: Any) -> dict[str, Any]:
    """The body of a chat completion."""
    return {"model": MODEL, "messages": [{"role": "user", "content": prompt}], **more}


class GatewayInstall(ApiInstall):
    """One database, one API with a gateway to the meter."""

    def __init__(self, url: str, folder: Path, meter: Meter, **more: Any) -> None:
        self.meter = meter
        super().__init__(url, folder, **{"providers": providers(meter)} | more)
        assert self.built.gateway is not None
        self.gateway = self.built.gateway

    def url(self, *, scope: str = "", provider: str = "") -> str:
        """The base URL of an Anthropic client; that of an OpenAI client has `/v1` behind it."""
        named = (f"/provider/{provider}" if provider else "") + (f"/scope/{scope}" if scope else "")
        return f"http://127.0.0.1:{self.port}/gateway{named}"

    def openai(self, *, scope: str = "", key: str = "unused", **options: Any) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url(scope=scope)}/v1", api_key=key, **options)

    def anthropic(self, *, scope: str = "", key: str = "unused", **options: Any) -> anthropic.Anthropic:
        return anthropic.Anthropic(base_url=self.url(scope=scope), api_key=key, **options)

    def post(
        self, endpoint: str, body: Any, *, scope: str = "", provider: str = "", key: str = "", **headers: str
    ) -> RawAnswer:
        """The response to a POST; names of headers have `_` for `-`."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"content-type": "application/json", **({"x-api-key": key} if key else {})}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        path = self.url(scope=scope, provider=provider).partition(f":{self.port}")[2]
        with contextlib.closing(HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("POST", f"{path}/v1/{endpoint}", raw, sent)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return RawAnswer(answer.status, named, answer.read())

    def begin(self, endpoint: str, body: Any, *, scope: str = "") -> socket.socket:
        """A request that was sent and whose answer nobody reads yet: close it to hang up."""
        raw = json.dumps(body).encode()
        path = self.url(scope=scope).partition(f":{self.port}")[2]
        line = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        head = f"POST {path}/v1/{endpoint} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(raw)}\r\n\r\n"
        line.sendall(head.encode() + raw)
        return line

    def orders(self) -> list[tuple[str, int]]:
        """State and sends of every order, in their order."""
        query = select(orders.c.state, orders.c.sends).order_by(orders.c.created_at)
        return [(row.state, row.sends) for row in self.runtime.db.read(lambda tx: tx.all(query))]

    def held(self) -> int:
        """How many calls outside scopes are not forgotten."""
        query = select(func.count()).select_from(gateway_calls)
        return int(self.runtime.db.read(lambda tx: tx.execute(query).scalar_one()))
