"""Authentication and authorisation. What belongs to another tenant does not exist: 404, never 403.

Somebody who is signed in to the web UI sends a cookie instead of a key. Browsers attach cookies to requests
made by any site, so a request that changes something must also prove that it comes from our own pages: by a
header that no other site can set, and by what the browser reports about its origin.

As long as no API key has ever been created, only this machine is served. A page of any site in a browser on
this machine can send requests too: so the name in `Host` must be this machine's (otherwise a site could
point its own name at us), and an `Origin`, if there is one, must be ours.

Reading can cost money too: a query is embedded. Browsers send no `Origin` with what a page merely loads (an
image, a frame, a script), but `Sec-Fetch-Site` says whose page it is. So a request without a key is refused
if it was made by a page of another site, or of another port of this machine. A link to one of our pages may
be followed; whatever it would spend waits for Enter (`is_ours`). Not covered: browsers from before 2023,
which do not send this header.
"""

import ipaddress
from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.security.utils import get_authorization_scheme_param

from holdfast.api import parameters
from holdfast.api.dependencies import Before, resolve
from holdfast.api.parameters import valid_id
from holdfast.api.rate_limits import SLOT, Turnstile
from holdfast.core.errors import HoldfastError, KeyRestrictedError
from holdfast.service.access import NEIGHBOUR, Access, Identity, KeyNeededError, Scope
from holdfast.service.access import PREFIX as KEY_PREFIX
from holdfast.service.records import Collection, Document

SCHEMES: dict[str, dict[str, str]] = {
    "APIKeyHeader": {
        "type": "apiKey",
        "description": "A key created with `holdfast keys create`.",
        "in": "header",
        "name": "X-API-Key",
    },
    "HTTPBearer": {"type": "http", "description": "The same key, as a bearer token.", "scheme": "bearer"},
}
"""For OpenAPI: how a key is shown."""
COLLECTION, DOCUMENT = "collection_id", "document_id"
"""What the ids are called in the paths."""
COOKIE = "holdfast_session"
PAGE = "X-Holdfast-Page"
FILTERED = "holdfast_filtered"
"""Set on an endpoint that shows keys with a filter only what passes."""
SAFE = {"GET", "HEAD"}
# How keys of providers begin: OpenAI and Anthropic, Google, Groq, xAI, OpenRouter.
PROVIDER_KEYS = ("sk-", "AIza", "gsk_", "xai-")
OUR_SITES = frozenset({"same-origin", "none"})
"""What `Sec-Fetch-Site` says of our own web UI, and of a URL that was typed in."""


T = TypeVar("T", bound=Callable[..., Any])


class ForeignOriginError(HoldfastError):
    """A page of another site sent the request; without keys nobody can tell whether its reader wants that."""

    code = "foreign_origin"


def is_loopback(host: str) -> bool:
    """True for a loopback address."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _netloc(url: str) -> str | None:
    """Host and port of a URL; None for what is none, like `http://[`."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return None


def _host_name(netloc: str) -> str:
    """The name or address in a `Host`; empty for what is none."""
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


def is_ours(request: Request) -> bool:
    """False when a browser says that a page of another site has brought it here."""
    return request.headers.get("sec-fetch-site", "none") in OUR_SITES


def _is_navigation(request: Request) -> bool:
    """True when a person follows a link, in a window of its own: nothing of the answer is another page's."""
    said = (request.headers.get("sec-fetch-mode"), request.headers.get("sec-fetch-dest"))
    return request.method == "GET" and said == ("navigate", "document")


def _check_site(request: Request, *, is_page: bool) -> None:
    """Return unless another site's page asks, other than by a link to a page; else ForeignOriginError."""
    if not is_ours(request) and not (is_page and _is_navigation(request)):
        raise ForeignOriginError("this request came from another site; without a key it is not served")


def identified(request: Request) -> Identity:
    """The caller, within its rate limit; looked up once per request, in the database."""
    return resolve(request, _caller)


def _caller(request: Request) -> Identity:
    caller = _entered(
        request, _who(request, parameters.services_of(request).access, _shown(request), is_page=False)
    )
    if not _is_filtered(request):
        refuse_restricted(caller)
    return caller


def refuse_restricted(caller: Identity) -> None:
    """Return if the key has no filter; otherwise KeyRestrictedError."""
    if caller.restriction:
        message = "this key is limited to some documents; this request needs a key that is not"
        raise KeyRestrictedError(message)


