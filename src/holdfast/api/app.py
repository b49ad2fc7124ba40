"""The application: every route, wired to one runtime."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

import holdfast
from holdfast import bootstrap
from holdfast.api import (
    access,
    actions,
    collections,
    connections,
    document_history,
    documents,
    errors,
    jobs,
    journal,
    kind_schemas,
    money,
    operations,
    search,
    transfer,
)
from holdfast.api.event_feed import Feed
from holdfast.api.idempotency import Once
from holdfast.api.limits import BodyLimits, Gate
from holdfast.api.metrics import Counting
from holdfast.api.parts import Depths, Parts
from holdfast.api.rate_limits import Allowance, Turnstile
from holdfast.bootstrap import Runtime
from holdfast.service.access import Access
from holdfast.service.actions import Actions, Deliveries
from holdfast.service.conditions import ConditionalLibrary
from holdfast.service.document_views import Viewing
from holdfast.store.views import events
from holdfast.web import routes
from holdfast.web.parts import Its

PREFIX = "/api/v1"
OPEN = frozenset({"/healthz", "/readyz"})
DESCRIPTION = (
    "Background work on documents that is paid for once, never lost and never half visible. Every error is "
    '`{"error": {"code", "message"}}`; the codes are on the page of errors.'
)


@dataclass(frozen=True, slots=True)
class Built:
    """The application, what stands before it, the feed that must be closed for it to end, and what counts."""

    app: FastAPI
    gate: Gate
    feed: Feed
    counting: Counting
    threads: int
    clients: int


class _Api(FastAPI):
    """Says of every route but the open ones that it wants a key: none of them is asked for that way."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            made = super().openapi()
            made["components"]["securitySchemes"] = access.SCHEMES
            for path, operations in made["paths"].items():
                for operation in operations.values() if path not in OPEN else ():
                    operation["security"] = [{name: []} for name in access.SCHEMES]
            parts: Parts = self.state.parts
            kind_schemas.add(made, parts.jobs.kinds, parts.actions.types)
        return super().openapi()


def build(runtime: Runtime, depths: Depths = tuple) -> Built:
    """The application over this runtime. `depths` asks the brokers; by default there is none to ask."""
    settings = runtime.settings
    known = Access(runtime.db)
    parts = Parts(
        runtime,
        ConditionalLibrary(bootstrap.library(runtime)),
        bootstrap.searching(runtime),
        Viewing(runtime.db),
        known,
        Once(runtime.db),
        Feed(runtime.db, known.ended),
        Counting(runtime.db),
        operations.Recent(depths),
        turnstile=Turnstile(Allowance(settings.api_rate, settings.api_concurrency, settings.api_listeners)),
        actions=Actions(
            runtime.engine,
            bootstrap.webhook_key(settings),
            allow_private=settings.webhook_private,
            supplies=runtime.supplies,
        ),
        deliveries=Deliveries(runtime.engine),
        jobs=bootstrap.jobs(runtime),
        bundles=bootstrap.bundles(runtime),
    )
    parts.counting.refused = lambda: parts.turnstile.refused
    parts.counting.sender = runtime.engine.parts.sender
    events.adopt(runtime.db)
    parts.counting.begin()
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
    app.state.parts = parts
    app.include_router(operations.open_router)
    for router in routers():
        app.include_router(router, prefix=PREFIX)
    app.state.pages = _pages(parts)
    for router in routes.routers():
        app.include_router(router)
    limits = BodyLimits(settings.most_bytes, settings.most_json, settings.body_pause, settings.most_import)
    gate = Gate(connections.Room(app), limits, parts.counting.note)
    most = connections.most(settings.api_clients)
    return Built(app, gate, parts.feed, parts.counting, settings.api_threads, most)


def routers() -> list[APIRouter]:
    """The routes below the prefix, those asked for most in front: they are looked through one by one."""
    modules: tuple[Any, ...] = (
        documents,
        search,
        collections,
        transfer,
        document_history,
        actions,
        jobs,
        money,
        journal,
        operations,
    )
    return [module.router for module in modules]


def _pages(parts: Parts) -> Its:
    """What the pages use: the same as the API, and who looks as the API knows them."""
    return Its(
        parts.runtime,
        parts.library,
        parts.searching,
        parts.viewing,
        parts.access,
        parts.actions,
        parts.deliveries,
        parts.jobs,
        parts.depths,
        visitor=access.visitor,
        own=access.check_own,
        is_ours=access.is_ours,
        cookie=access.COOKIE,
    )


def _operation(route: APIRoute) -> str:
    return route.name
