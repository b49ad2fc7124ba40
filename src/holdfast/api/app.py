"""The application: every route, wired to one runtime."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

import holdfast
from holdfast.api import (
    access,
    actions,
    answers,
    chat_completions,
    chunks,
    collections,
    connections,
    document_history,
    documents,
    errors,
    flows,
    graphs,
    jobs,
    journal,
    kind_schemas,
    mcp_route,
    mind_maps,
    money,
    operations,
    originals,
    search,
    sources,
    transfer,
    trees,
)
from holdfast.api.event_feed import Feed
from holdfast.api.gateway_route import GatewayRoute, nothing_else
from holdfast.api.limits import BodyLimits, Gate
from holdfast.api.metrics import Counting
from holdfast.api.rate_limits import Allowance, Turnstile
from holdfast.bootstrap import AppServices, Runtime
from holdfast.doctor.gather import Gathered
from holdfast.gateway.gateway import Gateway, gateway_of
from holdfast.service.access import Access
from holdfast.service.operations import Depths
from holdfast.web import routes
from holdfast.web.page_access import PageAccess

PREFIX = "/api/v1"
OPEN = frozenset({"/healthz", "/readyz"})
DESCRIPTION = (
    "Background work on documents that is paid for once, never lost and never half visible. Every error is "
    '`{"error": {"code", "message"}}`; docs/reference/errors.md lists the codes.'
)


@dataclass(frozen=True, slots=True)
class Built:
    """What stands before the application, its threads and connections; the gateway, which ends last.

    The application, the feed that must be closed for it to end, and what counts: not of a gateway alone.
    """

    gate: Gate
    threads: int
    clients: int
    gateway: Gateway | None = None
    app: FastAPI | None = None
    feed: Feed | None = None
    counting: Counting | None = None


class _Api(FastAPI):
    """Says of every route but the open ones that it wants a key: none of them is asked for that way."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schema = super().openapi()
            schema["components"]["securitySchemes"] = access.SCHEMES
            services: AppServices = self.state.services
            kind_schemas.add(schema, services.jobs.kinds, services.actions.types)
            for path, operations in schema["paths"].items():
                for operation in operations.values() if path not in OPEN else ():
                    operation["security"] = [{name: []} for name in access.SCHEMES]
        return super().openapi()


def build(runtime: Runtime, depths: Depths = tuple, brokers: Callable[[], Gathered] = Gathered) -> Built:
    """The application over this runtime. `depths` asks the brokers, and `brokers` examines them; by default
    there is none to ask.
    """
    settings = runtime.settings
    services = AppServices(runtime, depths, brokers)
    turnstile = Turnstile(Allowance(settings.api_rate, settings.api_concurrency, settings.api_listeners))
    feed = Feed(services.journal, services.access.ended)
    counting = Counting(services.operations)
    counting.refused = lambda: turnstile.refused
    counting.doctor = services.examination.report
    counting.sender = runtime.engine.parts.sender
    services.journal.adopt()
    counting.begin()
    app = _Api(
        title="Holdfast",
        version=holdfast.__version__,
        description=DESCRIPTION,
        openapi_url=f"{PREFIX}/openapi.json",
        # The pages of FastAPI load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=errors.HANDLERS,
        generate_unique_id_function=_operation,
    )
    app.state.services = services
    app.state.turnstile, app.state.feed, app.state.counting = turnstile, feed, counting
    app.include_router(operations.open_router)
    for router in routers():
        app.include_router(router, prefix=PREFIX)
    app.include_router(chat_completions.router)
    app.include_router(mcp_route.router)
    app.state.page_access = PageAccess(access.visitor, access.check_own, access.is_ours, access.COOKIE)
    for router in routes.routers():
        app.include_router(router)
    limits = BodyLimits(settings.most_bytes, settings.most_json, settings.body_pause, settings.most_import)
    gateway = gateway_of(runtime) if settings.gateway else None
    front = app if gateway is None else GatewayRoute(app, gateway, services.access, turnstile)
    gate = Gate(connections.Room(front), limits, counting.note)
    most = connections.most(settings.api_clients)
    return Built(gate, settings.api_threads, most, gateway, app, feed, counting)


def build_gateway(runtime: Runtime) -> Built:
    """The gateway alone, for a port of its own. It also answers `/healthz`."""
    settings = runtime.settings
    turnstile = Turnstile(Allowance(settings.api_rate, settings.api_concurrency, settings.api_listeners))
    gateway = gateway_of(runtime)
    front = GatewayRoute(nothing_else, gateway, Access(runtime.db), turnstile)
    limits = BodyLimits(settings.most_bytes, settings.most_json, settings.body_pause, settings.most_import)
    gate = Gate(connections.Room(front), limits, lambda *_: None)
    return Built(gate, settings.api_threads, connections.most(settings.api_clients), gateway)


def routers() -> list[APIRouter]:
    """The routes below the prefix, those asked for most in front: they are looked through one by one."""
    modules: tuple[Any, ...] = (
        documents,
        search,
        answers,
        collections,
        transfer,
        document_history,
        chunks,
        originals,
        trees,
        flows,
        graphs,
        mind_maps,
        actions,
        sources,
        jobs,
        money,
        journal,
        operations,
    )
    return [module.router for module in modules]


def _operation(route: APIRoute) -> str:
    return route.name
