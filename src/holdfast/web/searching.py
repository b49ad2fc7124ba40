"""Search: the passages that answer, with the words of the question marked."""

from typing import Annotated

from anyio import to_thread
from fastapi import Query, Request
from fastapi.responses import Response

from holdfast.core.records import TENANT
from holdfast.search.query import Found
from holdfast.service.access import Identity
from holdfast.web import patience, rendering
from holdfast.web.parts import Its, ItsOf

LONGEST = 10_000
HITS = 20

router = rendering.router()


@router.get("/search")
async def search(
    request: Request,
    its: ItsOf,
    who: rendering.Who,
    q: Annotated[str, Query(max_length=LONGEST)] = "",
    collection: str = "",
) -> Response:
    """Show what answers a question. Nothing is looked for, or paid, before somebody asks."""
    limiter = patience.places() if its.searching.waits else None
    return await to_thread.run_sync(_answered, request, its, who, q, collection, limiter=limiter)


def _answered(request: Request, its: Its, who: Identity, q: str, collection: str) -> Response:
    known = its.library.collections(who.tenant)
    chosen = next((each for each in known if each.id == collection), known[0] if known else None)
    found: Found | None = None
    if q.strip() and chosen is not None and TENANT.fullmatch(chosen.id):
        found = its.searching.search(who.tenant, chosen.id, q, k=HITS)
    return rendering.page(
        request, its, who, "search.html", "Search", q=q, chosen=chosen, collections=known, found=found
    )
