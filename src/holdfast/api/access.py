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

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from holdfast.api.parts import Id, Parts, PartsOf
from holdfast.api.turnstile import SLOT
from holdfast.core.errors import HoldfastError
from holdfast.service.access import NEIGHBOUR, Identity, KeyNeededError, Scope
from holdfast.store.collections import Collection
from holdfast.store.documents import Document

_header = APIKeyHeader(name="X-API-Key", auto_error=False, description="A key of `holdfast keys create`.")
_bearer = HTTPBearer(auto_error=False, description="The same key, as a bearer token.")


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


def _caller(
    request: Request,
    parts: PartsOf,
    key: Annotated[str | None, Security(_header)] = None,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)] = None,
) -> Identity:
    shown = {token for token in (key, bearer.credentials if bearer else None) if token}
    if len(shown) > 1:
        raise KeyNeededError("X-API-Key and Authorization show two different keys; send one")
    session = request.cookies.get(COOKIE)
    if shown:
        caller = parts.access.who(shown.pop())
    elif session is not None and parts.access.has_keys():
        caller = parts.access.signed_in(session)
        if request.method not in SAFE:
            check_own(request)
            if request.headers.get(PAGE) is None:
                raise ForeignOriginError(f"with a session, what changes something needs the header {PAGE}")
    else:
        caller = _neighbour(request, parts)
    request.scope[SLOT] = parts.turnstile.enter(caller)
    return caller


def check_own(request: Request) -> None:
    """Return if the request is of our own page's making; otherwise ForeignOriginError."""
    said = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    if said == "same-origin" or (said is None and origin is not None and urlsplit(origin).netloc == host):
        return
    raise ForeignOriginError("a page of another site sent this; nothing was done")


def visitor(request: Request) -> Identity:
    """Who looks at a page, as `_caller`; a page is only looked at, so a cookie is enough."""
    parts: Parts = request.app.state.parts
    return _caller(request, parts)


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


def _writer(caller: Reader) -> Identity:
    caller.require(Scope.WRITE)
    return caller


def _admin(caller: Reader) -> Identity:
    caller.require(Scope.ADMIN)
    return caller


Writer = Annotated[Identity, Depends(_writer)]
Admin = Annotated[Identity, Depends(_admin)]


def _collection(collection_id: Id, caller: Reader, parts: PartsOf) -> Collection:
    return parts.library.collection(caller.tenant, collection_id)


ItsCollection = Annotated[Collection, Depends(_collection)]


def _own_collection(found: ItsCollection, caller: Reader) -> Collection:
    # The scope after the look: 403 is told of one's own things alone.
    caller.require(Scope.WRITE)
    return found


OwnCollection = Annotated[Collection, Depends(_own_collection)]


def _document(document_id: Id, caller: Reader, parts: PartsOf) -> Document:
    return parts.library.document(caller.tenant, document_id)


ItsDocument = Annotated[Document, Depends(_document)]


def _own_document(found: ItsDocument, caller: Reader) -> Document:
    caller.require(Scope.WRITE)
    return found


OwnDocument = Annotated[Document, Depends(_own_document)]
