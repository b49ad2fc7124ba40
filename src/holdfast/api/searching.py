"""Search over what is published."""

from typing import Annotated, Literal

import pydantic_core
from fastapi import Query
from fastapi.responses import JSONResponse, Response

from holdfast.api import parts, routing
from holdfast.api.access import Reader
from holdfast.api.parts import PartsOf
from holdfast.api.shapes import Shape
from holdfast.core.records import TENANT
from holdfast.search.query import MOST_HITS, Found
from holdfast.web.patience import Pool

LONGEST = 10_000

router = routing.router("search")


class Hit(Shape):
    """A passage that answers."""

    document_id: str
    title: str
    page: int | None
    text: str
    score: float
    generation: int


class Hits(Shape):
    """The passages that answer best; `legs` says whether words, vectors or both have decided."""

    hits: list[Hit]
    legs: list[str]

    @staticmethod
    def written(found: Found) -> bytes:
        """The hits as they go over the wire."""
        hits = [{name: getattr(one, name) for name in SHOWN} for one in found.hits]
        return pydantic_core.to_json({"hits": hits, "legs": found.legs})


SHOWN = tuple(Hit.model_fields)


@router.get("/search", response_model=Hits)
@routing.waits(Pool.QUESTIONS, lambda request: parts.of(request).searching.waits)
def search(
    its: PartsOf,
    caller: Reader,
    collection: parts.CollectionName,
    q: Annotated[str, Query(min_length=1, max_length=LONGEST, description="What to look for.")],
    k: Annotated[int, Query(ge=1, le=MOST_HITS, description="How many hits.")] = 10,
    mode: Annotated[Literal["hybrid", "keyword", "vector"], Query()] = "hybrid",
    document: Annotated[list[str] | None, Query(max_length=100, description="Only these.")] = None,
) -> Response:
    """Find the passages that answer best, by words and by meaning."""
    # What has the form of no id is no document, and nothing that a database should see.
    wanted = None if document is None else [each for each in document if TENANT.fullmatch(each)]
    found = its.searching.search(caller.tenant, collection, q, k=k, documents=wanted, mode=mode)
    return Response(Hits.written(found), media_type=JSONResponse.media_type)
