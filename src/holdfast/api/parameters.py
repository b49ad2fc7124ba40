"""The services, and the parameters that many routes share."""

from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import AfterValidator

from holdfast.api.dependencies import Before
from holdfast.bootstrap import AppServices
from holdfast.core import filters
from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.filters import Filter
from holdfast.core.records import TENANT
from holdfast.service.journal import Journal
from holdfast.service.records import Position

MOST_PAGE = 500


def services_of(request: Request) -> AppServices:
    """The services of the application that answers this request."""
    services: AppServices = request.app.state.services
    return services


Services = Annotated[AppServices, Before(services_of)]


def valid_id(text: str) -> str:
    """An id of a form that anything could have; NotFoundError for any other, before a database sees it."""
    if not TENANT.fullmatch(text):
        raise NotFoundError("no such id; an id has letters, digits, . - _, at most 64")
    return text


# For OpenAPI alone: an id of another form is answered 404 like one that is not there, not 400.
FORM = {"pattern": f"^{TENANT.pattern}$", "maxLength": 64}

AnyId = Annotated[str, Path(description="The id.", json_schema_extra=dict(FORM))]
Id = Annotated[AnyId, AfterValidator(valid_id)]
CollectionName = Annotated[
    str, Query(description="The collection's id.", json_schema_extra=dict(FORM)), AfterValidator(valid_id)
]
Limit = Annotated[int, Query(ge=1, le=MOST_PAGE, description="Maximum number of items.")]
Cursor = Annotated[
    str | None, Query(max_length=100, description="Where to continue: `next` from the previous page.")
]


FilterText = Annotated[
    str | None,
    Query(
        alias="filter",
        max_length=filters.MOST_TEXT,
        description='Only documents that pass this filter, in JSON: `{"eq": {"author": "Ann"}}`.',
    ),
]


def filter_of(text: str | None) -> Filter | None:
    """The filter of a query; None for none; BadRequestError for one that cannot be used."""
    return None if text is None else filters.read(text)


def numbers(cursor: str | None, count: int) -> tuple[int, ...] | None:
    """The numbers that a cursor is made of; None for none; BadRequestError for what is no cursor of ours."""
    if cursor is None:
        return None
    parts = cursor.split(".")
    if len(parts) != count or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise BadRequestError(
            "this cursor is not valid; use `next` from the previous page", code="bad_cursor"
        )
    return tuple(int(part) for part in parts)


def position(journal: Journal, cursor: str | None) -> Position | None:
    """The place in the journal that a cursor stands for; None for none. One number is an entry's alone."""
    if cursor is None:
        return None
    if "." not in cursor:
        (number,) = numbers(cursor, 1) or (0,)
        return journal.position(None, number)
    xid, number = numbers(cursor, 2) or (0, 0)
    return journal.position(xid, number)


def id_of(cursor: str | None) -> str:
    """The id that a cursor stands for; the empty text for none."""
    if cursor is None:
        return ""
    if not TENANT.fullmatch(cursor):
        raise BadRequestError(
            "this cursor is not valid; use `next` from the previous page", code="bad_cursor"
        )
    return cursor
