"""Who asks, and whether they may. What belongs to another tenant is not there: 404, never 403.

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
from holdfast.core.errors import HoldfastError
from holdfast.service.access import NEIGHBOUR, Identity, KeyNeededError, Scope
from holdfast.store.documents import Collection, Document

_header = APIKeyHeader(name="X-API-Key", auto_error=False, description="A key of `holdfast keys create`.")
_bearer = HTTPBearer(auto_error=False, description="The same key, as a bearer token.")


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
    if shown:
        return parts.access.who(shown.pop())
    return _neighbour(request, parts)


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
