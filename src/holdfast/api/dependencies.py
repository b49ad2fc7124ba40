"""What a route must know before it starts: who is asking, and what the ids in its path refer to.

`routing.Route` fills in every parameter marked with `Before`; FastAPI does not see these parameters. Each
value is resolved once per request, however many parameters need it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

T = TypeVar("T")

FOUND = "holdfast.found"
"""Where a request keeps what was found for it."""


@dataclass(frozen=True, slots=True)
class Before:
    """Marks a parameter as what `find` answers; `ids` are the parts of the path that it reads."""

    find: Callable[[Request], Any]
    ids: tuple[str, ...] = ()


def resolve(request: Request, find: Callable[[Request], T]) -> T:
    """What `find` answers for this request. May wait for the database."""
    known: dict[object, T] = request.scope.setdefault(FOUND, {})
    if find not in known:
        known[find] = find(request)
    return known[find]


async def ahead(request: Request, find: Callable[[Request], T]) -> T:
    """The same where nobody may wait: a body is read once it is known who sends it, and for what."""
    known: dict[object, T] = request.scope.get(FOUND, {})
    return known[find] if find in known else await run_in_threadpool(resolve, request, find)
