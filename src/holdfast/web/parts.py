"""What pages are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from holdfast.bootstrap import Runtime
from holdfast.service.access import Access, Identity
from holdfast.service.actions import Actions, Deliveries
from holdfast.service.conditions import ConditionalLibrary
from holdfast.service.document_views import Viewing
from holdfast.service.jobs import Jobs
from holdfast.service.search import Searching

Depths = Callable[[], Sequence[tuple[str, str, int | None]]]
Visitor = Callable[[Request], Identity]
"""Who looks at a page; the face that mounts the pages knows."""


@dataclass(frozen=True, slots=True)
class Its:
    """Everything that pages use. `own` refuses a form that another site has sent; `is_ours` is false for a
    page that a link of another site has opened.
    """

    runtime: Runtime
    library: ConditionalLibrary
    searching: Searching
    viewing: Viewing
    access: Access
    actions: Actions
    deliveries: Deliveries
    jobs: Jobs
    depths: Depths
    visitor: Visitor
    own: Callable[[Request], None]
    is_ours: Callable[[Request], bool]
    cookie: str


async def _its(request: Request) -> Its:
    found: Its = request.app.state.pages
    return found


ItsOf = Annotated[Its, Depends(_its)]
