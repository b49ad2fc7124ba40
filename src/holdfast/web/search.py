"""Search: matching passages, with the words of the query highlighted."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import Query, Request
from fastapi.responses import RedirectResponse, Response

from holdfast.bootstrap import AppServices
from holdfast.core import filters
from holdfast.core.errors import BadRequestError, ConflictError
from holdfast.core.records import TENANT
from holdfast.search.hits import Hit
from holdfast.service import originals, search_pages
from holdfast.service.access import Identity
from holdfast.service.search_pages import (
    MOST_COLLECTIONS,
    MOST_OFFSET,
    QuestionMode,
    SearchPage,
    SearchRequest,
)
from holdfast.web import rendering, slow_requests
from holdfast.web.page_access import Services, access_of

LONGEST = 10_000
HITS = 20

EVERYWHERE = "*"
MODES = {
    "hybrid": "Words and meaning",
    "keyword": "Words only",
    "vector": "Meaning only",
    "local": "Graph: entities and relations",
    "global": "Graph: reports",
}

router = rendering.router()


@dataclass(frozen=True, slots=True)
class PageQuery:
    """What the form of the search asks for."""

    q: str
    collection: str
    filter: str = ""
    group: bool = False
    offset: int = 0
    mode: QuestionMode = "hybrid"

    def request(self, tenant: str, collections: list[str]) -> SearchRequest:
        """The search; BadRequestError for a filter that cannot be used."""
        only = filters.read(self.filter) if self.filter else None
        mode, graph = search_pages.modes(self.mode)
        return SearchRequest(
            tenant,
            collections,
            self.q,
            k=HITS,
            offset=self.offset,
            only=only,
            mode=mode,
            grouped=self.group,
            graph=graph,
        )

    def at(self, offset: int) -> str:
        """The URL of another page of the same hits."""
        fields = {"q": self.q, "collection": self.collection, "filter": self.filter}
        fields |= {"group": "1"} if self.group else {}
        fields |= {"mode": self.mode} if self.mode != "hybrid" else {}
        return "/search?" + urlencode(fields | {"offset": str(offset)}, errors="replace")


@router.get("/search")
async def search(
    request: Request,
    services: Services,
    who: rendering.Who,
    q: Annotated[str, Query(max_length=LONGEST)] = "",
    collection: str = "",
    suggest: Annotated[str, Query(max_length=LONGEST)] = "",
    only: Annotated[str, Query(alias="filter", max_length=filters.MOST_TEXT)] = "",
    group: str = "",
    offset: Annotated[int, Query(ge=0, le=MOST_OFFSET)] = 0,
    mode: QuestionMode = "hybrid",
) -> Response:
    """Show what answers a question. Nothing is looked for, or paid, before somebody asks.

    A link of another site may bring a question along. It stands in its field until the reader sends it, under
    an address that asks nothing however often it is loaded.
    """
    if q.strip() and not access_of(request).is_ours(request):
        suggested = urlencode({"suggest": q, "collection": collection}, errors="replace")
        return RedirectResponse(f"/search?{suggested}", 303)
    query = PageQuery(q, collection, only.strip(), bool(group), offset, mode)
    if not services.search.waits:
        return await to_thread.run_sync(_answered, request, services, who, query, suggest)
    async with slow_requests.places(slow_requests.Pool.QUESTIONS).place(who.tenant) as limiter:
        return await to_thread.run_sync(_answered, request, services, who, query, suggest, limiter=limiter)


def _answered(
    request: Request, services: AppServices, who: Identity, query: PageQuery, suggest: str
) -> Response:
    known = services.collections.all(who.tenant)
    chosen = next((each for each in known if each.id == query.collection), known[0] if known else None)
    everywhere = query.collection == EVERYWHERE
    names = [each.id for each in known][:MOST_COLLECTIONS] if everywhere else [chosen.id] if chosen else []
    result: SearchPage | None = None
    problem = ""
    if query.q.strip() and all(map(TENANT.fullmatch, names)) and names:
        try:
            result = services.search.find(query.request(who.tenant, names))
        except (BadRequestError, ConflictError) as error:
            problem = error.message
    return rendering.page(
        request,
        who,
        "search.html",
        "Search",
        q=query.q,
        query=query,
        everywhere=everywhere,
        problem=problem,
        hits=HITS,
        modes=MODES,
        chosen=chosen,
        collections=known,
        found=result,
        paged=_paged(services, who, result),
        suggest=suggest,
    )


def _paged(services: AppServices, who: Identity, result: SearchPage | None) -> set[str]:
    """Those of the documents found whose pages can be shown as pictures."""
    if result is None:
        return set()
    hits: list[Hit] = [*result.hits, *(hit for group in result.groups for hit in group.hits)]
    ids: dict[str, set[str]] = {}
    for hit in hits:
        ids.setdefault(hit.collection, set()).add(hit.document_id)
    views = [view for name, some in ids.items() for view in services.views.some(who.tenant, name, some)]
    return {view.document.id for view in views if originals.has_pages(view.document)}
