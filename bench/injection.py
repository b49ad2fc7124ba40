"""Compares ways of giving a route what it needs: `api.routing`, and FastAPI's own `Depends`.

    python -m bench.injection [--rounds N] [--requests N]

The same two requests by either way, alternating, in one process on SQLite and without sockets: a duplicate
that is refused (409), and a look at a document. Said is the median over the rounds: requests a second, one
after the other, and milliseconds of processor time for each.
"""

import argparse
import asyncio
import gc
import statistics
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from holdfast import bootstrap, settings
from holdfast.api import access, app, documents, parameters
from holdfast.api import schemas_documents as schemas
from holdfast.bootstrap import AppServices
from holdfast.service.access import Identity
from holdfast.service.records import Document
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload

DUPLICATE = ("POST", "/documents/{}/index", b'{"mode": "retry"}')
LOOK = ("GET", "/documents/{}", b"")


async def _services(request: Request) -> AppServices:
    return parameters.services_of(request)


def _caller(request: Request) -> Identity:
    return access.identified(request)


Services = Annotated[AppServices, Depends(_services)]
Caller = Annotated[Identity, Depends(_caller)]


def _document(services: Services, caller: Caller, document_id: parameters.Id) -> Document:
    return services.documents.get(caller.tenant, document_id)


Found = Annotated[Document, Depends(_document)]


def depends_router() -> APIRouter:
    """The two routes as FastAPI's documentation would have them: plain functions and `Depends`.

    And once more with `Depends` for the services alone: the route looks up caller and document itself.
    """
    router = APIRouter()

    @router.get("/depends/documents/{document_id}", response_model=None)  # noqa: FAST003 - `Found` takes it
    def one_document(services: Services, found: Found) -> Any:
        return documents.one_document(services, found)

    @router.post("/depends/documents/{document_id}/index", response_model=None)  # noqa: FAST003 - as above
    def index_document(
        request: Request, services: Services, found: Found, caller: Caller, body: schemas.IndexBody
    ) -> Any:
        return documents.index_document(request, services, found, caller, body)

    @router.get("/by-hand/documents/{document_id}", response_model=None)
    def one_by_hand(request: Request, services: Services, document_id: parameters.Id) -> Any:
        return documents.one_document(services, _document(services, _caller(request), document_id))

    @router.post("/by-hand/documents/{document_id}/index", response_model=None)
    def index_by_hand(
        request: Request, services: Services, document_id: parameters.Id, body: schemas.IndexBody
    ) -> Any:
        caller = _caller(request)
        document = _document(services, caller, document_id)
        return documents.index_document(request, services, document, caller, body)

    return router


class Client:
    """Sends requests to the application, without a server."""

    def __init__(self, gate: Any) -> None:
        self._gate = gate

    async def send(self, method: str, path: str, body: bytes) -> int:
        """The status of the answer."""
        status = 0
        headers = [(b"host", b"localhost"), (b"content-length", str(len(body)).encode())]
        headers += [(b"content-type", b"application/json")] if body else []
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            "scheme": "http",
            "root_path": "",
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)

        await self._gate(scope, receive, send)
        return status


async def measured(
    client: Client, kind: tuple[str, str, bytes], path: str, count: int
) -> tuple[float, float]:
    """Requests a second and milliseconds of processor time for each."""
    method, _, body = kind
    expected = 409 if method == "POST" else 200
    began, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        status = await client.send(method, path, body)
        if status != expected:
            raise RuntimeError(f"{method} {path} answered {status}")
    seconds, used = time.perf_counter() - began, time.process_time() - used
    return count / seconds, used / count * 1000


async def compare(client: Client, document: str, rounds: int, count: int) -> None:
    """The figures of both ways are on standard output."""
    ways = {"api.routing": app.PREFIX, "Depends": "/depends", "by hand": "/by-hand"}
    for name, kind in (("duplicate (409)", DUPLICATE), ("look (200)", LOOK)):
        figures: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for number in range(rounds + 1):
            for way, prefix in ways.items() if number % 2 else reversed(ways.items()):
                measure = await measured(client, kind, prefix + kind[1].format(document), count)
                if number:  # the first round warms up
                    figures[way].append(measure)
        said = {
            way: tuple(statistics.median(values) for values in zip(*each, strict=True))
            for way, each in figures.items()
        }
        for way, (rate, used) in said.items():
            print(f"{name:16} {way:12} {rate:7.0f} requests/s, {used:.3f} ms of processor time")
        for way in ("Depends", "by hand"):
            more = (said[way][1] / said["api.routing"][1] - 1) * 100
            print(f"{name:16} {way:12} {more:+.1f} % processor time")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=400)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        by = settings.Settings(
            data_dir=Path(folder), database_url=f"sqlite:///{folder}/bench.db", api_rate=1e6
        )
        bootstrap.migrated(by)
        with bootstrap.open_runtime(by, connections=4) as runtime:
            services = AppServices(runtime)
            services.collections.make(RequestContext(), "shelf")
            added = services.documents.add(RequestContext(), "shelf", [Upload(b"Anchors hold.", "a.txt")])[0]
            built = app.build(runtime)
            mine = list(built.app.router.routes)
            built.app.include_router(depends_router())
            # In front, as those of the API: routes are looked through one by one.
            added_routes = [each for each in built.app.router.routes if each not in mine]
            built.app.router.routes[:] = [*added_routes, *mine]
            gc.freeze()
            asyncio.run(compare(Client(built.gate), added.document.id, options.rounds, options.requests))


if __name__ == "__main__":
    main()
