"""Search over what is published."""

from typing import Annotated, Any, Literal

import pydantic_core
from fastapi import Query
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from holdfast.api import parameters, routing
from holdfast.api.access import Reader, filtered
from holdfast.api.parameters import Services
from holdfast.api.schemas_documents import Shape
from holdfast.bootstrap import AppServices
from holdfast.core import filters
from holdfast.core.errors import BadRequestError
from holdfast.core.filters import Filter
from holdfast.core.records import TENANT
from holdfast.search.searcher import MOST_HITS, Hit, QualityNotice
from holdfast.service.access import Identity
from holdfast.service.search_pages import MOST_COLLECTIONS, MOST_OFFSET, LikeThis, SearchPage, SearchRequest
from holdfast.web.slow_requests import Pool

LONGEST = 10_000

router = routing.router("search")


class HitResponse(Shape):
    """A passage that answers. `source` is where it was found: `chunks`, or what a kind made searchable.

    `marks` are the places of the question's words in `text`, as (from, to) in characters. `weak` says that
    it has few of the words and little of the meaning. `edited`: a person replaced its text. `chunk` names it
    for `like`; null where it is no chunk.
    `type` is `chunk`, or for instance `summary`: then `node` names it in `GET /collections/{id}/tree`, and
    `covers` are the documents that it is about, at most 20 of them.
    """

    document_id: str
    title: str
    collection: str
    page: int | None
    text: str
    score: float
    generation: int
    source: str
    type: str
    node: str | None
    covers: list[str]
    chunk: str | None
    weak: bool
    edited: bool
    marks: list[Annotated[list[int], Field(min_length=2, max_length=2)]]


class HitGroup(Shape):
    """A document with its best passages."""

    document_id: str
    title: str
    collection: str
    score: float
    hits: list[HitResponse]


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

    `notices` is empty where nothing is amiss. With `group`, `hits` is empty and `groups` has the documents.
    `next_offset` is the `offset` of the next page; null on the last.
    """

    hits: list[HitResponse]
    groups: list[HitGroup]
    legs: list[str]
    notices: list[SearchNotice]
    next_offset: int | None

    @staticmethod
    def written(page: SearchPage, collection: str) -> bytes:
        """The hits as they go over the wire."""
        groups = [
            {name: getattr(each, name) for name in GROUP} | {"hits": list(map(_hit, each.hits))}
            for each in page.groups
        ]
        notices = [_notice(each, collection) for each in page.notices]
        reply = {"hits": list(map(_hit, page.hits)), "groups": groups, "legs": page.legs, "notices": notices}
        return pydantic_core.to_json(reply | {"next_offset": page.next_offset})


GROUP = ("document_id", "title", "collection", "score")
SHOWN = tuple(name for name in HitResponse.model_fields if name != "chunk")


def _hit(hit: Hit) -> dict[str, Any]:
    chunk = f"{hit.document_id}@{hit.slice}.{hit.position}" if hit.chunk_id else None
    return {name: getattr(hit, name) for name in SHOWN} | {"chunk": chunk}


def _notice(notice: QualityNotice, collection: str) -> dict[str, Any]:
    about: dict[str, Any] = {"code": notice.code, "message": notice.message, "documents": notice.documents}
    if not notice.documents:
        return about | {"estimate": None, "start": None}
    estimate = {"method": "POST", "path": "/api/v1/estimate", "body": {"collection": collection}}
    path = f"/api/v1/collections/{collection}"
    return about | {"estimate": estimate, "start": {"method": "PATCH", "path": path, "body": {"options": {}}}}


class SearchBody(Shape):
    """A question to one or several collections; or `like`, a document (or chunk) that hits should be like."""

    collections: Annotated[list[str], Field(min_length=1, max_length=MOST_COLLECTIONS)]
    q: Annotated[str, Field(max_length=LONGEST)] = ""
    like: Annotated[str, Field(max_length=100)] | None = None
    k: Annotated[int, Field(ge=1, le=MOST_HITS)] = 10
    offset: Annotated[int, Field(ge=0, le=MOST_OFFSET)] = 0
    group: bool = False
    mode: Literal["hybrid", "keyword", "vector"] = "hybrid"
    documents: Annotated[list[str], Field(max_length=100)] | None = None
    sources: Annotated[list[str], Field(max_length=20)] | None = None
    filter: dict[str, Any] | None = None


def _answer(services: AppServices, caller: Identity, body: SearchBody, only: Filter | None) -> Response:
    if (body.like is None) == (not body.q):
        raise BadRequestError("send a question as `q`, or `like`, and not both", code="bad_request")
    like = None if body.like is None else LikeThis.read(body.like)
    if like is not None:
        services.documents.get(caller.tenant, like.document_id, only=caller.only)
    # What has the form of no id is no document, and nothing that a database should see.
    documents = (
        None if body.documents is None else [each for each in body.documents if TENANT.fullmatch(each)]
    )
    request = SearchRequest(
        caller.tenant,
        [parameters.valid_id(each) for each in body.collections],
        body.q,
        like,
        body.k,
        body.offset,
        documents,
        filters.both(caller.only, only),
        body.mode,
        body.sources,
        body.group,
    )
    page = services.search.find(request)
    return Response(Hits.written(page, body.collections[0]), media_type=JSONResponse.media_type)


@router.get("/search", response_model=Hits)
@filtered
@routing.waits(Pool.QUESTIONS, lambda request: parameters.services_of(request).search.waits)
def search(
    services: Services,
    caller: Reader,
    collection: Annotated[
        list[str], Query(min_length=1, max_length=MOST_COLLECTIONS, description="Ids of collections.")
    ],
    q: Annotated[str | None, Query(min_length=1, max_length=LONGEST, description="The search query.")] = None,
    like: Annotated[
        str | None,
        Query(max_length=100, description="Instead of `q`: a document, or a `chunk`, that hits are like."),
    ] = None,
    k: Annotated[int, Query(ge=1, le=MOST_HITS, description="How many hits.")] = 10,
    offset: Annotated[int, Query(ge=0, le=MOST_OFFSET, description="How many hits to skip.")] = 0,
    group: Annotated[bool, Query(description="The best hits of each document together.")] = False,
    mode: Annotated[Literal["hybrid", "keyword", "vector"], Query()] = "hybrid",
    document: Annotated[list[str] | None, Query(max_length=100, description="Only these.")] = None,
    source: Annotated[list[str] | None, Query(max_length=20, description="Only in these sources.")] = None,
    only: parameters.FilterText = None,
) -> Response:
    """Find the passages that answer best, by words and by meaning."""
    body = SearchBody(
        collections=collection,
        q=q or "",
        like=like,
        k=k,
        offset=offset,
        group=group,
        mode=mode,
        documents=document,
        sources=source,
    )
    return _answer(services, caller, body, parameters.filter_of(only))


@router.post("/search", response_model=Hits)
@filtered
@routing.waits(Pool.QUESTIONS, lambda request: parameters.services_of(request).search.waits)
def search_by_body(services: Services, caller: Reader, body: SearchBody) -> Response:
    """Find as `GET /search` does, for questions and filters that are too long for a URL."""
    only = None if body.filter is None else filters.parse(body.filter)
    return _answer(services, caller, body, only)
