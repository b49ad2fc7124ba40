"""Sign in with a key, and sign out. The session ends with the key; the cookie reveals nothing about it."""

from typing import Annotated

from fastapi import Form, Request
from fastapi.responses import RedirectResponse, Response

from holdfast.service.access import MOST_TOKEN, SESSION_SECONDS, KeyNeededError
from holdfast.web import assets, rendering
from holdfast.web.page_access import Services, access_of

router = rendering.router()


def _inside(path: str) -> str:
    """A path of ours to go on to; anything else is the first page."""
    plain = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if plain and "\\" not in path else "/"


def _form(request: Request, *, goes_on: str, problem: str = "") -> Response:
    response = rendering.page(
        request, None, "sign_in.html", "Sign in", goes_on=_inside(goes_on), problem=problem
    )
    response.status_code = 401 if problem else 200
    return response


@router.get("/sign-in")
def sign_in_form(
    request: Request, services: Services, goes_on: Annotated[str, rendering.NEXT] = "/"
) -> Response:
    """Show where to give a key; without keys there is nothing to sign in to."""
    if not services.access.has_keys():
        return RedirectResponse("/", 303)
    return _form(request, goes_on=goes_on)


@router.post("/sign-in")
def sign_in(
    request: Request,
    services: Services,
    key: Annotated[str, Form()] = "",
    goes_on: Annotated[str, Form()] = "/",
) -> Response:
    """A valid key signs in for some hours."""
    access_of(request).own(request)
    try:
        session = services.access.sign_in(key[: MOST_TOKEN + 1])
    except KeyNeededError as error:
        return _form(request, goes_on=goes_on, problem=error.message)
    response = RedirectResponse(_inside(goes_on), 303)
    response.set_cookie(
        access_of(request).cookie,
        session,
        max_age=int(SESSION_SECONDS),
        httponly=True,
        samesite="strict",
        secure=_is_https(request),
    )
    return response


def _is_https(request: Request) -> bool:
    """True when the browser came over TLS; a proxy's word is enough, for it makes the cookie stricter."""
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "") == "https"


@router.post("/sign-out")
def sign_out(request: Request, services: Services) -> Response:
    """The session has ended, here and in the database."""
    access_of(request).own(request)
    if (session := request.cookies.get(access_of(request).cookie)) is not None:
        services.access.sign_out(session)
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(
        access_of(request).cookie, httponly=True, samesite="strict", secure=_is_https(request)
    )
    return response


@router.get("/static/{version}/{name}")
def static(version: str, name: str) -> Response:
    """Give a file that pages load; there is nothing secret in it."""
    return assets.answer(version, name)
