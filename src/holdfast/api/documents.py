"""Documents: upload, read, change, index again, cancel, delete."""

from typing import Annotated, Any, Literal

from fastapi import Header, Query, Request
from fastapi.responses import JSONResponse, Response

from holdfast.api import parameters, routing, schemas_documents, upload_bodies
from holdfast.api.access import (
    DOCUMENT,
    OwnCollection,
    OwnDocument,
    PathCollection,
    PathDocument,
    Reader,
    filtered,
    own_document,
)
from holdfast.api.collections import wish
from holdfast.api.dependencies import Before
from holdfast.api.errors import Problem, problem
from holdfast.api.idempotency import IdempotencyKey, RouteReply, answer_once, fingerprint
from holdfast.api.limits import BodyKind
from holdfast.api.parameters import Services
from holdfast.api.upload_bodies import ContentBody, DocumentBody
from holdfast.bootstrap import AppServices
from holdfast.core import filters, subjects
from holdfast.core.errors import BadRequestError, ConflictError
from holdfast.core.states import Disposition, shown
from holdfast.core.text import plain
from holdfast.service.billing import refusal
from holdfast.service.document_views import MOST_CURSOR, STATUSES, position_of
from holdfast.service.records import Document, DocumentQuery, SortKey
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import UploadResult
from holdfast.web.slow_requests import Pool

router = routing.router("documents")

StatusName = Literal["not_indexed", "queued", "indexing", "success", "failed"]
SortName = Literal[
    "id", "title", "-title", "status", "-status", "updated", "-updated", "pages", "-pages", "cost", "-cost"
]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description='The generation that you have seen, like `"3"`.',
        json_schema_extra={"pattern": r"^(\*|(W/)?\"[0-9]{1,18}\")$"},
    ),
]
TAKEN: dict[int | str, dict[str, Any]] = {
    200: {
        "model": schemas_documents.UploadResponse,
        "description": "Nothing to do: `unchanged`, or `duplicate`.",
    },
    402: {"model": Problem, "description": "The budget is used up."},
}
ASKED: dict[int | str, dict[str, Any]] = {
    **TAKEN,
    409: {"model": Problem, "description": "It is already in progress; `active` names the run."},
    412: {"model": Problem, "description": "The document is at another generation."},
}


def _to_be_indexed(request: Request) -> Document:
    """As `own_document`; a document without content is fetched first, and so waits for its URL's server."""
    document = own_document(request)
    if not document.has_content and document.url is not None:
        request.scope[routing.WAITS] = Pool.FETCHES
    return document


IndexedDocument = Annotated[Document, Before(_to_be_indexed, (DOCUMENT,))]


def expected(header: str | None) -> int | None:
    """The generation of an `If-Match`; None for none, and for any."""
    if header is None or header.strip() == "*":
        return None
    text = header.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadRequestError('If-Match must be one generation in quotes, like "3"', code="bad_if_match")
    return int(text)


def taken(services: AppServices, taking: UploadResult) -> RouteReply:
    """The response to an upload; content that the collection already has is not an error."""
    answer = taking.answer
    view = services.views.view(taking.document)
    if answer.disposition is Disposition.REFUSED:
        code, message = refusal(answer.reason)
        refused = problem(code=code, message=message, document_id=taking.document.id)
        return RouteReply(402, refused)
    run = None
    if answer.run_id is not None and answer.status is not None:
        word = shown(subjects.INDEX, answer.status)
        run = schemas_documents.RunBrief(id=answer.run_id, generation=answer.generation, status=word)
    body = schemas_documents.UploadResponse(
        document=schemas_documents.DocumentResponse.of(view), run=run, disposition=answer.disposition
    )
    return RouteReply(202 if answer.created else 200, body)


def _request_reply(services: AppServices, taking: UploadResult) -> RouteReply:
    """The response to a request for work; 409 if the same work is already in progress."""
    if taking.disposition is not Disposition.DUPLICATE:
        return taken(services, taking)
    view = services.views.view(taking.document)
    active = schemas_documents.Active.of(view)
    duplicate = problem(
        code="duplicate", message=view.in_progress, active=active, document_id=taking.document.id
    )
    return RouteReply(409, duplicate)