def gateway_caller(request: Request, access: Access) -> Identity:
    """Who asks the gateway: a key of ours, or anybody on this machine as long as there are none.

    Client libraries always send a key. Without keys any word will do, but one of a provider is a mistake.
    """
    shown = _shown(request)
    if shown and shown.startswith(PROVIDER_KEYS) and not shown.startswith(KEY_PREFIX):
        message = "this is a key of a provider; send a key of Holdfast instead: holdfast keys create"
        raise KeyNeededError(message)
    ours = shown if shown and (shown.startswith(KEY_PREFIX) or access.has_keys()) else None
    return _who(request, access, ours, is_page=False, cookies=False)


def filtered(endpoint: T) -> T:
    """Says of a route that it shows keys with a filter only what passes; those of one document do anyway."""
    setattr(endpoint, FILTERED, True)
    return endpoint


def _is_filtered(request: Request) -> bool:
    """True if the route is safe for keys with a filter; whatever does not say so is not."""
    route = request.scope.get("route")
    about_one = "{" + DOCUMENT + "}" in getattr(route, "path", "")
    return about_one or getattr(getattr(route, "endpoint", None), FILTERED, False)


def _shown(request: Request) -> str | None:
    """The key that the request shows."""
    scheme, bearer = get_authorization_scheme_param(request.headers.get("authorization"))
    shown = {request.headers.get("x-api-key"), bearer if scheme.lower() == "bearer" else None} - {None, ""}
    if len(shown) > 1:
        raise KeyNeededError("X-API-Key and Authorization hold different keys; send one")
    return shown.pop() if shown else None


def _who(
    request: Request, access: Access, shown: str | None, *, is_page: bool, cookies: bool = True
) -> Identity:
    session = request.cookies.get(COOKIE) if cookies else None
    if shown:
        return access.who(shown)
    if session is None or not access.has_keys():
        caller = _neighbour(request, access)
        _check_site(request, is_page=is_page)
        return caller
    caller = access.signed_in(session)
    _check_site(request, is_page=is_page)
    if request.method not in SAFE:
        check_own(request)
        if request.headers.get(PAGE) is None:
            raise ForeignOriginError(f"a change made with a session needs the header {PAGE}")
    return caller


def check_own(request: Request) -> None:
    """Return if the request is of our own page's making; otherwise ForeignOriginError."""
    said = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    if said == "same-origin" or (said is None and origin is not None and _netloc(origin) == host):
        return
    raise ForeignOriginError("this request came from a page on another site; nothing was done")


def visitor(request: Request) -> Identity:
    """Who looks at a page, as `identified`; a page is only looked at, so a cookie is enough."""
    return _entered(request, _who(request, parameters.services_of(request).access, None, is_page=True))


def _entered(request: Request, caller: Identity) -> Identity:
    turnstile: Turnstile = request.app.state.turnstile
    request.scope[SLOT] = turnstile.enter(caller)
    return caller


def _neighbour(request: Request, access: Access) -> Identity:
    if access.has_keys() or request.client is None or not is_loopback(request.client.host):
        raise KeyNeededError("send a key as X-API-Key or bearer token; create one with: holdfast keys create")
    host = request.headers.get("host", "")
    if not is_loopback(_host_name(host)):
        raise ForeignOriginError("without keys the API only answers requests to localhost")
    origin = request.headers.get("origin")
    if origin is not None and _netloc(origin) != host:
        raise ForeignOriginError("without keys, requests from other sites are not served; create a key")
    return NEIGHBOUR


def writer(request: Request) -> Identity:
    """Who makes the request, and that they may change something."""
    caller = identified(request)
    caller.require(Scope.WRITE)
    return caller


def _admin(request: Request) -> Identity:
    caller = identified(request)
    caller.require(Scope.ADMIN)
    return caller


def _collection(request: Request) -> Collection:
    name = valid_id(request.path_params[COLLECTION])
    return parameters.services_of(request).collections.get(identified(request).tenant, name)


def own_collection(request: Request) -> Collection:
    """The collection of the path, if the caller may change it."""
    # The scope after the look: 403 is only sent for the caller's own resources.
    collection = resolve(request, _collection)
    resolve(request, writer)
    return collection


def _document(request: Request) -> Document:
    name, caller = valid_id(request.path_params[DOCUMENT]), identified(request)
    return parameters.services_of(request).documents.get(caller.tenant, name, only=caller.only)


def own_document(request: Request) -> Document:
    """The document of the path, if the caller may change it."""
    document = resolve(request, _document)
    resolve(request, writer)
    return document


Reader = Annotated[Identity, Before(_caller)]
Writer = Annotated[Identity, Before(writer)]
Admin = Annotated[Identity, Before(_admin)]
PathCollection = Annotated[Collection, Before(_collection, (COLLECTION,))]
OwnCollection = Annotated[Collection, Before(own_collection, (COLLECTION,))]
PathDocument = Annotated[Document, Before(_document, (DOCUMENT,))]
OwnDocument = Annotated[Document, Before(own_document, (DOCUMENT,))]
