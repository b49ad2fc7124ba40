"""Who asks, and whether they may. What belongs to another tenant is not there: 404, never 403.

Whoever is signed in to the page shows a cookie instead of a key. A browser sends that along with requests of
any site's making, so that one which changes something must also come from the page itself: with a header that
no other site can set, and by what the browser says of its origin.

While no key was ever made, only this machine is served. A page in a browser on this machine can send requests
too, from any site: so the name in `Host` must be this machine's (else a site could give itself our address),
and an `Origin` must be our own.
"""

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security.utils import get_authorization_scheme_param

from holdfast.api.parts import AnyId, Parts, known
from holdfast.api.turnstile import SLOT
from holdfast.core.errors import HoldfastError
from holdfast.service.access import NEIGHBOUR, Identity, KeyNeededError, Scope
from holdfast.store.collections import Collection
from holdfast.store.documents import Document

SCHEMES: dict[str, dict[str, str]] = {
    "APIKeyHeader": {
        "type": "apiKey",
        "description": "A key of `holdfast keys create`.",
        "in": "header",
        "name": "X-API-Key",
    },
    "HTTPBearer": {"type": "http", "description": "The same key, as a bearer token.", "scheme": "bearer"},
}
"""For OpenAPI: how a key is shown."""
CALLER = "holdfast.caller"
"""Where a request keeps who makes it, once that is known."""
COOKIE = "holdfast_session"
PAGE = "X-Holdfast-Page"
SAFE = {"GET", "HEAD"}


class ForeignOriginError(HoldfastError):
    """A page of another site sent the request; without keys nobody can tell whether its reader wants that."""

    code = "foreign_origin"


def is_loopback(host: str) -> bool:
    """True for an address of this very machine."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def identified(request: Request) -> Identity:
    """Who makes the request, and that they may make one more; found out once. Asks the database."""
    caller: Identity | None = request.scope.get(CALLER)
    if caller is None:
        parts: Parts = request.app.state.parts
        caller = _who(request, parts, _shown(request))
        request.scope[SLOT] = parts.turnstile.enter(caller)
        request.scope[CALLER] = caller
    return caller


def _shown(request: Request) -> str | None:
    """The key that the request shows."""
    scheme, bearer = get_authorization_scheme_param(request.headers.get("authorization"))
    shown = {request.headers.get("x-api-key"), bearer if scheme.lower() == "bearer" else None} - {None, ""}
    if len(shown) > 1:
        raise KeyNeededError("X-API-Key and Authorization show two different keys; send one")
    return shown.pop() if shown else None


def _who(request: Request, parts: Parts, shown: str | None) -> Identity:
    session = request.cookies.get(COOKIE)
    if shown:
        return parts.access.who(shown)
    if session is None or not parts.access.has_keys():
        return _neighbour(request, parts)
    caller = parts.access.signed_in(session)
    if request.method not in SAFE:
        check_own(request)
        if request.headers.get(PAGE) is None:
            raise ForeignOriginError(f"with a session, what changes something needs the header {PAGE}")
    return caller


async def _caller(request: Request) -> Identity:
    caller: Identity | None = request.scope.get(CALLER)
    return await run_in_threadpool(identified, request) if caller is None else caller


def check_own(request: Request) -> None:
    """Return if the request is of our own page's making; otherwise ForeignOriginError."""
    said = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    if said == "same-origin" or (said is None and origin is not None and urlsplit(origin).netloc == host):
        return
    raise ForeignOriginError("a page of another site sent this; nothing was done")


def visitor(request: Request) -> Identity:
    """Who looks at a page, as `identified`; a page is only looked at, so a cookie is enough."""
    parts: Parts = request.app.state.parts
    caller = _who(request, parts, None)
    request.scope[SLOT] = parts.turnstile.enter(caller)
    return caller


def _neighbour(request: Request, parts: Parts) -> Identity:
    if parts.access.has_keys() or request.client is None or not is_loopback(request.client.host):
        raise KeyNeededError("send a key as X-API-Key or bearer token; holdfast keys create makes one")
    host = request.headers.get("host", "")
    if not is_loopback(urlsplit(f"//{host}").hostname or ""):
        raise ForeignOriginError("without keys this machine is served under its own name alone: localhost")
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        raise ForeignOriginError("without keys no page of another site is served; make a key")
    return NEIGHBOUR


Reader = Annotated[Identity, Depends(_caller)]


async def _writer(request: Request) -> Identity:
    caller = await _caller(request)
    caller.require(Scope.WRITE)
    return caller


async def _admin(request: Request) -> Identity:
    caller = await _caller(request)
    caller.require(Scope.ADMIN)
    return caller


Writer = Annotated[Identity, Depends(_writer)]
Admin = Annotated[Identity, Depends(_admin)]

# None of these depends on another: the framework would go through all that is below each of them once more,
# also where the answer is known. What they have in common is kept by the request.


def _collection(collection_id: AnyId, request: Request) -> Collection:
    parts: Parts = request.app.state.parts
    return parts.library.collection(identified(request).tenant, known(collection_id))


def _own_collection(collection_id: AnyId, request: Request) -> Collection:
    # The scope after the look: 403 is told of one's own things alone.
    found = _collection(collection_id, request)
    identified(request).require(Scope.WRITE)
    return found


def _document(document_id: AnyId, request: Request) -> Document:
    parts: Parts = request.app.state.parts
    return parts.library.document(identified(request).tenant, known(document_id))


def _own_document(document_id: AnyId, request: Request) -> Document:
    found = _document(document_id, request)
    identified(request).require(Scope.WRITE)
    return found


ItsCollection = Annotated[Collection, Depends(_collection)]
OwnCollection = Annotated[Collection, Depends(_own_collection)]
ItsDocument = Annotated[Document, Depends(_document)]
OwnDocument = Annotated[Document, Depends(_own_document)]
