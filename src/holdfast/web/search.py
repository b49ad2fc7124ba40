"""Search: the passages that answer, with the words of the question marked."""

from typing import Annotated
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import Query, Request
from fastapi.responses import RedirectResponse, Response

from holdfast.bootstrap import AppServices
from holdfast.core.records import TENANT
from holdfast.search.searcher import Found
from holdfast.service import originals
from holdfast.service.access import Identity
from holdfast.service.records import Collection
from holdfast.web import rendering, slow_requests
from holdfast.web.parts import Services, access_of

LONGEST = 10_000
HITS = 20

router = rendering.router()


@router.get("/search")
async def search(
    request: Request,
    services: Services,
    who: rendering.Who,
    q: Annotated[str, Query(max_length=LONGEST)] = "",
    collection: str = "",
    suggest: Annotated[str, Query(max_length=LONGEST)] = "",
) -> Response:
    """Show what answers a question. Nothing is looked for, or paid, before somebody asks.

    A link of another site may bring a question along. It stands in its field until the reader sends it, under
    an address that asks nothing however often it is loaded.
    """
    if q.strip() and not access_of(request).is_ours(request):
        suggested = urlencode({"suggest": q, "collection": collection}, errors="replace")
        return RedirectResponse(f"/search?{suggested}", 303)
    if not services.search.waits:
        return await to_thread.run_sync(_answered, request, services, who, (q, suggest), collection)
    async with slow_requests.places(slow_requests.Pool.QUESTIONS).place(who.tenant) as limiter:
        return await to_thread.run_sync(
            _answered, request, services, who, (q, suggest), collection, limiter=limiter
        )


def _answered(
    request: Request, services: AppServices, who: Identity, words: tuple[str, str], collection: str
) -> Response:
    q, suggest = words
    known = services.collections.all(who.tenant)
    chosen = next((each for each in known if each.id == collection), known[0] if known else None)
    result: Found | None = None
    if q.strip() and chosen is not None and TENANT.fullmatch(chosen.id):
        result = services.search.search(who.tenant, chosen.id, q, k=HITS)
    return rendering.page(
        request,
        who,
        "search.html",
        "Search",
        q=q,
        chosen=chosen,
        collections=known,
        found=result,
        paged=_paged(services, who, chosen, result),
        suggest=suggest,
    )


def _paged(services: AppServices, who: Identity, chosen: Collection | None, result: Found | None) -> set[str]:
    """Those of the documents found whose pages can be shown as pictures."""
    if result is None or chosen is None:
        return set()
    ids = {hit.document_id for hit in result.hits}
    views = services.views.some(who.tenant, chosen.id, ids)
    return {view.document.id for view in views if originals.has_pages(view.document)}
