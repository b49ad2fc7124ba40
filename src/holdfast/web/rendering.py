"""Renders templates: a whole page, or only the fragment that a browser reloads."""

import contextlib
import functools
from collections.abc import Callable, Coroutine
from typing import Annotated, Any
from urllib.parse import quote

import jinja2
from fastapi import APIRouter, Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute

import holdfast
from holdfast.core.errors import BadRequestError, HoldfastError, NotFoundError
from holdfast.core.states import Verb
from holdfast.service import formatting
from holdfast.service.access import Identity, KeyNeededError, Scope
from holdfast.service.error_table import row_of
from holdfast.web import assets, display
from holdfast.web.page_access import Services, access_of

PART = "x-holdfast-part"
THEME = "holdfast_theme"
# What programs ask for: they are answered in the shape of the API, whatever they say they accept.
PROGRAMS = ("/api/", "/gateway/", "/v1/", "/mcp", "/static/", "/healthz", "/readyz", "/metrics")
NEXT = Query(alias="next", max_length=2000)
THEMES = ("light", "dark")  # any other value follows the system
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # A form of ours must be able to say that it is ours.
    "Referrer-Policy": "same-origin",
    "Vary": "X-Holdfast-Part, Cookie",
}


@functools.cache
def templates() -> jinja2.Environment:
    """The templates; everything that is put into one is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("holdfast.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(display.FILTERS)
    environment.globals["static"] = assets.address
    environment.globals["count"] = formatting.count
    environment.globals["verbs"] = " ".join(verb.value for verb in Verb)
    environment.globals["version"] = holdfast.__version__
    environment.globals["ui"] = environment.get_template("ui.html").module
    return environment


def part(name: str, **context: Any) -> HTMLResponse:
    """A part of a page."""
    return HTMLResponse(templates().get_template(name).render(context), headers=HEADERS)


def page(request: Request, who: Identity | None, name: str, title: str, **context: Any) -> Response:
    """The page, or its main part alone for a browser that has the rest."""
    context |= {"title": title, "who": who, "may_write": who is not None and who.may(Scope.WRITE)}
    context |= {"may_admin": who is not None and who.may(Scope.ADMIN), "path": request.url.path}
    if request.headers.get(PART) == "main":
        return part(name, **context)
    theme = request.cookies.get(THEME, "")
    layout = templates().get_template("layout.html")
    # Read before what is shown was read: the stream goes on from there, and nothing falls in between.
    context["cursor"] = getattr(request.state, "cursor", 0)
    context["theme"] = theme if theme in THEMES else ""
    context["signed_in"] = (
        access_of(request).cookie in request.cookies and who is not None and bool(who.key_id)
    )
    return HTMLResponse(layout.render(context, part=name), headers=HEADERS)


def _seen(request: Request, services: Services) -> Identity:
    """Who looks; noted is from where on the stream will tell what is new."""
    who = access_of(request).visitor(request)
    request.state.who = who
    if request.headers.get(PART) is None:
        request.state.cursor = "{0.xid}.{0.id}".format(services.journal.latest())
    return who


Who = Annotated[Identity, Depends(_seen)]


def trouble(request: Request, error: HoldfastError) -> Response:
    """An error as a page; redirects to the sign-in page if a key is needed."""
    if isinstance(error, KeyNeededError):
        if request.headers.get(PART) is not None:
            return HTMLResponse("", 401, headers=HEADERS)
        query = f"?{request.url.query}" if request.url.query else ""
        back = quote(f"{request.url.path}{query}")
        return RedirectResponse(f"/sign-in?next={back}", 303, headers=HEADERS)
    row = row_of(error)
    # A signed-in person keeps the navigation.
    context: dict[str, Any] = {
        "title": row.title,
        "who": getattr(request.state, "who", None),
        "path": "",
        "cursor": getattr(request.state, "cursor", 0),
    }
    context |= {"theme": request.cookies.get(THEME, ""), "signed_in": False, "error": error}
    context |= {"may_write": False, "may_admin": False}
    if context["theme"] not in THEMES:
        context["theme"] = ""
    html = templates().get_template("layout.html").render(context, part="trouble.html")
    return HTMLResponse(html, row.status, headers=HEADERS)


def is_for_people(request: Request) -> bool:
    """True when a browser asks for a page, and not for something of the API or a file."""
    asks = request.method in {"GET", "HEAD"} and "text/html" in request.headers.get("accept", "")
    return asks and not request.url.path.startswith(PROGRAMS)


def unknown(request: Request) -> Response:
    """The page for an unknown URL; one with a trailing slash redirects to the one without."""
    path = request.url.path
    if path.endswith("/") and not path.startswith(("//", "/\\")):
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{path.rstrip('/')}{query}", 307, headers=HEADERS)
    with contextlib.suppress(HoldfastError):  # a stranger is shown the page without the way to the others
        request.state.who = access_of(request).visitor(request)
    message = "there is no page at this URL; it may be mistyped, or the page may have been deleted"
    return trouble(request, NotFoundError(message, code="not_found"))


class PageRoute(APIRoute):
    """A route whose errors are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of the route, with our errors shown as pages."""
        handle = super().get_route_handler()

        async def with_error_pages(request: Request) -> Response:
            try:
                return await handle(request)
            except HoldfastError as error:
                return trouble(request, error)
            except RequestValidationError:
                message = "this URL is malformed; start again from the home page"
                return trouble(request, BadRequestError(message))

        return with_error_pages


def router() -> APIRouter:
    """A router of pages: they are no part of the API's description."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)
