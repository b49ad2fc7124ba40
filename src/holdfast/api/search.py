"""Search over what is published."""

from typing import Annotated, Any, Literal

import pydantic_core
from fastapi import Query
from fastapi.responses import JSONResponse, Response

from holdfast.api import parts, routing
from holdfast.api.access import Reader, filtered
from holdfast.api.parts import Services
from holdfast.api.schemas_documents import Shape
from holdfast.core import filters
from holdfast.core.records import TENANT
from holdfast.search.searcher import MOST_HITS, Found, QualityNotice
from holdfast.web.slow_requests import Pool

LONGEST = 10_000

router = routing.router("search")


class HitResponse(Shape):
    """A passage that answers. `source` is where it was found: `chunks`, or what a kind made searchable."""

    document_id: str
    title: str
    page: int | None
    text: str
    score: float
    generation: int
    source: str


class SearchNotice(Shape):
    """Why an answer is not as good as it could be.

    `not_embedded`: the provider could not embed the question, only words were looked for. `other_model`: so
    many `documents` were embedded by another provider or model, and are found by their words alone.
    `estimate` is the request that says what it costs to index them again, `start` the one that does it.
    """

    code: str
    message: str
    documents: int
    estimate: dict[str, Any] | None
    start: dict[str, Any] | None


class Hits(Shape):
    """The passages that answer best; `legs` says whether words, vectors or both have decided.

    `notices` is empty where nothing is amiss.
    """

    hits: list[HitResponse]
    legs: list[str]
    notices: list[SearchNotice]

    @staticmethod
    def written(result: Found, collection: str) -> bytes:
        """The hits as they go over the wire."""
        hits = [{name: getattr(one, name) for name in SHOWN} for one in result.hits]
        notices = [_notice(each, collection) for each in result.notices]
        return pydantic_core.to_json({"hits": hits, "legs": result.legs, "notices": notices})


def _notice(notice: QualityNotice, collection: str) -> dict[str, Any]:
    about: dict[str, Any] = {"code": notice.code, "message": notice.message, "documents": notice.documents}
    if not notice.documents:
        return about | {"estimate": None, "start": None}
    estimate = {"method": "POST", "path": "/api/v1/estimate", "body": {"collection": collection}}
    path = f"/api/v1/collections/{collection}"
    return about | {"estimate": estimate, "start": {"method": "PATCH", "path": path, "body": {"options": {}}}}


SHOWN = tuple(HitResponse.model_fields)


@router.get("/search", response_model=Hits)
@filtered
@routing.waits(Pool.QUESTIONS, lambda request: parts.of(request).search.waits)
def search(
    services: Services,
    caller: Reader,
    collection: parts.CollectionName,
    q: Annotated[str, Query(min_length=1, max_length=LONGEST, description="The search query.")],
    k: Annotated[int, Query(ge=1, le=MOST_HITS, description="How many hits.")] = 10,
    mode: Annotated[Literal["hybrid", "keyword", "vector"], Query()] = "hybrid",
    document: Annotated[list[str] | None, Query(max_length=100, description="Only these.")] = None,
    source: Annotated[list[str] | None, Query(max_length=20, description="Only in these sources.")] = None,
    only: parts.FilterText = None,
) -> Response:
    """Find the passages that answer best, by words and by meaning."""
    # What has the form of no id is no document, and nothing that a database should see.
    documents = None if document is None else [each for each in document if TENANT.fullmatch(each)]
    result = services.search.search(
        caller.tenant,
        collection,
        q,
        k=k,
        documents=documents,
        only=filters.both(caller.only, parts.filter_of(only)),
        mode=mode,
        sources=source,
    )
    return Response(Hits.written(result, collection), media_type=JSONResponse.media_type)
