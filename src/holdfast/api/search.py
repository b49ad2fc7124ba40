"""Search over what is published."""

from dataclasses import asdict
from typing import Annotated, Any

import pydantic_core
from fastapi import Query
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from holdfast.api import parameters, routing
from holdfast.api.access import Reader, filtered
from holdfast.api.parameters import Services
from holdfast.api.schemas_answers import AnswerCostResponse
from holdfast.api.schemas_documents import Rerank, Shape
from holdfast.bootstrap import AppServices
from holdfast.core import filters
from holdfast.core.errors import BadRequestError
from holdfast.core.filters import Filter
from holdfast.core.records import TENANT
from holdfast.search.hits import Hit, QualityNotice
from holdfast.search.searcher import MOST_HITS
from holdfast.service import search_pages
from holdfast.service.access import Identity
from holdfast.service.answers import AnswerCost
from holdfast.service.search_pages import (
    MOST_COLLECTIONS,
    MOST_OFFSET,
    LikeThis,
    QuestionMode,
    SearchPage,
    SearchRequest,
)
from holdfast.web.slow_requests import Pool

LONGEST = 10_000
MODES = (
    "By words and meaning (`hybrid`) or by one of them; by the knowledge graph: passages that entities and "
    "relations of the question lead to (`local`), or reports on communities (`global`)."
)

router = routing.router("search")


class PathStepResponse(Shape):
    """An entity, a relation or a report of the knowledge graph that led to a hit."""

    type: str
    key: str
    title: str


class HitPassageResponse(Shape):
    """A passage that a report rests on."""

    document_id: str
    title: str
    page: int | None
    chunk: str
    generation: int
    text: str


class HitResponse(Shape):
    """A passage that answers. `source` is where it was found: `chunks`, or what a kind made searchable.

    `marks` are the places of the question's words in `text`, as (from, to) in characters. `weak` says that
    it has few of the words and little of the meaning. `edited`: a person replaced its text. `chunk` names it
    for `like`; null where it is no chunk.
    `relevance` is what a reranking model says of it; null where none was asked.
    `type` is `chunk`, or for instance `summary`: then `node` names it in `GET /collections/{id}/tree`, and
    `covers` are the documents that it is about, at most 20 of them. In the mode `local`, `path` has the
    entity and the relation that led to the passage; in `global` a hit is a `report`, which `node` names in
    `GET /collections/{id}/graph/communities/{node}`, and `passages` are those it rests on. `fields`
    are those that the collection's flow publishes; empty without one.
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
    path: list[PathStepResponse]
    passages: list[HitPassageResponse]
    chunk: str | None
    weak: bool
    edited: bool
    relevance: float | None
    marks: list[Annotated[list[int], Field(min_length=2, max_length=2)]]
    fields: dict[str, Any]


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
    `not_reranked`: the provider could not rank the hits, which are in their own order.
    """

    code: str
    message: str
    documents: int
    estimate: dict[str, Any] | None
    start: dict[str, Any] | None


class Hits(Shape):
    """The passages that answer best; `legs` says whether words, vectors or both have decided.

    `notices` is empty where nothing is amiss. With `group`, `hits` is empty and `groups` has the documents.
    `next_offset` is the `offset` of the next page; null on the last. `cost` is that of embedding the question
    and ranking the hits.
    """

    hits: list[HitResponse]
    groups: list[HitGroup]
    legs: list[str]
    notices: list[SearchNotice]
    next_offset: int | None
    cost: AnswerCostResponse

    @staticmethod
    def written(page: SearchPage, collection: str) -> bytes:
        """The hits as they go over the wire."""
        groups = [
            {name: getattr(each, name) for name in GROUP} | {"hits": list(map(_hit, each.hits))}
            for each in page.groups
        ]
        notices = [_notice(each, collection) for each in page.notices]
        reply = {"hits": list(map(_hit, page.hits)), "groups": groups, "legs": page.legs, "notices": notices}
        cost = AnswerCostResponse.of(AnswerCost.of(page.spent)).model_dump()
        return pydantic_core.to_json(reply | {"next_offset": page.next_offset, "cost": cost})


GROUP = ("document_id", "title", "collection", "score")
OTHERS = ("chunk", "path", "passages")
SHOWN = tuple(name for name in HitResponse.model_fields if name not in OTHERS)


def _hit(hit: Hit) -> dict[str, Any]:
    chunk = f"{hit.document_id}@{hit.slice}.{hit.position}" if hit.chunk_id else None
    graph = {"path": list(map(asdict, hit.path)), "passages": list(map(asdict, hit.passages))}
    return {name: getattr(hit, name) for name in SHOWN} | {"chunk": chunk} | graph


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
    mode: QuestionMode = "hybrid"
    documents: Annotated[list[str], Field(max_length=100)] | None = None
    sources: Annotated[list[str], Field(max_length=20)] | None = None
    filter: dict[str, Any] | None = None
    rerank: Rerank = None


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
    mode, graph = search_pages.modes(body.mode)
    request = SearchRequest(
        caller.tenant,
        [parameters.valid_id(each) for each in body.collections],
        body.q,
        like,
        body.k,
        body.offset,
        documents,
        filters.both(caller.only, only),
        mode,
        body.sources,
        body.group,
        body.rerank,
        graph=graph,
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
    mode: Annotated[QuestionMode, Query(description=MODES)] = "hybrid",
    document: Annotated[list[str] | None, Query(max_length=100, description="Only these.")] = None,
    source: Annotated[list[str] | None, Query(max_length=20, description="Only in these sources.")] = None,
    only: parameters.FilterText = None,
    rerank: Annotated[
        str | None,
        Query(max_length=100, description="`true`, or the name of a provider: it ranks the hits. May cost."),
    ] = None,
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
        rerank={"": None, "true": True, "false": False}.get(rerank or "", rerank),
    )
    return _answer(services, caller, body, parameters.filter_of(only))


@router.post("/search", response_model=Hits)
@filtered
@routing.waits(Pool.QUESTIONS, lambda request: parameters.services_of(request).search.waits)
def search_by_body(services: Services, caller: Reader, body: SearchBody) -> Response:
    """Find as `GET /search` does, for questions and filters that are too long for a URL."""
    only = None if body.filter is None else filters.parse(body.filter)
    return _answer(services, caller, body, only)
