"""`/mcp`: MCP clients over streamable HTTP, with our keys; what a key may not see is not there.

Each POST is answered with JSON by whichever process gets it; there are no sessions and no streams.
"""

from collections.abc import Callable
from typing import TypeVar

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response

from holdfast import extras
from holdfast.api import routing
from holdfast.api.access import Reader, filtered
from holdfast.api.parameters import Services
from holdfast.bootstrap import AppServices
from holdfast.integrations.local_library import LocalLibrary
from holdfast.web import slow_requests
from holdfast.web.slow_requests import Pool

T = TypeVar("T")

router = APIRouter(route_class=routing.Route, include_in_schema=False)


@router.post("/mcp")
@filtered
async def mcp(request: Request, services: Services, caller: Reader) -> Response:
    """Answer a request of an MCP client."""
    extras.require(["mcp"], "/mcp")
    from holdfast.mcp import http, tools  # noqa: PLC0415 - the SDK is an extra

    async def run(name: str, work: Callable[[], T]) -> T:
        pool = _pool(services, name)
        if pool is None:
            return await to_thread.run_sync(work)
        async with slow_requests.places(pool).place(caller.tenant) as limiter:
            return await to_thread.run_sync(work, limiter=limiter)

    library = LocalLibrary(services, str(request.base_url), caller.tenant, caller.only)
    reply = await http.reply_to(tools.LibraryTools(library, run), request.scope, await request.body())
    return Response(reply.body, reply.status, reply.headers)


def _pool(services: AppServices, name: str) -> Pool | None:
    """Where the tool waits for somebody else's server; None if it does not."""
    if name == "ask":
        return Pool.ANSWERS
    return Pool.QUESTIONS if name == "search" and services.search.waits else None
