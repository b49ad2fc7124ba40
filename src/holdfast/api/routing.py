"""Routes that do all their work in a single visit to a worker thread.

Anything that may wait for the database has to leave the event loop. FastAPI moves it to a thread piece by
piece: each dependency, then the route, then the validation of the response; and each move costs as much as a
database statement. Here the caller and the objects named in the path are resolved in the same visit as the
route itself, and the response is serialised there.

Parameters marked with `dependencies.Before` are resolved in their order. A request with a body makes two
visits: no body is read before it is known who sends it, and that they may. How large it may be is declared
with the route (`takes`).

In such a thread nothing waits for anything but the database; requests that wait for another server run in
separate pools (`waits`, `web.slow_requests`).
"""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, get_args

import pydantic
from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from holdfast.api import access
from holdfast.api.dependencies import Before, ahead, resolve
from holdfast.api.errors import RESPONSES
from holdfast.api.limits import PASSAGE, BodyKind, LimitedRequest
from holdfast.api.parameters import AnyId
from holdfast.web import slow_requests
from holdfast.web.slow_requests import Pool

T = TypeVar("T", bound=Callable[..., Any])


WAITS = "holdfast.waits"
"""Set by a request that will wait for somebody else's server: in which pool."""

TAKES = "holdfast.takes"
"""Set on an endpoint: what its body is."""

Waits = Callable[[Request], Pool | None]


def waits(pool: Pool, when: Callable[[Request], bool] = lambda _: True) -> Callable[[T], T]:
    """Says of a route that its requests wait for somebody else's server, when `when` says so."""

    def marked(endpoint: T) -> T:
        setattr(endpoint, WAITS, lambda request: pool if when(request) else None)
        return endpoint

    return marked


def takes(body: BodyKind) -> Callable[[T], T]:
    """Says of a route what its body is, and so how large it may be; otherwise it is a small one of JSON."""

    def marked(endpoint: T) -> T:
        setattr(endpoint, TAKES, body)
        return endpoint

    return marked


class Route(APIRoute):
    """A route that is carried out in one visit, or in two if it has a body."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        taken = inspect.signature(endpoint).parameters
        self._before = {name: mark for name, one in taken.items() if (mark := _mark(one)) is not None}
        if any(one.annotation is Response for one in taken.values()):
            raise TypeError(f"{endpoint.__name__} must return a Response, not change one")
        self._passes = "request" in taken
        self._waits: Waits = getattr(endpoint, WAITS, _said_so)
        self.takes: BodyKind = getattr(endpoint, TAKES, BodyKind.JSON)
        super().__init__(path, self._visiting(endpoint), **more)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of the route: access is checked before the request is validated."""
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            passage: LimitedRequest | None = request.scope.get(PASSAGE)
            if passage is not None:
                passage.take(self.takes, request.headers.get("content-type", ""))
            if self._before and (passage is None or passage.left):
                await run_in_threadpool(self._resolved, request)
            try:
                return await handle(request)
            except RequestValidationError:
                if self._before:
                    await run_in_threadpool(self._resolved, request)
                raise

        return checked

    def _resolved(self, request: Request) -> dict[str, Any]:
        values = {name: resolve(request, mark.find) for name, mark in self._before.items()}
        return {"request": request, **values} if self._passes else values

    def _visiting(self, endpoint: Callable[..., Any]) -> Callable[..., Any]:
        ids = {name for mark in self._before.values() for name in mark.ids}

        def without_ids(values: dict[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in values.items() if name not in ids}

        def carried_out(request: Request, values: dict[str, Any]) -> Any:
            return _written(
                endpoint(**self._resolved(request), **without_ids(values)), self.status_code or 200
            )

        @functools.wraps(endpoint)
        async def visit(request: Request, **values: Any) -> Any:
            pool = self._waits(request)
            if pool is None:
                return await to_thread.run_sync(carried_out, request, values)
            caller = await ahead(request, access.identified)
            async with slow_requests.places(pool).place(caller.tenant) as limiter:
                return await to_thread.run_sync(carried_out, request, values, limiter=limiter)

        @functools.wraps(endpoint)
        async def attend(request: Request, **values: Any) -> Any:
            known = await run_in_threadpool(self._resolved, request) if self._before else {}
            return await endpoint(**known, **without_ids(values))

        handler = attend if inspect.iscoroutinefunction(endpoint) else visit
        handler.__signature__ = self._signature(endpoint, ids)  # type: ignore[attr-defined]
        return handler

    def _signature(self, endpoint: Callable[..., Any], ids: set[str]) -> inspect.Signature:
        """What the framework fills in: all that is not marked, the ids, and the request for ourselves."""
        whole = inspect.signature(endpoint)
        kind = inspect.Parameter.KEYWORD_ONLY
        own = [inspect.Parameter(name, kind, annotation=AnyId) for name in sorted(ids)]
        own.append(inspect.Parameter("request", kind, annotation=Request))
        rest = [
            one.replace(kind=kind)
            for name, one in whole.parameters.items()
            if name not in self._before and name != "request"
        ]
        return whole.replace(parameters=own + rest)


def router(tag: str) -> APIRouter:
    """A router of such routes; their errors have the one shape."""
    return APIRouter(route_class=Route, tags=[tag], responses=RESPONSES)


def _said_so(request: Request) -> Pool | None:
    pool: Pool | None = request.scope.get(WAITS)
    return pool


def _mark(parameter: inspect.Parameter) -> Before | None:
    return next((one for one in get_args(parameter.annotation)[1:] if isinstance(one, Before)), None)


def _written(value: object, status: int) -> object:
    """The answer as it is sent, where the route has answered with a shape."""
    if not isinstance(value, pydantic.BaseModel):
        return value
    return Response(value.model_dump_json(by_alias=True), status, media_type=JSONResponse.media_type)