@router.post(
    "/collections/{collection_id}/documents",
    status_code=202,
    response_model=schemas_documents.UploadResponse,
    responses={
        **TAKEN,
        412: {
            "model": Problem,
            "description": "The document with this `external_id` is at another generation.",
        },
    },
    openapi_extra=upload_bodies.described(schemas_documents.NewDocument),
)
@filtered
@routing.takes(BodyKind.CONTENT)
def add_document(
    request: Request,
    services: Services,
    collection: OwnCollection,
    caller: Reader,
    handed: DocumentBody,
    key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Response:
    """Upload a file or a text, or add a URL; 200 if the collection already has the same content.

    With an `external_id`, the document of the collection with this id gets the content: a new generation if
    that is new, 200 `unchanged` if not. Title, metadata, labels and options replace its own where they are
    given. `If-Match` is for such documents only.
    """
    mine = RequestContext(
        caller.tenant, caller.actor, handed.lane, handed.priority, handed.max_cost, caller.restriction
    )
    generation = expected(if_match)

    def do() -> RouteReply:
        if handed.url is not None:
            taking = services.documents.add_url(
                mine,
                collection.id,
                handed.url,
                title=handed.title,
                metadata=handed.metadata,
                labels=handed.labels,
                password=handed.password,
                external_id=handed.external_id,
                expect_generation=generation,
            )
            return taken(services, taking)
        add = services.documents.add_to
        return taken(services, add(mine, collection, [handed.upload()], expect_generation=generation)[0])

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, handed.means()), do)


@router.get("/collections/{collection_id}/documents", response_model=schemas_documents.DocumentList)
@filtered
def some_documents(
    services: Services,
    caller: Reader,
    collection: PathCollection,
    status: Annotated[
        StatusName | None, Query(description="Only documents with this `index_status`.")
    ] = None,
    q: Annotated[str, Query(max_length=500, description="Only titles that contain this.")] = "",
    external_id: Annotated[
        str | None, Query(max_length=500, description="Only the document with this external id.")
    ] = None,
    only: parameters.FilterText = None,
    sort: Annotated[SortName, Query(description="Prefix with - for descending order.")] = "id",
    limit: parameters.Limit = 100,
    cursor: Annotated[
        str | None,
        Query(max_length=MOST_CURSOR, description="Where to continue: `next` from the previous page."),
    ] = None,
) -> Response:
    """List the documents of a collection, by id unless `sort` says otherwise."""
    order = SortKey(sort.removeprefix("-"))
    query = DocumentQuery(
        collection.tenant,
        collection.id,
        order,
        sort.startswith("-"),
        STATUSES[status] if status is not None else None,
        plain(q),
        position_of(order, cursor),
        limit,
        filter=filters.both(caller.only, parameters.filter_of(only)),
        external_id=None if external_id is None else plain(external_id),
    )
    views, follows = services.views.listed(query)
    return Response(
        schemas_documents.DocumentList.written(views, follows), media_type=JSONResponse.media_type
    )


@router.get("/documents/{document_id}", response_model=schemas_documents.DocumentResponse)
def one_document(services: Services, document: PathDocument) -> Response:
    """Show a document and the state of its indexing; `ETag` is its generation."""
    body = schemas_documents.DocumentResponse.of(services.views.view(document)).model_dump_json()
    return Response(body, headers={"ETag": f'"{document.generation}"'}, media_type=JSONResponse.media_type)


@router.get("/documents/{document_id}/members", response_model=schemas_documents.Members)
def members(services: Services, caller: Reader, document: PathDocument) -> schemas_documents.Members:
    """List the documents inside an archive or a message, and the ones that contain this document."""
    return schemas_documents.Members.of(services.documents.around(document, only=caller.only))


@router.patch(
    "/documents/{document_id}",
    status_code=202,
    response_model=schemas_documents.UploadResponse,
    responses=ASKED,
)
def change_document(
    request: Request,
    services: Services,
    document: OwnDocument,
    caller: Reader,
    body: schemas_documents.DocumentChange,
    key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Response:
    """Change title, metadata, labels, external id or options; only options make a new generation."""
    most, generation = schemas_documents.nano_dollars(body.max_cost), expected(if_match)
    mine = RequestContext(caller.tenant, caller.actor, body.lane, body.priority, most, caller.restriction)

    def do() -> RouteReply:
        taking = services.documents.change(
            mine,
            document.id,
            title=body.title,
            options=body.options,
            metadata=body.metadata,
            labels=body.labels,
            password=body.password,
            external_id=body.external_id,
            expect_generation=generation,
        )
        return taken(services, taking)

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, body.model_dump_json()), do)


