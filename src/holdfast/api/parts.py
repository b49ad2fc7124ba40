"""What the routes are made of, found by every request, and the parameters that many of them share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import AfterValidator

from holdfast.api.dependencies import Before
from holdfast.api.event_feed import Feed
from holdfast.api.idempotency import Once
from holdfast.api.metrics import Counting
from holdfast.api.rate_limits import Turnstile
from holdfast.bootstrap import Runtime
from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.records import TENANT
from holdfast.service.access import Access
from holdfast.service.actions import Actions, Deliveries
from holdfast.service.bundles import Bundles
from holdfast.service.conditions import ConditionalLibrary
from holdfast.service.document_views import Viewing
from holdfast.service.jobs import Jobs
from holdfast.service.search import Searching
from holdfast.store.base.database import Database
from holdfast.store.views import events
from holdfast.store.views.events import Position

MOST_PAGE = 500

Depths = Callable[[], Sequence[tuple[str, str, int | None]]]
"""(broker, lane, wake-ups that wait) for every broker; None for one that does not answer."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that the routes use."""

    runtime: Runtime
    library: ConditionalLibrary
    searching: Searching
    viewing: Viewing
    access: Access
    once: Once
    feed: Feed
    counting: Counting
    depths: Depths
    turnstile: Turnstile
    actions: Actions
    deliveries: Deliveries
    jobs: Jobs
    bundles: Bundles


def of(request: Request) -> Parts:
    """The parts of the application that was asked."""
    found: Parts = request.app.state.parts
    return found


PartsOf = Annotated[Parts, Before(of)]


def known(text: str) -> str:
    """An id of a form that anything could have; NotFoundError for any other, before a database sees it."""
    if not TENANT.fullmatch(text):
        raise NotFoundError("there is nothing with such an id; letters, digits, dot, - and _, at most 64")
    return text


# For OpenAPI alone: an id of another form is answered 404 like one that is not there, not 400.
FORM = {"pattern": f"^{TENANT.pattern}$", "maxLength": 64}

AnyId = Annotated[str, Path(description="As it was given.", json_schema_extra=dict(FORM))]
Id = Annotated[AnyId, AfterValidator(known)]
CollectionName = Annotated[
    str, Query(description="The collection's id.", json_schema_extra=dict(FORM)), AfterValidator(known)
]
Limit = Annotated[int, Query(ge=1, le=MOST_PAGE, description="How many at most.")]
Cursor = Annotated[
    str | None, Query(max_length=100, description="Where to go on: `next` of the page before.")
]


def numbers(cursor: str | None, count: int) -> tuple[int, ...] | None:
    """The numbers that a cursor is made of; None for none; BadRequestError for what is no cursor of ours."""
    if cursor is None:
        return None
    parts = cursor.split(".")
    if len(parts) != count or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise BadRequestError("this cursor is none of ours; use `next` of the page before", code="bad_cursor")
    return tuple(int(part) for part in parts)


def position(db: Database, cursor: str | None) -> Position | None:
    """The place in the journal that a cursor stands for; None for none. One number is an entry's alone."""
    if cursor is None:
        return None
    if "." not in cursor:
        (number,) = numbers(cursor, 1) or (0,)
        return events.known(db, None, number)
    xid, number = numbers(cursor, 2) or (0, 0)
    return events.known(db, xid, number)


def place(cursor: str | None) -> str:
    """The id that a cursor stands for; the empty text for none."""
    if cursor is None:
        return ""
    if not TENANT.fullmatch(cursor):
        raise BadRequestError("this cursor is none of ours; use `next` of the page before", code="bad_cursor")
    return cursor
