"""An installation with its API on a real port, clients of it, and a worker that is told when to work."""

import asyncio
import contextlib
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from holdfast import bootstrap, settings
from holdfast.api import app, server
from holdfast.core.records import Claim
from holdfast.core.states import Lane
from holdfast.engine.wakeups import Recorder
from holdfast.service.access import Access, Scope
from holdfast.store.protocol import claims

PREFIX = "/api/v1"


@dataclass(frozen=True)
class ApiResponse:
    """An answer: its status, its headers, and its body as JSON if it is."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        return self.json["error"]["code"]

    @property
    def message(self) -> str:
        return self.json["error"]["message"]


class Client:
    """Somebody who calls the API. Every answer is held against what OpenAPI says of its route."""

    def __init__(self, install: "ApiInstall", key: str | None = None) -> None:
        self.install, self.key = install, key

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
        may_fail: bool = False,
    ) -> ApiResponse:
        sent = dict(headers or {})
        if self.key is not None:
            sent.setdefault("X-API-Key", self.key)
        if body is not None:
            raw = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = HTTPConnection("127.0.0.1", self.install.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path if path.startswith("/") else f"{PREFIX}/{path}", raw, sent)
            answer = connection.getresponse()
            result = {name.lower(): value for name, value in answer.getheaders()}
            said = ApiResponse(answer.status, result, answer.read())
        assert may_fail or said.status != 500, said.raw
        self.install.hold_against_openapi(method, path, said)
        return said

    def get(self, path: str, **more: Any) -> ApiResponse:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> ApiResponse:
        return self.call("POST", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> ApiResponse:
        return self.call("PUT", path, body, **more)

    def upload(
        self, path: str, content: bytes, name: str = "a.txt", *, method: str = "POST", **more: Any
    ) -> ApiResponse:
        headers = more.pop("headers", {})
        boundary = secrets.token_hex(8)
        head = {"Content-Type": f"multipart/form-data; boundary={boundary}", **headers}
        return self.call(method, path, headers=head, raw=form(boundary, content, name, more))

    def collection(self, name: str = "shelf") -> str:
        if self.get(f"collections/{name}").status == 404:
            assert self.post("collections", {"id": name}).status == 201
        return name

    def text(self, text: str, *, to: str = "shelf", **more: Any) -> Any:
        """The document made of a text; nobody works on it yet."""
        self.collection(to)
        said = self.post(f"collections/{to}/documents", {"text": text, "title": "A title", **more})
        assert said.status == 202, said.raw
        return said.json["document"]

    def indexed(self, text: str, **more: Any) -> Any:
        """The document, published."""
        created = self.text(text, **more)
        self.install.work()
        return self.get(f"documents/{created['id']}").json


def form(boundary: str, content: bytes, name: str, fields: dict[str, Any]) -> bytes:
    """A form with a file."""
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
        for field, value in fields.items()
    ]
    text = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return b"".join([*parts, text.encode(), content, f"\r\n--{boundary}--\r\n".encode()])


_DESCRIBED: dict[str, Any] = {}


def _openapi(made: FastAPI) -> dict[str, Any]:
    """The description of the API, made once: it is the same for every installation, and takes a while."""
    if not _DESCRIBED:
        _DESCRIBED.update(made.openapi())
    return _DESCRIBED


class PromptServer(server.ApiServer):
    """Begins to end when it is told to: Uvicorn looks ten times a second, and hundreds of houses end."""

    _told: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    async def main_loop(self) -> None:
        _, output = self._told = asyncio.get_running_loop(), asyncio.Event()
        # After this line: who told it earlier only set what the first tick looks at.
        both = [asyncio.ensure_future(each) for each in (super().main_loop(), output.wait())]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for each in both:
            each.cancel()

    def end(self) -> None:
        super().end()
        if self._told is not None:
            loop, output = self._told
            with contextlib.suppress(RuntimeError):  # it has ended, and its loop is closed
                loop.call_soon_threadsafe(output.set)


class ApiInstall:
    """One database, one API on a port of its own, one worker."""

    def __init__(self, url: str, folder: Path, **more: Any) -> None:
        self.settings = settings.Settings(data_dir=folder, database_url=url, **{"fetch_private": True} | more)
        self.sender = Recorder()
        self._undo = contextlib.ExitStack()
        self.runtime = self._undo.enter_context(bootstrap.open_runtime(self.settings, sender=self.sender))
        self.worker = self._undo.enter_context(bootstrap.open_runtime(self.settings, owner="worker"))
        self.access = Access(self.runtime.db)
        self.built = app.build(self.runtime)
        self.openapi = self.described()
        self.server = PromptServer(self.built)
        self._listening = server.bound("127.0.0.1", 0)
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self.server.run, args=([self._listening],))
        self._thread.start()
        self._undo.callback(self._end)
        self.client = Client(self)
        while not self.server.started:
            time.sleep(0.01)

    def described(self) -> dict[str, Any]:
        """The API as it describes itself."""
        return _openapi(self.built.app)

    def _end(self) -> None:
        self.server.end()
        self._thread.join(10)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self._undo.close()
        self._listening.close()

    def key(self, tenant: str, *scopes: str, days: float | None = None) -> Client:
        """Somebody of the tenant, with a key."""
        items = [Scope(each) for each in scopes or ("read", "write")]
        return Client(self, self.access.make(tenant=tenant, name=tenant, scopes=items, days=days).token)

    def work(self) -> None:
        """All that is due was done."""
        self.worker.engine.work_off()

    def begun(self) -> Claim:
        """Somebody has begun with the best due task."""
        claim = claims.claim_best(
            self.worker.db,
            lanes=list(Lane),
            pipelines=self.worker.engine.registry.pipelines,
            owner="somebody",
            token=self.worker.db.token(),
            ttl=60.0,
        )
        assert claim is not None
        return claim

    def routes(self) -> Iterator[tuple[str, str]]:
        """Every route, as OpenAPI has it."""
        for path, methods in self.openapi["paths"].items():
            for method in methods:
                yield method.upper(), path

    def hold_against_openapi(self, method: str, path: str, said: ApiResponse) -> None:
        """An error has the one shape; any other answer is documented with its status and its fields."""
        if said.status >= 400:
            if not path.startswith("/readyz"):
                assert {"code", "message"} <= set(said.json["error"]), said.raw
            return
        full = (path if path.startswith("/") else f"{PREFIX}/{path}").partition("?")[0]
        for template, methods in self.openapi["paths"].items():
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), full) and method.lower() in methods:
                result = methods[method.lower()]["responses"][str(said.status)].get("content", {})
                output = result.get("application/json", {}).get("schema", {}).get("$ref")
                if output is not None and "json" in said.headers.get("content-type", ""):
                    shape = self.openapi["components"]["schemas"][output.rpartition("/")[2]]
                    assert set(said.json) == set(shape["properties"]), (method, path)
                return
        assert full == f"{PREFIX}/openapi.json", f"{method} {full} is not in OpenAPI"