@router.delete("/documents/{document_id}", status_code=204)
def delete_document(services: Services, caller: Reader, document: OwnDocument) -> None:
    """Delete a document; nothing of it is visible or running any more."""
    services.documents.delete(wish(caller), document.id)


@router.delete("/collections/{collection_id}/documents", status_code=204)
@filtered
def delete_by_external_id(
    services: Services,
    caller: Reader,
    collection: OwnCollection,
    external_id: Annotated[str, Query(min_length=1, max_length=500, description="Which document.")],
) -> None:
    """Delete the document of a collection that has this external id."""
    mine = wish(caller)
    document = services.documents.by_external_id(mine, collection.id, external_id)
    services.documents.delete(mine, document.id)


@router.put(
    "/documents/{document_id}/content",
    status_code=202,
    response_model=schemas_documents.UploadResponse,
    responses=ASKED,
    openapi_extra=upload_bodies.described(schemas_documents.NewContent),
)
@routing.takes(BodyKind.CONTENT)
def put_content(
    request: Request,
    services: Services,
    document: OwnDocument,
    caller: Reader,
    handed: ContentBody,
    key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Response:
    """Give a document new content; the old generation answers until the new one is indexed."""
    mine = RequestContext(
        caller.tenant, caller.actor, handed.lane, handed.priority, handed.max_cost, caller.restriction
    )
    generation = expected(if_match)

    def do() -> RouteReply:
        put = services.documents.put_content
        return _request_reply(services, put(mine, document.id, handed.upload(), expect_generation=generation))

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, handed.means()), do)


@router.post(
    "/documents/{document_id}/refresh",
    status_code=202,
    response_model=schemas_documents.UploadResponse,
    responses=ASKED,
)
@routing.waits(Pool.FETCHES)
def refresh_document(
    request: Request,
    services: Services,
    document: OwnDocument,
    caller: Reader,
    body: schemas_documents.RefreshRequest | None = None,
    key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Response:
    """Fetch a document from its URL again."""
    most = schemas_documents.nano_dollars(body.max_cost) if body is not None else None
    mine = RequestContext(
        caller.tenant, caller.actor, schemas_documents.IndexBody().lane, 5, most, caller.restriction
    )
    generation = expected(if_match)
    means = [] if body is None else [body.model_dump_json()]

    def do() -> RouteReply:
        return _request_reply(
            services, services.documents.refresh(mine, document.id, expect_generation=generation)
        )

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, *means), do)


@router.post(
    "/documents/{document_id}/index",
    status_code=202,
    response_model=schemas_documents.UploadResponse,
    responses=ASKED,
)
def index_document(
    request: Request,
    services: Services,
    document: IndexedDocument,
    caller: Reader,
    body: schemas_documents.IndexBody,
    key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Response:
    """Index a document again; 409 names the run that is in progress."""
    most, generation = schemas_documents.nano_dollars(body.max_cost), expected(if_match)
    mine = RequestContext(caller.tenant, caller.actor, body.lane, body.priority, most, caller.restriction)

    def do() -> RouteReply:
        if body.mode == "replace":
            services.documents.end_run(mine, document, expect_generation=generation)
        force = body.mode != "retry"
        return _request_reply(
            services, services.documents.ask(mine, document, force=force, expect_generation=generation)
        )

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, body.model_dump_json()), do)


@router.post(
    "/documents/{document_id}/cancel",
    response_model=schemas_documents.Cancelled,
    responses={
        409: {"model": Problem, "description": "Nothing is queued or running."},
        412: {"model": Problem, "description": "The document is at another generation."},
    },
)
def cancel_document(
    request: Request,
    services: Services,
    document: OwnDocument,
    caller: Reader,
    key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Response:
    """End the live run of a document; what is published stays."""
    generation = expected(if_match)

    def do() -> RouteReply:
        if not services.documents.end_run(wish(caller), document, expect_generation=generation):
            message = (
                f"{document.title} has nothing to cancel; it is {shown(subjects.INDEX, document.status)}"
            )
            raise ConflictError(message, code="nothing_to_cancel")
        view = services.views.view(services.documents.get(caller.tenant, document.id))
        return RouteReply(
            200,
            schemas_documents.Cancelled(document=schemas_documents.DocumentResponse.of(view), cancelled=True),
        )

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request), do)
