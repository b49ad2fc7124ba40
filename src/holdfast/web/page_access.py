"""Who may look at pages, and the services that pages use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from holdfast.bootstrap import AppServices
from holdfast.service.access import Identity


@dataclass(frozen=True, slots=True)
class PageAccess:
    """Who looks at a page, as the face that mounts the pages knows them.

    `own` refuses a form that another site has sent; `is_ours` is false for a page that a link of another site
    has opened; `cookie` holds the session.
    """

    visitor: Callable[[Request], Identity]
    own: Callable[[Request], None]
    is_ours: Callable[[Request], bool]
    cookie: str


def access_of(request: Request) -> PageAccess:
    """Who may use the web UI of this application."""
    access: PageAccess = request.app.state.page_access
    return access


async def _services(request: Request) -> AppServices:
    services: AppServices = request.app.state.services
    return services


Services = Annotated[AppServices, Depends(_services)]
